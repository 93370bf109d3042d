#!/usr/bin/env python3
"""What a fairer run costs: the knob --fairness from 0 to 1, on the ten workloads of table 4, as a table for docs/research/policies.md.

Run by hand: experiments/fair-progress/curve.py --cosched target/release/cosched.
"""

import argparse
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
sys.dont_write_bytecode = True

from common.checks import mean
from common.sim import in_threads
from points import points
from programs import BENCHMARKS, WORKLOADS, program, workload
from sim import FAIR, Cosched

SETUPS = {"SC-2": "4 cores of one chip", "8core": "8 cores"}
KNOB = [0, 0.25, 0.5, 0.75, 0.9, 1]


def main():
    options = arguments(__doc__)
    print("| `--fairness` | limit | " + " | ".join(f"{name}: excess unfairness gone | speed" for name in SETUPS.values()) + " |")
    print("|---|---|" + "---|---|" * len(SETUPS))
    measures = {setup: measure(options, setup) for setup in SETUPS}
    for knob in KNOB:
        percent = f"{2 * knob / (1 - knob):g}" if knob < 1 else "unlimited"
        # The same as --fairness, said so that earlier results are found again.
        row = [measure(["--training-limit", percent]) for measure in measures.values()]
        print(f"| {knob} | {'none' if knob == 1 else f'{float(percent):.2g} %'} | " + " | ".join(row) + " |", flush=True)


def arguments(about):
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cosched", required=True, help="the executable")
    parser.add_argument("--kept", default="target/fair-progress/kept", help="what was simulated before")
    parser.add_argument("--also", default="", help="options for all runs under fair-progress")
    parser.add_argument("--threads", type=int, default=1, help="how many runs are simulated at once")
    return parser.parse_args()


def measure(options, setup):
    """What fair progress with some options brings in a set-up: a function that gives the cells of a table, with means over
    all workloads."""
    cosched = Cosched(options.cosched, pathlib.Path(options.kept))
    machine = next(points()).on(setup)
    run = lambda programs, *words: cosched.by(words, programs, machine)
    linux = lambda programs: run(programs, "--policy", "linux")
    alone = {name: linux([program(name)])["total"] for name in BENCHMARKS}

    def figures(text, words):
        """Of a workload: the share of the excess that is gone, and the change of speed."""
        programs = workload(text, setup == "8core")
        plain, fair = linux(programs), run(programs, "--policy", "fair-progress", *words, *FAIR, *options.also.split())
        before, after = unfairness(plain, alone), unfairness(fair, alone)
        return (before - after) / (before - 1), plain["total"] / fair["total"] - 1

    def cells(words):
        gone, speed = zip(*in_threads(options.threads, lambda text: figures(text, words), WORKLOADS.values()).values())
        return f"{mean(gone):.0%} | {mean(speed):+.1%}"

    return cells


def unfairness(run, alone):
    slowdowns = [seconds / alone[name.rsplit("-", 1)[0]] for name, seconds in run["times"].items()]
    return max(slowdowns) / min(slowdowns)


if __name__ == "__main__":
    main()
