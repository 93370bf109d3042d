/* A malleable program in C: it prints how many threads each of its regions had, and a sum that does not depend on that.
 *
 *     gcc -fopenmp -I include examples/regions.c -lcosched_hook -o regions
 */
#include <stdio.h>

#include "cosched.h"

int main(void) {
    long sum = 0;
    for (int step = 0; step < 3; step++) {
        int threads = cosched_region(4);
        printf("%d ", threads);
#pragma omp parallel for num_threads(threads) reduction(+ : sum)
        for (int i = 1; i <= 1000; i++)
            sum += i;
        cosched_progress(1);
    }
    printf("sum %ld\n", sum);
    return 0;
}
