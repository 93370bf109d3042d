/* What a region costs: nanoseconds of cosched_region alone, and of an empty parallel region of gcc's OpenMP.
 *
 *     gcc -O2 -fopenmp -I include examples/cost.c -lcosched_hook -o cost
 */
#include <stdio.h>
#include <time.h>

#include "cosched.h"

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(void) {
    const int calls = 10000000, regions = 300000;
    int there = cosched_register();
    volatile int granted = cosched_region(2);
    double start = now();
    for (int i = 0; i < calls; i++)
        granted = cosched_region(2);
    double alone = (now() - start) / calls;
    for (int i = 0; i < 1000; i++)
#pragma omp parallel
        granted = 1;
    start = now();
    for (int i = 0; i < regions; i++)
#pragma omp parallel
        granted = 1;
    printf("cosched %d: cosched_region %.1f ns, parallel region %.1f ns\n", there, alone, (now() - start) / regions);
    return 0;
}
