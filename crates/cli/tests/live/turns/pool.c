// Processes with two spinning threads each, as a pool of workers. Arguments: how many; "tied" if
// the first two share memory. Each writes its number to a file w0, w1, ..., and ends with `stop`.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int stop;

static void *spin(void *none) {
    while (!stop) {
    }
    return none;
}

static void work(int number, int tied) {
    if (tied && number < 2) {
        char path[64];
        snprintf(path, sizeof path, "/dev/shm/cosched-test-pool-%d", getppid());
        int file = open(path, O_CREAT | O_RDWR, 0600);
        if (file < 0 || ftruncate(file, 4096) != 0 ||
            mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) == MAP_FAILED) {
            exit(1);
        }
        sleep(1);
        unlink(path);
    }
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, spin, NULL);
    }
    char name[16];
    snprintf(name, sizeof name, "w%d", number);
    FILE *file = fopen(name, "w");
    fprintf(file, "%d\n", getpid());
    fclose(file);
    while (access("stop", F_OK) != 0) {
        usleep(10000);
    }
    stop = 1;
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    exit(0);
}

int main(int count, char **arguments) {
    int workers = atoi(arguments[1]);
    int tied = count > 2 && strcmp(arguments[2], "tied") == 0;
    for (int i = 0; i < workers; i++) {
        if (fork() == 0) {
            work(i, tied);
        }
    }
    int status, failed = 0;
    while (wait(&status) > 0) {
        failed |= status != 0;
    }
    return failed;
}
