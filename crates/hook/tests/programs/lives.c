/* What else a process may do: `lives fork|files|waits|signals|unloads ...`. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "cosched.h"

/* A child has a connection of its own, and the parent's stays open. */
static void forks(int granted) {
    CHECK(cosched_region(4), granted);
    pid_t child = fork();
    if (child == 0) {
        CHECK(cosched_region(4), granted);
        cosched_progress(2);
        exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status, 0);
    cosched_progress(3);
    CHECK(cosched_region(5), granted);
}

/* A daemon closes everything that it does not know, and opens files of its own in its place. */
static void files(int granted, int last) {
    CHECK(cosched_region(4), granted);
    for (int fd = 3; fd < last; fd++)
        close(fd);
    char name[] = "/tmp/cosched-lives-XXXXXX";
    int file = mkstemp(name);
    unlink(name);
    for (int fd = file + 1; fd < last; fd++)
        CHECK(dup2(file, fd), fd);
    errno = 77;
    int got = cosched_region(6);
    CHECK(errno, 77);
    CHECK(got == granted || got == 6, 1);
    CHECK(cosched_region(7), 7);
    CHECK(lseek(file, 0, SEEK_END), 0);
    for (int fd = file; fd < last; fd++)
        CHECK(fcntl(fd, F_GETFD) >= 0, 1);
}

/* cosched dies: sooner or later every region gets its request. */
static void waits(int granted) {
    CHECK(cosched_region(4), granted);
    puts("connected");
    fflush(stdout);
    while (cosched_region(4) != 4)
        usleep(1000);
}

static void nothing(int number) { (void)number; }

/* A profiler's timer goes off all the time. */
static void signals(int granted) {
    signal(SIGALRM, nothing);
    struct itimerval often = {{0, 1000}, {0, 1000}};
    CHECK(setitimer(ITIMER_REAL, &often, NULL), 0);
    CHECK(cosched_register(), 1);
    CHECK(cosched_region(4), granted);
}

static int open_files(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* The library is loaded and unloaded. */
static void unloads(int granted, const char *library) {
    int before = open_files();
    for (int i = 0; i < 50; i++) {
        void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        CHECK(handle != NULL, 1);
        int (*region)(int) = (int (*)(int))dlsym(handle, "cosched_region");
        CHECK(region(4), granted);
        dlclose(handle);
    }
    CHECK(open_files(), before);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status, 0);
}

int main(int argc, char **argv) {
    int granted = atoi(argv[2]);
    if (!strcmp(argv[1], "fork"))
        forks(granted);
    else if (!strcmp(argv[1], "files"))
        files(granted, 1024);
    else if (!strcmp(argv[1], "waits"))
        waits(granted);
    else if (!strcmp(argv[1], "signals"))
        signals(granted);
    else if (!strcmp(argv[1], "unloads") && argc > 3)
        unloads(granted, argv[3]);
    else
        return 2;
    return 0;
}
