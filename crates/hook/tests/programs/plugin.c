/* A library that is opened later and brings its runtime along: like an extension module of Python. */
int omp_get_num_threads(void);

int team(void);
int team(void) {
    int found = 0;
#pragma omp parallel
#pragma omp single
    found = omp_get_num_threads();
    return found;
}
