#!/usr/bin/env bash
# Starts one guest, and ends as its tests ended: run.sh VARIANT
#
# The guest speaks through its serial line, which is shown and kept in
# target/guest/VARIANT.log. Its last word is a line with the number of lists of tests that failed;
# a guest that ends without it, or takes too long, has failed.
set -euo pipefail
source "$(dirname "$0")/places.sh"

# Both are said here: what the commands below would say of a missing file helps nobody.
if [[ -n ${1:-} && ! -f $ROOT/guest/variants/$1 ]]; then
    echo "guest: there is no variant $1; there are: $(cd "$ROOT/guest/variants" && echo *)" >&2
    exit 2
elif [[ ! -e $GUEST/vmlinuz || ! -e $GUEST/tests.cpio ]]; then
    echo "guest: nothing to start in $GUEST; run guest/fetch.sh and guest/build.sh first" >&2
    exit 2
fi
variant=${1:?which variant? one of: $(cd "$ROOT/guest/variants" && echo *)}
source "$ROOT/guest/variants/$variant"
log=$GUEST/$variant.log
# Seconds; a guest takes two minutes at most on an idle machine.
LIMIT=420

# Emulated everywhere, so that a guest is the same machine on every host. Its CPUs take turns on one real
# CPU: side by side, a lock holder would be preempted by those that wait for it. The processor is an Intel
# one because those show siblings and dies without further ado, and of a level below the
# table of dies (1Fh), at which QEMU 10 gives up; caches are told apart all the same.
engine="-accel tcg,thread=single -cpu max,vendor=GenuineIntel,level=13,la57=off"
# The clock is said to be reliable because the kernel would otherwise take a slow one; self-tests,
# address randomisation and mitigations only cost time here.
words="console=ttyS0 quiet panic=-1 tsc=reliable cryptomgr.notests nokaslr mitigations=off"
words+=" rdinit=${INIT:-/tests/init} systemd.unified_cgroup_hierarchy=1 systemd.show_status=0 systemd.getty_auto=0"
words+=" guest=$variant"

began=$SECONDS
echo "guest: $variant: $ABOUT"
timeout --kill-after=5 "$LIMIT" qemu-system-x86_64 $engine "${MACHINE[@]}" \
    -kernel "$GUEST/vmlinuz" -initrd "$GUEST/initrd" -append "$words" \
    -nodefaults -display none -serial stdio -no-reboot </dev/null \
    | sed -u "s/\r//" | tee "$log" | grep --line-buffered '^guest: \|^test .* FAILED$' || true
status=$(sed -n 's/^guest: lists failed: //p' "$log")
took=$((SECONDS - began))
passed=$(grep -c '^test .* ok$' "$log" || true)
skipped=$(grep -c '^skipped: ' "$log" || true)
echo "guest: $variant: $passed tests passed, $skipped things skipped, ${took} s"
if [[ $status != 0 ]]; then
    echo "guest: $variant has failed (${status:-no last word}); the end of $log:" >&2
    tail -60 "$log" >&2
    exit 1
fi
