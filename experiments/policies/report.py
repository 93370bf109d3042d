"""What came of the mixes, as tables: the verdicts first."""

from lib.report import table
from policy_verdicts import FAIR, OURS, Bars, held_against

HEAD = """# The default policy on modelled machines

Written by `experiments/policies/run` (`make bench-policies-sim`); [README.md](README.md) tells what is simulated, and what that is worth.
"""
# There is no variant of one thread each in the simulator.
BARS = Bars(mean=0.97, worst=1.10, one_thread=1.0, unfairness=1.3)
PARTS = {"all": "all", "tuning": "tuning", "held_out": "held out"}
MISSED = "missed"


def markdown(document):
    lines = [HEAD, f"{document['seconds']:g} s of work of each program alone; seeds: {document['seeds']}.\n"]
    lines += table(["machine", "mixes", f"`{OURS}`", "value", "at most", ""], bars(document))
    for part in document["machines"]:
        lines += ["", f"## {part['machine']['model']}, {part['machine']['cpus']} CPUs\n", *of_machine(part)]
    return "\n".join(lines) + "\n"


def bars(document):
    """What was to be reached, and whether it was."""
    for part, key, summary in summaries(document):
        for what, value, most in held_against(summary["variants"], BARS):
            yield [part["machine"]["model"], f"{PARTS[key]} ({summary['mixes']})", what, f"{value:.3f}", f"{most:g}",
                       "reached" if value <= most else MISSED]


def summaries(document):
    for part in document["machines"]:
        for key in PARTS:
            if part["summary"][key]:
                yield part, key, part["summary"][key]


def of_machine(part):
    """The mixes on one machine: each variant over the better of linux and fcfs. What misses a bar is bold."""
    variants = [variant for variant in part["mixes"][0]["variants"] if variant not in ("linux", "fcfs")]
    rows = []
    for mix in part["mixes"]:
        seconds = lambda variant: f"{mix['variants'][variant]['samples']['total_seconds'][0]:.2f}"
        ratios = [bold(mix["variants"][variant]["to_plain"]["value"], BARS.worst if variant == OURS else None) for variant in variants]
        variant, least = fairest(mix)
        rows.append([mix["mix"], "yes" if mix["held_out"] else "", seconds("linux"), seconds("fcfs"), *ratios,
                   bold(mix["variants"][FAIR]["unfairness"]["value"], BARS.unfairness), f"{least:.2f} ({variant})"])
    yield from table(["mix", "held out", "linux s", "fcfs s", *variants, f"unfairness of {FAIR}", "least unfairness"], rows)


def fairest(mix):
    """The variant with the least unfairness, without the one that is judged, and how much that is."""
    variants = {variant: found["unfairness"]["value"] for variant, found in mix["variants"].items() if variant != FAIR}
    return min(variants.items(), key=lambda item: item[1])


def last_line(document):
    """The verdicts in a line."""
    missed = [f"{part['machine']['model']}, {PARTS[key]}: {what} {value:.3f}" for part, key, summary in summaries(document)
              for what, value, most in held_against(summary["variants"], BARS) if value > most]
    return f"{OURS}: " + (f"{MISSED}: " + "; ".join(missed) if missed else "every bar is reached")


def bold(value, most):
    return f"**{value:.3f}**" if most is not None and value > most else f"{value:.3f}"
