/*
 * How many rounds a kernel makes: a number of them, or as many as begin within a time.
 *
 * One thread looks at the clock in each round, at a place after which there is
 * a barrier in that round: so all threads make equally many.
 */
#ifndef ROUNDS_H
#define ROUNDS_H

#include "common.h"

static double seconds;
static struct {
    int64_t count;
    double began, ended;
} rounds;

#define KNOB_OF_ROUNDS \
    {"--for", &seconds, false, "seconds, whatever --work says; then it also tells the microseconds of a round"}

/* Before the first one, by one thread. */
static inline void begin_rounds(int64_t count)
{
    rounds.count = seconds > 0 ? INT64_MAX : count;
    rounds.began = seconds_now();
}

/* Whether there is a round of this number; the first is 0. */
static inline bool is_round(int64_t number)
{
    return number < __atomic_load_n(&rounds.count, __ATOMIC_RELAXED);
}

/* In each round, by one thread. */
static inline void look_at_clock(int64_t number)
{
    if (seconds > 0 && seconds_now() > rounds.began + seconds)
        __atomic_store_n(&rounds.count, number + 1, __ATOMIC_RELAXED);
}

/* After the last one, by one thread. */
static inline void end_rounds(void)
{
    rounds.ended = seconds_now();
}

/* Prints the last line; its value is the exit status. */
static inline int report_rounds(bool right, uint64_t checksum)
{
    double microseconds = (rounds.ended - rounds.began) / (double)rounds.count * 1e6;
    return report_with(right, checksum, seconds > 0 ? "round_us" : NULL, microseconds);
}

#endif
