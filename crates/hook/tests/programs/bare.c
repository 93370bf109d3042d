/* `bare GRANTED`: a program that calls no function of its runtime but the one that begins a region. */
#include "check.h"
#include "cosched.h"

int main(int argc, char **argv) {
    (void)argc;
    int count = 0;
    CHECK(cosched_region(1), 1);
#pragma omp parallel
#pragma omp atomic
    count++;
    CHECK(count, atoi(argv[1]));
    return 0;
}
