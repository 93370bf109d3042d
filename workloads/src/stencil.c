/*
 * stencil: neighbours on a grid, a barrier after each sweep.
 *
 * Jacobi sweeps over a square grid with zero edges: each point becomes the
 * mean of its four neighbours. A sweep takes a few hundred microseconds, and
 * two grids fit into most last-level caches, so it stands between the storm
 * of barriers and the pure streams.
 *
 * Check: the grid starts as one arch of a sine in each direction, a shape that
 * a sweep only makes smaller, by cos(pi / (n + 1)). So every value is known.
 */
#include "rounds.h"

#define SIDE 768 /* inner points per direction */
#define STRIDE (SIDE + 2)
#define PI 3.14159265358979323846
#define TOLERANCE 1e-9

static double arch(int row, int column)
{
    const double step = PI / (SIDE + 1);
    return sin(step * row) * sin(step * column);
}

int main(int argc, char **argv)
{
    static const struct knob knobs[] = {KNOB_OF_ROUNDS, {0}};
    begin(argc, argv, "stencil", "Jacobi sweeps over a grid, with OpenMP", knobs);

    double *from = allocate((size_t)STRIDE * STRIDE, sizeof *from);
    double *to = allocate((size_t)STRIDE * STRIDE, sizeof *to);
#pragma omp parallel for schedule(static)
    for (int row = 0; row < STRIDE; row++)
        for (int column = 0; column < STRIDE; column++) {
            bool edge = row == 0 || column == 0 || row == SIDE + 1 || column == SIDE + 1;
            from[row * STRIDE + column] = to[row * STRIDE + column] = edge ? 0 : arch(row, column);
        }

    begin_rounds(repetitions(work, 2700));
    for (int64_t sweep = 0; is_round(sweep); sweep++) {
        look_at_clock(sweep);
#pragma omp parallel for schedule(static)
        for (int row = 1; row <= SIDE; row++) {
            const double *restrict old = from + row * STRIDE;
            double *restrict new = to + row * STRIDE;
            for (int column = 1; column <= SIDE; column++)
                new[column] = 0.25 * (old[column - 1] + old[column + 1] + old[column - STRIDE]
                                      + old[column + STRIDE]);
        }
        double *swap = from;
        from = to;
        to = swap;
    }
    end_rounds();

    from[SIDE / 2 * STRIDE + 1] += spoilt();
    double shrunk = pow(cos(PI / (SIDE + 1)), (double)rounds.count), sum = 0;
    int64_t wrong = 0;
    for (int row = 1; row <= SIDE; row++)
        for (int column = 1; column <= SIDE; column++) {
            double value = from[row * STRIDE + column];
            wrong += !is_near(value, shrunk * arch(row, column), TOLERANCE);
            sum += value;
        }
    free(from);
    free(to);
    return report_rounds(wrong == 0, (uint64_t)llround(sum * 1e3));
}
