#!/usr/bin/env python3
"""What a fairer run costs: the knob --fairness from 0 to 1, on the ten workloads of table 4, as a
table for docs/research/policies.md.

With --by-corunners another table: what it brings to take speeds alone from beside different
co-runners, which sees contention for caches, too. Run by hand:
experiments/fair-progress/curve.py --cosched target/release/cosched.
"""

import argparse
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
sys.dont_write_bytecode = True

from common.checks import mean
from common.sim import Cosched, in_threads
from lib.report import table
from points import USUAL, machine
from programs import BENCHMARKS, WORKLOADS, program, workload
from results import FAIR, together

SETUPS = {"SC-2": "4 cores of one chip", "8core": "8 cores"}
KNOB = [0, 0.25, 0.5, 0.75, 0.9, 1]
CACHES = {"PC": "4 cores, each with a cache", "SC-1": "4 cores of two chips, two share a cache",
          "SC-2": "4 cores of one chip, two share a cache", "8core": "8 cores, two share a cache"}
VARIANTS = {"by traffic": [], "by co-runners as well": ["--by-corunners"]}


def main():
    options = arguments()
    for line in corunners(options) if options.by_corunners else knob(options):
        print(line, flush=True)


def knob(options):
    columns = [heading for name in SETUPS.values()
               for heading in (f"{name}: excess unfairness gone", "speed")]
    measures = [measure(options, setup) for setup in SETUPS]

    def row(value):
        percent = f"{2 * value / (1 - value):g}" if value < 1 else "unlimited"
        # The same as --fairness, said so that earlier results are found again.
        cells = [cell for measured in measures for cell in measured(["--training-limit", percent])]
        return [value, "none" if value == 1 else f"{float(percent):.2g} %", *cells]

    return table(["`--fairness`", "limit", *columns], map(row, KNOB))


def corunners(options):
    variants = [(variant, limit) for limit in ("0", "2") for variant in VARIANTS]
    columns = [heading for variant, limit in variants
               for heading in (f"{variant}, limit {limit} %: excess gone", "speed")]

    def row(setup):
        measured = measure(options, setup)
        cells = [measured(["--training-limit", limit, *VARIANTS[variant]])
                 for variant, limit in variants]
        return [CACHES[setup], *(cell for pair in cells for cell in pair)]

    return table(["set-up", *columns], map(row, CACHES))


def arguments():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--cosched", required=True, help="the executable")
    parser.add_argument("--kept", default="target/fair-progress/kept", help="what was simulated before")
    parser.add_argument("--also", default="", help="options for all runs under fair-progress")
    parser.add_argument("--threads", type=int, default=1, help="how many runs are simulated at once")
    parser.add_argument("--by-corunners", action="store_true", help="the other table")
    return parser.parse_args()


def measure(options, setup):
    """What fair progress with some options brings in a set-up: a function that gives two cells of a
    table, with means over all workloads."""
    cosched = Cosched(options.cosched, pathlib.Path(options.kept))
    run = lambda programs, *words: together(cosched, words, programs, machine(USUAL, setup))
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
        return f"{mean(gone):.0%}", f"{mean(speed):+.1%}"

    return cells


def unfairness(run, alone):
    slowdowns = [seconds / alone[name.rsplit("-", 1)[0]] for name, seconds in run["times"].items()]
    return max(slowdowns) / min(slowdowns)


if __name__ == "__main__":
    main()
