/*
 * cg: a sparse solver, with a barrier after every hundred microseconds of work.
 *
 * Conjugate gradients on a sparse symmetric matrix in compressed rows: one
 * product of matrix and vector, two dot products and three vector updates per
 * iteration, in three loops with a barrier after each. This is how many scientific
 * codes look: computing, irregular reads, and frequent waiting for each other.
 *
 * The matrix is that of a ring of n points, each tied to twelve others at
 * fixed distances, plus a small shift that makes it positive definite.
 *
 * Check: the right-hand side is made from a known solution, which must come out
 * of every solve. The next solve looks at it where it clears it, which costs no barrier.
 */
#include "rounds.h"

#define ROWS 32768
#define TIES 12
#define ITERATIONS 25 /* per solve: enough to get below the tolerance */
#define SHIFT 12.0
#define TOLERANCE 1e-6

static const int distances[TIES / 2] = {1, 7, 131, 1021, 4099, 13001};

static int *columns;             /* ROWS x (TIES + 1), the diagonal first */
static double *entries;
static double *x, *r, *p, *q, *b; /* solution, residual, direction, A p, right-hand side */
static double *known;             /* the solution that must come out */
static double rr, pq, rr_new;     /* the team's sums: r.r, p.q, and the next r.r */
static int64_t wrong;             /* elements of earlier solutions */

static void build(void)
{
#pragma omp parallel for schedule(static)
    for (int row = 0; row < ROWS; row++)
        x[row] = known[row] = 1 + row % 10;
#pragma omp parallel for schedule(static)
    for (int row = 0; row < ROWS; row++) {
        int *column = columns + (size_t)row * (TIES + 1);
        double *entry = entries + (size_t)row * (TIES + 1);
        column[0] = row;
        entry[0] = TIES + SHIFT;
        for (int tie = 0; tie < TIES; tie++) {
            int distance = distances[tie / 2];
            column[tie + 1] = (row + (tie % 2 ? distance : ROWS - distance)) % ROWS;
            entry[tie + 1] = -1;
        }
        b[row] = 0;
        for (int k = 0; k <= TIES; k++)
            b[row] += entry[k] * known[column[k]];
    }
}

/* The whole solve, by a team that is already running. */
static void solve(int64_t round)
{
#pragma omp single
    {
        rr = 0;
        look_at_clock(round);
    }
#pragma omp for schedule(static) reduction(+ : rr, wrong)
    for (int i = 0; i < ROWS; i++) {
        wrong += !is_near(x[i], known[i], TOLERANCE);
        x[i] = 0;
        p[i] = r[i] = b[i];
        rr += r[i] * r[i];
    }
    for (int iteration = 0; iteration < ITERATIONS; iteration++) {
#pragma omp single
        pq = rr_new = 0;
#pragma omp for schedule(static) reduction(+ : pq)
        for (int i = 0; i < ROWS; i++) {
            const int *column = columns + (size_t)i * (TIES + 1);
            const double *entry = entries + (size_t)i * (TIES + 1);
            double sum = 0;
            for (int k = 0; k <= TIES; k++)
                sum += entry[k] * p[column[k]];
            q[i] = sum;
            pq += p[i] * sum;
        }
        double alpha = rr / pq;
#pragma omp for schedule(static) reduction(+ : rr_new)
        for (int i = 0; i < ROWS; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
            rr_new += r[i] * r[i];
        }
        double beta = rr_new / rr;
#pragma omp for schedule(static)
        for (int i = 0; i < ROWS; i++)
            p[i] = r[i] + beta * p[i];
#pragma omp single
        rr = rr_new;
    }
}

int main(int argc, char **argv)
{
    static const struct knob knobs[] = {KNOB_OF_ROUNDS, {0}};
    begin(argc, argv, "cg", "conjugate gradients on a sparse matrix, with OpenMP", knobs);

    columns = allocate((size_t)ROWS * (TIES + 1), sizeof *columns);
    entries = allocate((size_t)ROWS * (TIES + 1), sizeof *entries);
    double **vectors[] = {&x, &r, &p, &q, &b, &known};
    for (int i = 0; i < 6; i++)
        *vectors[i] = allocate(ROWS, sizeof(double));
    build();

    begin_rounds(repetitions(work, 135));
#pragma omp parallel
    for (int64_t i = 0; is_round(i); i++)
        solve(i);
    end_rounds();

    x[ROWS / 2] += spoilt();
    double sum = 0;
    for (int i = 0; i < ROWS; i++) {
        wrong += !is_near(x[i], known[i], TOLERANCE);
        sum += x[i];
    }
    return report_rounds(wrong == 0, (uint64_t)llround(sum));
}
