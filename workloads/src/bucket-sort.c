/*
 * bucket-sort: integers thrown to random places in memory.
 *
 * Each thread counts how many of its keys belong into each bucket, the counts
 * become places, each thread writes its keys there, and the buckets are sorted
 * one by one. Scattered writes over some megabytes make the last-level cache
 * matter, or with many --keys the memory; four phases with barriers make
 * lateness matter.
 *
 * Check: every round sorts fresh keys; they must be in order, and their sum and
 * the sum of their squares must be what was drawn. After the last round, each
 * different key must be there as often as it was drawn.
 */
#include <errno.h>

#include "random.h"
#include "rounds.h"

#define MOST_MILLIONS 4095 /* places are 32 bits wide */
#define KEY_BITS 20
#define BUCKET_BITS 10
#define BUCKETS (1 << BUCKET_BITS)
#define WIDTH (1 << (KEY_BITS - BUCKET_BITS)) /* different keys in one bucket */

static int64_t count_of_keys;
static uint32_t *keys, *sorted;
static uint32_t (*places)[BUCKETS]; /* per thread: a count at first, then the next place */
static uint32_t first[BUCKETS + 1]; /* where each bucket begins */

static void add_up_places(int team)
{
    uint32_t place = 0;
    for (int bucket = 0; bucket < BUCKETS; bucket++) {
        first[bucket] = place;
        for (int thread = 0; thread < team; thread++) {
            uint32_t count = places[thread][bucket];
            places[thread][bucket] = place;
            place += count;
        }
    }
    first[BUCKETS] = place;
}

/* Within a bucket, keys are counted and written again in order. */
static void sort_bucket(int bucket)
{
    uint32_t count[WIDTH] = {0};
    for (uint32_t i = first[bucket]; i < first[bucket + 1]; i++)
        count[sorted[i] % WIDTH]++;
    uint32_t place = first[bucket];
    for (uint32_t low = 0; low < WIDTH; low++)
        for (uint32_t i = 0; i < count[low]; i++)
            sorted[place++] = (uint32_t)bucket * WIDTH + low;
}

/* Drawn minus found: sums of keys and of their squares; and how many keys are out of order. */
struct balance {
    uint64_t sum, squares;
    int64_t disorder;
};

/* One round, by a team that is already running. Adds this thread's share to `balance`. */
static void sort_round(int64_t round, struct balance *balance)
{
    uint32_t *mine = places[omp_get_thread_num()];
    uint64_t sum = 0, squares = 0;
    int64_t disorder = 0;
    memset(mine, 0, sizeof places[0]);
    /* Static loops give a thread the same keys each time, so drawing, counting
     * and scattering need no barrier but the one before the places are known. */
#pragma omp for schedule(static)
    for (int64_t block = 0; block < count_of_keys / 1024; block++) {
        uint64_t state = random_jump((uint64_t)round, (uint64_t)block * 1024);
        for (int64_t i = block * 1024; i < (block + 1) * 1024; i++) {
            state = random_step(state);
            keys[i] = (uint32_t)(state >> (64 - KEY_BITS));
            sum += keys[i];
            squares += (uint64_t)keys[i] * keys[i];
            mine[keys[i] / WIDTH]++;
        }
    }
#pragma omp single
    {
        add_up_places(omp_get_num_threads());
        look_at_clock(round);
    }
#pragma omp for schedule(static)
    for (int64_t block = 0; block < count_of_keys / 1024; block++)
        for (int64_t i = block * 1024; i < (block + 1) * 1024; i++)
            sorted[mine[keys[i] / WIDTH]++] = keys[i];
#pragma omp for schedule(static)
    for (int bucket = 0; bucket < BUCKETS; bucket++)
        sort_bucket(bucket);
#pragma omp single
    sorted[0] += (uint32_t)spoilt();
#pragma omp for schedule(static)
    for (int64_t i = 0; i < count_of_keys; i++) {
        sum -= sorted[i];
        squares -= (uint64_t)sorted[i] * sorted[i];
        disorder += i > 0 && sorted[i - 1] > sorted[i];
    }
    balance->sum += sum;
    balance->squares += squares;
    balance->disorder += disorder;
}

/* How many different keys are not there as often as they were drawn in a round. */
static int64_t miscounted(int64_t round)
{
    uint32_t *count = calloc((size_t)1 << KEY_BITS, sizeof *count);
    if (!count)
        refused("memory", ENOMEM);
    uint64_t state = (uint64_t)round;
    for (int64_t i = 0; i < count_of_keys; i++) {
        state = random_step(state);
        count[state >> (64 - KEY_BITS)]++;
    }
    int64_t wrong = 0;
    for (int64_t i = 0; i < count_of_keys; i++)
        if (sorted[i] >> KEY_BITS)
            wrong++;
        else
            count[sorted[i]]--;
    for (uint32_t key = 0; key < 1u << KEY_BITS; key++)
        wrong += count[key] != 0;
    free(count);
    return wrong;
}

int main(int argc, char **argv)
{
    double millions = 1;
    const struct knob knobs[] = {
        {"--keys", &millions, true, "keys per round, in units of 2^20: 8 MiB of memory each",
         .most = MOST_MILLIONS}, KNOB_OF_ROUNDS, {0}};
    begin(argc, argv, "bucket-sort", "parallel integer sort, with OpenMP", knobs);

    must_fit("--keys", 8 * millions);
    count_of_keys = (int64_t)millions << 20;
    int64_t disorder = 0;
    uint64_t sum = 0, squares = 0;
    keys = allocate((size_t)count_of_keys, sizeof *keys);
    sorted = allocate((size_t)count_of_keys, sizeof *sorted);
    places = allocate((size_t)omp_get_max_threads(), sizeof *places);

    begin_rounds(repetitions(work, 120 / millions));
#pragma omp parallel reduction(+ : sum, squares, disorder)
    {
        struct balance mine = {0, 0, 0};
        for (int64_t round = 0; is_round(round); round++)
            sort_round(round, &mine);
        sum += mine.sum;
        squares += mine.squares;
        disorder += mine.disorder;
    }
    end_rounds();

    uint64_t checksum = 0;
    for (int64_t i = 0; i < count_of_keys; i++)
        checksum = checksum * 31 + sorted[i];
    bool right = sum == 0 && squares == 0 && disorder == 0 && miscounted(rounds.count - 1) == 0;
    return report_rounds(right, checksum);
}
