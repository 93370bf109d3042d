/* As many regions as its argument says, each with three barriers: an explicit one, that of a loop, and the one at its end. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    long sum = 0;
    for (int round = 0; round < rounds; round++) {
#pragma omp parallel
        {
#pragma omp barrier
#pragma omp for
            for (int i = 0; i < 8; i++)
#pragma omp atomic
                sum += i;
        }
    }
    printf("%ld\n", sum);
    return sum != 28l * rounds;
}
