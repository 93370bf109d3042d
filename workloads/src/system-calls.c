/*
 * system-calls: threads that go into the kernel and come out again.
 *
 * Every thread reads its process' number, over and over. That is about the
 * least that a system call can do, so whatever is added to every system call
 * of a machine (a tracer, a filter) shows here more than anywhere else.
 *
 * Check: each thread's chain takes every answer in, less the one that is
 * right; it must end where the closed form says.
 */
#include <sys/syscall.h>

#include "random.h"
#include "team.h"

#define CALLS_PER_SECOND 3.5e6 /* of one thread on a 2.5 GHz CPU, about */

static int64_t turns;
static long right_answer;

static void read_number(struct member *me)
{
    for (int64_t i = 0; i < turns; i++)
        /* The C library may know the answer; only the kernel is to be asked. */
        me->state = random_step(me->state) + (uint64_t)(syscall(SYS_getpid) - right_answer);
}

int main(int argc, char **argv)
{
    const struct knob knobs[] = {{0}};
    begin(argc, argv, "system-calls", "pthreads that call the kernel and do nothing else", knobs);

    int size = team_size();
    right_answer = getpid();
    /* The sum over the threads stays, however many there are. */
    turns = repetitions(work, 2 * CALLS_PER_SECOND / size);
    double since = seconds_now();
    struct member *team = run_team(size, read_number);
    double rate = (double)(turns * size) / (seconds_now() - since);

    team[0].state += (uint64_t)spoilt();
    bool right = true;
    uint64_t checksum = 0;
    for (int i = 0; i < size; i++) {
        right &= team[i].state == random_jump((uint64_t)i, (uint64_t)turns);
        checksum += team[i].state;
    }
    free(team);
    return report_with(right, checksum, "calls_per_second", rate);
}
