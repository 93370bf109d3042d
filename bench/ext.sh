#!/usr/bin/env bash
# ext.sh: rounds at barriers under cosched's scheduler in the kernel, beside all other ways to wait.
#
# It boots the guest of guest/variants/ext with two CPUs and with one, runs ext-guest.sh in it, and prints the table of
# bench/results/ext.md. The guest's clock counts instructions, so figures are the same on every machine, however busy: they
# show order, not speed. Needs what guest/fetch.sh fetches; six minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
source guest/places.sh
source guest/small.sh
source guest/machine.sh
export KERNEL=vmlinuz-ext
[[ -e $GUEST/$KERNEL ]] || { echo "ext.sh: there is no kernel in $GUEST (remedy: guest/fetch.sh)" >&2; exit 2; }

cargo build --quiet --locked -p cosched -p cosched-ext --bins
cargo build --quiet --locked -p cosched --example threads
small "$GUEST/bench"
mkdir -p "$SMALL/tests/variants" "$SMALL/bin"
cp guest/inside/{init,tests.sh} "$SMALL/tests/"
cp bench/ext-guest.sh "$SMALL/tests/variants/bench"
take /bin/{sh,bash,mount,hostname,sleep,mkdir,ln,sed,grep,cut,uname,nproc}
cp "$TARGET"/debug/{cosched,cosched-ext,examples/threads} "$SMALL/bin/"
need "$SMALL"/bin/{cosched,cosched-ext,threads}
pack "$GUEST/bench.cpio"

# The lines of the table, with so many CPUs.
rounds() {
    emulate 900 "$GUEST/bench.cpio" "rdinit=/tests/init guest=bench" -m 1G -smp "$1" "${COUNTED[@]}" | sed -n 's/^row: //p'
}
echo '| scheduler, barrier | 2 CPUs: 8000 and 2000 steps | 2 CPUs: 800 and 200 | 1 CPU: 8000 and 2000 | 1 CPU: 800 and 200 |'
echo '|---|---|---|---|---|'
paste -d'|' <(rounds 2) <(rounds 1 | cut -d'|' -f2,3) | sed 's/.*/| &|/; s/| */| /g; s/ *|/ |/g; s/^ //; s/ $//'
