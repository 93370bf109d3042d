#!/usr/bin/env python3
"""advise.py: the advice of `cosched advise`, held against every combination of thread counts, run live.

For a workload file it asks for advice, then runs all combinations of thread counts under the same policy in turn,
round by round (A B C A B C), and tells how much longer the advised one takes than the best one, how far the
predicted time was off, and how long the workload takes as its programs ask. Only the standard library is needed. Small mixes
only: n programs on c CPUs are c to the power of n runs in each round.

It writes JSON to standard output.
"""

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tomllib

SCHEMA = "cosched-bench-advise/1"
# More runs than this in a round are refused.
MOST = 64


def main():
    options = arguments()
    with open(options.workload, "rb") as file:
        programs = tomllib.load(file)["program"]
    advice = call(options, "advise", options.workload, "--policy", options.policy, "--json")
    known = [[point["threads"] for point in program["alone"] if point["threads"] <= program["asked_threads"]]
             for program in advice["programs"]]
    combinations = list(itertools.product(*known))
    if len(combinations) > MOST:
        sys.exit(f"advise.py: {len(combinations)} combinations are too many: at most {MOST}; leave out programs")
    times = {counts: [] for counts in combinations}
    for number in range(options.runs):
        for counts in combinations:
            print(f"advise.py: round {number + 1} of {options.runs}: {counts}", file=sys.stderr, flush=True)
            times[counts].append(total(options, programs, counts))
    medians = {counts: statistics.median(found) for counts, found in times.items()}
    best = min(medians, key=medians.get)
    advised = tuple(program["threads"] for program in advice["programs"])
    asked = tuple(max(counts) for counts in known)
    report = {
        "schema": SCHEMA,
        "policy": options.policy,
        "rounds": options.runs,
        "advised": {"threads": advised, "seconds": medians[advised],
                    "predicted_seconds": advice["advised"]["total_seconds"]},
        "best": {"threads": best, "seconds": medians[best]},
        "asked": {"threads": asked, "seconds": medians[asked]},
        "advised_to_best": medians[advised] / medians[best],
        "combinations": [{"threads": counts, "seconds": found} for counts, found in times.items()],
    }
    json.dump(report, sys.stdout, indent=2)
    print()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", help="a workload file (TOML)")
    parser.add_argument("--cosched", default="cosched")
    parser.add_argument("--policy", default="greedy", choices=["gang", "greedy", "minwait"])
    parser.add_argument("--runs", type=int, default=3)
    return parser.parse_args()


def call(options, *words):
    done = subprocess.run([options.cosched, *words], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def total(options, programs, counts):
    """How long the workload takes with these thread counts, told on the command's standard input."""
    text = "\n".join(written(program, threads) for program, threads in zip(programs, counts, strict=True))
    done = subprocess.run([options.cosched, "run", "-", "--policy", options.policy, "--json"], input=text.encode(),
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout)["total_seconds"]


def written(program, threads):
    """A program as TOML again; JSON's strings, numbers and arrays are TOML's, too."""
    keys = {**{key: value for key, value in program.items() if key != "model"}, "threads": threads}
    env = keys.pop("env", {})
    lines = ["[[program]]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]
    lines += ["[program.env]", *(f"{json.dumps(key)} = {json.dumps(value)}" for key, value in env.items())]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
