#!/usr/bin/env python3
"""foreign.py: what a process outside the run gets, and how long programs take beside it. `make bench-foreign` runs it.

One process computes all the time, outside cosched's groups. Beside it, the programs of a mix are run in several variants, in
interleaved rounds. The share of the foreign process is its CPU time over the time of the run. It is fair if it is what the
process gets beside a single program of the mix, which Linux runs without cosched's groups.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

from gang import WORKLOADS
from kernel_mixes import all_mixes

SCHEMA = "cosched-bench-foreign/2"
MIXES = ["compute x4", "numpy x4", "barriers-100us x3", "sleeper x4"]
# Each with how many programs of the mix it runs.
VARIANTS = {"one program": ("linux", 1), "one after another": ("fcfs", None), "turns": ("turns", None)}
TICK = os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cosched", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0, help="of work of each program, alone")
    options = parser.parse_args()
    mixes = [mix for mix in all_mixes() if mix.name in MIXES]
    found = {mix.name: {variant: [] for variant in VARIANTS} for mix in mixes}
    for number in range(options.runs):
        for mix in mixes:
            for variant, (policy, programs) in VARIANTS.items():
                print(f"bench: round {number + 1} of {options.runs}, {mix.name}, {variant}", flush=True)
                found[mix.name][variant].append(beside_foreign(options, mix, policy, programs))
    table = {mix: {variant: dict(zip(["seconds", "share"], map(statistics.median, zip(*runs)))) for variant, runs in variants.items()}
             for mix, variants in found.items()}
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "foreign.json").write_text(json.dumps({"schema": SCHEMA, "mixes": table}, indent=1) + "\n")
    print("\n| mix | " + " | ".join(VARIANTS) + " | share under turns over the one beside one program |")
    print("|---" * (len(VARIANTS) + 2) + "|")
    for mix, variants in table.items():
        cells = [f"{variant['seconds']:.1f} s ({variant['share']:.2f})" for variant in variants.values()]
        print(f"| {mix} | {' | '.join(cells)} | {variants['turns']['share'] / variants['one program']['share']:.2f} |")


def beside_foreign(options, mix, policy, programs):
    """The seconds of a run, and the foreign process's part of a CPU."""
    tables = mix.workload(options.seconds, os.cpu_count()).split("[[program]]")[1:]
    with tempfile.TemporaryDirectory() as folder:
        jobs = pathlib.Path(folder, "jobs.toml")
        jobs.write_text("".join(f"[[program]]{table}" for table in tables[:programs]))
        with subprocess.Popen([WORKLOADS / "bin/compute", "--work", "100000"], cwd=WORKLOADS,
                              env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL) as foreign:
            try:
                before = used(foreign.pid)
                subprocess.run([options.cosched.absolute(), "run", jobs, "--policy", policy, "--out", f"{folder}/out"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
                part = used(foreign.pid) - before
            finally:
                foreign.kill()
        seconds = json.loads(pathlib.Path(folder, "out/run.json").read_text())["total_seconds"]
    return seconds, part / seconds


def used(pid):
    """Its CPU time so far, seconds."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


if __name__ == "__main__":
    main()
