/* Barriers of OpenMP: `barriers KIND THREADS ROUNDS [OURS]`. Each thread writes plain words before it waits at a barrier, and reads
 * all of them after. OURS: 1, the runtime must not have been used for a barrier; 0, it must. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* No omp.h: compilers without their runtime's headers can compile this, too. */
int omp_get_num_threads(void), omp_get_thread_num(void);
void omp_set_num_threads(int), omp_set_max_active_levels(int);

enum { MOST = 64, N = 64 };
static int rounds, mine[MOST], once[N];

static void write_mine(int round) { mine[omp_get_thread_num()] = round; }

static void read_all(int round) {
    for (int other = 0; other < omp_get_num_threads(); other++)
        CHECK(mine[other], round);
}

static void barriers(void) {
#pragma omp parallel
    for (int round = 1; round <= rounds; round++) {
        write_mine(round);
#pragma omp barrier
        read_all(round);
#pragma omp barrier
    }
}

/* How often threads were at barriers of the runtime; 0 where nothing counts that. */
static int at_runtime(void) {
    int (*passed)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "passed");
    return passed ? passed() : 0;
}

/* Regions without tasks use no barrier of the runtime, whatever came before. */
static void as_before(void) {
    int before = at_runtime();
    barriers();
    CHECK(at_runtime(), before);
}

static void loops(void) {
    memset(once, 0, sizeof once);
#pragma omp parallel
    for (int round = 1; round <= rounds; round++) {
#pragma omp for schedule(dynamic)
        for (int i = 0; i < N; i++)
            once[i]++;
        for (int i = 0; i < N; i++)
            CHECK(once[i], round);
#pragma omp barrier
        write_mine(round);
#pragma omp for schedule(static)
        for (int i = 0; i < N; i++)
            once[i]--;
        read_all(round);
        for (int i = 0; i < N; i++)
            CHECK(once[i], round - 1);
#pragma omp barrier
#pragma omp for schedule(guided) ordered
        for (int i = 0; i < N; i++) {
#pragma omp ordered
            once[i]++;
        }
        for (int i = 0; i < N; i++)
            CHECK(once[i], round);
#pragma omp barrier
    }
}

static void shares(void) {
    int a = 0, b = 0, chosen = 0, sum = 0;
#pragma omp parallel
    for (int round = 1; round <= rounds; round++) {
#pragma omp sections
        {
#pragma omp section
            a++;
#pragma omp section
            b++;
        }
        CHECK(a == round && b == round, 1);
#pragma omp single
        chosen++;
        CHECK(chosen, round);
#pragma omp for reduction(+ : sum)
        for (int i = 0; i < N; i++)
            sum += i;
        CHECK(sum, round * (N * (N - 1) / 2));
#pragma omp barrier
    }
}

/* One region after the other: all is done when one ends. */
static void regions(void) {
    for (int round = 1; round <= rounds; round++) {
        int team = 0;
#pragma omp parallel
        {
            write_mine(round);
#pragma omp single nowait
            team = omp_get_num_threads();
        }
        for (int other = 0; other < team; other++)
            CHECK(mine[other], round);
#pragma omp parallel for schedule(dynamic)
        for (int i = 0; i < N; i++)
            once[i] = round;
        for (int i = 0; i < N; i++)
            CHECK(once[i], round);
    }
}

/* Regions in regions wait among themselves. */
static void nested(void) {
    static int inner[MOST][2];
    omp_set_max_active_levels(2);
#pragma omp parallel
    {
        int outer = omp_get_thread_num();
        for (int round = 1; round <= rounds; round++) {
#pragma omp parallel num_threads(2)
            for (int again = 0; again < 3; again++) {
                inner[outer][omp_get_thread_num()] = 10 * round + again;
#pragma omp barrier
                for (int n = 0; n < omp_get_num_threads(); n++)
                    CHECK(inner[outer][n], 10 * round + again);
#pragma omp barrier
            }
#pragma omp parallel if (outer > MOST)
            {
#pragma omp barrier
                CHECK(omp_get_num_threads(), 1);
            }
            write_mine(round);
#pragma omp barrier
            read_all(round);
#pragma omp barrier
        }
    }
}

/* Some make tasks while others wait already. What is made before a barrier is done after it. */
static void tasks(void) {
    int done = 0;
    barriers();
#pragma omp parallel
    for (int round = 1; round <= rounds; round++) {
        if (omp_get_thread_num() == round % omp_get_num_threads()) {
            if (round < 4)
                usleep(2000);
            for (int i = 0; i < 8; i++) {
#pragma omp task shared(done)
#pragma omp atomic
                done++;
            }
        }
#pragma omp barrier
        CHECK(done, 8 * round);
#pragma omp barrier
    }
#pragma omp parallel
#pragma omp single
#pragma omp taskloop
    for (int i = 0; i < 8; i++) {
#pragma omp atomic
        done++;
    }
    CHECK(done, 8 * rounds + 8);
    as_before();
}

/* Some leave a loop before its end. (One with a dynamic schedule makes LLVM's runtime hang after some times, by itself.) */
static void cancels(void) {
    barriers();
#pragma omp parallel
    for (int round = 1; round <= rounds; round++) {
#pragma omp for schedule(static)
        for (int i = 0; i < N; i++) {
#pragma omp cancel for if (i == N / 2)
            once[i] = round;
        }
        write_mine(round);
#pragma omp barrier
        read_all(round);
#pragma omp barrier
    }
#pragma omp parallel
    {
#pragma omp cancel parallel
#pragma omp barrier
    }
    as_before();
}

/* The child of a fork has regions of its own. */
static void forks(void) {
    pid_t child = fork();
    if (child == 0) {
        barriers();
        _exit(0);
    }
    barriers();
    int status = -1;
    CHECK(waitpid(child, &status, 0), child);
    CHECK(status, 0);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*test)(void);
    } kinds[] = {{"barriers", barriers}, {"loops", loops}, {"shares", shares}, {"regions", regions},
                 {"nested", nested},     {"tasks", tasks}, {"forks", forks},   {"cancels", cancels}};
    CHECK(argc > 3, 1);
    omp_set_num_threads(atoi(argv[2]));
    rounds = atoi(argv[3]);
    for (unsigned n = 0; n < sizeof kinds / sizeof *kinds; n++)
        if (!strcmp(argv[1], kinds[n].name)) {
            kinds[n].test();
            if (argc > 4 && dlsym(RTLD_DEFAULT, "passed"))
                CHECK(at_runtime() == 0, atoi(argv[4]));
            return 0;
        }
    return 2;
}
