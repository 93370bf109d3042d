/*
 * How a program lets cosched choose its thread count.
 *
 *     for (;;) {
 *         int threads = cosched_region(4);      // 1 to 4
 *         #pragma omp parallel num_threads(threads)
 *         { ... }
 *         cosched_progress(1);
 *     }
 *
 * Link with -lcosched_hook, and write malleable = true in the jobs file. Without cosched, or without that key, no function
 * does anything: cosched_region returns the requested number. Every function may be called from every thread, from the child
 * of a fork, and as often as needed; none fails, prints or changes errno. See docs/dev/hook.md for more.
 */
#ifndef COSCHED_H
#define COSCHED_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Connects to cosched now instead of at the first region. Returns 1 where it is there, else 0. */
int cosched_register(void);

/*
 * How many threads the next parallel region may have: at most the requested number, and at least 1 if at least 1 is
 * requested. A larger request than before waits for the answer, 5 ms at most; any other one takes nanoseconds.
 */
int cosched_region(int requested);

/* How many CPUs the program has now. */
int cosched_cpus(void);

/* Reports that the program has advanced by so many ticks: iterations, samples, or another even measure of its work. */
void cosched_progress(uint64_t ticks);

#ifdef __cplusplus
}
#endif

#endif
