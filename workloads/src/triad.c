/*
 * triad: threads that wait for memory, as much as is wanted.
 *
 * a[i] = b[i] + s * c[i] over arrays that are larger than the caches: the
 * triad of the STREAM benchmark. It moves 24 bytes for two floating-point
 * operations, so memory bandwidth decides its speed: two of them together
 * gain nothing, and all co-runners lose cache.
 *
 * --percent makes variants that take only 80, 60, 40 or 20 % of the peak, by
 * additions in registers between the memory accesses, as the thesis on scaff
 * does it (3.3). The peak is the bandwidth of the plain triad at the number of
 * threads that saturates the bus, and at that number of threads the variants
 * take their percentage; with fewer threads they take less. How many additions
 * that needs depends on the machine. ../calibrate.sh measures it, alone on the
 * machine, and writes a file beside this program, from which --percent reads.
 * The program does not calibrate itself at its start: its neighbours and the
 * scheduler, both of which it is there to judge, would change the load then.
 *
 * We add per cache line, not per element, since a percentage then can be met
 * to within one.
 *
 * Check: sweeps go from b to a with one s and back to b with another, negative
 * one. So every pair of sweeps leaves one c more in each element of b, and the
 * last sweep but one can be computed from a. No element of c is zero and all numbers
 * are whole, so a sweep that was left out, in one element, shows. The additions
 * are counted in whole numbers, which are exact as well.
 */
#include <errno.h>
#include <unistd.h>

#include "common.h"

#define THERE 3.0 /* times c, from b to a */
#define BACK (-2.0) /* times c, from a to b */
#define LINE 8 /* elements of a cache line */
#define CALIBRATION "triad.calibration"

/* The file beside this program, wherever it was started. */
static FILE *open_calibration(char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size - sizeof CALIBRATION);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    strcpy(slash ? slash + 1 : path, CALIBRATION);
    return fopen(path, "r");
}

/* Looks up how many additions per cache line leave so many percent of the peak. */
static int64_t additions_for(double percent)
{
    if (percent == 100)
        return 0;
    char path[4096], line[256];
    FILE *file = open_calibration(path, sizeof path);
    if (!file) {
        fprintf(stderr, "triad: %s: %s; run workloads/calibrate.sh on the idle machine\n", path,
                strerror(errno));
        exit(2);
    }
    double of = 0, additions = -1;
    while (additions < 0 && fgets(line, sizeof line, file))
        if (sscanf(line, "percent %lf additions %lf", &of, &additions) != 2 || of != percent)
            additions = -1;
    fclose(file);
    if (additions < 0) {
        fprintf(stderr, "triad: %s knows no --percent %g; remove it and run workloads/calibrate.sh\n",
                path, percent);
        exit(2);
    }
    return (int64_t)additions;
}

/* Four times the last-level cache, so that nothing is found in it again. */
static double default_mebibytes(void)
{
    double cache = (double)sysconf(_SC_LEVEL3_CACHE_SIZE) / 1048576;
    return fmax(96, ceil(4 * cache));
}

/* One sweep; returns the sum of its additions. */
static double sweep(double *restrict a, const double *restrict b, const double *restrict c, int64_t n,
                    double s, int64_t additions)
{
    double total = 0;
#pragma omp parallel for schedule(static) reduction(+ : total)
    for (int64_t line = 0; line < n; line += LINE) {
        for (int i = 0; i < LINE; i++)
            a[line + i] = b[line + i] + s * c[line + i];
        for (int64_t i = 0; i < additions; i++)
            total += 1;
    }
    return total;
}

int main(int argc, char **argv)
{
    double mebibytes = default_mebibytes(), percent = 100, chosen = 0;
    const struct knob knobs[] = {
        {"--mebibytes", &mebibytes, true, "size of the three arrays together, MiB"},
        {"--percent", &percent, true, "of the peak bandwidth: 20, 40, 60, 80 or 100", .most = 100},
        {"--additions", &chosen, true, "per cache line, beside those for --percent", .zero = true},
        {0}};
    begin(argc, argv, "triad", "OpenMP threads that stream through memory", knobs);

    int64_t additions = additions_for(percent) + (int64_t)chosen;
    must_fit("--mebibytes", mebibytes);
    int64_t n = (int64_t)(mebibytes * 1048576 / 24) / LINE * LINE;
    /* As many bytes in all, however large the arrays are. */
    int64_t pairs = repetitions(work, 8500 / mebibytes);
    double *a = allocate((size_t)n, sizeof *a);
    double *b = allocate((size_t)n, sizeof *b);
    double *c = allocate((size_t)n, sizeof *c);

    /* Each thread touches its own part first, so that it is near to it. */
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++) {
        a[i] = 0;
        b[i] = (double)(i % 1000);
        c[i] = (double)(1 + i % 77);
    }
    double since = seconds_now(), added = 0;
    for (int64_t pair = 0; pair < pairs; pair++) {
        added += sweep(a, b, c, n, THERE, additions);
        added += sweep(b, a, c, n, BACK, additions);
    }
    double seconds = seconds_now() - since;
    double gigabytes = 24e-9 * (double)n * 2 * (double)pairs;

    b[n / 2] += spoilt();
    int64_t wrong = 0, sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : wrong, sum)
    for (int64_t i = 0; i < n; i++) {
        int64_t first = i % 1000, step = 1 + i % 77;
        wrong += a[i] != (double)(first + (pairs - 1) * step + (int64_t)THERE * step);
        wrong += b[i] != (double)(first + pairs * step);
        sum += (int64_t)(a[i] + b[i]);
    }
    bool right = wrong == 0 && added == (double)(2 * pairs * (n / LINE) * additions);
    free(a);
    free(b);
    free(c);
    return report_with(right, (uint64_t)sum, "gigabytes_per_second", gigabytes / seconds);
}
