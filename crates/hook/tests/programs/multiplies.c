/* A library above OpenBLAS. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

int openblas_get_num_threads(void);
void openblas_set_num_threads(int);
int openblas_used(void);
void openblas_be(int);
void openblas_hold(int);
int openblas_at_work(void);
void cblas_dgemm(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *, int);

static int product(void) {
    double a = 2, b = 3, c = 5;
    cblas_dgemm(101, 111, 112, 1, 2, 3, 10.0, &a, 4, &b, 5, 100.0, &c, 6);
    CHECK((long)c, 101 + 111 + 112 + 1 + 2 + 3 + 20 + 4 + 3 + 5 + 500 + 6);
    return openblas_used();
}

/* The thread count of a product. Between products the count is the program's own. */
int multiply(void);
int multiply(void) {
    int used = product();
    CHECK(openblas_get_num_threads(), 4);
    openblas_set_num_threads(1);
    CHECK(product(), 1);
    CHECK(openblas_get_num_threads(), 1);
    openblas_set_num_threads(4);
    openblas_be(2);
    CHECK(product(), 4);
    openblas_be(1);
    return used;
}

static void *other_product(void *nothing) {
    product();
    return nothing;
}

/* The thread count of a product in the child of a fork that was made during another thread's product. */
int multiply_in_child(void);
int multiply_in_child(void) {
    pthread_t thread;
    openblas_hold(1);
    CHECK(pthread_create(&thread, NULL, other_product, NULL), 0);
    while (!openblas_at_work())
        ;
    pid_t child = fork();
    openblas_hold(0);
    if (child == 0) {
        int used = product();
        CHECK(openblas_get_num_threads(), 4);
        _exit(10 + used);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status), 1);
    CHECK(pthread_join(thread, NULL), 0);
    return WEXITSTATUS(status) - 10;
}
