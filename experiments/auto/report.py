"""What came of the mixes, as tables: the verdicts first."""

from auto_verdicts import FAIR, MEAN, PLAIN_MOST, UNFAIRNESS

HEAD = """# How good the choices of `auto` are on modelled machines

Written by `experiments/auto/run` (`make bench-auto-sim`); [README.md](README.md) tells what is simulated, and what that is worth.
"""
PARTS = {"all": "all", "tuning": "tuning", "held_out": "held out"}
MISSED = "missed"


def markdown(document):
    lines = [HEAD, f"{document['seconds']:g} s of work of each program alone; seeds: {document['seeds']}.\n"]
    lines += bars(document)
    for part in document["machines"]:
        lines += ["", f"## {part['machine']['model']}, {part['machine']['cpus']} CPUs\n", *table(part)]
    return "\n".join(lines) + "\n"


def bars(document):
    """What was to be reached, and whether it was."""
    yield row(["machine", "mixes", f"mean to the best way (at most {MEAN})",
               f"worst to the better of linux and fcfs (at most {PLAIN_MOST})", "mixes above that",
               f"largest unfairness for the goal fair (at most {UNFAIRNESS})", "mixes above that (where some way is not)"])
    yield "|---|---|---|---|---|---|---|"
    for part in document["machines"]:
        for key, name in PARTS.items():
            summary = part["summary"][key]
            if summary is None:
                continue
            members = [mix for mix in part["mixes"] if key == "all" or mix["held_out"] == (key == "held_out")]
            unfair = [mix for mix in members if mix["unfairness"]["value"] > UNFAIRNESS]
            possible = sum(fairest(mix)[1] <= UNFAIRNESS for mix in unfair)
            worst = summary["worst_to_plain"]["value"]
            cells = [part["machine"]["model"], f"{name} ({summary['mixes']})", judged(summary["mean_to_best"], MEAN),
                     f"{judged(worst, PLAIN_MOST)} ({summary['worst_mix']})", len(summary["over_plain"]),
                     judged(summary["largest_unfairness"], UNFAIRNESS), f"{len(unfair)} ({possible})"]
            yield row(cells)


def fairest(mix):
    """The way with the least unfairness, without the one that is judged, and how much that is."""
    ways = {way: found["unfairness"]["value"] for way, found in mix["ways"].items() if way != FAIR}
    return min(ways.items(), key=lambda item: item[1])


def table(part):
    """The mixes on one machine. What misses a bar is bold."""
    yield row(["mix", "held out", "linux s", "fcfs s", "best way", "auto / best", "auto / the better of linux and fcfs",
               "unfairness (fair)", "least unfairness", "auto's choices"])
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for mix in part["mixes"]:
        seconds = lambda way: f"{mix['ways'][way]['samples']['total_seconds'][0]:.2f}"
        way, least = fairest(mix)
        yield row([mix["mix"], "yes" if mix["held_out"] else "", seconds("linux"), seconds("fcfs"), mix["best"],
                   bold(mix["to_best"]["value"], MEAN), bold(mix["to_plain"]["value"], PLAIN_MOST),
                   bold(mix["unfairness"]["value"], UNFAIRNESS), f"{least:.2f} ({way})", told(mix["choices"])])


def told(choices):
    """How it went, without what was said at the beginning."""
    steps = [f"{choice['manner']}: {choice['ground']}" for choice in choices if choice["ground"] != "begins"]
    several = f" (of {len(steps)})" if len(steps) > 2 else ""
    return "; then ".join(steps[:2]) + several or "–"


def last_line(document):
    """The verdicts in a line."""
    machines = [f"{part['machine']['model']} {'reached' if part['summary']['all']['passes'] else MISSED}, held out "
                f"{verdict(part['summary']['held_out'])}" for part in document["machines"]]
    return "auto: " + "; ".join(machines)


def verdict(summary):
    if summary is None:
        return "not run"
    return "reached" if summary["passes"] else MISSED


def judged(value, most):
    return f"{value:.3f}, {'reached' if value <= most else MISSED}"


def bold(value, most):
    return f"**{value:.3f}**" if value > most else f"{value:.3f}"


def row(cells):
    return "| " + " | ".join(map(str, cells)) + " |"
