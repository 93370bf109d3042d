#!/usr/bin/env bash
# Starts one guest, and ends as its tests ended: run.sh VARIANT
#
# The guest speaks through its serial line, which is shown and kept in
# target/guest/VARIANT.log. Its last word is a line with the number of lists of tests that failed;
# a guest that ends without it, or takes too long, has failed.
set -euo pipefail
source "$(dirname "$0")/places.sh"

# Both are said here: what the commands below would say of a missing file does not help the user.
if [[ -n ${1:-} && ! -f $ROOT/guest/variants/$1 ]]; then
    echo "guest: there is no variant $1; there are: $(cd "$ROOT/guest/variants" && echo *)" >&2
    exit 2
elif [[ ! -e $GUEST/vmlinuz || ! -e $GUEST/tests.cpio ]]; then
    echo "guest: nothing to start in $GUEST; run guest/fetch.sh and guest/build.sh first" >&2
    exit 2
fi
variant=${1:?which variant? one of: $(cd "$ROOT/guest/variants" && echo *)}
source "$ROOT/guest/machine.sh"
source "$ROOT/guest/variants/$variant"
log=$GUEST/$variant.log
# Seconds; a guest takes two minutes at most on an idle machine.
LIMIT=${LIMIT:-600}

words="rdinit=${INIT:-/tests/init} systemd.unified_cgroup_hierarchy=1 systemd.show_status=0 systemd.getty_auto=0"
words+=" guest=$variant"
initrd=$GUEST/initrd
[[ -z ${SMALL_USERLAND:-} ]] || initrd=$GUEST/small.cpio
[[ ${CLOCK:-} != instructions ]] || MACHINE+=("${COUNTED[@]}")

# What the guest says goes to this file too.
boot() { emulate "$LIMIT" "$initrd" "$words" "${MACHINE[@]}" | tee "$1"; }

began=$SECONDS
echo "guest: $variant: $ABOUT"
((${BOOTS:-1} == 1)) || boot "$log.again" >/dev/null &
boot "$log" | grep --line-buffered '^guest: \|^test .* FAILED$' || true
wait
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
if ((${BOOTS:-1} > 1)); then
    if ! cmp "$log" "$log.again"; then
        echo "guest: $variant has said something else the second time:" >&2
        diff "$log" "$log.again" | head -20 >&2
        exit 1
    fi
    echo "guest: $variant: said the same the second time, to the byte: $(wc -c <"$log") of them"
fi
