/* A program that keeps something in every thread from one region to the next: `threadprivate WANTED`. */
#include <omp.h>

#include "check.h"

static int kept;
#pragma omp threadprivate(kept)

int main(int argc, char **argv) {
    (void)argc;
    int wanted = atoi(argv[1]), good = 0;
#pragma omp parallel
    kept = 7 + omp_get_thread_num();
#pragma omp parallel reduction(+ : good)
    good += kept == 7 + omp_get_thread_num();
    CHECK(good, wanted);
    return 0;
}
