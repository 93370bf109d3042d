"""The ways in which mixes are run, and what is looked at of their results."""

import statistics

# `bandwidth` is not among them: it needs a table of the machine, and the traffic of every program alone.
POLICIES = ["linux", "linux-groups", "fcfs", "gang", "greedy", "cgreedy", "minwait", "faithful", "fair-progress", "shuffling",
            "adaptive-greedy", "adaptive-minwait", "auto"]
GOALS = ["throughput", "fair", "responsive"]
WAYS = {policy: ["--policy", policy] for policy in POLICIES} | {
    f"auto-{goal}": ["--policy", "auto", "--goal", goal] for goal in GOALS}
# The way of which programs are simulated alone, too; that is the same for all.
SOLO = "linux"


def figures(ways):
    """Of a mix: each way's times and unfairness, in the form that bench/auto_verdicts.py judges, and what `auto` chose.
    `ways` has the results of each, seed by seed."""
    alone = [[program["solo_seconds"] for program in result["programs"]] for result in ways[SOLO]]
    found = {}
    for way, results in ways.items():
        unfair = statistics.median(map(unfairness, results, alone))
        found[way] = {
            "samples": {"total_seconds": [result["total_seconds"] for result in results]}, "failed": 0,
            "mean_turnaround_seconds": statistics.median(result["metrics"]["mean_turnaround_seconds"] for result in results),
            "unfairness": {"value": unfair, "interval": None},
        }
    return {"ways": found, "choices": choices(ways["auto"][0])}


def unfairness(result, alone):
    """The largest slowdown over the smallest, as in crates/core/src/metrics.rs."""
    slowdowns = [program["turnaround_seconds"] / seconds for program, seconds in zip(result["programs"], alone, strict=True)]
    return max(slowdowns) / min(slowdowns)


def choices(result):
    """What was chosen, when and why."""
    return [{"at_seconds": decision["at_seconds"], "manner": reason["manner"], "ground": reason["ground"],
             "explored_seconds": reason["explored"] / 1e9}
            for decision in result["decisions"] for reason in decision["reasons"] if reason["why"] == "chosen"]
