/* Barriers of POSIX: `waits KIND THREADS ROUNDS`. It tests that every thread has arrived whenever a
 * thread passes, by what each has written before: plain words. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { MOST = 200, SERIAL = PTHREAD_BARRIER_SERIAL_THREAD };

static int threads, rounds, mine[MOST];
static pthread_barrier_t all;
static void (*disturb)(unsigned *);

/* The number of calls of the C library's barriers; -1: they are not counted. */
static int passed(void) {
    int (*counted)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "passed");
    return counted ? counted() : -1;
}

static unsigned next(unsigned *seed) {
    return (*seed = *seed * 1664525u + 1013904223u) >> 16;
}

/* Every thread writes, all wait, every thread reads what all have written, all wait. */
static void *write_and_read(void *number) {
    long me = (long)number, serial = 0;
    unsigned seed = (unsigned)me + 1;
    for (int round = 1; round <= rounds; round++) {
        mine[me] = round;
        if (disturb)
            disturb(&seed);
        errno = 77;
        int first = pthread_barrier_wait(&all);
        CHECK(errno, 77);
        for (int other = 0; other < threads; other++)
            CHECK(mine[other], round);
        int second = pthread_barrier_wait(&all);
        CHECK((first == SERIAL || first == 0) && (second == SERIAL || second == 0), 1);
        serial += (first == SERIAL) + (second == SERIAL);
    }
    return (void *)serial;
}

/* All threads run this; returns the sum of their results. */
static long together(void *(*work)(void *)) {
    pthread_t started[MOST];
    long sum = 0;
    for (long n = 1; n < threads; n++)
        CHECK(pthread_create(&started[n], NULL, work, (void *)n), 0);
    sum += (long)work((void *)0);
    for (int n = 1; n < threads; n++) {
        void *result;
        CHECK(pthread_join(started[n], &result), 0);
        sum += (long)result;
    }
    return sum;
}

static void make(void) { CHECK(pthread_barrier_init(&all, NULL, threads), 0); }

static void plain(void) {
    make();
    CHECK(together(write_and_read), 2 * rounds);
    CHECK(pthread_barrier_destroy(&all), 0);
}

/* Says when there is a barrier. */
static void tells(void) {
    make();
    puts("made");
    fflush(stdout);
    CHECK(together(write_and_read), 2 * rounds);
}

/* A profiler's timer goes off all the time. */
static void nothing(int number) { (void)number; }
static void signals(void) {
    signal(SIGALRM, nothing);
    struct itimerval often = {{0, 200}, {0, 200}};
    CHECK(setitimer(ITIMER_REAL, &often, NULL), 0);
    plain();
}

/* Threads come and go; none is there in two of these. */
static void exits(void) {
    make();
    for (int times = 0; times < 50; times++)
        CHECK(together(write_and_read), 2 * rounds);
    CHECK(pthread_barrier_destroy(&all), 0);
}

/* More threads than a round has: any two of them pass. */
static void *once(void *number) {
    (void)number;
    return (void *)(long)(pthread_barrier_wait(&all) == SERIAL);
}
static void twos(void) {
    CHECK(threads % 2, 0);
    CHECK(pthread_barrier_init(&all, NULL, 2), 0);
    for (int round = 0; round < rounds; round++)
        CHECK(together(once), threads / 2);
    CHECK(pthread_barrier_destroy(&all), 0);
}

/* One thread destroys the barrier and frees its memory, while others are still on their way out. */
static pthread_barrier_t *volatile held;
static void *frees(void *number) {
    long me = (long)number;
    for (int round = 1; round <= rounds; round++) {
        pthread_barrier_t *barrier = held;
        pthread_barrier_wait(&all);
        if (pthread_barrier_wait(barrier) == SERIAL) {
            CHECK(pthread_barrier_destroy(barrier), 0);
            memset(barrier, 0xff, sizeof *barrier);
            free(barrier);
            barrier = malloc(sizeof *barrier);
            CHECK(pthread_barrier_init(barrier, NULL, threads), 0);
            held = barrier;
        }
        mine[me] = round;
        pthread_barrier_wait(&all);
    }
    return NULL;
}
static void destroyed(void) {
    make();
    held = malloc(sizeof *held);
    CHECK(pthread_barrier_init(held, NULL, threads), 0);
    together(frees);
    CHECK(pthread_barrier_destroy(held), 0);
}

/* In a child's memory the parent's barrier is a copy, and works for the child's threads; the parent's goes on. */
static void forks(void) {
    plain();
    make();
    pid_t child = fork();
    if (child == 0) {
        CHECK(together(write_and_read), 2 * rounds);
        plain();
        _exit(0);
    }
    CHECK(together(write_and_read), 2 * rounds);
    int status = -1;
    CHECK(waitpid(child, &status, 0), child);
    CHECK(status, 0);
}

/* A barrier that two processes share, one that was never made, and one for which there is no place. */
static void others(void) {
    int before = passed();
    pthread_barrierattr_t attributes;
    CHECK(pthread_barrierattr_init(&attributes), 0);
    CHECK(pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), 0);
    pthread_barrier_t *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(pthread_barrier_init(shared, &attributes, 2), 0);
    pid_t child = fork();
    for (int round = 0; round < rounds; round++)
        pthread_barrier_wait(shared);
    if (child == 0)
        _exit(0);
    int status = -1;
    CHECK(waitpid(child, &status, 0), child);
    CHECK(status, 0);
    CHECK(pthread_barrier_destroy(shared), 0);
    CHECK(passed(), before + rounds);

    /* As glibc makes one: two counters and the number of threads. */
    memset(&all, 0, sizeof all);
    memcpy((char *)&all + 8, &threads, sizeof threads);
    CHECK(together(write_and_read), 2 * rounds);
    CHECK(passed(), before + rounds + 2 * rounds * threads);

    static pthread_barrier_t many[1000];
    for (int n = 0; n < 1000; n++)
        CHECK(pthread_barrier_init(&many[n], NULL, 1), 0);
    int known = passed();
    for (int n = 0; n < 1000; n++)
        CHECK(pthread_barrier_wait(&many[n]), SERIAL);
    CHECK(passed() > known && passed() < known + 1000, 1);
    for (int n = 0; n < 1000; n++)
        CHECK(pthread_barrier_destroy(&many[n]), 0);
    known = passed();
    plain();
    CHECK(passed(), known);
}

/* Threads yield, sleep, and are stopped in the middle of whatever they do. */
static pthread_t victims[MOST], tormentor;
static int done, ends, gone;
static int get(int *word) { return __atomic_load_n(word, __ATOMIC_SEQ_CST); }
static void stop(int number) {
    (void)number;
    int before = errno;
    struct timespec time = {0, 20000};
    nanosleep(&time, NULL);
    errno = before;
}
static void stumble(unsigned *seed) {
    unsigned what = next(seed) % 128;
    if (what == 0)
        usleep(next(seed) % 200);
    else if (what < 4)
        sched_yield();
}
static void *torment(void *unused) {
    unsigned seed = 7;
    while (!get(&ends)) {
        usleep(next(&seed) % 500);
        pthread_t victim = __atomic_load_n(&victims[next(&seed) % (unsigned)threads], __ATOMIC_ACQUIRE);
        if (victim)
            pthread_kill(victim, SIGUSR1);
    }
    return unused;
}
/* No victim goes before the tormentor has. */
static void *victim(void *number) {
    __atomic_store_n(&victims[(long)number], pthread_self(), __ATOMIC_RELEASE);
    void *result = write_and_read(number);
    __atomic_fetch_add(&done, 1, __ATOMIC_SEQ_CST);
    while (!get(&gone))
        usleep(100);
    return result;
}
static void *watch(void *unused) {
    while (get(&done) < threads)
        usleep(1000);
    __atomic_store_n(&ends, 1, __ATOMIC_SEQ_CST);
    CHECK(pthread_join(tormentor, NULL), 0);
    __atomic_store_n(&gone, 1, __ATOMIC_SEQ_CST);
    return unused;
}
static void stress(void) {
    signal(SIGUSR1, stop);
    disturb = stumble;
    make();
    pthread_t watcher;
    CHECK(pthread_create(&tormentor, NULL, torment, NULL), 0);
    CHECK(pthread_create(&watcher, NULL, watch, NULL), 0);
    CHECK(together(victim), 2 * rounds);
    CHECK(pthread_join(watcher, NULL), 0);
}

/* An error that has to be found: threads that write the same without a barrier between. */
static void *races(void *number) {
    mine[0] = (int)(long)number;
    pthread_barrier_wait(&all);
    return NULL;
}
static void race(void) {
    make();
    together(races);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*test)(void);
    } kinds[] = {{"plain", plain}, {"tells", tells},   {"signals", signals}, {"exits", exits}, {"twos", twos},
                 {"forks", forks}, {"others", others}, {"stress", stress},   {"race", race},   {"destroyed", destroyed}};
    CHECK(argc > 3, 1);
    threads = atoi(argv[2]);
    rounds = atoi(argv[3]);
    for (unsigned n = 0; n < sizeof kinds / sizeof *kinds; n++)
        if (!strcmp(argv[1], kinds[n].name)) {
            kinds[n].test();
            /* With one more argument: the number of calls of the C library's barriers. */
            if (argc > 4)
                CHECK(passed(), atoi(argv[4]));
            return 0;
        }
    return 2;
}
