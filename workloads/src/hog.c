/*
 * hog: threads that compute, for a time if that is wanted, and never wait for others.
 *
 * Each takes whatever a scheduler gives it: the co-runner that tells how much a
 * program beside it leaves over. (compute does a fixed amount of work together.)
 *
 * Check: each thread's chain must end where the closed form says.
 */
#include "common.h"
#include "random.h"

#define ROUND_MICROSECONDS 100 /* between two looks at the clock, about */

/* A cache line each, so that nothing is shared. */
struct member {
    _Alignas(64) uint64_t state;
    int64_t rounds;
};

int main(int argc, char **argv)
{
    double seconds = 0;
    const struct knob knobs[] = {
        {"--for", &seconds, false, "seconds, whatever --work says; then it also tells the microseconds of a round"},
        {0}};
    begin(argc, argv, "hog", "OpenMP threads that compute and never wait", knobs);

    int64_t steps = repetitions(ROUND_MICROSECONDS, STEPS_PER_MICROSECOND), rounds = 0;
    struct member *team = NULL;
    double began = 0;
    int size = 0;

#pragma omp parallel
    {
#pragma omp single
        {
            size = omp_get_num_threads();
            /* The sum over the threads stays, however many there are. */
            rounds = repetitions(work, 1.85e6 / ROUND_MICROSECONDS / size);
            team = allocate((size_t)size, sizeof *team);
            for (int i = 0; i < size; i++)
                team[i] = (struct member){.state = (uint64_t)i, .rounds = 0};
            began = seconds_now();
        }
        struct member *mine = &team[omp_get_thread_num()];
        for (int64_t round = 0; seconds > 0 ? seconds_now() < began + seconds : round < rounds; round++) {
            mine->state = random_walk(mine->state, steps);
            mine->rounds++;
        }
    }

    double elapsed = seconds_now() - began;
    team[0].state += (uint64_t)spoilt();
    bool right = true;
    uint64_t checksum = 0;
    int64_t all = 0;
    for (int i = 0; i < size; i++) {
        right &= team[i].state == random_jump((uint64_t)i, (uint64_t)(team[i].rounds * steps));
        checksum += team[i].state;
        all += team[i].rounds;
    }
    free(team);
    return report_with(right, checksum, seconds > 0 ? "round_us" : NULL, elapsed / (double)(all > 0 ? all : 1) * 1e6);
}
