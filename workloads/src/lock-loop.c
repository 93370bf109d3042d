/*
 * lock-loop: threads that fight for one lock.
 *
 * Every thread takes the one mutex, computes for --hold, gives it back, and
 * computes for --gap: the microbenchmark of the paper on faithful scheduling
 * (section IV), with a critical section of about 300 ns and a gap that is
 * varied. A gap of hold x threads keeps the lock just busy. With less of it a
 * thread always waits, and what a scheduler does to the thread that holds the
 * lock decides the rate. It uses plain pthreads, as servers do.
 *
 * With --locks there are several, and each thread keeps to one of them: the
 * first threads to the first lock, and so on, as pools of workers do. A
 * scheduler that divides the threads well then has locks that never leave a
 * CPU, while the threads all wait equally long.
 *
 * There the critical section reads a clock; here it goes on with the thread's
 * chain, so that it can be checked.
 *
 * Check: the counter that a lock protects is an ordinary integer; not one
 * increment may be lost. And each chain must end where the closed form says.
 */
#include "random.h"
#include "team.h"

#define MOST_LOCKS 64
#define LOCK_NANOSECONDS 60.0 /* to take and release an uncontended lock */

/* A lock, and in the next cache line what is under it. */
static struct {
    _Alignas(64) pthread_mutex_t lock;
    _Alignas(64) volatile int64_t counter;
} places[MOST_LOCKS];
static double locks = 1;
static int64_t hold, gap, turns;
static int size;

static void contend(struct member *me)
{
    int place = me->number * (int)locks / size;
    pthread_mutex_t *lock = &places[place].lock;
    volatile int64_t *counter = &places[place].counter;
    for (int64_t i = 0; i < turns; i++) {
        pthread_mutex_lock(lock);
        /* Read long before it is written: without the lock, hardly an increment would survive. */
        int64_t found = *counter;
        me->state = random_walk(me->state, hold);
        *counter = found + 1;
        pthread_mutex_unlock(lock);
        me->state = random_walk(me->state, gap);
    }
}

int main(int argc, char **argv)
{
    double hold_nanoseconds = 300, gap_nanoseconds = 3000;
    const struct knob knobs[] = {
        {"--hold", &hold_nanoseconds, false, "nanoseconds with the lock, about"},
        {"--gap", &gap_nanoseconds, false, "nanoseconds without the lock, about", .zero = true},
        {"--locks", &locks, true, "locks, each for some of the threads", .most = MOST_LOCKS},
        {0}};
    begin(argc, argv, "lock-loop", "pthreads that take and release one mutex", knobs);

    size = team_size();
    hold = repetitions(hold_nanoseconds, STEPS_PER_MICROSECOND / 1e3);
    gap = (int64_t)(gap_nanoseconds * STEPS_PER_MICROSECOND / 1e3);
    /* The sum over the threads stays, however many there are. */
    turns = repetitions(work, 2e9 / (hold_nanoseconds + gap_nanoseconds + LOCK_NANOSECONDS) / size);
    for (int i = 0; i < (int)locks; i++)
        pthread_mutex_init(&places[i].lock, NULL);
    double since = seconds_now();
    struct member *team = run_team(size, contend);
    double took = seconds_now() - since;

    int64_t counted = spoilt();
    for (int i = 0; i < (int)locks; i++)
        counted += places[i].counter;
    double rate = (double)counted / took;
    bool right = counted == turns * size;
    uint64_t checksum = 0;
    for (int i = 0; i < size; i++) {
        right &= team[i].state == random_jump((uint64_t)i, (uint64_t)(turns * (hold + gap)));
        checksum += team[i].state;
    }
    free(team);
    return report_with(right, checksum, "acquisitions_per_second", rate);
}
