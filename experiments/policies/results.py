"""The variants under which mixes are simulated, and what is looked at of their results."""

import statistics

GOALS = ["throughput", "fair", "responsive"]
VARIANTS = {name: ["--policy", name] for name in ["linux", "linux-groups", "fcfs", "gang", "minwait", "auto", "turns"]} | {
    f"turns-{goal}": ["--policy", "turns", "--goal", goal] for goal in GOALS} | {
    "turns-fair-unknown": ["--policy", "turns", "--goal", "fair"]}
# The variant from which the solo times come.
SOLO = "linux"
# Under these variants each program is simulated alone first, and the policy knows how long that took.
ALONE_FIRST = {SOLO, "turns-fair"}


def figures(variants):
    """Of a mix: each variant's times and unfairness, in the form that bench/policy_verdicts.py judges. `variants` has the
    results of each, seed by seed."""
    alone = [[program["solo_seconds"] for program in result["programs"]] for result in variants[SOLO]]
    found = {}
    for variant, results in variants.items():
        unfair = statistics.median(map(unfairness, results, alone))
        found[variant] = {
            "samples": {"total_seconds": [result["total_seconds"] for result in results]}, "failed": 0,
            "mean_turnaround_seconds": statistics.median(result["metrics"]["mean_turnaround_seconds"] for result in results),
            "unfairness": {"value": unfair, "interval": None},
        }
    return {"variants": found}


def unfairness(result, alone):
    """The largest slowdown over the smallest, as in crates/results/src/metrics.rs."""
    slowdowns = [program["turnaround_seconds"] / seconds for program, seconds in zip(result["programs"], alone, strict=True)]
    return max(slowdowns) / min(slowdowns)
