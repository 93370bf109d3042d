/*
 * pipeline: stages that hand work on, of which one dominates.
 *
 * One thread makes items, --threads threads work on them, one thread collects
 * them: two bounded queues between three stages, as in a media encoder or a
 * search engine. The stage in the middle decides the rate. The others mostly
 * wait for room or for items: if a scheduler gives them as much time as the
 * middle, no stage uses it.
 *
 * So the program has two threads more than --threads says, which need about a
 * tenth of a CPU each for every ten threads in the middle.
 *
 * Check: every item is the start of a chain; the collector must get as many
 * items as were made, each once, each where its chain ends.
 */
#include "random.h"
#include "team.h"

#define QUEUE_LENGTH 16
#define LAST (-1) /* the item that ends a stage */

struct item {
    int64_t number;
    uint64_t state;
};

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t not_empty, not_full;
    struct item items[QUEUE_LENGTH];
    int first, count;
};

#define EMPTY_QUEUE \
    {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, {{0}}, 0, 0}

static struct queue to_middle = EMPTY_QUEUE, to_collector = EMPTY_QUEUE;
static int middle_threads;
static int64_t items, middle_steps, outer_steps;
static bool *collected;

static void push(struct queue *queue, struct item item)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->count == QUEUE_LENGTH)
        pthread_cond_wait(&queue->not_full, &queue->lock);
    queue->items[(queue->first + queue->count++) % QUEUE_LENGTH] = item;
    pthread_cond_signal(&queue->not_empty);
    pthread_mutex_unlock(&queue->lock);
}

static struct item pop(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->count == 0)
        pthread_cond_wait(&queue->not_empty, &queue->lock);
    struct item item = queue->items[queue->first];
    queue->first = (queue->first + 1) % QUEUE_LENGTH;
    queue->count--;
    pthread_cond_signal(&queue->not_full);
    pthread_mutex_unlock(&queue->lock);
    return item;
}

static void make(void)
{
    for (int64_t i = 0; i < items; i++)
        push(&to_middle, (struct item){i, random_walk((uint64_t)i, outer_steps)});
    for (int i = 0; i < middle_threads; i++)
        push(&to_middle, (struct item){LAST, 0});
}

static void work_on(void)
{
    struct item item;
    while ((item = pop(&to_middle)).number != LAST) {
        item.state = random_walk(item.state, middle_steps);
        push(&to_collector, item);
    }
    push(&to_collector, item);
}

/* Returns the number of items that were wrong; `sum` becomes that of the others' states. */
static int64_t collect(uint64_t *sum)
{
    int64_t wrong = 0;
    for (int ended = 0; ended < middle_threads;) {
        struct item item = pop(&to_collector);
        if (item.number == LAST) {
            ended++;
            continue;
        }
        item.state = random_walk(item.state, outer_steps);
        uint64_t steps = (uint64_t)(2 * outer_steps + middle_steps);
        if (collected[item.number] || item.state != random_jump((uint64_t)item.number, steps))
            wrong++;
        collected[item.number] = true;
        *sum += item.state;
    }
    return wrong;
}

static void run_stage(struct member *me)
{
    if (me->number == 0)
        make();
    else if (me->number == 1)
        me->tally = collect(&me->state);
    else
        work_on();
}

int main(int argc, char **argv)
{
    double middle = 100, outer = 1;
    const struct knob knobs[] = {
        {"--middle", &middle, false, "microseconds per item in the stage that dominates, about"},
        {"--outer", &outer, false, "microseconds per item in each of the other two, about"},
        {0}};
    begin(argc, argv, "pipeline", "pthreads in three stages with queues between them", knobs);

    middle_threads = team_size();
    middle_steps = repetitions(middle, STEPS_PER_MICROSECOND);
    outer_steps = repetitions(outer, STEPS_PER_MICROSECOND);
    items = repetitions(work, 2e6 / (middle + 2 * outer));
    collected = allocate((size_t)items, sizeof *collected);
    memset(collected, 0, (size_t)items * sizeof *collected);
    struct member *team = run_team(middle_threads + 2, run_stage);

    collected[items / 2] ^= spoilt();
    bool right = team[1].tally == 0;
    uint64_t checksum = team[1].state;
    for (int64_t i = 0; i < items; i++)
        right &= collected[i];
    free(collected);
    free(team);
    return report(right, checksum);
}
