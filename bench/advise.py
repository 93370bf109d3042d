#!/usr/bin/env python3
"""advise.py: the advice of `cosched advise`, held against every combination of thread counts, run live.

It tells how much longer the advised combination takes than the best one, how far each predicted
time was off, and how long the workload takes as its programs request. The best one is the best by
chance, too, so `advised_to_best_of_others` leaves out the round in which it is chosen. Small mixes
only: n programs on c CPUs are c to the power of n runs in each round.

It writes JSON to standard output.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import tomllib

from lib.rounds import in_turn
from lib.runner import program, say
from lib.verdicts import judge_by, over_best_of_others, ratio

SCHEMA = "cosched-bench-advise/1"
# More runs than this in a round are refused.
MOST = 64


def main():
    options = arguments()
    judge_by(options.cosched)
    with open(options.workload, "rb") as file:
        programs = tomllib.load(file)["program"]
    with tempfile.TemporaryDirectory() as store:
        # What was measured in other hours says nothing of how good advice is.
        os.environ["XDG_DATA_HOME"] = store
        advice = advised_on(options, programs)
        known = [[point["threads"] for point in program["alone"] if point["threads"] <= program["requested_threads"]]
                 for program in advice["programs"]]
        combinations = list(itertools.product(*known))
        if len(combinations) > MOST:
            sys.exit(f"bench: {len(combinations)} combinations are too many: at most {MOST}; leave out programs")
        # Of programs that request these counts and may have no others, nothing but a prediction is left.
        predicted = {counts: advised_on(options, programs, counts)["requested"]["total_seconds"] for counts in combinations}
    times = in_turn(options.runs, {counts: lambda counts=counts: total(options, programs, counts) for counts in combinations})
    medians = {counts: statistics.median(found) for counts, found in times.items()}
    best = min(medians, key=medians.get)
    advised = tuple(program["threads"] for program in advice["programs"])
    requested = tuple(max(counts) for counts in known)
    report = {
        "schema": SCHEMA,
        "policy": options.policy,
        "rounds": options.runs,
        "advised": {"threads": advised, "seconds": medians[advised],
                    "predicted_seconds": advice["advised"]["total_seconds"]},
        "best": {"threads": best, "seconds": medians[best]},
        "requested": {"threads": requested, "seconds": medians[requested]},
        "advised_to_best": medians[advised] / medians[best],
        "advised_to_best_by_pairs": ratio(times[advised], times[best]),
        "advised_to_best_of_others": over_best_of_others(times, times, advised),
        "alone": [program["alone"] for program in advice["programs"]],
        "combinations": [{"threads": counts, "seconds": found, "predicted_seconds": predicted[counts]}
                         for counts, found in times.items()],
    }
    json.dump(report, sys.stdout, indent=2)
    print()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", help="a workload file (TOML)")
    parser.add_argument("--cosched", default="cosched")
    parser.add_argument("--policy", default="greedy", choices=["gang", "greedy", "minwait"])
    parser.add_argument("--runs", type=int, default=3, help="rounds of all combinations")
    parser.add_argument("--alone", type=int, default=5, help="runs alone with each count")
    return parser.parse_args()


def asked(options, command, programs, counts, *words, **keywords):
    """What a command prints of the programs with these thread counts, told on its standard input."""
    done = subprocess.run([options.cosched, command, "-", "--policy", options.policy, "--json", *words],
                          input=workload(programs, counts).encode(), stdout=subprocess.PIPE, check=True, **keywords)
    return json.loads(done.stdout)


def advised_on(options, programs, counts=None):
    """The advice; with these counts given, on programs that may have no others."""
    # A list of counts counts for all programs; the most that each requests is looked at in any case.
    listed = ["--threads", ",".join(map(str, sorted(set(counts))))] if counts else []
    counted = counts or [program.get("threads") for program in programs]
    return asked(options, "advise", programs, counted, "--runs", str(options.alone), *listed)


def total(options, programs, counts):
    """How long the workload takes with these thread counts."""
    say(f"threads {counts}")
    return asked(options, "run", programs, counts, stderr=subprocess.DEVNULL)["total_seconds"]


def workload(programs, counts):
    return "\n".join(written(program, threads) for program, threads in zip(programs, counts, strict=True))


def written(table, threads):
    """A program as TOML again, with another number of threads."""
    keys = {key: value for key, value in table.items() if key not in ["command", "model", "threads"]}
    return program(table["command"], **keys, **({"threads": threads} if threads is not None else {}))


if __name__ == "__main__":
    main()
