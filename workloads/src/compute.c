/*
 * compute: threads that never wait and touch no memory.
 *
 * It estimates pi by throwing darts at a square, each thread its own part of
 * one random sequence. Nothing is shared until the end, so it runs as well in
 * pieces as in one go, and beside any neighbour: the program that a scheduler
 * can use to fill a gap.
 *
 * Check: the estimate must be within six standard deviations of pi. The count
 * does not depend on the number of threads.
 */
#include <omp.h>

#include "common.h"
#include "random.h"

#define NAME "compute"
#define DARTS_PER_BLOCK 65536
#define PI 3.14159265358979323846

int main(int argc, char **argv)
{
    double threads = 0, work = 1;
    const struct knob knobs[] = {THREADS_KNOB(threads), WORK_KNOB(work), {0}};
    read_knobs(argc, argv, NAME, "OpenMP threads that compute and never wait", knobs);
    if (threads > 0)
        omp_set_num_threads((int)threads);

    double start = seconds_now();
    int64_t blocks = repetitions(work, 9000), hits = 0;

#pragma omp parallel for schedule(static) reduction(+ : hits)
    for (int64_t block = 0; block < blocks; block++) {
        uint64_t state = random_jump(1, (uint64_t)block * 2 * DARTS_PER_BLOCK);
        for (int dart = 0; dart < DARTS_PER_BLOCK; dart++) {
            double x = random_unit(state = random_step(state));
            double y = random_unit(state = random_step(state));
            hits += x * x + y * y < 1;
        }
    }

    double darts = (double)blocks * DARTS_PER_BLOCK, chance = PI / 4;
    double deviation = sqrt(darts * chance * (1 - chance));
    bool right = fabs((double)hits - darts * chance) < 6 * deviation;
    return report(NAME, right, (uint64_t)hits, start);
}
