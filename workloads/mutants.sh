#!/usr/bin/env bash
# mutants.sh: the checks of the kernels find mistakes.
#
# --spoil makes one element wrong, which is the least that a check must find. Here
# a line of each kernel becomes a mistake that a machine or a programmer could
# make: a sweep that is left out, a lock that is not taken, a value that is no
# number. The kernel is built with it, and has to find that its result is wrong.
set -euo pipefail
cd "$(dirname "$0")"
export OMP_WAIT_POLICY=passive
folder=$(mktemp -d "${TMPDIR:-/tmp}/cosched-mutants.XXXXXX")
trap 'rm -rf "$folder"' EXIT

fail() {
    echo "mutants: $*" >&2
    exit 1
}

# mutant KERNEL CHANGE ARGUMENTS...: with the change, a script for sed, the kernel says that it is wrong. What storms share
# is changed with them.
mutant() {
    local status=0 said
    sed "$2" "src/$1.c" >"$folder/$1.c"
    sed "$2" src/storm.h >"$folder/storm.h"
    ! cmp -s "src/$1.c" "$folder/$1.c" || ! cmp -s src/storm.h "$folder/storm.h" || fail "$1: nothing in it fits to $2"
    ${CC:-cc} -std=gnu11 -O2 -w -ffp-contract=off -fopenmp -pthread -I"$folder" -Isrc "$folder/$1.c" -o "$folder/$1" -lm
    said=$(timeout 60 "$folder/$1" --threads 3 --work 0.05 "${@:3}" 2>&1) || status=$?
    [[ $status == 1 && $said == "$1 WRONG "* ]] || fail "$1 does not find $2: \"$said\", exit status $status"
}

mutant barrier-storm '/#pragma omp barrier/d'
mutant barrier-storm 's/random_walk(mine->state, storm.steps)/random_walk(mine->state, storm.steps - (round == 7))/'
mutant pthread-storm '/^    pthread_barrier_wait/d'

# Two keys of a bucket move towards each other: in order, and the same sum.
mutant bucket-sort 's/uint32_t place = first\[bucket\];/if (count[10] \&\& count[12]) count[10]--, count[12]--, count[11] += 2; &/'
mutant bucket-sort 's/sorted\[0\] += (uint32_t)spoilt()/sorted[count_of_keys - 1] -= round == 0/'

mutant cg 's/double alpha = rr/double alpha = NAN * rr/'
mutant cg 's/r\[i\] -= alpha \* q\[i\]/& * (i != 99)/'
mutant cg 's/^        solve(i);/        { solve(i); if (i == 0) x[7] = 5; }/'

mutant compute 's/areas\[block\] = sum/areas[block] = (block > 0) * sum/'
mutant disk '/transfer(file, false, found/d'
mutant hog 's/random_walk(mine->state, steps)/random_walk(mine->state, steps - (round == 7))/'

# Locks that are not taken show where threads wait, or one is preempted for another; so these run for a while.
mutant lock-loop '/pthread_mutex_.*lock(/d' --gap 0 --work 0.2
mutant lock-loop '/pthread_mutex_.*lock(/d' --locks 2 --gap 0 --work 0.2
mutant nested-locks '/pthread_mutex_.*lock(/d' --accounts 2 --gap 0 --work 0.2
mutant nested-locks '/pthread_mutex_.*lock(&inner/d' --accounts 3 --gap 0 --work 0.2

mutant phases '/pthread_mutex_.*lock(/d' --compute 0 --memory 0 --lock 100 --work 0.2
mutant phases 's/elements\[i\]++/elements[i] += omp_get_thread_num() == 0/' --compute 0 --memory 30

mutant pipe-ring 's/random_walk(token, steps)/random_walk(token, steps - (lap == 7))/'
mutant pipe-ring 's/random_walk(token, steps)/me->number == 1 ? token : &/'

mutant pipeline 's/push(&to_collector, item);/if (item.number != 5) &/'
mutant pipeline 's/random_walk(item.state, middle_steps)/item.state/'

mutant reader-writer '/pthread_rwlock_.*lock(/d' --every 2 --gap 0 --work 0.5

mutant sleeper 's/nanosleep(&rest, NULL) == 0/true/'
mutant sleeper 's/nanosleep(&rest, NULL)/nanosleep(\&(struct timespec){0, rest.tv_nsec \/ 2}, NULL)/'

mutant stencil 's/new\[column\] = 0.25/new[column] = NAN/'
mutant stencil 's/is_round(sweep)/is_round(sweep + 1)/'

mutant system-calls 's/- right_answer/& + (i == 7)/'
mutant system-calls 's/i < turns;/i < turns - (me->number == 1);/'

triad='a\[line + i\] = b\[line + i\] + s'
mutant triad "/$triad/s/a\[.*/(void)s;/" --mebibytes 6
mutant triad "s/$triad/if (omp_get_thread_num() == 0) &/" --mebibytes 6
mutant triad "s/$triad/& * 2/" --mebibytes 6
mutant triad 's/int64_t pair = 0; pair < pairs/int64_t pair = 1; pair < pairs/' --mebibytes 6
mutant triad 's/total += 1;/total += line > 0;/' --mebibytes 6 --additions 2
echo "mutants: every mistake was found"
