#!/usr/bin/env python3
"""What it brings to take speeds alone from beside different co-runners (--by-corunners), which sees contention for caches, too: on
the ten workloads of table 4 in all four set-ups, as a table for docs/research/policies.md.

Run by hand: experiments/fair-progress/corunners.py --cosched target/release/cosched.
"""

import sys

sys.dont_write_bytecode = True

from curve import arguments, measure

SETUPS = {"PC": "4 cores, each with a cache", "SC-1": "4 cores of two chips, two share a cache",
          "SC-2": "4 cores of one chip, two share a cache", "8core": "8 cores, two share a cache"}
LIMITS = ["0", "2"]
VARIANTS = {"by traffic": [], "by co-runners as well": ["--by-corunners"]}


def main():
    options = arguments(__doc__)
    columns = [(variant, limit) for limit in LIMITS for variant in VARIANTS]
    print("| set-up | " + " | ".join(f"{variant}, limit {limit} %: excess gone | speed" for variant, limit in columns) + " |")
    print("|---|" + "---|---|" * len(columns))
    for setup, name in SETUPS.items():
        cells = measure(options, setup)
        row = [cells(["--training-limit", limit, *VARIANTS[variant]]) for variant, limit in columns]
        print(f"| {name} | " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
