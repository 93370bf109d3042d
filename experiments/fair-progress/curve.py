#!/usr/bin/env python3
"""What a fairer run costs: the knob --fairness from 0 to 1, on the ten workloads of table 4, as a table for docs/research/policies.md.

Run by hand: experiments/fair-progress/curve.py --cosched target/release/cosched.
"""

import argparse
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
sys.dont_write_bytecode = True

from points import points
from programs import BENCHMARKS, WORKLOADS, program, workload
from results import mean
from sim import COMMON, FAIR, Cosched, reduced

SETUPS = {"SC-2": "4 cores of one chip", "8core": "8 cores"}
KNOB = [0, 0.25, 0.5, 0.75, 0.9, 1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cosched", required=True, help="the executable")
    parser.add_argument("--kept", default="target/fair-progress/kept", help="what was simulated before")
    parser.add_argument("--also", default="", help="options for all runs under fair-progress")
    options = parser.parse_args()
    cosched = Cosched(options.cosched, pathlib.Path(options.kept))
    machines = {setup: next(points()).on(setup) for setup in SETUPS}

    def run(programs, setup, *words):
        return json.loads(cosched.call([*COMMON, *words], programs, machines[setup], watched=reduced))

    print("| `--fairness` | limit | " + " | ".join(f"{name}: excess unfairness gone | speed" for name in SETUPS.values()) + " |")
    print("|---|---|" + "---|---|" * len(SETUPS))
    for knob in KNOB:
        row = []
        for setup in SETUPS:
            alone = {name: run([program(name)], setup, "--policy", "linux")["total"] for name in BENCHMARKS}
            gone, speed = [], []
            for text in WORKLOADS.values():
                programs = workload(text, setup == "8core")
                linux = run(programs, setup, "--policy", "linux")
                fair = run(programs, setup, "--policy", "fair-progress", *limit(knob), *FAIR, *options.also.split())
                before, after = unfairness(linux, alone), unfairness(fair, alone)
                gone.append((before - after) / (before - 1))
                speed.append(linux["total"] / fair["total"] - 1)
            row.append(f"{mean(gone):.0%} | {mean(speed):+.1%}")
        shown = "none" if knob == 1 else f"{2 * knob / (1 - knob):.2g} %"
        print(f"| {knob} | {shown} | " + " | ".join(row) + " |", flush=True)


def limit(knob):
    """The same as --fairness, said so that earlier results are found again."""
    return ["--training-limit", "unlimited" if knob == 1 else f"{2 * knob / (1 - knob):g}"]


def unfairness(run, alone):
    slowdowns = [seconds / alone[name.rsplit("-", 1)[0]] for name, seconds in run["times"].items()]
    return max(slowdowns) / min(slowdowns)


if __name__ == "__main__":
    main()
