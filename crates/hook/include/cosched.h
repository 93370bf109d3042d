/*
 * How a program lets cosched choose its number of threads.
 *
 *     for (;;) {
 *         int threads = cosched_region(4);      // 1 to 4
 *         #pragma omp parallel num_threads(threads)
 *         { ... }
 *         cosched_progress(1);
 *     }
 *
 * Link with -lcosched_hook, and say malleable = true in the workload file. Without cosched, or without that key, nothing
 * here does anything: cosched_region returns what was wanted. Every function may be called from every thread, from the child
 * of a fork, and as often as one likes; none fails, prints or changes errno. docs/dev/hook.md tells more.
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
 * How many threads the next parallel region may have, of as many as wanted: never more than that, and at least 1 where at
 * least 1 is wanted. Waits for the answer where more is wanted than before, 5 ms at most; otherwise it takes nanoseconds.
 */
int cosched_region(int wanted);

/* How many CPUs the program has now. */
int cosched_cpus(void);

/* Tells that the program has come so many ticks further: iterations, samples, whatever counts its work evenly. */
void cosched_progress(uint64_t ticks);

#ifdef __cplusplus
}
#endif

#endif
