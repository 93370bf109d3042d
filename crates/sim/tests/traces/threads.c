/* Threads of a few kinds, for a recording of what the kernel does with them.
 *
 *   threads SECONDS CPUS THREAD...        THREAD: RUN_US/SLEEP_US[,nice=N][,slice=US][,batch]
 *
 * A thread computes for RUN_US, sleeps SLEEP_US, and so on; SLEEP_US 0: it never sleeps. CPUS is a
 * mask (3: CPUs 0 and 1). The duration of computing is measured beforehand, on an idle machine: a
 * thread that reads its own CPU time makes the kernel check whether its turn is over, and would
 * behave differently. The output has one line per thread: tid, CPU nanoseconds, voluntary and
 * involuntary switches, nanoseconds in queues.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

struct kind {
    long run, sleep, nice, slice;
    int batch;
    char line[200];
};

static double until;
static double loops_per_us;
static pthread_barrier_t start;

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void burn(long loops)
{
    for (volatile long i = 0; i < loops; i++)
        ;
}

static void *body(void *argument)
{
    struct kind *kind = argument;
    struct attr attr = {sizeof attr, kind->batch ? SCHED_BATCH : SCHED_OTHER, 0, kind->nice, 0, kind->slice * 1000};
    if (syscall(SYS_sched_setattr, 0, &attr, 0)) {
        perror("sched_setattr");
        exit(1);
    }
    pthread_barrier_wait(&start);
    struct rusage first, last;
    getrusage(RUSAGE_THREAD, &first);
    double cpu = seconds(CLOCK_THREAD_CPUTIME_ID), ran;
    while (seconds(CLOCK_MONOTONIC) < until) {
        burn(kind->run * loops_per_us);
        if (kind->sleep) {
            struct timespec t = {kind->sleep / 1000000, kind->sleep % 1000000 * 1000};
            nanosleep(&t, NULL);
        }
    }
    ran = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
    getrusage(RUSAGE_THREAD, &last);
    char path[64], text[200] = "0 0";
    snprintf(path, sizeof path, "/proc/self/task/%ld/schedstat", syscall(SYS_gettid));
    FILE *file = fopen(path, "r");
    if (file && !fgets(text, sizeof text, file))
        text[0] = 0;
    long long on, delay = 0;
    sscanf(text, "%lld %lld", &on, &delay);
    snprintf(kind->line, sizeof kind->line, "%ld %.0f %ld %ld %lld", syscall(SYS_gettid), ran * 1e9,
             last.ru_nvcsw - first.ru_nvcsw, last.ru_nivcsw - first.ru_nivcsw, delay);
    return NULL;
}

int main(int count, char **words)
{
    if (count < 4)
        return 2;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    for (int i = 0; i < 8; i++)
        if (atoi(words[2]) >> i & 1)
            CPU_SET(i, &cpus);
    sched_setaffinity(0, sizeof cpus, &cpus);
    int threads = count - 3;
    static struct kind kinds[64];
    static pthread_t ids[64];
    pthread_barrier_init(&start, NULL, threads);
    burn(2000000);
    double began = seconds(CLOCK_MONOTONIC);
    burn(20000000);
    loops_per_us = 20 / (seconds(CLOCK_MONOTONIC) - began);
    until = seconds(CLOCK_MONOTONIC) + atof(words[1]);
    for (int i = 0; i < threads; i++) {
        char *word = words[i + 3], *at;
        sscanf(word, "%ld/%ld", &kinds[i].run, &kinds[i].sleep);
        if ((at = strstr(word, "nice=")))
            kinds[i].nice = atol(at + 5);
        if ((at = strstr(word, "slice=")))
            kinds[i].slice = atol(at + 6);
        kinds[i].batch = strstr(word, "batch") != NULL;
        pthread_create(&ids[i], NULL, body, &kinds[i]);
    }
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    for (int i = 0; i < threads; i++)
        puts(kinds[i].line);
    return 0;
}
