#!/usr/bin/env bash
# Records what the guests' kernel does with a few threads on a machine of so many CPUs: record.sh CPUS > FILE.toml
#
# The recorder of crates/sim/tests/traces runs in a guest with a clock that counts instructions, so the same kernel, emulator
# and programs give the same bytes again.
set -euo pipefail
source "$(dirname "$0")/places.sh"
source "$ROOT/guest/small.sh"
source "$ROOT/guest/machine.sh"

cpus=${1:?how many CPUs? 2, 4 or 8}
TRACES=$ROOT/crates/sim/tests/traces
MODULES="import os, re, subprocess, sys, tempfile
print(*(module.__file__ for module in sys.modules.values() if getattr(module, '__file__', None)), sep='\n')"

small "$GUEST/record"
take /bin/sh /bin/mount /usr/bin/python3
# shellcheck disable=SC2046
take $(/usr/bin/python3 -I -S -c "$MODULES")
gcc -O2 -static -pthread -o "$SMALL/threads" "$TRACES/threads.c"
cp "$TRACES/record.py" "$SMALL/"
cp "$ROOT/guest/inside/record" "$SMALL/init"
pack "$GUEST/record.cpio"

# Lines in brackets are the kernel's, when it is switched off.
emulate 900 "$GUEST/record.cpio" "rdinit=/init" "${COUNTED[@]}" -m 1G -smp "$cpus,sockets=1,cores=$cpus,threads=1" \
    | grep -v '^\[ '
