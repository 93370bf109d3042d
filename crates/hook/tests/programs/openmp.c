/* Every kind of parallel region: `openmp WANTED GRANTED`, with OMP_NUM_THREADS=WANTED. Each checks its number of threads, and
 * that its work was done once. */
#include "check.h"

/* No omp.h: compilers without their runtime's headers can compile this, too. */
int omp_get_num_threads(void), omp_get_max_threads(void), omp_in_parallel(void);
void omp_set_num_threads(int), omp_set_dynamic(int);

enum { N = 1000 };
static int team, inner, once[N];

#define WORK                                                                                                        \
    for (int i = 0; i < N; i++) {                                                                                   \
        _Pragma("omp atomic") once[i]++;                                                                            \
        if (i == 0) team = omp_get_num_threads();                                                                   \
    }
#define DONE(times)                                                                                                 \
    for (int i = 0; i < N; i++) {                                                                                   \
        CHECK(once[i], times);                                                                                      \
        once[i] = 0;                                                                                                \
    }

int main(int argc, char **argv) {
    (void)argc;
    int wanted = atoi(argv[1]), granted = atoi(argv[2]);

#pragma omp parallel
    {
#pragma omp single
        team = omp_get_num_threads();
#pragma omp for
        WORK
    }
    CHECK(team, granted);
    DONE(1)
#pragma omp parallel for schedule(static)
    WORK
    CHECK(team, granted);
    DONE(1)
#pragma omp parallel for schedule(dynamic, 7)
    WORK
    CHECK(team, granted);
    DONE(1)
#pragma omp parallel for schedule(guided)
    WORK
    CHECK(team, granted);
    DONE(1)
#pragma omp parallel for schedule(runtime)
    WORK
    CHECK(team, granted);
    DONE(1)
#pragma omp parallel for schedule(monotonic : dynamic)
    WORK
    CHECK(team, granted);
    DONE(1)

    int a = 0, b = 0, c = 0;
#pragma omp parallel sections
    {
#pragma omp section
        a = team = omp_get_num_threads();
#pragma omp section
        b = 1;
#pragma omp section
        c = 1;
    }
    CHECK(team <= granted && a >= 1 && b == 1 && c == 1, 1);

    /* A clause holds, and so does a condition. */
#pragma omp parallel num_threads(3)
#pragma omp single
    team = omp_get_num_threads();
    CHECK(team, 3);
#pragma omp parallel if (argc > 100)
#pragma omp single
    team = omp_get_num_threads();
    CHECK(team, 1);
#pragma omp parallel
#pragma omp single
    team = omp_get_num_threads();
    CHECK(team, granted);

    /* With both, the condition is used first, and neither applies to the next region. */
#pragma omp parallel num_threads(wanted) if (argc > 100)
#pragma omp single
    team = omp_get_num_threads();
    CHECK(team, 1);
#pragma omp parallel
#pragma omp single
    team = omp_get_num_threads();
    CHECK(team, granted);
#pragma omp parallel num_threads(wanted) if (argc < 100)
#pragma omp single
    team = omp_get_num_threads();
    CHECK(team, wanted);

    /* Inside a region the runtime decides: one thread, unless the program allows more levels. */
#pragma omp parallel
    {
#pragma omp parallel
#pragma omp single
        {
#pragma omp atomic write
            inner = omp_get_num_threads();
        }
#pragma omp single
        team = omp_get_num_threads();
    }
    CHECK(team, granted);
    CHECK(inner, 1);

    /* The program reads the number that it has set, and gets no more threads than that. */
    CHECK(omp_get_max_threads(), wanted);
    omp_set_num_threads(wanted - 1);
#pragma omp parallel
#pragma omp single
    team = omp_get_num_threads();
    CHECK(omp_get_max_threads(), wanted - 1);
    CHECK(team, granted < wanted - 1 ? granted : wanted - 1);
    omp_set_num_threads(1);
#pragma omp parallel
#pragma omp single
    team = omp_get_num_threads();
    CHECK(team, 1);

    /* A program that says that the numbers must not change keeps them. */
    omp_set_num_threads(wanted);
    omp_set_dynamic(0);
#pragma omp parallel
#pragma omp single
    team = omp_get_num_threads();
    CHECK(team, wanted);
    omp_set_dynamic(1);
    omp_set_dynamic(0);
    return 0;
}
