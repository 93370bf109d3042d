/*
 * pipe-ring: threads that hand a token round through pipes.
 *
 * Every thread sleeps until the token comes out of its pipe, computes for a
 * moment, and puts it into the next one's. At any time one of them works and
 * all others sleep, so the program is made of system calls, wake-ups and
 * context switches. With two threads it is the game of ping-pong.
 *
 * Check: the token is a chain that every thread continues; it must end where
 * the closed form says.
 */
#include <errno.h>

#include "random.h"
#include "team.h"

#define HOPS_PER_SECOND 1e5 /* about; by far most of it is sleeping and waking */

/* Its reading end, and its writing end. */
typedef int pipe_ends[2];

static pipe_ends *pipes;
static int ring_size;
static int64_t laps, steps;

static uint64_t take(const int *pipe)
{
    uint64_t token;
    while (read(pipe[0], &token, sizeof token) != sizeof token)
        if (errno != EINTR)
            refused("reading from a pipe", errno);
    return token;
}

static void put(const int *pipe, uint64_t token)
{
    while (write(pipe[1], &token, sizeof token) != sizeof token)
        if (errno != EINTR)
            refused("writing to a pipe", errno);
}

static void hand_on(struct member *me)
{
    const int *own = pipes[me->number], *next = pipes[(me->number + 1) % ring_size];
    for (int64_t lap = 0; lap < laps; lap++) {
        uint64_t token = take(own);
        put(next, random_walk(token, steps));
    }
}

int main(int argc, char **argv)
{
    double grain = 200;
    const struct knob knobs[] = {
        {"--grain", &grain, false, "nanoseconds of computing between two hands, about", .zero = true},
        {0}};
    begin(argc, argv, "pipe-ring", "pthreads that hand a token round through pipes", knobs);

    ring_size = team_size();
    steps = (int64_t)(grain * STEPS_PER_MICROSECOND / 1e3);
    laps = repetitions(work, HOPS_PER_SECOND / ring_size);
    pipes = allocate((size_t)ring_size, sizeof *pipes);
    for (int i = 0; i < ring_size; i++)
        if (pipe(pipes[i]))
            refused("making a pipe", errno);
    put(pipes[0], 0);
    double since = seconds_now();
    struct member *team = run_team(ring_size, hand_on);
    double rate = (double)(laps * ring_size) / (seconds_now() - since);

    uint64_t token = take(pipes[0]) + (uint64_t)spoilt();
    bool right = token == random_jump(0, (uint64_t)(laps * ring_size * steps));
    free(pipes);
    free(team);
    return report_with(right, token, "hops_per_second", rate);
}
