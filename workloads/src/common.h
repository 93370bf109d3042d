/*
 * What every kernel shares: its options, its clock, its last line.
 *
 * A kernel is a small program whose behaviour is known beforehand, so that a
 * scheduler can be judged by it. Each one checks its own result: a scheduler
 * that stops, moves and continues threads must not change what they compute.
 *
 *   exit 0   the result is right; one line "NAME ok checksum=… seconds=…"
 *   exit 1   the result is wrong, or memory or threads could not be had
 *   exit 2   the options make no sense; nothing was computed
 *
 * An option is a "knob": a name, a positive number, a line of help.
 */
#ifndef COMMON_H
#define COMMON_H

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct knob {
    const char *name; /* as typed, with its dashes; NULL ends the list */
    double *value;    /* holds the default before, the choice after */
    bool whole;       /* counts things: no fractions */
    const char *help;
};

#define MOST_THREADS 1024.0
#define THREADS_KNOB(variable) \
    {"--threads", &(variable), true, "threads (default: OMP_NUM_THREADS, else the runtime's choice)"}
#define WORK_KNOB(variable) \
    {"--work", &(variable), false, "amount of work; 1 takes about a second on two 2.5 GHz CPUs"}

static inline void print_help(FILE *out, const char *name, const char *purpose,
                              const struct knob *knobs)
{
    fprintf(out, "%s: %s\n\noptions, each followed by a positive number:\n", name, purpose);
    for (; knobs->name; knobs++) {
        fprintf(out, "  %-10s %s", knobs->name, knobs->help);
        if (*knobs->value > 0)
            fprintf(out, " (default: %g)", *knobs->value);
        fputc('\n', out);
    }
    fputs("  --help     this text\n", out);
}

static inline void read_knobs(int argc, char **argv, const char *name, const char *purpose,
                              const struct knob *knobs)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            print_help(stdout, name, purpose, knobs);
            exit(0);
        }
        const struct knob *knob = knobs;
        while (knob->name && strcmp(knob->name, argv[i]) != 0)
            knob++;
        if (!knob->name) {
            fprintf(stderr, "%s: unknown option \"%s\"\n\n", name, argv[i]);
            print_help(stderr, name, purpose, knobs);
            exit(2);
        }
        const char *text = i + 1 < argc ? argv[++i] : "";
        char *end;
        double number = strtod(text, &end);
        double most = strcmp(knob->name, "--threads") == 0 ? MOST_THREADS : 1e9;
        if (end == text || *end || !(number > 0 && number <= most)
            || (knob->whole && number != floor(number))) {
            fprintf(stderr, "%s: %s takes a %s above 0 and up to %.0f, not \"%s\"\n", name,
                    knob->name, knob->whole ? "whole number" : "number", most, text);
            exit(2);
        }
        *knob->value = number;
    }
}

/* How often to repeat something of which `per_second` make one second. */
static inline int64_t repetitions(double work, double per_second)
{
    int64_t count = (int64_t)(work * per_second);
    return count > 0 ? count : 1;
}

static inline double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Prints the last line; its value is the exit status. */
static inline int report(const char *name, bool right, uint64_t checksum, double since)
{
    printf("%s %s checksum=%016" PRIx64 " seconds=%.3f\n", name, right ? "ok" : "WRONG", checksum,
           seconds_now() - since);
    return right ? 0 : 1;
}

/* Memory on pages of its own, or the end of the program. */
static inline void *allocate(size_t count, size_t size)
{
    void *memory = NULL;
    if (posix_memalign(&memory, 4096, count * size) != 0) {
        fprintf(stderr, "out of memory: %zu bytes\n", count * size);
        exit(1);
    }
    return memory;
}

#endif
