/*
 * triad: threads that wait for memory.
 *
 * a[i] = b[i] + s * c[i] over arrays that are larger than most caches: the
 * triad of the STREAM benchmark. It moves 24 bytes for two floating-point
 * operations, so memory bandwidth decides its speed: two of them side by side
 * gain nothing, and everybody beside them loses cache.
 *
 * Check: every second sweep uses -s and goes back, so that after an even
 * number of sweeps the values of the beginning are there again, exactly.
 */
#include <omp.h>

#include "common.h"

#define NAME "triad"
#define SCALE 3.0

int main(int argc, char **argv)
{
    double threads = 0, work = 1, mebibytes = 96;
    const struct knob knobs[] = {
        THREADS_KNOB(threads), WORK_KNOB(work),
        {"--mebibytes", &mebibytes, true, "size of the three arrays together, MiB"},
        {0}};
    read_knobs(argc, argv, NAME, "OpenMP threads that stream through memory", knobs);
    if (threads > 0)
        omp_set_num_threads((int)threads);

    double start = seconds_now();
    int64_t n = (int64_t)(mebibytes * 1048576 / 24);
    /* As many bytes in all, however large the arrays are. */
    int64_t pairs = repetitions(work, 8500 / mebibytes);
    double *a = allocate((size_t)n, sizeof *a);
    double *b = allocate((size_t)n, sizeof *b);
    double *c = allocate((size_t)n, sizeof *c);

    /* Each thread touches its own part first, so that it is near to it. */
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++) {
        a[i] = 0;
        b[i] = (double)(i % 1000);
        c[i] = (double)(i % 77);
    }
    for (int64_t sweep = 0; sweep < 2 * pairs; sweep++) {
        double s = sweep % 2 == 0 ? SCALE : -SCALE;
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < n; i++)
            a[i] = b[i] + s * c[i];
        double *swap = a;
        a = b;
        b = swap;
    }

    int64_t wrong = 0, sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : wrong, sum)
    for (int64_t i = 0; i < n; i++) {
        wrong += b[i] != (double)(i % 1000);
        sum += (int64_t)(a[i] + b[i]);
    }
    free(a);
    free(b);
    free(c);
    return report(NAME, wrong == 0, (uint64_t)sum, start);
}
