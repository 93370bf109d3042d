/*
 * phases: a program that changes its nature while it runs.
 *
 * The team computes for a while, streams through memory for a while, fights
 * for one lock for a while, and starts over, with a barrier between phases.
 * What was learned about it in one phase is wrong in the next: the test for
 * everything that profiles programs while they run. A phase of length zero is
 * left out; as the knobs stand, computing and memory alternate.
 *
 * Check: the chains must end where the closed form says, every element must
 * have been counted up once per sweep, and no increment under the lock be lost.
 */
#include <pthread.h>

#include "common.h"
#include "random.h"

/* Lengths are those on two CPUs of 2.5 GHz; the sum over the threads stays, however many there are. */
#define STEPS_PER_MILLISECOND (2e3 * STEPS_PER_MICROSECOND)
#define ELEMENTS (INT64_C(12) << 20) /* 96 MiB */
#define SWEEPS_PER_MILLISECOND 0.08
#define HOLD_NANOSECONDS 300.0
#define TURNS_PER_MILLISECOND 2500.0

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int64_t counter; /* under the lock */
static const int64_t hold = (int64_t)(HOLD_NANOSECONDS * STEPS_PER_MICROSECOND / 1e3);

static void stream(int64_t *elements)
{
#pragma omp for schedule(static)
    for (int64_t i = 0; i < ELEMENTS; i++)
        elements[i]++;
}

static uint64_t contend(uint64_t state)
{
    pthread_mutex_lock(&lock);
    /* Read long before it is written: without the lock, hardly an increment would survive. */
    int64_t found = counter;
    state = random_walk(state, hold);
    counter = found + 1;
    pthread_mutex_unlock(&lock);
    return state;
}

int main(int argc, char **argv)
{
    double computing = 100, memory = 100, locking = 0;
    const struct knob knobs[] = {
        {"--compute", &computing, false, "milliseconds of computing at a time, about", .zero = true},
        {"--memory", &memory, false, "milliseconds of streaming through 96 MiB, about", .zero = true},
        {"--lock", &locking, false, "milliseconds of fighting for a lock, about", .zero = true},
        {0}};
    begin(argc, argv, "phases", "OpenMP threads that compute, stream and fight in turn", knobs);
    if (computing + memory + locking <= 0) {
        fputs("phases: one of --compute, --memory and --lock must be above 0\n", stderr);
        return 2;
    }

    int64_t rounds = repetitions(work, 1e3 / (computing + memory + locking));
    int64_t sweeps = memory > 0 ? repetitions(memory, SWEEPS_PER_MILLISECOND) : 0;
    int64_t *elements = allocate(ELEMENTS, sizeof *elements);
    int64_t steps = 0, turns = 0; /* per thread and round */
    int size = 0;
    bool right = true;
    uint64_t checksum = 0;

#pragma omp parallel reduction(&& : right) reduction(+ : checksum)
    {
#pragma omp single
        {
            size = omp_get_num_threads();
            steps = (int64_t)(computing * STEPS_PER_MILLISECOND) / size;
            turns = (int64_t)(locking * TURNS_PER_MILLISECOND) / size;
        }
#pragma omp for schedule(static)
        for (int64_t i = 0; i < ELEMENTS; i++)
            elements[i] = 0;

        uint64_t first = (uint64_t)omp_get_thread_num(), state = first;
        for (int64_t round = 0; round < rounds; round++) {
            state = random_walk(state, steps);
#pragma omp barrier
            for (int64_t sweep = 0; sweep < sweeps; sweep++)
                stream(elements);
            for (int64_t turn = 0; turn < turns; turn++)
                state = contend(state);
#pragma omp barrier
        }
        right = state == random_jump(first, (uint64_t)(rounds * (steps + turns * hold)));
        checksum += state;
    }

    elements[ELEMENTS / 2] += spoilt();
    right &= counter == rounds * turns * size;
    int64_t wrong = 0;
#pragma omp parallel for schedule(static) reduction(+ : wrong)
    for (int64_t i = 0; i < ELEMENTS; i++)
        wrong += elements[i] != rounds * sweeps;
    free(elements);
    return report(right && wrong == 0, checksum);
}
