# shellcheck shell=bash
# What ext.sh runs in its guest: prints a line for each way to wait, with the rounds in 2 s at two lengths.
ABOUT="rounds at barriers"
tests() {
    local way scheduler barrier steps made runs=0
    cd /run || exit 1
    for way in kernel:{own,yield,spin-then-block,block,donate} ext:{own,yield,block,donate,tidon}; do
        IFS=: read -r scheduler barrier <<<"$way"
        made=()
        for steps in "8000 2000" "800 200"; do
            runs=$((runs + 1))
            # shellcheck disable=SC2086
            cosched run --scheduler "$scheduler" --policy linux --barrier "$barrier" --out $runs -- \
                threads rounds 4 $steps 2 ::: threads spin 2 2 >/dev/null 2>&1
            made+=("$(sed -n 's/^rounds \([0-9]*\) .*/\1/p' $runs/threads.stdout)")
        done
        echo "row: $scheduler, $barrier | ${made[0]} | ${made[1]}"
    done
}
