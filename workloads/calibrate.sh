#!/usr/bin/env bash
# calibrate.sh: how many additions make triad take 80, 60, 40 and 20 % of this machine's bandwidth.
#
# Plain triad runs with ever more threads: the highest bandwidth is the peak,
# and the fewest threads with 95 % of it are those that saturate the bus. With
# that many threads, the additions per cache line are then found by halving an
# interval. Everything runs three times and the best counts, since others can
# only take bandwidth away. Run it on the idle machine, some minutes at most: it
# waits a minute for that, and keeps nothing if the machine is busy when it has measured.
#
# The result, bin/triad.calibration, is what `triad --percent` reads.
set -euo pipefail
cd "$(dirname "$0")"
. ./counts.sh
result=bin/triad.calibration

# bandwidth THREADS ADDITIONS: the best of three, in MB/s.
bandwidth() {
    local line best=0 now
    for _ in 1 2 3; do
        line=$(bin/triad --work 0.1 --threads "$1" --additions "$2")
        now=$(awk '{ printf "%d", 1e3 * $1 }' <<<"${line##*gigabytes_per_second=}")
        ((now <= best)) || best=$now
    done
    echo "$best"
}

be_idle calibrate 60
peak=0
declare -A found
for threads in $(thread_counts); do
    found[$threads]=$(bandwidth "$threads" 0)
    echo "calibrate: $threads threads: ${found[$threads]} MB/s" >&2
    ((found[$threads] <= peak)) || peak=${found[$threads]}
done
for threads in $(thread_counts); do
    ((found[$threads] * 100 < peak * 95)) || break
done
peak=${found[$threads]}

# The fewest additions that bring it to the wanted bandwidth or below; more for each next one.
low=0
lines=("peak $peak MB/s threads $threads")
for percent in 80 60 40 20; do
    wanted=$((peak * percent / 100))
    high=$((low + 16))
    while (($(bandwidth "$threads" "$high") > wanted)); do
        low=$high high=$((high * 2))
    done
    while ((high - low > 1)); do
        middle=$(((low + high) / 2))
        now=$(bandwidth "$threads" "$middle")
        if ((now > wanted)); then low=$middle; else high=$middle; fi
    done
    echo "calibrate: $percent %: $high additions per cache line" >&2
    lines+=("percent $percent additions $high")
    low=$high
done
be_idle calibrate 5
# A file that is there is complete: triad may be starting just now.
printf '%s\n' "${lines[@]}" >"$result.new"
mv "$result.new" "$result"
echo "calibrate: wrote $result" >&2
