"""lock_verdicts.py: what the times of the lock bench say. Everything here follows from the report alone.

All figures are ratios of times in the same rounds: below 1 is faster. How well `faithful` chooses is told by its time
over that of the *best fixed* actuator of the cell, the one with the least median time. That one is found from the
same rounds, so chance has a say in which it is, and the ratio comes out too large rather than too small. So there is a
second figure, without that: in each round, the actuator that was best in all *other* rounds.
"""

import collections

from lib.report import interval, machine_line, page
from lib.verdicts import best, differs, geometric_mean, held_against, judging, mean_of_known, met, over_best_of_others, ratio

ACTUATORS = ["none", "slice", "batch", "batch-slice", "round-robin"]
# faithful never chooses this by itself: it takes a right, and comes before everything else on the machine.
ON_REQUEST = "round-robin"
# The most that is good enough: over the best fixed actuator on average and in the worst cell, and over plain Linux.
MEAN, WORST, LINUX = 1.03, 1.10, 1.02


def judge_cell(cell):
    seconds = {name: variant["seconds"] for name, variant in cell["variants"].items()}
    for name, found in held_against(seconds, "linux").items():
        cell["variants"][name] |= found
    fixed = [name for name in ACTUATORS if name in seconds]
    usual = [name for name in fixed if name != ON_REQUEST]
    cell["best_fixed"] = best(usual, seconds)
    cell["faithful_to_best"] = ratio(seconds["faithful"], seconds[cell["best_fixed"]])
    cell["faithful_to_best_of_other_rounds"] = over_best_of_others(usual, seconds, "faithful")
    if "relearn" in seconds:
        cell["relearn_to_best"] = ratio(seconds["relearn"], seconds[cell["best_fixed"]])
    cell["below_linux"] = is_below(cell["variants"]["faithful"]["ratio"])
    if fixed != usual:
        of_all = best(fixed, seconds)
        cell["with_round_robin"] = {"best_fixed": of_all,
                                    "faithful_to_best": ratio(seconds["faithful"], seconds[of_all])}


def is_below(estimate):
    """Whether a variant is slower than plain Linux by more than is allowed, and significantly."""
    return estimate["value"] > LINUX and differs(estimate)


def summary(cells):
    """Over all cells, with the three bars."""
    mean = geometric_mean(cell["faithful_to_best"]["value"] for cell in cells)
    worst = max(cells, key=lambda cell: cell["faithful_to_best"]["value"])
    below = [cell["cell"] for cell in cells if cell["below_linux"]]
    can_tell = all(cell["variants"]["faithful"]["ratio"]["interval"] for cell in cells)
    asked = [cell["with_round_robin"]["faithful_to_best"]["value"] if "with_round_robin" in cell else None for cell in cells]
    anew = [cell["relearn_to_best"]["value"] if "relearn_to_best" in cell else None for cell in cells]
    variants = {name: geometric_mean(cell["variants"][name]["median_seconds"] / cell["variants"]["linux"]["median_seconds"]
                                     for cell in cells) for name in cells[0]["variants"] if name != "linux"}
    return {
        "cells": len(cells),
        "geometric_mean": mean,
        "geometric_mean_of_other_rounds": mean_of_known(cell["faithful_to_best_of_other_rounds"] for cell in cells),
        "geometric_mean_with_round_robin": mean_of_known(asked),
        "geometric_mean_relearn": mean_of_known(anew),
        "worst": {"cell": worst["cell"], **worst["faithful_to_best"]},
        "below_linux": below,
        "variants_to_linux": variants,
        "bars": {"geometric_mean": met(mean <= MEAN), "worst": met(worst["faithful_to_best"]["value"] <= WORST),
                 "linux": met(not below) if can_tell else "undecided"},
    }


judge = judging(judge_cell, summary)


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
    head = machine_line(report, f"{report['seconds']:g} s each", report["started_at"])
    others = [variant for variant in report["variants"] if variant != "linux"]
    columns = ["cell", "linux s", *others, "best fixed", "faithful / best", "left with"]
    return page(head, sentences(report), columns, (row(cell, others) for cell in report["cells"]))


def row(cell, others):
    if cell["failed"]:
        return [cell["cell"], "failed"]
    variants = cell["variants"]
    return [cell["cell"], f"{variants['linux']['median_seconds']:.2f}", *(interval(variants[name]["ratio"]) for name in others),
            cell["best_fixed"], interval(cell["faithful_to_best"]), left_with(variants["faithful"]["guard"])]


def left_with(rounds):
    """In how many rounds the program was left with which actuator."""
    counts = collections.Counter(one["left_with"] for one in rounds)
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def guard(run):
    """What the guard of `faithful` did in a run, by the reasons in its run.json. Of the first program: the actuator that it was
    left with, how long others were tried, and the progress that each was found to make of what it was held against (the last
    one counts)."""
    left, against, since, trying, progress = "none", "none", None, 0.0, {}
    for decision in run["decisions"]:
        for reason in decision["reasons"]:
            if (reason.get("program") or {}).get("slot") != 0:
                continue
            if reason["why"] in ("kept", "put-back", "given") and since is not None:
                trying, since = trying + decision["at_seconds"] - since, None
            if reason["why"] in ("given", "recalled"):
                left = reason["actuator"]
            elif reason["why"] == "tried":
                against, since = reason["against"], decision["at_seconds"]
            elif reason["why"] in ("kept", "put-back"):
                left = reason["actuator"] if reason["why"] == "kept" else against
                progress[reason["actuator"]] = reason["progress"]
    if since is not None:
        trying += run["total_seconds"] - since
    return {"left_with": left, "trying_seconds": trying, "progress": progress}
