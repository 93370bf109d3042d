/*
 * A random sequence that can be entered anywhere, and that is also a load.
 *
 * The generator is linear: x' = A x + C modulo 2^64. One step depends on the
 * one before it, so a chain of steps keeps one CPU busy for a known time and
 * touches no memory. A linear step applied k times is a linear step again, so
 * the state after k steps is known in log k operations: threads can enter the
 * sequence at any place, and a long chain can be checked at once.
 */
#ifndef RANDOM_H
#define RANDOM_H

#include <stdint.h>

#define RANDOM_A UINT64_C(6364136223846793005)
#define RANDOM_C UINT64_C(1442695040888963407)

/* Steps that take about a microsecond at 2.5 to 3 GHz. */
#define STEPS_PER_MICROSECOND 700.0

static inline uint64_t random_step(uint64_t state)
{
    return RANDOM_A * state + RANDOM_C;
}

/* The slow way, for the time that it takes. */
static inline uint64_t random_walk(uint64_t state, int64_t steps)
{
    for (int64_t i = 0; i < steps; i++)
        state = random_step(state);
    return state;
}

/* The fast way, by repeated squaring of the step. */
static inline uint64_t random_jump(uint64_t state, uint64_t steps)
{
    uint64_t a = RANDOM_A, c = RANDOM_C;
    for (; steps; steps >>= 1) {
        if (steps & 1)
            state = a * state + c;
        c = a * c + c;
        a = a * a;
    }
    return state;
}

/* The upper bits of the state as a number in [0, 1). */
static inline double random_unit(uint64_t state)
{
    return (double)(state >> 11) * 0x1p-53;
}

#endif
