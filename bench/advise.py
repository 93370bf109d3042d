#!/usr/bin/env python3
"""advise.py: the advice of `cosched advise`, held against every combination of thread counts, run live.

For a workload file it takes advice from fresh solo times, then runs all combinations of thread counts under the same
policy in turn, round by round (A B C, B C A), and tells how much longer the advised one takes than the best one (in all
rounds, and how sure that is), how far each predicted time was off, and how long the workload takes as its programs request. The
best one is the best by chance, too: of several that are equally good one always looks better. So the round in which a
combination is chosen as the best is left out where it is held against the advised one (`advised_to_best_of_others`). Only the
standard library is needed. Small mixes only: n programs on c CPUs are c to the power of n runs in each round.

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

from ratio import geometric_mean, ratio

SCHEMA = "cosched-bench-advise/1"
# More runs than this in a round are refused.
MOST = 64


def main():
    options = arguments()
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
            sys.exit(f"advise.py: {len(combinations)} combinations are too many: at most {MOST}; leave out programs")
        # Of programs that request these counts and may have no others, nothing but a prediction is left.
        predicted = {counts: advised_on(options, programs, counts)["requested"]["total_seconds"] for counts in combinations}
    times = {counts: [] for counts in combinations}
    for number in range(options.runs):
        for position in range(len(combinations)):
            counts = combinations[(position + number) % len(combinations)]
            print(f"advise.py: round {number + 1} of {options.runs}: {counts}", file=sys.stderr, flush=True)
            times[counts].append(total(options, programs, counts))
    medians = {counts: statistics.median(found) for counts, found in times.items()}
    best = min(medians, key=medians.get)
    advised = tuple(program["threads"] for program in advice["programs"])
    requested = tuple(max(counts) for counts in known)
    against = ratio(times[advised], times[best])
    report = {
        "schema": SCHEMA,
        "policy": options.policy,
        "rounds": options.runs,
        "advised": {"threads": advised, "seconds": medians[advised],
                    "predicted_seconds": advice["advised"]["total_seconds"]},
        "best": {"threads": best, "seconds": medians[best]},
        "requested": {"threads": requested, "seconds": medians[requested]},
        "advised_to_best": medians[advised] / medians[best],
        "advised_to_best_by_pairs": against,
        "advised_to_best_of_others": of_others(times, advised),
        "alone": [program["alone"] for program in advice["programs"]],
        "combinations": [{"threads": counts, "seconds": found, "predicted_seconds": predicted[counts]}
                         for counts, found in times.items()],
    }
    json.dump(report, sys.stdout, indent=2)
    print()


def of_others(times, advised):
    """How much longer the advised combination takes in each round than the one that is the best in all other rounds: the
    geometric mean. None with one round."""
    rounds = range(len(times[advised]))
    if len(rounds) < 2:
        return None

    def best_without(left_out):
        return min(times, key=lambda counts: statistics.median(times[counts][n] for n in rounds if n != left_out))

    return geometric_mean([times[advised][n] / times[best_without(n)][n] for n in rounds])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", help="a workload file (TOML)")
    parser.add_argument("--cosched", default="cosched")
    parser.add_argument("--policy", default="greedy", choices=["gang", "greedy", "minwait"])
    parser.add_argument("--runs", type=int, default=3, help="rounds of all combinations")
    parser.add_argument("--alone", type=int, default=5, help="runs alone with each count")
    return parser.parse_args()


def advised_on(options, programs, counts=None):
    """The advice; with these counts given, on programs that may have no others."""
    counted = counts or [program.get("threads") for program in programs]
    words = ["--policy", options.policy, "--runs", str(options.alone), "--json"]
    # A list of counts counts for all programs; the most that each requests is looked at in any case.
    listed = ["--threads", ",".join(map(str, sorted(set(counts))))] if counts else []
    done = subprocess.run([options.cosched, "advise", "-", *words, *listed], input=workload(programs, counted).encode(),
                          stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def workload(programs, counts):
    return "\n".join(written(program, threads) for program, threads in zip(programs, counts, strict=True))


def total(options, programs, counts):
    """How long the workload takes with these thread counts, told on the command's standard input."""
    done = subprocess.run([options.cosched, "run", "-", "--policy", options.policy, "--json"],
                          input=workload(programs, counts).encode(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=True)
    return json.loads(done.stdout)["total_seconds"]


def written(program, threads):
    """A program as TOML again; JSON's strings, numbers and arrays are TOML's, too."""
    keys = {key: value for key, value in program.items() if key not in ["model", "threads"]}
    if threads is not None:
        keys["threads"] = threads
    env = keys.pop("env", {})
    lines = ["[[program]]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]
    lines += ["[program.env]", *(f"{json.dumps(key)} = {json.dumps(value)}" for key, value in env.items())]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
