/*
 * compute: threads that never wait and touch no memory.
 *
 * It computes pi as the area under 4 / (1 + x^2) between 0 and 1, each thread
 * its own blocks of narrow strips. Nothing is shared until the end, so it runs
 * as well in pieces as in one go, and beside any neighbour: the program that a
 * scheduler can use to fill a gap.
 *
 * Check: pi is known, and the tolerance is far below what one block adds. The
 * blocks are added up in order at the end, so that the last digit does not
 * depend on the number of threads.
 */
#include "common.h"

#define STRIPS_PER_BLOCK 65536
#define TOLERANCE 1e-10
#define PI 3.14159265358979323846

int main(int argc, char **argv)
{
    static const struct knob knobs[] = {{0}};
    begin(argc, argv, "compute", "OpenMP threads that compute and never wait", knobs);

    int64_t blocks = repetitions(work, 14000);
    double *areas = allocate((size_t)blocks, sizeof *areas);
    const double width = 1.0 / ((double)blocks * STRIPS_PER_BLOCK);

#pragma omp parallel for schedule(static)
    for (int64_t block = 0; block < blocks; block++) {
        double sum = 0;
        for (int strip = 0; strip < STRIPS_PER_BLOCK; strip++) {
            double x = ((double)(block * STRIPS_PER_BLOCK + strip) + 0.5) * width;
            sum += 4 / (1 + x * x);
        }
        areas[block] = sum * width;
        tick();
    }

    areas[0] += spoilt();
    double pi = 0;
    for (int64_t block = 0; block < blocks; block++)
        pi += areas[block];
    free(areas);
    uint64_t checksum;
    memcpy(&checksum, &pi, sizeof checksum);
    return report(fabs(pi - PI) < TOLERANCE, checksum);
}
