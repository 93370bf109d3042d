/* Stands for OpenBLAS with its own threads: a product returns the thread count that it would use. */
static int threads = 4, used, kind = 1;
static _Atomic int held, at_work;

int openblas_get_num_threads(void);
void openblas_set_num_threads(int);
int openblas_get_parallel(void);
int openblas_used(void);
void openblas_be(int);
void openblas_hold(int);
int openblas_at_work(void);
void cblas_dgemm(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *, int);

int openblas_get_num_threads(void) { return threads; }
void openblas_set_num_threads(int number) { threads = number; }
int openblas_get_parallel(void) { return kind; }
int openblas_used(void) { return used; }
void openblas_be(int other) { kind = other; }
/* While it is held, no product ends. */
void openblas_hold(int hold) { held = hold; }
int openblas_at_work(void) { return at_work; }

void cblas_dgemm(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a, int lda,
                 const double *b, int ldb, double beta, double *c, int ldc) {
    used = threads;
    at_work = 1;
    while (held)
        ;
    at_work = 0;
    c[0] = order + ta + tb + m + n + k + alpha * a[0] + lda + b[0] + ldb + beta * c[0] + ldc;
}
