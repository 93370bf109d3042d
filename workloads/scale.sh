#!/usr/bin/env bash
# scale.sh WORKLOAD [SECONDS]: prints the workload file, scaled to this machine.
#
# The thesis on scaff gives each program the fewest threads with which it
# reaches 80 % of its best speedup (5.2). So every kernel in the file runs alone
# here, with ever more threads, and its `threads` becomes that number. Then its
# --work is chosen so that it takes SECONDS (3, if not said) alone. Run it on the
# idle machine; programs that are no kernels of ours stay as they are.
#
# `threads` has to stand behind the command. Every program gets a `cwd`, so the result may lie anywhere:
#
#     workloads/scale.sh workloads/mixed.toml >/tmp/mixed.toml
#     cosched compare /tmp/mixed.toml
set -euo pipefail
(($# >= 1)) || { echo "usage: scale.sh WORKLOAD [SECONDS]" >&2; exit 2; }
workload=$(realpath "$1")
wanted=${2:-3}
awk -v w="$wanted" 'BEGIN { exit !(w ~ /^[0-9]*\.?[0-9]+$/ && w > 0) }' ||
    { echo "scale: '$wanted' is no number of seconds above 0" >&2; exit 2; }
. "$(dirname "$(realpath "$0")")/counts.sh"
cd "$(dirname "$workload")"

# seconds KERNEL ARGUMENTS...: the shortest of three runs.
seconds() {
    local line now best=1e9
    for _ in 1 2 3; do
        line=$("$@") || { echo "scale: $* failed" >&2; return 1; }
        now=${line##*seconds=}
        best=$(awk -v a="$best" -v b="${now%% *}" 'BEGIN { print a < b ? a : b }')
    done
    echo "$best"
}

# scaled KERNEL ARGUMENTS...: prints the threads and the work that it is given here.
scaled() {
    local count times=() threads work=1 now
    for count in $(thread_counts); do
        now=$(seconds "$@" --work 1 --threads "$count") || return
        times+=("$count $now")
    done
    echo "scale: $*: threads and seconds: ${times[*]/%/,}" >&2
    threads=$(printf '%s\n' "${times[@]}" | awk '
        { count[NR] = $1; time[NR] = $2; if (!best || $2 < best) best = $2 }
        END { for (i = 1; best < 0.8 * time[i]; i++); print count[i] }')
    # Twice, since a kernel has a beginning that does not grow with its work.
    for _ in 1 2; do
        now=$(seconds "$@" --work "$work" --threads "$threads") || return
        work=$(awk -v w="$work" -v s="$wanted" -v n="$now" 'BEGIN { printf "%.3g", w * s / n }')
    done
    echo "$threads $work"
}

declare -A known
ours= # whether the program that is being read is a kernel
echo "# $(basename "$workload"), scaled by scale.sh to $(nproc) CPUs and $wanted s for each program alone."
while IFS= read -r line; do
    if [[ $line == threads\ =* && -n $ours ]]; then
        continue # the number found here already stands behind the command
    elif [[ $line =~ ^command\ =\ \[\"(\./bin/.*)\"\]$ ]]; then
        ours=yes
        read -ra words <<<"${BASH_REMATCH[1]//'", "'/ }"
        kernel=()
        for ((i = 0; i < ${#words[@]}; i++)); do
            case ${words[i]} in
            --work | --threads) ((i += 1)) ;; # and its number
            *) kernel+=("${words[i]}") ;;
            esac
        done
        [[ -v known["${kernel[*]}"] ]] || known[${kernel[*]}]=$(scaled "${kernel[@]}")
        read -r threads work <<<"${known[${kernel[*]}]}"
        kernel+=(--work "$work")
        printf -v list '"%s", ' "${kernel[@]}"
        printf 'command = [%s]\nthreads = %s\ncwd = "%s"\n' "${list%, }" "$threads" "$PWD"
    elif [[ $line == command\ =* ]]; then
        printf '%s\ncwd = "%s"\n' "$line" "$PWD"
    elif [[ $line != \#* ]]; then
        [[ $line != "[[program]]" ]] || ours=
        printf '%s\n' "$line"
    fi
done <"$workload"
