"""auto_verdicts.py: what the times of the bench of `auto` say. Everything here follows from the report alone.

All figures are ratios of total times in the same rounds: below 1 is faster. The *best way* of a mix is the one with the least
median; since it is found from the same rounds, the ratio to it comes out too large: of many ways that are equally good, one
was lucky. So where there are several rounds, each is also held against the way that was the best in all the others: what
somebody wins who has tried every way before, and takes the best from then on.
"""

import statistics

from gang import interval
from ratio import geometric_mean, ratio

OURS = "auto"
# What the policy has to beat: what people do without cosched.
PLAIN = ["linux", "fcfs"]
# The most that is good enough: over the best way on average, over the better of the plain ones, and unfairness.
MEAN, PLAIN_MOST, UNFAIRNESS = 1.05, 1.03, 1.3
# The way that is judged by fairness.
FAIR = "auto-fair"


def judge(report):
    """Adds what follows to every mix, and to the report as a whole."""
    for mix in report["mixes"]:
        judge_mix(mix)
    report["summary"] = of_halves([mix for mix in report["mixes"] if "to_best" in mix], summary)


def of_halves(mixes, summary):
    """The summary of all mixes, and that of each half."""
    halves = {half: [mix for mix in mixes if mix["held_out"] == held] for half, held in [("tuning", False), ("held_out", True)]}
    return {name: summary(part) for name, part in [("all", mixes), *halves.items()]}


def judge_mix(mix):
    ways = {name: way["samples"]["total_seconds"] for name, way in mix["ways"].items() if not way["failed"]}
    if OURS not in ways or not any(name in ways for name in PLAIN):
        return
    others = [name for name in ways if not name.startswith(OURS)]
    mix["best"], mix["better_plain"] = best(others, ways), best([name for name in PLAIN if name in ways], ways)
    mix["to_best"] = ratio(ways[OURS], ways[mix["best"]])
    mix["to_plain"] = ratio(ways[OURS], ways[mix["better_plain"]])
    mix["to_foreseen"] = to_foreseen(others, ways)
    fair = mix["ways"].get(FAIR)
    mix["unfairness"] = fair["unfairness"] if fair and not fair["failed"] else None


def best(names, ways):
    return min(names, key=lambda name: statistics.median(ways[name]))


def to_foreseen(names, ways):
    """What ours takes of a round, for what is taken by the way that was the best in the others; None for a single round."""
    rounds = range(len(ways[OURS]))
    if len(rounds) < 2:
        return None
    others = {this: {name: [ways[name][r] for r in rounds if r != this] for name in names} for this in rounds}
    return geometric_mean([ways[OURS][this] / ways[best(names, others[this])][this] for this in rounds])


def summary(mixes):
    """None where nothing was measured."""
    if not mixes:
        return None
    worst = max(mixes, key=lambda mix: mix["to_plain"]["value"])
    unfair = [mix["unfairness"]["value"] for mix in mixes if mix["unfairness"]]
    mean = geometric_mean([mix["to_best"]["value"] for mix in mixes])
    foreseen = [mix["to_foreseen"] for mix in mixes if mix["to_foreseen"]]
    over = [mix["mix"] for mix in mixes if mix["to_plain"]["value"] > PLAIN_MOST]
    return {
        "mixes": len(mixes),
        "mean_to_best": mean,
        "mean_to_foreseen": geometric_mean(foreseen) if foreseen else None,
        "worst_to_plain": worst["to_plain"], "worst_mix": worst["mix"],
        "over_plain": over,
        "largest_unfairness": max(unfair, default=None),
        "passes": mean <= MEAN and not over and max(unfair, default=0.0) <= UNFAIRNESS,
    }


def markdown(report):
    """The report as tables."""
    machine = report.get("machine") or {}
    yield (f"{machine.get('model')}, {machine.get('cpus')} CPUs, Linux {machine.get('kernel')}; {report['rounds']} rounds, "
           f"{report['seconds']} s of work each, {report['started_at']}; {'as root' if report['root'] else 'as an ordinary user'}, "
           f"{'with' if report['profiles'] else 'without'} profiles{', moldable' if report.get('moldable') else ''}.\n")
    yield "| mix | held out | best way | auto / best | better plain way | auto / that | unfairness (fair) |"
    yield "|---|---|---|---|---|---|---|"
    for mix in report["mixes"]:
        held = "yes" if mix["held_out"] else ""
        if "to_best" not in mix:
            yield f"| {mix['mix']} | {held} | failed | | | | |"
            continue
        yield (f"| {mix['mix']} | {held} | {mix['best']} | {interval(mix['to_best'])} | {mix['better_plain']} "
               f"| {interval(mix['to_plain'])} | {interval(mix['unfairness'])} |")
    yield ""
    yield from sentences(report)


def sentences(report):
    for name, part in report["summary"].items():
        if part is None:
            continue
        unfair = part["largest_unfairness"]
        fair = "" if unfair is None else f"; largest unfairness under the goal fair {unfair:.2f} (at most {UNFAIRNESS})"
        foreseen = part["mean_to_foreseen"]
        foreseen = "" if foreseen is None else f" ({foreseen:.3f} of the way that was best in the other rounds)"
        worst = part["worst_to_plain"]["value"]
        yield (f"{name.replace('_', ' ')}, {part['mixes']} mixes: {part['mean_to_best']:.3f} of the best way on average (at "
               f"most {MEAN}){foreseen}; worst against the better of linux and fcfs {worst:.3f} (at most {PLAIN_MOST}), "
               f"{part['worst_mix']}{fair}: {'reached' if part['passes'] else 'missed'}.\n")
