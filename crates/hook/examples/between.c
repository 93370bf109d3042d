/* What waiting between parallel regions costs: microseconds of a round, in which all threads compute for a while in a region, and
 * the first alone before the next one. Meanwhile the others wait in the runtime.
 *
 *     gcc -O2 -fopenmp examples/between.c -o between && ./between 20 50 2    # microseconds in regions, between them; seconds
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static double steps_per_microsecond;

static unsigned long compute(double microseconds, unsigned long x) {
    for (long i = (long)(microseconds * steps_per_microsecond); i > 0; i--)
        x = x * 6364136223846793005ul + 1442695040888963407ul;
    return x;
}

int main(int argc, char **argv) {
    double in = argc > 1 ? atof(argv[1]) : 20, between = argc > 2 ? atof(argv[2]) : 50;
    double seconds = argc > 3 ? atof(argv[3]) : 1;
    unsigned long sum = 1;
    steps_per_microsecond = argc > 4 ? atof(argv[4]) : 500;
    double start = now(), end = start + seconds * 1e6;
    long rounds = 0;
    for (; now() < end; rounds++) {
#pragma omp parallel reduction(+ : sum)
        sum += compute(in, sum + (unsigned long)omp_get_thread_num());
        sum = compute(between, sum);
    }
    printf("between ok sum=%lu rounds=%ld round_us=%.2f\n", sum, rounds, (now() - start) / (double)rounds);
    return 0;
}
