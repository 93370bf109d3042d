"""barrier_verdicts.py: what the rounds of the barrier bench say. Everything here follows from the report alone.

The time of a variant is that of a round of the main program, so below 1 is faster. The *best* variant of a cell is
that of the others with the least median time; as in lock_verdicts.py, there is a second figure with the one that was best
in all other rounds. A third one leaves out variants that are quick at their co-runner's expense: those that are more
unfair than donate is, and than is good enough. Unfairness is the paper's (section 5.2): the larger speed-up over the
smaller one, each relative to the same program alone with the runtime's own barrier, in the same round.
"""

import statistics

from lib.report import interval, page
from lib.verdicts import best, geometric_mean, judging, mean_of_known, met, over_best_of_others, ratio
from storms import CO_RUNNER, MAIN

OURS, DEFAULT = "donate", "default"
SOLO, SOLO_CO_RUNNER = "solo", "solo-co-runner"
# The most that is good enough: over the best variant on average and in the worst cell, of unfairness where co-runners could fill the
# CPUs, and alone over the runtime's own barrier.
MEAN, WORST, UNFAIR, ALONE = 1.03, 1.10, 1.15, 1.01


def judge_cell(cell):
    rounds = {variant: figures[MAIN] for variant, figures in cell["runs"].items() if variant not in (SOLO, SOLO_CO_RUNNER)}
    others = [variant for variant in rounds if variant != OURS]
    cell["best"] = best(others, rounds)
    cell["variants"] = {variant: {"median_us": statistics.median(times), "ours": ratio(rounds[OURS], times),
                                  "unfairness": unfairness(cell, variant)} for variant, times in rounds.items()}
    cell["ours_to_best"] = cell["variants"][cell["best"]]["ours"]
    cell["ours_to_best_of_other_rounds"] = over_best_of_others(others, rounds, OURS)
    fair = [variant for variant in others if is_fair(cell["variants"], variant)]
    cell["best_fair"] = best(fair, rounds) if fair else None


def is_fair(variants, variant):
    """Whether a variant leaves the co-runner as much as donate does, or enough; alone there is none."""
    ours = variants[OURS]["unfairness"]
    return ours is None or variants[variant]["unfairness"] <= max(ours, UNFAIR)


def unfairness(cell, variant):
    """In the middle of the rounds; None without a co-runner."""
    if not cell["co_runner"]:
        return None
    runs = cell["runs"]

    def speeds(solo, name):
        return [alone / time for alone, time in zip(runs[solo][name], runs[variant][name], strict=True)]

    pairs = zip(speeds(SOLO, MAIN), speeds(SOLO_CO_RUNNER, CO_RUNNER), strict=True)
    return statistics.median(max(pair) / min(pair) for pair in pairs)


def summary(cells):
    """Over all cells, with the bars."""
    mean = geometric_mean(cell["ours_to_best"]["value"] for cell in cells)
    worst = max(cells, key=lambda cell: cell["ours_to_best"]["value"])
    fair = [cell["variants"][cell["best_fair"]]["ours"]["value"] for cell in cells if cell["best_fair"]]
    names = dict.fromkeys(variant for cell in cells for variant in cell["variants"] if variant != OURS)
    to_each = {variant: geometric_mean(cell["variants"][variant]["ours"]["value"] for cell in cells if variant in cell["variants"])
               for variant in names}
    filled = [cell for cell in cells if cell["co_runner"] and cell["filled"]]
    unfair = max(filled, key=lambda cell: cell["variants"][OURS]["unfairness"], default=None)
    alone = [cell for cell in cells if not cell["co_runner"]]
    slowest = max(alone, key=lambda cell: cell["variants"][DEFAULT]["ours"]["value"], default=None)
    return {
        "cells": len(cells),
        "geometric_mean": mean,
        "geometric_mean_of_other_rounds": mean_of_known(cell["ours_to_best_of_other_rounds"] for cell in cells),
        "geometric_mean_of_fair": mean_of_known(fair),
        "worst": {"cell": worst["cell"], "best": worst["best"], **worst["ours_to_best"]},
        "ours_to_each_variant": to_each,
        "unfairest": unfair and {"cell": unfair["cell"], "unfairness": unfair["variants"][OURS]["unfairness"]},
        "slowest_alone": slowest and {"cell": slowest["cell"], **slowest["variants"][DEFAULT]["ours"]},
        "bars": {
            "geometric_mean": met(mean <= MEAN),
            "worst": met(worst["ours_to_best"]["value"] <= WORST),
            "every_fixed_variant": met(all(value < 1 for value in to_each.values())),
            "unfairness": met(unfair["variants"][OURS]["unfairness"] <= UNFAIR) if unfair else "not measured",
            "alone": met(slowest["variants"][DEFAULT]["ours"]["value"] <= ALONE) if slowest else "not measured",
        },
    }


judge = judging(judge_cell, summary)


def sentences(report):
    """The report in sentences."""
    if not (found := report.get("summary")):
        yield "No cell was measured."
        return
    bars, worst = found["bars"], found["worst"]
    other = found["geometric_mean_of_other_rounds"]
    yield (f"donate over the best variant, geometric mean of {found['cells']} cells: {found['geometric_mean']:.3f}; at most "
           f"{MEAN:.2f}: {bars['geometric_mean']}." + (f" Over what was best in the other rounds: {other:.3f}." if other else ""))
    if fair := found["geometric_mean_of_fair"]:
        yield f"Over the best of the variants that are no more unfair than donate, or than {UNFAIR:.2f}: {fair:.3f}."
    yield f"The worst cell, {worst['cell']} (best: {worst['best']}): {interval(worst)}; at most {WORST:.2f}: {bars['worst']}."
    each = ", ".join(f"{variant} {value:.3f}" for variant, value in found["ours_to_each_variant"].items())
    yield f"donate over each variant, geometric means: {each}; all below 1: {bars['every_fixed_variant']}."
    if unfair := found["unfairest"]:
        yield (f"The unfairest cell where co-runners could fill the CPUs, {unfair['cell']}: {unfair['unfairness']:.2f}; at most "
               f"{UNFAIR:.2f}: {bars['unfairness']}.")
    if slowest := found["slowest_alone"]:
        yield (f"Alone, over the runtime's own barrier at worst, {slowest['cell']}: {interval(slowest)}; at most {ALONE:.2f}: "
               f"{bars['alone']}.")


def markdown(report):
    """The report as a table: microseconds of a round, and unfairness in brackets."""
    head = (f"{report['cpus']} CPUs; {report['rounds']} rounds of {report['seconds']:g} s; run states "
            f"{'known' if report['states'] else 'not known'}; {report['started_at']}")
    columns = ["cell", *report["variants"], "best", "donate / best"]
    return page(head, sentences(report), columns, (row(cell, report) for cell in report["cells"]))


def row(cell, report):
    if cell["failed"]:
        return [cell["cell"], "failed"]
    figures = [figure(cell["variants"].get(variant)) for variant in report["variants"]]
    return [cell["cell"], *figures, cell["best"], interval(cell["ours_to_best"])]


def figure(variant):
    if not variant:
        return "–"
    return f"{variant['median_us']:.4g}" + (f" ({variant['unfairness']:.2f})" if variant["unfairness"] else "")
