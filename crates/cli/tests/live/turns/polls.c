/* Waits for events of a pipe that another thread writes to, and takes every error of the wait for a
   fault. With an argument, it excuses one pause that began with the wait: the program ran for less
   than 2 ms in between. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 12 };
static int ends[2];
static volatile int over;

/* The program's CPU time, in seconds. */
static double used(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static void *computes(void *unused) {
    for (unsigned long n = 0; !over; n++) __asm__ volatile("" : : "r"(n));
    return unused;
}

static void *writes(void *unused) {
    struct timespec pause = { 0, 200000000 };
    for (int i = 0; i < EVENTS; i++) {
        nanosleep(&pause, NULL);
        if (write(ends[1], "e", 1) != 1) return NULL;
    }
    return unused;
}

int main(int arguments, char **unused) {
    pthread_t threads[2];
    if (pipe(ends)) return 1;
    int poll = epoll_create1(0);
    struct epoll_event event = { .events = EPOLLIN };
    if (epoll_ctl(poll, EPOLL_CTL_ADD, ends[0], &event)) return 1;
    pthread_create(&threads[0], NULL, computes, NULL);
    pthread_create(&threads[1], NULL, writes, NULL);
    for (int seen = 0; seen < EVENTS; seen++) {
        char byte;
        double before = used();
        while (epoll_wait(poll, &event, 1, -1) != 1) {
            if (errno == EINTR && arguments-- > 1 && used() < before + 0.002) continue;
            perror("epoll_wait");
            return 1;
        }
        if (read(ends[0], &byte, 1) != 1) return 1;
    }
    over = 1;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    puts("ok");
    return 0;
}
