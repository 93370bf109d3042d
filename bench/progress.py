#!/usr/bin/env python3
"""progress.py: which figure of the kernel tells how fast a program that fights for locks is. `make bench-progress` runs it.

The guard of `faithful` has to know whether a program became faster without counters of instructions. Lock loops and nested
locks of several grains do the same work under each actuator held fixed, in turn. Their true speed (one over the time) is held
against what the kernel says of them: CPU time, CPU time outside the kernel, and CPU time less a price for each wait. The
better a figure, the nearer is its ratio between an actuator and plain Linux to the ratio of speeds.

It prints a table of errors (root mean square, median and 90th percentile of the difference of logarithms) and one of
the cells, and writes both into --out. The machine has to be idle.
"""

import math
import statistics
import subprocess

from lib.options import read
from lib.report import Report, table
from lib.rounds import turned
from lib.runner import cpus, kernel, run, say

SCHEMA = "cosched-bench-progress/2"
LOOPS = [(100, 100), (100, 1000), (300, 0), (1000, 1000), (1000, 10000), (10000, 10000)]
NESTED = [2, 8, 64]
PER_CPU = [2, 4]
PLAIN = "none"
ACTUATORS = [PLAIN, "slice", "batch", "batch-slice", "round-robin"]
# Seconds that a wait and its wake-up may cost.
PRICES = [2e-6, 5e-6, 10e-6]
OUTSIDE = "CPU time outside the kernel"
FIGURES = {"nothing (always 1)": lambda run: run["seconds"],
           "CPU time": lambda run: run["user"] + run["system"],
           OUTSIDE: lambda run: run["user"]}
for price in PRICES:
    FIGURES[f"CPU time - {price * 1e6:.0f} us a wait"] = (
        lambda run, price=price: run["user"] + run["system"] - price * run["waits"])


def main():
    options = read(__doc__, "progress", runs=5, work={"type": float, "default": 0.6, "help": "of each program"})
    commands = cells(options.work)
    found = {cell: {variant: [] for variant in ACTUATORS} for cell in commands}
    report = Report(options, SCHEMA, sentences, errors={}, cells=found)
    for number in range(options.runs):
        for cell, command in commands.items():
            for variant in turned(ACTUATORS, number):
                found[cell][variant].append(one_run(options.cosched, command, variant))
        say(f"round {number + 1} of {options.runs}; {report.elapsed()}")
    report["errors"] = {name: error(found, figure) for name, figure in FIGURES.items()}
    report.save()
    report.done()


def cells(work):
    commands = {}
    for per_cpu in PER_CPU:
        common = ["--threads", per_cpu * cpus(), "--work", work]
        for hold, gap in LOOPS:
            commands[f"hold {hold} ns, gap {gap} ns, {per_cpu} threads a CPU"] = [
                "lock-loop", "--hold", hold, "--gap", gap, *common]
        for accounts in NESTED:
            commands[f"{accounts} nested locks, {per_cpu} threads a CPU"] = ["nested-locks", "--accounts", accounts, *common]
    return commands


def one_run(cosched, command, variant):
    # A short interval, so that the actuator is there from nearly the beginning.
    result = cosched.json("run", "--policy", "faithful", "--no-guard", "--actuators", variant, "--interval", "20ms", "--",
                          *kernel(*command), strict=True, stderr=subprocess.DEVNULL)
    [program] = result["programs"]
    usage = program["usage"]
    return {"seconds": program["running_seconds"], "user": usage["user_seconds"], "system": usage["system_seconds"],
            "waits": usage["voluntary_switches"]}


def ratio(variants, variant, figure):
    """Of a figure per second, against plain Linux; of 1, so of speeds."""
    def median(variant):
        return statistics.median(figure(run) / run["seconds"] for run in variants[variant])
    return median(variant) / median(PLAIN)


def speeds(variants, variant):
    return ratio(variants, variant, lambda run: 1.0)


def error(found, figure):
    """How far ratios of a figure are from those of speeds."""
    pairs = [(variants, variant) for variants in found.values() for variant in ACTUATORS[1:]]
    apart = sorted(abs(math.log(speeds(*pair)) - math.log(ratio(*pair, figure))) for pair in pairs)
    return math.sqrt(sum(x * x for x in apart) / len(apart)), statistics.median(apart), apart[int(len(apart) * 0.9)]


def sentences(report):
    yield from table(["figure", "root mean square", "median", "90th percentile"],
                     ([name, *(f"{value:.3f}" for value in values)] for name, values in report["errors"].items()))
    yield ""
    yield from table(["speed, and CPU time outside the kernel, against plain Linux", *ACTUATORS[1:]],
                     ([cell, *(f"{speeds(variants, variant):.2f}, {ratio(variants, variant, FIGURES[OUTSIDE]):.2f}"
                               for variant in ACTUATORS[1:])] for cell, variants in report["cells"].items()))


if __name__ == "__main__":
    run(main, "nothing was written")
