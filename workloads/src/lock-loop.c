/*
 * lock-loop: threads that fight for one lock.
 *
 * Every thread takes the one mutex, computes for a while, gives it back, and
 * computes for another while. hold/gap decides how contended the lock is:
 * with 100/1000 and two threads it is mostly free, with 1000/1000 and four
 * threads somebody always waits. What a scheduler does to the thread that
 * holds the lock then decides the rate. It uses plain pthreads, as servers do.
 *
 * Check: the counter that the lock protects is an ordinary integer; not one
 * increment may be lost.
 */
#include <pthread.h>

#include "common.h"
#include "random.h"

#define NAME "lock-loop"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t counter; /* under the lock */
static int64_t hold, gap, turns;

static void *contend(void *state)
{
    uint64_t *mine = state;
    for (int64_t i = 0; i < turns; i++) {
        pthread_mutex_lock(&lock);
        counter++;
        *mine = random_walk(*mine, hold);
        pthread_mutex_unlock(&lock);
        *mine = random_walk(*mine, gap);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const char *wanted = getenv("OMP_NUM_THREADS");
    double threads = wanted && atoi(wanted) > 0 ? fmin(atoi(wanted), MOST_THREADS) : 2;
    double work = 1, hold_steps = 100, gap_steps = 1000;
    const struct knob knobs[] = {
        {"--threads", &threads, true, "threads; OMP_NUM_THREADS counts too"}, WORK_KNOB(work),
        {"--hold", &hold_steps, true, "loop turns with the lock"},
        {"--gap", &gap_steps, true, "loop turns without the lock"},
        {0}};
    read_knobs(argc, argv, NAME, "threads that take and release one mutex, with pthreads", knobs);

    double start = seconds_now();
    int team = (int)threads;
    hold = (int64_t)hold_steps;
    gap = (int64_t)gap_steps;
    /* The sum over the threads stays, however many there are. */
    turns = repetitions(work, 2e6 * STEPS_PER_MICROSECOND / (hold_steps + gap_steps + 40) / team);

    /* A cache line each, so that the lock is the only thing shared. */
    struct { _Alignas(64) uint64_t state; pthread_t thread; } *members;
    members = allocate((size_t)team, sizeof *members);
    for (int i = 0; i < team; i++) {
        members[i].state = (uint64_t)i;
        int error = pthread_create(&members[i].thread, NULL, contend, &members[i].state);
        if (error) {
            fprintf(stderr, NAME ": thread %d: %s\n", i, strerror(error));
            return 1;
        }
    }
    bool right = true;
    uint64_t checksum = 0;
    for (int i = 0; i < team; i++) {
        pthread_join(members[i].thread, NULL);
        right &= members[i].state == random_jump((uint64_t)i, (uint64_t)(turns * (hold + gap)));
        checksum += members[i].state;
    }
    free(members);
    printf(NAME " acquisitions=%" PRId64 " per_second=%.0f\n", counter,
           (double)counter / (seconds_now() - start));
    return report(NAME, right && counter == turns * team, checksum, start);
}
