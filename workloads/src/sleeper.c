/*
 * sleeper: threads that sleep half of their time.
 *
 * Each thread computes for some milliseconds, sleeps for as long, and starts
 * again, without waiting for others: a program that talks to a disk or a
 * network. It leaves CPUs free while it holds its quantum, and its wake-ups
 * come at moments that no quantum is aligned with.
 *
 * Check: each thread's chain must end where the closed form says, and no sleep
 * may end early.
 */
#include "common.h"
#include "random.h"

#define ROUNDING 1e-6 /* of seconds, as a difference of two of them */

int main(int argc, char **argv)
{
    double burst = 10, pause = 10;
    const struct knob knobs[] = {
        {"--burst", &burst, false, "milliseconds of computing at a time, about"},
        {"--pause", &pause, false, "milliseconds of sleep at a time"},
        {0}};
    begin(argc, argv, "sleeper", "OpenMP threads that sleep and compute in turn", knobs);

    int64_t turns = repetitions(work, 1e3 / (burst + pause));
    int64_t steps = repetitions(burst, 1e3 * STEPS_PER_MICROSECOND);
    double whole = floor(pause / 1e3);
    const struct timespec rest = {(time_t)whole, (long)((pause / 1e3 - whole) * 1e9)};
    const double shortest = (double)rest.tv_sec + 1e-9 * (double)rest.tv_nsec - ROUNDING;
    bool right = true;
    uint64_t checksum = 0;

#pragma omp parallel reduction(&& : right) reduction(+ : checksum)
    {
        uint64_t first = (uint64_t)omp_get_thread_num(), state = first;
        for (int64_t turn = 0; turn < turns; turn++) {
            state = random_walk(state, steps);
            double since = seconds_now();
            right = nanosleep(&rest, NULL) == 0 && seconds_now() - since >= shortest && right;
        }
        state += (uint64_t)spoilt();
        right = right && state == random_jump(first, (uint64_t)(turns * steps));
        checksum += state;
    }
    return report(right, checksum);
}
