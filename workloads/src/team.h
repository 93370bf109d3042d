/*
 * A team of plain pthreads, as servers have them: no runtime that spins for them.
 *
 * Every member has a number, a random chain that starts at that number, and a
 * tally for what its kernel counts. No member works before all have been
 * started, so that the first does not have the locks to itself.
 */
#ifndef TEAM_H
#define TEAM_H

#include <pthread.h>

#include "common.h"

/* A cache line each, so that members share only what the kernel lets them share. */
struct member {
    _Alignas(64) uint64_t state;
    int64_t tally;
    int number;
    pthread_t thread;
    pthread_barrier_t *start;
    void (*body)(struct member *);
};

/* --threads, or else what OpenMP would take: OMP_NUM_THREADS, or one per usable CPU. */
static inline int team_size(void)
{
    return (int)fmin(omp_get_max_threads(), MOST_THREADS);
}

static inline void *run_member(void *argument)
{
    struct member *member = argument;
    pthread_barrier_wait(member->start);
    member->body(member);
    return NULL;
}

/* Lets `size` members run `body`, and returns them when all have ended. */
static inline struct member *run_team(int size, void (*body)(struct member *))
{
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)size);
    struct member *team = allocate((size_t)size, sizeof *team);
    for (int i = 0; i < size; i++) {
        team[i] = (struct member){
            .state = (uint64_t)i, .number = i, .start = &start, .body = body};
        int error = pthread_create(&team[i].thread, NULL, run_member, &team[i]);
        if (error)
            refused("starting a thread", error);
    }
    for (int i = 0; i < size; i++)
        pthread_join(team[i].thread, NULL);
    pthread_barrier_destroy(&start);
    return team;
}

#endif
