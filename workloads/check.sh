#!/usr/bin/env bash
# check.sh: every kernel verifies its own result; here each is run, briefly, to see that it can.
#
# One thread, two, and more than many machines have: the kernels that divide one
# piece of work must print the same checksum each time. Those that compute in whole
# numbers, or as IEEE 754 rounds, print the same on every machine. And each must find out
# when its result was made wrong on purpose: a check that cannot fail says nothing.
set -euo pipefail
cd "$(dirname "$0")"
export OMP_WAIT_POLICY=passive

fail() {
    echo "check: $*" >&2
    exit 1
}

# run KERNEL ARGUMENTS...: prints the checksum.
run() {
    local line
    line=$("bin/$1" --work 0.02 "${@:2}") || fail "$*: wrong"
    [[ $line =~ ^$1\ ok\ checksum=([0-9a-f]{16})\ seconds=[0-9.]+(\ [a-z_]+=[0-9.e+-]+)?$ ]] || fail "$* said \"$line\""
    echo "${BASH_REMATCH[1]}"
}

# must_say STATUS COMMAND...: the command ends with that exit status.
must_say() {
    local status=0
    "${@:2}" >/dev/null 2>&1 || status=$?
    ((status == $1)) || fail "${*:2}: exit status $status, not $1"
}

for source in src/*.c; do
    kernel=$(basename "$source" .c)
    alone=$(run "$kernel" --threads 1)
    for threads in 2 5; do
        checksum=$(run "$kernel" --threads $threads)
        case $kernel in
        bucket-sort | cg | compute | pipeline | stencil | triad)
            [[ $checksum == "$alone" ]] || fail "$kernel: $threads threads change the result"
            ;;
        esac # the others have a chain per thread
        must_say 1 "bin/$kernel" --work 0.02 --threads $threads --spoil
    done
    for bad in "--threads 0" "--threads 1.5" "--threads many" "--work -1" "--work nan" "--work" "--wrok 1"; do
        read -ra words <<<"$bad"
        must_say 2 "bin/$kernel" "${words[@]}"
    done
done

# Of whole numbers, and of what every machine rounds alike. (stencil takes sines from libm, which differ in the last place.)
while read -r wanted words; do
    read -ra words <<<"$words"
    found=$(run "${words[@]}")
    [[ $found == "$wanted" ]] || fail "${words[*]}: checksum $found, which should be $wanted"
done <<'KNOWN'
4e54dc1dec6658d3 barrier-storm --threads 3
abed8fb95e6c4aa5 bucket-sort --threads 2
000000000002bff8 cg --threads 2
400921fb54442d1b compute --threads 2
9386d1b1a8c28f81 disk --threads 2
863b64140570ef03 lock-loop --threads 3
4e54dc1dec6658d3 pthread-storm --threads 3
fffff80faa9cb790 nested-locks --threads 3
7c5cfea83cec90d9 phases --threads 2 --compute 5 --memory 5 --lock 5
0a8a3836e5223cc0 pipe-ring --threads 2
298b4cf93d45491d pipeline --threads 2
afecd482559bc12f reader-writer --threads 3
d871f36ceadac481 sleeper --threads 2
b215f3132931aa21 system-calls --threads 2
0000000043c4c9e8 triad --threads 2 --mebibytes 12
KNOWN

# The knobs at the ends of their ranges.
for grain in 2 100 10000; do run barrier-storm --threads 2 --grain $grain; done >/dev/null
for timed in barrier-storm bucket-sort cg hog pthread-storm stencil; do run $timed --threads 2 --for 0.01; done >/dev/null
for gap in 0 300 100000; do run lock-loop --threads 2 --gap $gap; done >/dev/null
run lock-loop --threads 3 --locks 2 >/dev/null
run nested-locks --threads 3 --accounts 2 --gap 0 >/dev/null
must_say 2 bin/nested-locks --accounts 1
run reader-writer --threads 3 --every 1 >/dev/null
run pipeline --threads 2 --middle 2 --outer 2 >/dev/null
run bucket-sort --threads 2 --keys 4 >/dev/null
must_say 2 bin/triad --mebibytes 1000000000
run phases --threads 3 --compute 5 --memory 0 --lock 5 >/dev/null
must_say 1 bin/phases --work 0.02 --compute 0 --memory 0 --lock 5 --spoil
must_say 2 bin/phases --compute 0 --memory 0

# triad takes its variants from the file beside it, and says so if there is none.
folder=$(mktemp -d "${TMPDIR:-/tmp}/cosched-check.XXXXXX")
trap 'rm -rf "$folder"' EXIT
cp bin/triad "$folder"
must_say 2 "$folder/triad" --percent 60
printf '%s\n' "peak 1000 MB/s threads 2" "percent 80 additions 3" "percent 60 additions 9" >"$folder/triad.calibration"
must_say 0 "$folder/triad" --work 0.02 --percent 60
must_say 1 "$folder/triad" --work 0.02 --percent 60 --spoil
must_say 2 "$folder/triad" --percent 40

# Each kernel in a workload file knows the options that it gets there.
while read -ra words; do
    must_say 0 "$folder/${words[0]}" "${words[@]:1}" --work 0.02
done < <(
    cp bin/* "$folder" 2>/dev/null
    printf 'percent %s additions 9\n' 80 60 40 20 >"$folder/triad.calibration"
    sed -n 's/^command = \["\.\/bin\/\(.*\)"\]$/\1/p' ./*.toml | sed 's/", "/ /g' | sort -u
)

./mutants.sh

./numpy-matmul.py 3 >/dev/null || fail "numpy-matmul.py: no python3-numpy for /usr/bin/python3?"
echo "check: all kernels verify their results"
