"""verdicts.py: what the times of the lock bench say. Everything here follows from the report alone.

All figures are ratios of times in the same rounds: below 1 is faster. How well `faithful` chooses is told by its time
over that of the *best fixed* actuator of the cell, the one with the least median time. That one is found from the
same rounds, so chance has a say in which it is, and the ratio comes out too large rather than too small. So there is a
second figure, without that: in each round, the actuator that was best in all *other* rounds.
"""

import statistics

import guarded
from gang import interval
from ratio import differs, geometric_mean, ratio

# faithful never chooses this by itself: it takes a right, and comes before everything else on the machine.
ON_REQUEST = "round-robin"
# The most that is good enough: over the best fixed actuator on average and in the worst cell, and over plain Linux.
MEAN, WORST, LINUX = 1.03, 1.10, 1.02


def judge(report, actuators):
    """Adds what follows to every cell, and to the report as a whole."""
    for cell in report["cells"]:
        judge_cell(cell, actuators)
    judged = [cell for cell in report["cells"] if not cell["failed"]]
    report["summary"] = summary(judged) if judged else None


def judge_cell(cell, actuators):
    if cell["failed"]:
        return
    seconds = {name: variant["seconds"] for name, variant in cell["variants"].items()}
    for name, variant in cell["variants"].items():
        variant["median_seconds"] = statistics.median(variant["seconds"])
        variant["ratio"] = None if name == "linux" else ratio(variant["seconds"], seconds["linux"])
    fixed = [name for name in actuators if name in seconds]
    usual = [name for name in fixed if name != ON_REQUEST]
    cell["best_fixed"] = best(usual, seconds)
    cell["faithful_to_best"] = ratio(seconds["faithful"], seconds[cell["best_fixed"]])
    cell["faithful_to_best_of_other_rounds"] = apart(usual, seconds)
    if "relearn" in seconds:
        cell["relearn_to_best"] = ratio(seconds["relearn"], seconds[cell["best_fixed"]])
    cell["below_linux"] = is_below(cell["variants"]["faithful"]["ratio"])
    if fixed != usual:
        of_all = best(fixed, seconds)
        cell["with_round_robin"] = {"best_fixed": of_all,
                                    "faithful_to_best": ratio(seconds["faithful"], seconds[of_all])}


def best(names, seconds):
    return min(names, key=lambda name: statistics.median(seconds[name]))


def apart(names, seconds, ours="faithful"):
    """Over the rounds, the geometric mean of ours over what was best in all other rounds; None with one round."""
    rounds = range(len(seconds[ours]))
    if len(rounds) < 2:
        return None

    def one(round_):
        others = {name: [seconds[name][i] for i in rounds if i != round_] for name in names}
        return seconds[ours][round_] / seconds[best(names, others)][round_]

    return geometric_mean(map(one, rounds))


def is_below(estimate):
    """Whether a variant is slower than plain Linux by more than is allowed, and significantly."""
    return estimate["value"] > LINUX and differs(estimate)


def summary(cells):
    """Over all cells, with the three bars."""
    mean = geometric_mean(cell["faithful_to_best"]["value"] for cell in cells)
    worst = max(cells, key=lambda cell: cell["faithful_to_best"]["value"])
    below = [cell["cell"] for cell in cells if cell["below_linux"]]
    can_tell = all(cell["variants"]["faithful"]["ratio"]["interval"] for cell in cells)
    others = [cell["faithful_to_best_of_other_rounds"] for cell in cells]
    asked = [cell["with_round_robin"]["faithful_to_best"]["value"] for cell in cells if "with_round_robin" in cell]
    anew = [cell["relearn_to_best"]["value"] for cell in cells if "relearn_to_best" in cell]
    variants = {name: geometric_mean(cell["variants"][name]["median_seconds"] / cell["variants"]["linux"]["median_seconds"]
                                 for cell in cells) for name in cells[0]["variants"] if name != "linux"}
    return {
        "cells": len(cells),
        "geometric_mean": mean,
        "geometric_mean_of_other_rounds": geometric_mean(others) if None not in others else None,
        "geometric_mean_with_round_robin": geometric_mean(asked) if len(asked) == len(cells) else None,
        "geometric_mean_relearn": geometric_mean(anew) if len(anew) == len(cells) else None,
        "worst": {"cell": worst["cell"], **worst["faithful_to_best"]},
        "below_linux": below,
        "variants_to_linux": variants,
        "bars": {"geometric_mean": met(mean <= MEAN), "worst": met(worst["faithful_to_best"]["value"] <= WORST),
                 "linux": met(not below) if can_tell else "undecided"},
    }


def met(is_met):
    return "met" if is_met else "missed"


def sentences(report):
    """The report in sentences."""
    if not (found := report.get("summary")):
        yield "No cell was measured."
        return
    bars, worst = found["bars"], found["worst"]
    other = found["geometric_mean_of_other_rounds"]
    yield (f"faithful over the best fixed actuator, geometric mean of {found['cells']} cells: "
           f"{found['geometric_mean']:.3f}; at most {MEAN:.2f}: {bars['geometric_mean']}."
           + (f" Over what was best in the other rounds: {other:.3f}." if other else ""))
    yield f"The worst cell, {worst['cell']}: {interval(worst)}; at most {WORST:.2f}: {bars['worst']}."
    if anew := found["geometric_mean_relearn"]:
        yield f"The first time with each program (--relearn), geometric mean: {anew:.3f}."
    below = "; ".join(found["below_linux"]) or "none"
    yield f"Cells that take more than {LINUX - 1:.0%} longer than under plain Linux: {below}: {bars['linux']}."
    if asked := found["geometric_mean_with_round_robin"]:
        yield f"With {ON_REQUEST}, which faithful does not choose by itself, among the fixed ones: {asked:.3f}."


def markdown(report):
    """The report as a table."""
    machine = report.get("machine", {})
    yield (f"{machine.get('model')}, {machine.get('cpus')} CPUs, Linux {machine.get('kernel')}; {report['rounds']} rounds, "
           f"{report['seconds']:g} s each, {report['started_at']}.\n")
    yield from (f"- {sentence}" for sentence in sentences(report))
    others = [variant for variant in report["variants"] if variant != "linux"]
    yield f"\n| cell | linux s | {' | '.join(others)} | best fixed | faithful / best | left with |"
    yield "|---" * (len(others) + 5) + "|"
    for cell in report["cells"]:
        if cell["failed"]:
            yield f"| {cell['cell']} | failed " + "| " * (len(others) + 3) + "|"
            continue
        ratios = " | ".join(interval(cell["variants"][variant]["ratio"]) for variant in others)
        yield (f"| {cell['cell']} | {cell['variants']['linux']['median_seconds']:.2f} | {ratios} | {cell['best_fixed']} "
               f"| {interval(cell['faithful_to_best'])} | {guarded.shown(cell['variants']['faithful']['guard'])} |")
