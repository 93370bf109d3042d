/*
 * barrier-storm: many threads that wait for each other all the time.
 *
 * Every thread computes for --grain microseconds, waits for all the others at
 * a barrier, and starts again. Alone on the machine this costs next to nothing.
 * When one thread of the team is off its CPU, all others wait for it, and the
 * runtime lets them spin. At 2 us this is the worst case for a scheduler that
 * treats threads as strangers, and the best case for gang scheduling; at
 * 10 000 us a barrier costs a scheduler hardly anything.
 */
#include "storm.h"

static void pass(void)
{
#pragma omp barrier
}

int main(int argc, char **argv)
{
    begin(argc, argv, "barrier-storm", "OpenMP threads that wait at a barrier all the time", storm_knobs);

    int escaped = 0;
#pragma omp parallel reduction(+ : escaped)
    {
#pragma omp single
        gather(omp_get_num_threads());
        escaped += take_part(omp_get_thread_num(), pass);
    }
    return disperse(escaped);
}
