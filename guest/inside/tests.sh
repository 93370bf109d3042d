#!/bin/bash
# Runs a variant's tests inside the guest, and says how many lists of them failed.
#
# A list is a test binary with the names that it is to run, one after another: tests of live
# programs keep every CPU busy.
cd /tests || exit 1
source "variants/$1"
export COSCHED_GUEST=$1
failed=0
# Whether each name fits to a test: BINARY NAMES... A name that fits to none would pass, whatever is broken.
names_tests() {
    local binary=$1 name; shift
    for name; do
        [[ $("./$binary" --list "$name") != *': test'* ]] || continue
        echo "guest: $binary has no test with $name in its name"
        failed=$((failed + 1))
    done
}
# Runs a list: BINARY NAMES...
list() {
    local binary=$1; shift
    echo "guest: $binary $*"
    names_tests "$binary" "$@"
    "./$binary" --test-threads 1 --show-output --color never "$@" || failed=$((failed + 1))
    echo "guest: after $(cut -d' ' -f1 /proc/uptime) s"
}
# The same as an ordinary user who has logged in, in a cgroup that systemd has given away.
in_a_scope() {
    echo "guest: in a scope: $*"
    names_tests "$@"
    runuser --login tester -c "cd /tests && exec systemd-run --user --scope --quiet -p Delegate=yes \
        ./$1 --test-threads 1 --show-output --color never ${*:2}" || failed=$((failed + 1))
    echo "guest: after $(cut -d' ' -f1 /proc/uptime) s"
}
echo "guest: booted after $(cut -d' ' -f1 /proc/uptime) s: Linux $(uname -r), $(nproc) CPUs"
tests
echo "guest: lists failed: $failed"
