# shellcheck shell=bash
# What ext.sh runs in its guest. The kernel's command line says which PART, and of two parts under which SCHEDULER.
# A line begins with the name of its table; of its cells, the first names the variant.
OPTIONS="--policy faithful --no-guard --interval 500ms"
tests() {
    cd /run || exit 1
    "${PART:?}"
}
# Runs programs, and keeps what they say in the folder `run`. A program that fails leaves cells empty.
runs() {
    rm -rf run
    cosched run --out run "$@" >/dev/null 2>&1
}
# What a program said, by a sed expression: said PROGRAM EXPRESSION
said() { sed -n "s/$2p" "run/$1.stdout"; }
# The figures of a run's first program, each by its name in run.json, which is one line.
# shellcheck disable=SC2016
FIELDS='{ gsub(/["{]/, "", $(NF - 1)) } NF > 1 && !($(NF - 1) in of) { of[$(NF - 1)] = $NF + 0 }'
# Calculates with them: figures FORMAT, EXPRESSIONS...
figures() { awk -v RS=, -F: "$FIELDS END { printf $1 }" run/run.json; }
PASSAGES='(of["barriers"] + of["spun_briefly"] + of["spun"] + of["yielded"] + of["slept"])'
TIMES='"%.0f / %.0f / %.0f", 1e6 * of["latency_seconds"] / of["barriers"],
    1e6 * of["completion_seconds"] / '$PASSAGES', 1e6 * of["spun_seconds"] / of["barriers"]'
TURN='"%.2f", 1e3 * (of["user_seconds"] + of["system_seconds"]) / (of["voluntary_switches"] + of["involuntary_switches"])'

rounds() {
    local way under barrier steps made times
    for way in kernel:{own,yield,spin-then-block,block,donate} ext:{own,yield,block,donate,tidon}; do
        IFS=: read -r under barrier <<<"$way"
        made="" times=""
        for steps in "8000 2000" "800 200"; do
            # shellcheck disable=SC2086
            runs --scheduler "$under" --policy linux --barrier "$barrier" -- \
                threads rounds 4 $steps 2 ::: threads spin 2 2
            made+=" | $(said threads '^rounds \([0-9]*\) .*/\1/')"
            [[ $barrier == own ]] || times+=" | $(figures "$TIMES")"
        done
        echo "rounds: $under, $barrier$made"
        [[ $barrier == own ]] || echo "times: $under, $barrier$times"
    done
}

# A table of slices with these rows, each a largest scaling factor and milliseconds: quanta ROWS...
quanta() {
    echo "schema = 'cosched-quanta/1'" >quanta.toml
    printf '[[row]]\nup_to = %s\nslice_milliseconds = %s\n' "$@" >>quanta.toml
}

slices() {
    local slice options kept
    for slice in linux own 3 50 100 250; do
        options="$OPTIONS --actuators batch-slice --quanta quanta.toml"
        case $slice in
            linux) options="--policy linux" ;;
            own) options="$OPTIONS --actuators batch" ;;
            *) quanta 1.0 "$slice" ;;
        esac
        # shellcheck disable=SC2086
        runs --scheduler "$SCHEDULER" $options -- threads stretches 5 ::: threads bound 1 5
        kept=$(said threads '^rounds \([0-9]*\) .*/\1/')
        # shellcheck disable=SC2086
        runs --scheduler "$SCHEDULER" $options -- lock-loop --threads 8 --work 0.3
        echo "slices: $SCHEDULER, $slice | $kept | $(figures "$TURN") |" \
            "$(said lock-loop '.*seconds=\([0-9.]*\) .*/\1/')"
    done
}

stages() {
    local way options turns
    quanta 0.7 20 1.0 5
    for way in linux batch batch-slice batch-stages; do
        options="--policy linux"
        [[ $way == linux ]] || options="$OPTIONS --actuators $way --quanta quanta.toml"
        # shellcheck disable=SC2086
        runs --scheduler "$SCHEDULER" $options -- threads stages 8 ::: threads bound 1 8
        turns=$(said threads '^stretches \([0-9]*\) \([0-9]*\)/\1 | \2/')
        # shellcheck disable=SC2086
        runs --scheduler "$SCHEDULER" $options -- pipeline --threads 4 --work 0.2 ::: compute --threads 2 --work 0.1
        echo "stages: $SCHEDULER, $way | $turns | $(said pipeline '.*seconds=//') | $(said compute '.*seconds=//')"
    done
}
stages_and_slices() { stages; slices; }
