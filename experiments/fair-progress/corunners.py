#!/usr/bin/env python3
"""What it brings to take speeds alone from beside different co-runners (--by-corunners), which sees contention for caches, too: on
the ten workloads of table 4 in all four set-ups, as a table for docs/research/policies.md.

Run by hand: experiments/fair-progress/corunners.py --cosched target/release/cosched.
"""

import argparse
import json
import pathlib
import sys
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
sys.dont_write_bytecode = True

from curve import unfairness
from points import points
from programs import BENCHMARKS, WORKLOADS, program, workload
from results import mean
from sim import COMMON, FAIR, Cosched, reduced

SETUPS = {"PC": "4 cores, each with a cache", "SC-1": "4 cores of two chips, two share a cache",
          "SC-2": "4 cores of one chip, two share a cache", "8core": "8 cores, two share a cache"}
LIMITS = ["0", "2"]
VARIANTS = {"by traffic": [], "by co-runners as well": ["--by-corunners"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cosched", required=True, help="the executable")
    parser.add_argument("--kept", default="target/fair-progress/kept", help="what was simulated before")
    parser.add_argument("--threads", type=int, default=1, help="how many runs are simulated at once")
    options = parser.parse_args()
    cosched = Cosched(options.cosched, pathlib.Path(options.kept))
    machines = {setup: next(points()).on(setup) for setup in SETUPS}

    def run(programs, setup, *words):
        return json.loads(cosched.call([*COMMON, *words], programs, machines[setup], watched=reduced))

    def figures(job):
        """Of a workload: the share of the excess that is gone, and the change of speed."""
        text, setup, words, alone = job
        programs = workload(text, setup == "8core")
        linux = run(programs, setup, "--policy", "linux")
        fair = run(programs, setup, "--policy", "fair-progress", *words, *FAIR)
        before, after = unfairness(linux, alone), unfairness(fair, alone)
        return (before - after) / (before - 1), linux["total"] / fair["total"] - 1

    columns = [(variant, limit) for limit in LIMITS for variant in VARIANTS]
    print("| set-up | " + " | ".join(f"{variant}, limit {limit} %: excess gone | speed" for variant, limit in columns) + " |")
    print("|---|" + "---|---|" * len(columns))
    with ThreadPoolExecutor(options.threads) as pool:
        for setup, name in SETUPS.items():
            alone = {name: run([program(name)], setup, "--policy", "linux")["total"] for name in BENCHMARKS}
            row = []
            for variant, limit in columns:
                words = ["--training-limit", limit, *VARIANTS[variant]]
                found = list(pool.map(figures, [(text, setup, words, alone) for text in WORKLOADS.values()]))
                row.append(f"{mean(gone for gone, _ in found):.0%} | {mean(speed for _, speed in found):+.1%}")
            print(f"| {name} | " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
