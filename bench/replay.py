#!/usr/bin/env python3
"""How far replayed runs are from real ones: bench/replay.py COSCHED FOLDER..., the table of docs/research/replay.md.

A folder is what `cosched compare WORKLOAD --policies A,B,C --runs N --solo --out FOLDER` left:
FOLDER/round-NNN/POLICY/run.json. Every run is replayed under every policy, and the answer is held against the live
run of that policy in the same round. Given is the median over the rounds, in percent of the live figure, of total
time / mean turnaround.
"""

import json
import pathlib
import statistics
import subprocess
import sys

from lib.report import table

POLICIES = ("linux", "fcfs", "gang", "greedy", "minwait")


def replay(cosched, run, policy):
    """What `cosched sim --from` answers."""
    command = [cosched, "sim", "--from", run, "--policy", policy, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def figures(run):
    """Total time and mean turnaround."""
    return run["total_seconds"], run["mean_turnaround_seconds"]


def errors(answer, live):
    """In percent of what happened."""
    return [100 * (ours / theirs - 1) for ours, theirs in zip(figures(answer), figures(live))]


def median(rows):
    """Of each column, as a cell."""
    return " / ".join(f"{statistics.median(column):+.0f}" for column in zip(*rows))


def rows(cosched, folder):
    """A row per recorded policy."""
    rounds = sorted(folder.glob("round-*"))
    for recorded in POLICIES:
        found = {policy: [] for policy in POLICIES}
        unfair = []
        for one in rounds:
            for policy in POLICIES:
                replayed = replay(cosched, one / recorded, policy)
                live = json.loads((one / policy / "run.json").read_text())
                live = {"total_seconds": live["total_seconds"], **live["metrics"]}
                found[policy].append(errors(replayed["answer"], live))
            unfair.append([replayed["error_percent"]["unfairness"] or 0.0])
        yield [folder.name, recorded, median(found[recorded]), median(unfair),
               *("·" if policy == recorded else median(found[policy]) for policy in POLICIES)]


def main():
    cosched, *folders = sys.argv[1:]
    found = (row for folder in folders for row in rows(cosched, pathlib.Path(folder)))
    for line in table(["workload", "recorded", "own error", "unfairness", *POLICIES], found):
        print(line, flush=True)


if __name__ == "__main__":
    main()
