/*
 * pthread-storm: barrier-storm with plain pthreads, with barriers that do not spin.
 *
 * The C library lets a thread sleep at once that has to wait. With a barrier
 * every few microseconds that costs a wake-up each time, alone as with co-runners.
 */
#include <pthread.h>

#include "storm.h"

static pthread_barrier_t barrier;

static void pass(void)
{
    pthread_barrier_wait(&barrier);
}

struct thread {
    pthread_t itself;
    int number, escaped;
};

static void *run(void *argument)
{
    struct thread *thread = argument;
    thread->escaped = take_part(thread->number, pass);
    return NULL;
}

int main(int argc, char **argv)
{
    begin(argc, argv, "pthread-storm", "pthreads that wait at a barrier all the time", storm_knobs);

    int size = (int)fmin(omp_get_max_threads(), MOST_THREADS), escaped = 0;
    gather(size);
    pthread_barrier_init(&barrier, NULL, (unsigned)size);
    struct thread *threads = allocate((size_t)size, sizeof *threads);
    for (int i = 0; i < size; i++) {
        threads[i].number = i;
        int error = pthread_create(&threads[i].itself, NULL, run, &threads[i]);
        if (error)
            refused("starting a thread", error);
    }
    for (int i = 0; i < size; i++) {
        pthread_join(threads[i].itself, NULL);
        escaped += threads[i].escaped;
    }
    pthread_barrier_destroy(&barrier);
    free(threads);
    return disperse(escaped);
}
