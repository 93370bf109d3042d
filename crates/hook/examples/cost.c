/* What a region costs, in nanoseconds:
 *
 * - of cosched_region with the same request as before;
 * - of an empty parallel region of gcc's OpenMP;
 * - of cosched_region with a larger request than ever before, which waits for cosched's answer, on average and at worst.
 *
 * The first two figures are the best of some batches: other processes take time away, and none
 * gives any. Without cosched's library there is only the second figure.
 *
 *     gcc -O2 -fopenmp -I include examples/cost.c -o cost
 *
 * bench/malleable.py runs it in every variant.
 */
#include <stdio.h>
#include <time.h>

#include "cosched.h"

#pragma weak cosched_register
#pragma weak cosched_region

enum { BATCHES = 25, CALLS = 400000, REGIONS = 10000, REQUESTS = 1000 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static double least(double a, double b) { return a < b ? a : b; }

int main(void) {
    volatile int team = 0;
    double call = 1e18, parallel = 1e18, request = 0, longest = 0;
    int there = cosched_register ? cosched_register() : 0;
    for (int i = 0; i < 1000; i++)
#pragma omp parallel
        team = 1;
    for (int batch = 0; batch < BATCHES; batch++) {
        double start = now();
        for (int i = 0; i < REGIONS; i++)
#pragma omp parallel
            team = 1;
        parallel = least(parallel, (now() - start) / REGIONS);
    }
    printf("cosched=%d parallel=%.1f", there, parallel);
    if (cosched_region) {
        team = cosched_region(2);
        for (int batch = 0; batch < BATCHES; batch++) {
            double start = now();
            for (int i = 0; i < CALLS; i++)
                team = cosched_region(2);
            call = least(call, (now() - start) / CALLS);
        }
        for (int threads = 64; threads < 64 + REQUESTS; threads++) {
            double start = now();
            team = cosched_region(threads);
            double took = now() - start;
            request += took / REQUESTS;
            longest = took > longest ? took : longest;
        }
        printf(" region=%.1f request=%.1f longest=%.1f", call, request, longest);
    }
    puts("");
    return 0;
}
