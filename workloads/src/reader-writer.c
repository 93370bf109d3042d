/*
 * reader-writer: threads that mostly read what one of them sometimes changes.
 *
 * A table under a readers-writer lock: every --every-th visit writes it anew,
 * all others read it, many at a time. A writer waits for all readers, and a
 * writer that is off its CPU stops all others: contention that comes in waves.
 *
 * Check: a write gives all words of the table the same next version; a reader
 * must find them all alike and never older than before. In the end the version
 * is the number of writes.
 */
#include "random.h"
#include "team.h"

#define WORDS 64
#define VISIT_NANOSECONDS 200.0 /* of the table and of an uncontended lock */

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int64_t table[WORDS]; /* under the lock */
static int64_t every, gap, turns;

static int64_t read_table(bool *alike)
{
    pthread_rwlock_rdlock(&lock);
    int64_t version = table[0];
    for (int i = 1; i < WORDS; i++)
        *alike &= table[i] == version;
    pthread_rwlock_unlock(&lock);
    return version;
}

static void write_table(void)
{
    pthread_rwlock_wrlock(&lock);
    for (int i = 0; i < WORDS; i++)
        table[i]++;
    pthread_rwlock_unlock(&lock);
}

/* Tallies its writes, or -1 once it has seen what it must not see. */
static void visit(struct member *me)
{
    bool fine = true;
    int64_t writes = 0, seen = 0;
    for (int64_t i = 0; i < turns; i++) {
        /* Each starts elsewhere, so that they do not all write at once. */
        if ((i + me->number) % every == 0) {
            write_table();
            writes++;
        } else {
            int64_t version = read_table(&fine);
            fine &= version >= seen;
            seen = version;
        }
        me->state = random_walk(me->state, gap);
    }
    me->tally = fine ? writes : -1;
}

int main(int argc, char **argv)
{
    double visits_per_write = 20, gap_nanoseconds = 1000;
    const struct knob knobs[] = {
        {"--every", &visits_per_write, true, "one visit in so many is a write"},
        {"--gap", &gap_nanoseconds, false, "nanoseconds between two visits, about", .zero = true},
        {0}};
    begin(argc, argv, "reader-writer", "pthreads that share a table under a readers-writer lock", knobs);

    int size = team_size();
    every = (int64_t)visits_per_write;
    gap = (int64_t)(gap_nanoseconds * STEPS_PER_MICROSECOND / 1e3);
    /* The sum over the threads stays, however many there are. */
    turns = repetitions(work, 2e9 / (gap_nanoseconds + VISIT_NANOSECONDS) / size);
    struct member *team = run_team(size, visit);

    table[WORDS / 2] += spoilt();
    bool right = true;
    int64_t writes = 0;
    uint64_t checksum = 0;
    for (int i = 0; i < size; i++) {
        right &= team[i].tally >= 0;
        right &= team[i].state == random_jump((uint64_t)i, (uint64_t)(turns * gap));
        writes += team[i].tally;
        checksum += team[i].state;
    }
    for (int i = 0; i < WORDS; i++)
        right &= table[i] == writes;
    free(team);
    return report(right, checksum);
}
