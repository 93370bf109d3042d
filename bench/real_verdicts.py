"""real_verdicts.py: what the times of the bench of real programs say. Everything here follows from the report alone.

All figures are ratios of total times in the same rounds: below 1 is faster. Each variant is compared with the *better plain*
variant, the one of `linux` and `fcfs` with the smaller median, and with `one-thread`. The better plain variant is chosen
from the same rounds, so ratios to it come out too large rather than too small.
"""

from auto_verdicts import PLAIN, best, of_halves
from gang import interval
from ratio import differs, geometric_mean, ratio

ONE_THREAD = "one-thread"


def judge(report):
    """Adds the ratios to every mix, and the summaries to the report."""
    for mix in report["mixes"]:
        judge_mix(mix)
    report["summary"] = of_halves([mix for mix in report["mixes"] if mix["better_plain"]], summary)


def judge_mix(mix):
    seconds = {name: way["samples"]["total_seconds"] for name, way in mix["ways"].items() if not way["failed"]}
    plain = [name for name in PLAIN if name in seconds]
    mix["better_plain"] = best(plain, seconds) if plain else None
    for name, way in mix["ways"].items():
        for key, other in [("to_plain", mix["better_plain"]), ("to_one_thread", ONE_THREAD)]:
            way[key] = ratio(seconds[name], seconds[other]) if name in seconds and other in seconds else None


def summary(mixes):
    """What each variant comes to over these mixes; None where there are none."""
    if not mixes:
        return None
    names = dict.fromkeys(name for mix in mixes for name in mix["ways"])
    return {"mixes": len(mixes), "ways": {name: over_mixes(name, mixes) for name in names}}


def over_mixes(name, mixes):
    judged = [mix for mix in mixes if name in mix["ways"] and mix["ways"][name]["to_plain"]]
    unfairness = {mix["mix"]: mix["ways"][name]["unfairness"] for mix in judged}
    told = [(mix["mix"], mix["ways"][name]["to_plain"]) for mix in judged if differs(mix["ways"][name]["to_plain"])]
    return {
        "mixes": len(judged),
        "failed": [mix["mix"] for mix in mixes if name in mix["ways"] and mix["ways"][name]["failed"]],
        "to_plain": mean_and_worst(name, judged, "to_plain", lambda mix: mix["better_plain"]),
        "to_one_thread": mean_and_worst(name, judged, "to_one_thread", lambda mix: ONE_THREAD),
        "faster": [mix for mix, estimate in told if estimate["value"] < 1],
        "slower": [mix for mix, estimate in told if estimate["value"] > 1],
        "unfairness": mean_and_worst_value({mix: estimate["value"] for mix, estimate in unfairness.items() if estimate}),
    }


def mean_and_worst(name, mixes, key, other):
    """The geometric mean over the mixes, with its interval from the means of each round, and the worst mix."""
    mixes = [mix for mix in mixes if mix["ways"][name][key]]
    if not mixes:
        return None
    rounds = zip(*(round_ratios(mix, name, other(mix)) for mix in mixes))
    means = [geometric_mean(one) for one in rounds]
    worst = max(mixes, key=lambda mix: mix["ways"][name][key]["value"])
    return {"mean": ratio(means, [1.0] * len(means)), "worst": worst["ways"][name][key], "worst_mix": worst["mix"]}


def round_ratios(mix, name, other):
    ours, theirs = (mix["ways"][way]["samples"]["total_seconds"] for way in [name, other])
    return [a / b for a, b in zip(ours, theirs, strict=True)]


def mean_and_worst_value(values):
    if not values:
        return None
    worst = max(values, key=values.get)
    return {"mean": geometric_mean(values.values()), "worst": values[worst], "worst_mix": worst}


def markdown(report):
    """The report as tables."""
    machine = report.get("machine") or {}
    yield (f"{machine.get('model')}, {machine.get('cpus')} CPUs, Linux {machine.get('kernel')}; {report['rounds']} rounds, "
           f"{report['seconds']:g} s of work each, {report['started_at']}; "
           f"{'as root' if report['root'] else 'as an ordinary user'}.")
    for part, found in report["summary"].items():
        if found:
            yield f"\n### {part.replace('_', ' ')}, {found['mixes']} mixes\n"
            yield from summary_table(found["ways"])
    yield "\n### Every mix\n"
    yield "Total time over that of the better plain variant.\n"
    yield from mix_table(report["mixes"])
    if report["left_out"]:
        yield "\n### Left out\n"
        yield from (f"- {name}: {why}" for name, why in report["left_out"].items())


def summary_table(ways):
    yield ("| variant | mixes | / better of linux and fcfs, mean | worst | faster, slower | / one-thread, mean | worst "
           "| unfairness, mean | worst |")
    yield "|---" * 9 + "|"
    for name, way in ways.items():
        columns = [name, way["mixes"], *shown(way["to_plain"]), f"{len(way['faster'])}, {len(way['slower'])}",
                   *shown(way["to_one_thread"]), *shown(way["unfairness"])]
        yield "| " + " | ".join(map(str, columns)) + " |"


def shown(figure):
    """A mean and its worst mix, as two columns."""
    if figure is None:
        return "–", "–"
    mean, worst = (f"{one:.3f}" if isinstance(one, float) else interval(one) for one in [figure["mean"], figure["worst"]])
    return mean, f"{worst} {figure['worst_mix']}"


def mix_table(mixes):
    names = list(dict.fromkeys(name for mix in mixes for name in mix["ways"]))
    yield f"| mix | held out | better plain | {' | '.join(names)} |"
    yield "|---" * (len(names) + 3) + "|"
    for mix in mixes:
        cells = [cell(mix["ways"].get(name)) for name in names]
        held = "yes" if mix["held_out"] else ""
        yield f"| {mix['mix']} | {held} | {mix['better_plain'] or 'none'} | {' | '.join(cells)} |"


def cell(way):
    if way is None:
        return "–"
    return "failed" if way["failed"] else interval(way["to_plain"])


def sentences(report):
    """A line for each variant and half."""
    for part, found in report["summary"].items():
        for name, way in (found["ways"] if found else {}).items():
            if to_plain := way["to_plain"]:
                yield (f"{part.replace('_', ' ')}, {name}: {interval(to_plain['mean'])} of the better of linux and fcfs over "
                       f"{way['mixes']} mixes, worst {to_plain['worst']['value']:.3f} ({to_plain['worst_mix']}).\n")
