/*
 * What the members of a storm do: compute, wait for all the others, start again. The kernel says at which barrier.
 *
 * Every member has a random chain that starts at its number. The storm ends
 * after a number of rounds, or after a time: then the first member looks at
 * the clock before a barrier, and what it writes is known to all after it.
 *
 * Check: each chain must end where the closed form says, and no member may
 * leave a barrier that a neighbour has not reached.
 */
#ifndef STORM_H
#define STORM_H

#include "common.h"
#include "random.h"

#define BARRIER_MICROSECONDS 0.3 /* of one barrier that no member is late for */
#define LOOK_MICROSECONDS 64     /* between two looks at the clock, about */

/* A cache line each, so that the barrier is the only thing shared. */
struct stormer {
    _Alignas(64) uint64_t state;
    int64_t reached;
};

static double grain = 2, seconds;
static struct {
    struct stormer *members;
    int size;
    int64_t steps; /* of a chain, in each round */
    int64_t last;  /* round */
    int64_t looks; /* at the clock, once in so many rounds */
    double began, ended;
} storm;

static const struct knob storm_knobs[] = {
    {"--grain", &grain, false, "microseconds of computing between two barriers, about"},
    {"--for", &seconds, false, "seconds, whatever --work says; then it also tells the microseconds of a round"},
    {0}};

/* Before the first round, by one thread. */
static inline void gather(int size)
{
    storm.size = size;
    storm.steps = repetitions(grain, STEPS_PER_MICROSECOND);
    /* The sum over the threads stays, however many there are. */
    int64_t rounds = repetitions(work, 1.85e6 / (grain + BARRIER_MICROSECONDS) / size);
    storm.last = seconds > 0 ? INT64_MAX : rounds;
    storm.looks = repetitions(LOOK_MICROSECONDS, 1 / grain);
    storm.members = allocate((size_t)size, sizeof *storm.members);
    for (int i = 0; i < size; i++)
        storm.members[i] = (struct stormer){.state = (uint64_t)i, .reached = 0};
}

/* All rounds of one member; how often a barrier let it through too early. */
static inline int take_part(int number, void (*pass)(void))
{
    struct stormer *mine = &storm.members[number];
    struct stormer *next = &storm.members[(number + 1) % storm.size];
    int escaped = 0;
    pass();
    if (number == 0)
        storm.began = seconds_now();
    for (int64_t round = 1; round <= __atomic_load_n(&storm.last, __ATOMIC_RELAXED); round++) {
        mine->state = random_walk(mine->state, storm.steps);
        __atomic_store_n(&mine->reached, round, __ATOMIC_RELAXED);
        if (number == 0 && seconds > 0 && round % storm.looks == 0 && seconds_now() > storm.began + seconds)
            __atomic_store_n(&storm.last, round, __ATOMIC_RELAXED);
        pass();
        escaped += __atomic_load_n(&next->reached, __ATOMIC_RELAXED) < round;
    }
    if (number == 0)
        storm.ended = seconds_now();
    return escaped;
}

/* After the last round, by one thread: the exit status. */
static inline int disperse(int escaped)
{
    storm.members[0].state += (uint64_t)spoilt();
    bool right = escaped == 0;
    uint64_t checksum = 0;
    for (int i = 0; i < storm.size; i++) {
        right &= storm.members[i].state == random_jump((uint64_t)i, (uint64_t)(storm.last * storm.steps));
        checksum += storm.members[i].state;
    }
    free(storm.members);
    double round = (storm.ended - storm.began) / (double)storm.last * 1e6;
    return report_with(right, checksum, seconds > 0 ? "round_us" : NULL, round);
}

#endif
