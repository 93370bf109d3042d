/*
 * barrier-storm: many threads that wait for each other all the time.
 *
 * Every thread computes for --grain microseconds, waits for all the others at
 * a barrier, and starts again. Alone on the machine this costs next to nothing.
 * When one thread of the team is off its CPU, all others wait for it, and the
 * runtime lets them spin. At 2 us this is the worst case for a scheduler that
 * treats threads as strangers, and the best case for gang scheduling; at
 * 10 000 us a barrier costs a scheduler hardly anything.
 *
 * Check: each thread's chain must end where the closed form says, and nobody
 * may leave a barrier that a neighbour has not reached.
 */
#include "common.h"
#include "random.h"

#define BARRIER_MICROSECONDS 0.3 /* of one barrier that nobody is late for */

/* A cache line each, so that the barrier is the only thing shared. */
struct member {
    _Alignas(64) uint64_t state;
    int64_t reached;
};

int main(int argc, char **argv)
{
    double grain = 2;
    const struct knob knobs[] = {
        {"--grain", &grain, false, "microseconds of computing between two barriers, about"}, {0}};
    begin(argc, argv, "barrier-storm", "OpenMP threads that meet at a barrier all the time", knobs);

    int64_t steps = repetitions(grain, STEPS_PER_MICROSECOND), rounds = 0;
    struct member *team = NULL;
    int size = 0, escaped = 0;

#pragma omp parallel reduction(+ : escaped)
    {
#pragma omp single
        {
            size = omp_get_num_threads();
            /* The sum over the threads stays, however many there are. */
            rounds = repetitions(work, 1.85e6 / (grain + BARRIER_MICROSECONDS) / size);
            team = allocate((size_t)size, sizeof *team);
            for (int i = 0; i < size; i++)
                team[i] = (struct member){.state = (uint64_t)i, .reached = 0};
        }
        struct member *mine = &team[omp_get_thread_num()];
        struct member *next = &team[(omp_get_thread_num() + 1) % size];
        for (int64_t round = 1; round <= rounds; round++) {
            mine->state = random_walk(mine->state, steps);
            __atomic_store_n(&mine->reached, round, __ATOMIC_RELAXED);
#pragma omp barrier
            escaped += __atomic_load_n(&next->reached, __ATOMIC_RELAXED) < round;
        }
    }

    team[0].state += (uint64_t)spoilt();
    bool right = escaped == 0;
    uint64_t checksum = 0;
    for (int i = 0; i < size; i++) {
        right &= team[i].state == random_jump((uint64_t)i, (uint64_t)(rounds * steps));
        checksum += team[i].state;
    }
    free(team);
    return report(right, checksum);
}
