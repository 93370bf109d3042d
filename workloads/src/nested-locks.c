/*
 * nested-locks: threads that take a second lock while they hold a first.
 *
 * A bank: every transfer locks two accounts, the one with the lower number
 * first so that no threads wait in a circle. It computes for a while, and
 * moves an amount from one to the other. A thread that waits for the inner
 * lock keeps the outer one all that time, so one thread that is off its CPU
 * in here stops a whole chain of others. The fewer accounts, the longer the
 * chains.
 *
 * Check: which thread moves what follows from each thread's random chain, and amounts
 * only add up. So each final balance is known from a replay without locks.
 */
#include "random.h"
#include "team.h"

#define LEAST_ACCOUNTS 2
#define MOST_ACCOUNTS 4096
#define OVERHEAD_NANOSECONDS 150.0 /* of drawing, and of two uncontended locks */

struct account {
    _Alignas(64) pthread_mutex_t lock;
    volatile int64_t balance; /* under its lock */
    int64_t expected;         /* by the replay */
};

struct transfer {
    int from, to;
    int64_t amount;
};

static struct account accounts[MOST_ACCOUNTS];
static int account_count;
static int64_t hold, gap, turns;

/* The next transfer in a chain, between two different accounts. */
static struct transfer draw(uint64_t *state)
{
    *state = random_step(*state);
    int from = (int)(random_unit(*state) * account_count);
    *state = random_step(*state);
    int distance = 1 + (int)(random_unit(*state) * (account_count - 1));
    return (struct transfer){from, (from + distance) % account_count, (int64_t)(*state >> 60)};
}

static void trade(struct member *me)
{
    uint64_t state = me->state;
    for (int64_t i = 0; i < turns; i++) {
        struct transfer move = draw(&state);
        struct account *from = &accounts[move.from], *to = &accounts[move.to];
        struct account *outer = from < to ? from : to, *inner = from < to ? to : from;
        pthread_mutex_lock(&outer->lock);
        me->state = random_walk(me->state, hold);
        pthread_mutex_lock(&inner->lock);
        /* Read long before they are written: without locks, hardly a transfer would be right. */
        int64_t giver = from->balance, taker = to->balance;
        me->state = random_walk(me->state, hold);
        from->balance = giver - move.amount;
        to->balance = taker + move.amount;
        pthread_mutex_unlock(&inner->lock);
        pthread_mutex_unlock(&outer->lock);
        me->state = random_walk(me->state, gap);
    }
}

static void replay(int size)
{
    for (int number = 0; number < size; number++) {
        uint64_t state = (uint64_t)number;
        for (int64_t i = 0; i < turns; i++) {
            struct transfer move = draw(&state);
            accounts[move.from].expected -= move.amount;
            accounts[move.to].expected += move.amount;
        }
    }
}

int main(int argc, char **argv)
{
    double number = 8, hold_nanoseconds = 500, gap_nanoseconds = 2000;
    const struct knob knobs[] = {
        {"--accounts", &number, true, "locks to take two of", .most = MOST_ACCOUNTS,
         .least = LEAST_ACCOUNTS},
        {"--hold", &hold_nanoseconds, false, "nanoseconds before and after the inner lock, about"},
        {"--gap", &gap_nanoseconds, false, "nanoseconds without any lock, about", .zero = true},
        {0}};
    begin(argc, argv, "nested-locks", "pthreads that hold one mutex while they wait for another", knobs);

    int size = team_size();
    account_count = (int)number;
    hold = repetitions(hold_nanoseconds, STEPS_PER_MICROSECOND / 1e3);
    gap = (int64_t)(gap_nanoseconds * STEPS_PER_MICROSECOND / 1e3);
    /* The sum over the threads stays, however many there are. */
    turns = repetitions(
        work, 2e9 / (2 * hold_nanoseconds + gap_nanoseconds + OVERHEAD_NANOSECONDS) / size);
    for (int i = 0; i < account_count; i++)
        pthread_mutex_init(&accounts[i].lock, NULL);
    struct member *team = run_team(size, trade);

    accounts[0].balance += spoilt();
    replay(size);
    bool right = true;
    uint64_t checksum = 0;
    for (int i = 0; i < size; i++)
        right &= team[i].state == random_jump((uint64_t)i, (uint64_t)(turns * (2 * hold + gap)));
    for (int i = 0; i < account_count; i++) {
        right &= accounts[i].balance == accounts[i].expected;
        checksum = checksum * 31 + (uint64_t)accounts[i].balance;
    }
    free(team);
    return report(right, checksum);
}
