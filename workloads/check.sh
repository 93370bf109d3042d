#!/usr/bin/env bash
# check.sh: every kernel verifies its own result; here each is run, briefly, to see that it can.
#
# One thread, two, and more than many machines have: the kernels that divide one
# piece of work must print the same checksum each time.
set -euo pipefail
cd "$(dirname "$0")"

fail() {
    echo "check: $*" >&2
    exit 1
}

# run KERNEL THREADS: prints the checksum.
run() {
    local line
    line=$(OMP_WAIT_POLICY=passive "bin/$1" --threads "$2" --work 0.02 | tail -1) || fail "$1 with $2 threads: wrong"
    [[ $line =~ ^$1\ ok\ checksum=([0-9a-f]+)\ seconds= ]] || fail "$1 with $2 threads said \"$line\""
    echo "${BASH_REMATCH[1]}"
}

for kernel in barrier-storm bucket-sort cg compute lock-loop sleeper stencil triad; do
    alone=$(run $kernel 1)
    for threads in 2 5; do
        checksum=$(run $kernel $threads)
        case $kernel in
        barrier-storm | lock-loop | sleeper) ;; # a chain per thread
        *) [[ $checksum == "$alone" ]] || fail "$kernel: $threads threads change the result" ;;
        esac
    done
    for bad in "--threads 0" "--threads 1.5" "--threads many" "--work -1" "--work" "--wrok 1"; do
        status=0
        bin/$kernel $bad >/dev/null 2>&1 || status=$?
        ((status == 2)) || fail "$kernel $bad: exit status $status, not 2"
    done
done
./numpy-matmul.py 3 >/dev/null || fail "numpy-matmul.py: no python3-numpy for /usr/bin/python3?"
echo "check: all kernels verify their results"
