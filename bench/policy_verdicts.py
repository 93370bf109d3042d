"""policy_verdicts.py: what the times of programs under several policies say. Everything here follows from the report alone.

All figures are ratios of total times in the same rounds: below 1 is faster. Each variant is compared with the *better plain*
variant, the one of `linux` and `fcfs` with the smaller median, and with `one-thread`. The better plain variant is chosen
from the same rounds, so ratios to it come out too large rather than too small.
"""

import dataclasses

from lib.report import interval, machine_line, table
from lib.verdicts import best, differs, geometric_mean, ratio, ratios

# The rivals that users try.
PLAIN = ["linux", "fcfs"]
ONE_THREAD = "one-thread"
# The default policy, and the variant of it that is judged by fairness.
OURS, FAIR = "turns", "turns-fair"


@dataclasses.dataclass(frozen=True)
class Bars:
    """The most that is good enough: over the better plain variant, on average and in the worst mix; over one thread each,
    on average; unfairness under the goal fair."""
    mean: float
    worst: float
    one_thread: float
    unfairness: float


ON_A_REAL_MACHINE = Bars(mean=0.93, worst=1.05, one_thread=1.0, unfairness=1.3)


def judge(report):
    """Adds the ratios to every mix, and the summaries to the report."""
    for mix in report["mixes"]:
        judge_mix(mix)
    report["summary"] = of_halves([mix for mix in report["mixes"] if mix["better_plain"]], summary)


def judge_mix(mix):
    seconds = {name: variant["samples"]["total_seconds"] for name, variant in mix["variants"].items() if not variant["failed"]}
    plain = [name for name in PLAIN if name in seconds]
    mix["better_plain"] = best(plain, seconds) if plain else None
    for key, other in [("to_plain", mix["better_plain"]), ("to_one_thread", ONE_THREAD)]:
        found = ratios(seconds, other) if other in seconds else {}
        for name, variant in mix["variants"].items():
            variant[key] = found.get(name)


def of_halves(mixes, summary):
    """The summary of all mixes, and that of each half."""
    halves = {half: [mix for mix in mixes if mix["held_out"] == held] for half, held in [("tuning", False), ("held_out", True)]}
    return {name: summary(part) for name, part in [("all", mixes), *halves.items()]}


def held_against(variants, bars):
    """What is judged of the default policy: what it is, its value, and the most that is good enough."""
    ours, fair = variants.get(OURS), variants.get(FAIR)
    if ours and ours["to_plain"]:
        yield "mean over the better of linux and fcfs", ours["to_plain"]["mean"]["value"], bars.mean
        yield (f"worst over the better of linux and fcfs ({ours['to_plain']['worst_mix']})",
               ours["to_plain"]["worst"]["value"], bars.worst)
    if ours and ours["to_one_thread"]:
        yield "mean over one thread each", ours["to_one_thread"]["mean"]["value"], bars.one_thread
    if fair and fair["unfairness"]:
        yield (f"unfairness under the goal fair ({fair['unfairness']['worst_mix']})", fair["unfairness"]["worst"],
               bars.unfairness)


def summary(mixes):
    """What each variant comes to over these mixes; None where there are none."""
    if not mixes:
        return None
    names = dict.fromkeys(name for mix in mixes for name in mix["variants"])
    return {"mixes": len(mixes), "variants": {name: over_mixes(name, mixes) for name in names}}


def over_mixes(name, mixes):
    judged = [mix for mix in mixes if name in mix["variants"] and mix["variants"][name]["to_plain"]]
    unfairness = {mix["mix"]: mix["variants"][name]["unfairness"] for mix in judged}
    significant = [(mix["mix"], mix["variants"][name]["to_plain"]) for mix in judged if differs(mix["variants"][name]["to_plain"])]
    return {
        "mixes": len(judged),
        "failed": [mix["mix"] for mix in mixes if name in mix["variants"] and mix["variants"][name]["failed"]],
        "to_plain": mean_and_worst(name, judged, "to_plain", lambda mix: mix["better_plain"]),
        "to_one_thread": mean_and_worst(name, judged, "to_one_thread", lambda mix: ONE_THREAD),
        "faster": [mix for mix, estimate in significant if estimate["value"] < 1],
        "slower": [mix for mix, estimate in significant if estimate["value"] > 1],
        "unfairness": mean_and_worst_value({mix: estimate["value"] for mix, estimate in unfairness.items() if estimate}),
    }


def mean_and_worst(name, mixes, key, other):
    """The geometric mean over the mixes, with its interval from the means of each round, and the worst mix."""
    mixes = [mix for mix in mixes if mix["variants"][name][key]]
    if not mixes:
        return None
    rounds = zip(*(round_ratios(mix, name, other(mix)) for mix in mixes))
    means = [geometric_mean(one) for one in rounds]
    worst = max(mixes, key=lambda mix: mix["variants"][name][key]["value"])
    return {"mean": ratio(means, [1.0] * len(means)), "worst": worst["variants"][name][key], "worst_mix": worst["mix"]}


def round_ratios(mix, name, other):
    ours, theirs = (mix["variants"][variant]["samples"]["total_seconds"] for variant in [name, other])
    return [a / b for a, b in zip(ours, theirs, strict=True)]


def mean_and_worst_value(values):
    if not values:
        return None
    worst = max(values, key=values.get)
    return {"mean": geometric_mean(values.values()), "worst": values[worst], "worst_mix": worst}


def markdown(report):
    """The report as tables."""
    user = "as root" if report["root"] else "as an ordinary user"
    yield machine_line(report, f"{report['seconds']:g} s of work each", f"{report['started_at']}; {user}.")
    for part, found in report["summary"].items():
        if found:
            yield f"\n### {part.replace('_', ' ')}, {found['mixes']} mixes\n"
            yield from summary_table(found["variants"])
            yield ""
            yield from (f"- {sentence}" for sentence in bar_sentences(found["variants"], ON_A_REAL_MACHINE))
    yield "\n### Every mix\n"
    yield "Total time over that of the better plain variant.\n"
    yield from mix_table(report["mixes"])
    if report["left_out"]:
        yield "\n### Left out\n"
        yield from (f"- {name}: {why}" for name, why in report["left_out"].items())


def summary_table(variants):
    yield from table(["variant", "mixes", "/ better of linux and fcfs, mean", "worst", "faster, slower", "/ one-thread, mean", "worst",
                      "unfairness, mean", "worst"],
                     ([name, variant["mixes"], *shown(variant["to_plain"]), f"{len(variant['faster'])}, {len(variant['slower'])}",
                       *shown(variant["to_one_thread"]), *shown(variant["unfairness"])] for name, variant in variants.items()))


def shown(figure):
    """A mean and its worst mix, as two columns."""
    if figure is None:
        return "–", "–"
    mean, worst = (f"{one:.3f}" if isinstance(one, float) else interval(one) for one in [figure["mean"], figure["worst"]])
    return mean, f"{worst} {figure['worst_mix']}"


def mix_table(mixes):
    names = list(dict.fromkeys(name for mix in mixes for name in mix["variants"]))
    yield from table(["mix", "held out", "better plain", *names],
                     ([mix["mix"], "yes" if mix["held_out"] else "", mix["better_plain"] or "none",
                       *(cell(mix["variants"].get(name)) for name in names)] for mix in mixes))


def cell(variant):
    if variant is None:
        return "–"
    return "failed" if variant["failed"] else interval(variant["to_plain"])


def bar_sentences(variants, bars):
    """Whether the default policy is good enough, a sentence for each bar."""
    for what, value, most in held_against(variants, bars):
        yield f"{OURS}, {what}: {value:.3f} (at most {most:g}): {'reached' if value <= most else 'missed'}"


def sentences(report):
    """A line for each variant and half, and for each bar."""
    for part, found in report["summary"].items():
        for name, variant in (found["variants"] if found else {}).items():
            if to_plain := variant["to_plain"]:
                yield (f"{part.replace('_', ' ')}, {name}: {interval(to_plain['mean'])} of the better of linux and fcfs over "
                       f"{variant['mixes']} mixes, worst {to_plain['worst']['value']:.3f} ({to_plain['worst_mix']}).")
        if found:
            yield from (f"{part.replace('_', ' ')}, {sentence}."
                        for sentence in bar_sentences(found["variants"], ON_A_REAL_MACHINE))
