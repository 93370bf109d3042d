/* A library above OpenBLAS. */
#include "check.h"

int openblas_get_num_threads(void);
void openblas_set_num_threads(int);
int openblas_used(void);
void openblas_be(int);
void cblas_dgemm(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *, int);

static int product(void) {
    double a = 2, b = 3, c = 5;
    cblas_dgemm(101, 111, 112, 1, 2, 3, 10.0, &a, 4, &b, 5, 100.0, &c, 6);
    CHECK((long)c, 101 + 111 + 112 + 1 + 2 + 3 + 20 + 4 + 3 + 5 + 500 + 6);
    return openblas_used();
}

/* With how many threads a product works. Between products the number is the program's own. */
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
