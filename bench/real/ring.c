/* Ranks of an MPI job compute and agree on a sum, so many hundred times. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank, ranks;
    double x = 1, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int steps = 100 * (argc > 1 ? atoi(argv[1]) : 100);
    for (int step = 0; step < steps; step++) {
        double y = x;
        for (int i = 0; i < 10000; i++)
            y = y * 0.9999 + 0.0001;
        MPI_Allreduce(&y, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        x = sum / ranks;
    }
    int wrong = fabs(x - 1) > 1e-6;
    if (rank == 0)
        printf("ring %s %.9f\n", wrong ? "WRONG" : "ok", x);
    MPI_Finalize();
    return wrong;
}
