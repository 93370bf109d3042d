#!/usr/bin/env bash
# ext.sh: cosched's scheduler in the kernel beside the kernel's own: ways to wait, lengths of slices, stages of a pipeline.
#
# It boots the guest of guest/variants/ext four times, runs a part of ext-guest.sh in each, and prints the tables of
# bench/results/ext.md. The guest's clock counts instructions, so figures are the same on every machine, however busy: they
# show order, not speed. Needs what guest/fetch.sh fetches; 17 minutes on two busy CPUs.
set -euo pipefail
cd "$(dirname "$0")/.."
source guest/places.sh
source guest/small.sh
source guest/machine.sh
export KERNEL=vmlinuz-ext
[[ -e $GUEST/$KERNEL ]] || { echo "ext.sh: there is no kernel in $GUEST (remedy: guest/fetch.sh)" >&2; exit 2; }

cargo build --quiet --locked -p cosched -p cosched-ext --bins
cargo build --quiet --locked -p cosched --example threads
make -s -C workloads bin/{compute,lock-loop,pipeline}
small "$GUEST/bench"
mkdir -p "$SMALL/tests/variants" "$SMALL/bin"
cp guest/inside/{init,tests.sh} "$SMALL/tests/"
cp bench/ext-guest.sh "$SMALL/tests/variants/bench"
take /bin/{sh,bash,mount,hostname,sleep,mkdir,ln,sed,grep,cut,uname,nproc,rm,awk}
cp "$TARGET"/debug/{cosched,cosched-ext,examples/threads} workloads/bin/{compute,lock-loop,pipeline} "$SMALL/bin/"
need "$SMALL"/bin/{cosched,cosched-ext,threads,compute,lock-loop,pipeline}
pack "$GUEST/bench.cpio"

# Boots with so many CPUs; words for the guest follow. What it says goes to a log: part CPUS LOG WORDS
part() {
    emulate "${LIMIT:-1800}" "$GUEST/bench.cpio" "rdinit=/tests/init guest=bench $3" -m 1G -smp "$1" "${COUNTED[@]}" \
        >"$GUEST/bench-$2.log"
}
# Two parts at a time, each with its three arguments; both have to succeed.
together() {
    part "${@:1:3}" &
    local first=$! ended=0
    part "${@:4:3}" || ended=$?
    wait "$first" && return "$ended"
}
together 2 kernel "PART=stages_and_slices SCHEDULER=kernel" 2 ext "PART=stages_and_slices SCHEDULER=ext"
together 2 two PART=rounds 1 one PART=rounds

# The lines of a table from logs with these names: rows TABLE NAMES...
rows() { (cd "$GUEST" && sed -n "s/^$1: //p" "${@:2}"); }
# Prints a table: table TITLE HEAD, with its lines as input.
table() {
    printf '%s\n\n%s\n' "$1" "$2"
    sed 's/[^|]//g; s/|/|---/g; s/---$//' <<<"$2"
    sed 's/ *| */ | /g; s/.*/| & |/'
    echo
}
ways='2 CPUs: 8000 and 2000 steps | 2 CPUs: 800 and 200 | 1 CPU: 8000 and 2000 | 1 CPU: 800 and 200 |'
both() { paste -d'|' <(rows "$1" bench-two.log) <(rows "$1" bench-one.log | cut -d'|' -f2,3); }
both rounds | table "Rounds in 2 s" "| scheduler, barrier | $ways"
both times | table "Latency / completion / spinning, us" "| scheduler, barrier | $ways"
rows slices bench-kernel.log bench-ext.log | table "Length of slices" \
    "| scheduler, slice in ms | computing thread keeps a CPU for, us | turn of a lock thread, ms | lock program, s |"
rows stages bench-kernel.log bench-ext.log | table "Stages of a pipeline" \
    "| scheduler, actuator | thread that computes keeps a CPU for, us | one that waits, us | pipeline, s | beside it, s |"
