#!/usr/bin/env python3
"""progress.py: which figure of the kernel tells how fast a program that fights for locks is. `make bench-progress` runs it.

The guard of `faithful` has to know whether a program became faster without counters of instructions. Lock loops and nested
locks of several grains do the same work under each actuator held fixed, in turn. Their true speed (one over the time) is held
against what the kernel says of them: CPU time, CPU time outside the kernel, and CPU time less a price for each wait. The
better a figure, the nearer is its ratio between an actuator and plain Linux to the ratio of speeds.

It prints a table of errors (root mean square, median and 90th percentile of the difference of logarithms) and one of
the cells, and writes both into --out. The machine has to be idle.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from gang import WORKLOADS, Cosched, elapsed, say

SCHEMA = "cosched-bench-progress/2"
LOOPS = [(100, 100), (100, 1000), (300, 0), (1000, 1000), (1000, 10000), (10000, 10000)]
NESTED = [2, 8, 64]
PER_CPU = [2, 4]
PLAIN = "none"
ACTUATORS = [PLAIN, "slice", "batch", "batch-slice", "round-robin"]
# Seconds that a wait and its wake-up may cost.
PRICES = [2e-6, 5e-6, 10e-6]
FIGURES = {"nothing (always 1)": lambda run: run["seconds"],
           "CPU time": lambda run: run["user"] + run["system"],
           "CPU time outside the kernel": lambda run: run["user"]}
for price in PRICES:
    FIGURES[f"CPU time - {price * 1e6:.0f} us a wait"] = (
        lambda run, price=price: run["user"] + run["system"] - price * run["waits"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cosched", type=pathlib.Path, required=True, help="the executable")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("target/bench"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--work", type=float, default=0.6, help="of each program")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    cosched, began = Cosched(options.cosched.resolve()), time.time()
    commands = cells(options.work)
    found = {cell: {variant: [] for variant in ACTUATORS} for cell in commands}
    for number in range(options.runs):
        for cell, command in commands.items():
            # Each round begins with the next variant, so that none always follows the same one.
            for variant in ACTUATORS[number % len(ACTUATORS):] + ACTUATORS[:number % len(ACTUATORS)]:
                found[cell][variant].append(run(cosched, command, variant))
        say(f"round {number + 1} of {options.runs}; {elapsed(began)} so far")
    errors = {name: error(found, figure) for name, figure in FIGURES.items()}
    report = {"schema": SCHEMA, "rounds": options.runs, "errors": errors, "cells": found}
    (options.out / "progress.json").write_text(json.dumps(report, indent=1) + "\n")
    print("| figure | root mean square | median | 90th percentile |\n|---|---|---|---|")
    for name, (rms, median, high) in errors.items():
        print(f"| {name} | {rms:.3f} | {median:.3f} | {high:.3f} |")
    print("\n| speed, and CPU time outside the kernel, against plain Linux | " + " | ".join(ACTUATORS[1:]) + " |")
    print("|---" * len(ACTUATORS) + "|")
    for cell, variants in found.items():
        row = [f"{ratio(variants, variant, lambda run: 1.0):.2f}, {ratio(variants, variant, FIGURES['CPU time outside the kernel']):.2f}"
               for variant in ACTUATORS[1:]]
        print(f"| {cell} | {' | '.join(row)} |")


def cells(work):
    cpus = len(os.sched_getaffinity(0))
    commands = {}
    for per_cpu in PER_CPU:
        common = ["--threads", per_cpu * cpus, "--work", work]
        for hold, gap in LOOPS:
            commands[f"hold {hold} ns, gap {gap} ns, {per_cpu} threads a CPU"] = [
                "lock-loop", "--hold", hold, "--gap", gap, *common]
        for accounts in NESTED:
            commands[f"{accounts} nested locks, {per_cpu} threads a CPU"] = ["nested-locks", "--accounts", accounts, *common]
    return commands


def run(cosched, command, variant):
    program = [WORKLOADS / "bin" / command[0], *command[1:]]
    with tempfile.TemporaryDirectory() as folder:
        # A short interval, so that the actuator is there from nearly the beginning.
        done = cosched("run", "--policy", "faithful", "--no-guard", "--actuators", variant, "--interval", "20ms",
                       "--out", folder, "--", *program, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode != 0:
            sys.exit(f"bench: cosched run failed:\n{done.stderr}")
        [result] = json.loads((pathlib.Path(folder) / "run.json").read_text())["programs"]
    usage = result["usage"]
    return {"seconds": result["running_seconds"], "user": usage["user_seconds"], "system": usage["system_seconds"],
            "waits": usage["voluntary_switches"]}


def ratio(variants, variant, figure):
    """Of a figure per second, against plain Linux; of 1, so of speeds."""
    def median(variant):
        return statistics.median(figure(run) / run["seconds"] for run in variants[variant])
    return median(variant) / median(PLAIN)


def error(found, figure):
    """How far ratios of a figure are from those of speeds."""
    pairs = [(variants, variant) for variants in found.values() for variant in ACTUATORS[1:]]
    apart = sorted(abs(math.log(ratio(*pair, lambda run: 1.0)) - math.log(ratio(*pair, figure))) for pair in pairs)
    return math.sqrt(sum(x * x for x in apart) / len(apart)), statistics.median(apart), apart[int(len(apart) * 0.9)]


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("bench: interrupted; nothing was written")
