/*
 * What every kernel shares: its options, its clock, its last line.
 *
 * A kernel is a small program with a behaviour that is known beforehand, so that a
 * scheduler can be judged by it. Each one checks its own result: a scheduler
 * that stops, moves and continues threads must not change what they compute.
 *
 *   exit 0   the result is right; one line "NAME ok checksum=… seconds=…"
 *   exit 1   the result is wrong, or memory, threads or files could not be had
 *   exit 2   the options make no sense; nothing was computed
 *
 * An option is a "knob": a name, a number, a line of help. Every kernel has
 * --threads and --work, and --spoil, which proves that the check can fail.
 *
 * A kernel starts with begin(), adds spoilt() to one element of its result,
 * checks it, and ends with report().
 */
#ifndef COMMON_H
#define COMMON_H

#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct knob {
    const char *name; /* as typed, with its dashes; NULL ends the list */
    double *value;    /* holds the default before, the choice after */
    bool whole;       /* counts things: no fractions */
    const char *help;
    bool zero;        /* may also be nothing at all */
    double most;      /* 0: MOST */
    double least;     /* 0: anything above 0 */
};

#define MOST_THREADS 1024.0
#define MOST 1e9

static const char *kernel;   /* its name */
static double kernel_since;  /* when it began, by seconds_now() */
static bool kernel_spoilt;   /* whether its result shall be wrong */
static double threads, work = 1;

static const struct knob common_knobs[] = {
    {"--threads", &threads, true, "threads (default: OMP_NUM_THREADS, else the runtime's choice)",
     .most = MOST_THREADS},
    {"--work", &work, false, "amount of work; 1 takes about a second on two 2.5 GHz CPUs"},
    {0}};

/* Tells cosched that the program has come a step further, where it has its library inside. */
extern void cosched_progress(uint64_t ticks) __attribute__((weak));

static inline void tick(void)
{
    if (cosched_progress)
        cosched_progress(1);
}

static inline double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline void print_knobs(FILE *out, const struct knob *knobs)
{
    for (; knobs->name; knobs++) {
        fprintf(out, "  %-12s %s", knobs->name, knobs->help);
        if (*knobs->value > 0)
            fprintf(out, " (default: %g)", *knobs->value);
        fputc('\n', out);
    }
}

static inline void print_help(FILE *out, const char *purpose, const struct knob *knobs)
{
    fprintf(out, "%s: %s\n\noptions, each followed by a number:\n", kernel, purpose);
    print_knobs(out, common_knobs);
    print_knobs(out, knobs);
    fputs("\n  --spoil      make one element of the result wrong: the check has to find it\n"
          "  --help       this text\n",
          out);
}

static inline const struct knob *find_knob(const struct knob *knobs, const char *name)
{
    while (knobs->name && strcmp(knobs->name, name) != 0)
        knobs++;
    return knobs->name ? knobs : NULL;
}

/* Sets a knob, or ends the program when the text is not a number for it. */
static inline void turn_knob(const struct knob *knob, const char *text)
{
    char *end;
    double number = strtod(text, &end);
    double most = knob->most > 0 ? knob->most : MOST;
    bool in_range = (knob->zero ? number >= 0 : number > 0) && number >= knob->least && number <= most;
    if (end == text || *end || !in_range || (knob->whole && number != floor(number))) {
        fprintf(stderr, "%s: %s takes a %s %s %.0f and up to %.0f, not \"%s\"\n", kernel, knob->name,
                knob->whole ? "whole number" : "number", knob->zero || knob->least > 0 ? "from" : "above",
                knob->least, most, text);
        exit(2);
    }
    *knob->value = number;
}

/* Reads the options, sets the number of threads, and starts the clock. */
static inline void begin(int argc, char **argv, const char *name, const char *purpose,
                         const struct knob *knobs)
{
    kernel = name;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            print_help(stdout, purpose, knobs);
            exit(0);
        }
        if (strcmp(argv[i], "--spoil") == 0) {
            kernel_spoilt = true;
            continue;
        }
        const struct knob *knob = find_knob(common_knobs, argv[i]);
        if (!knob)
            knob = find_knob(knobs, argv[i]);
        if (!knob) {
            fprintf(stderr, "%s: unknown option \"%s\"\n\n", kernel, argv[i]);
            print_help(stderr, purpose, knobs);
            exit(2);
        }
        turn_knob(knob, i + 1 < argc ? argv[++i] : "");
    }
    if (threads > 0)
        omp_set_num_threads((int)threads);
    kernel_since = seconds_now();
}

/* What is to be added to one element of the result: nothing, unless it shall be wrong. */
static inline int spoilt(void)
{
    return kernel_spoilt ? 1 : 0;
}

/* How often to repeat something of which `per_second` make one second. */
static inline int64_t repetitions(double amount, double per_second)
{
    int64_t count = (int64_t)(amount * per_second);
    return count > 0 ? count : 1;
}

/* Whether a value is what it must be; one that is not a number is not. */
static inline bool is_near(double value, double wanted, double tolerance)
{
    return fabs(value - wanted) < tolerance;
}

/* Prints the last line with one more figure; its value is the exit status. */
static inline int report_with(bool right, uint64_t checksum, const char *figure, double value)
{
    printf("%s %s checksum=%016" PRIx64 " seconds=%.3f", kernel, right ? "ok" : "WRONG", checksum,
           seconds_now() - kernel_since);
    if (figure)
        printf(" %s=%.6g", figure, value);
    putchar('\n');
    return right ? 0 : 1;
}

/* Prints the last line; its value is the exit status. */
static inline int report(bool right, uint64_t checksum)
{
    return report_with(right, checksum, NULL, 0);
}

/* Ends the program when the system refuses something; `error` is an errno. */
static inline void refused(const char *what, int error)
{
    fprintf(stderr, "%s: %s: %s\n", kernel, what, strerror(error));
    exit(1);
}

/* Ends the program when an option requests more memory than the machine has: it would only be killed for it later. */
static inline void must_fit(const char *knob, double mebibytes)
{
    double machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / 1048576;
    if (mebibytes > machine) {
        fprintf(stderr, "%s: %s needs %.0f MiB of memory, and this machine has %.0f MiB\n", kernel, knob,
                mebibytes, machine);
        exit(2);
    }
}

/* Memory on pages of its own, or the end of the program. */
static inline void *allocate(size_t count, size_t size)
{
    void *memory = NULL;
    int error = posix_memalign(&memory, 4096, count * size);
    if (error)
        refused("memory", error);
    return memory;
}

#endif
