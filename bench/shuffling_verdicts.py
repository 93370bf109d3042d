"""shuffling_verdicts.py: what the figures of the shuffling bench say. Everything here follows from the report alone.

Figures of two variants are held against each other round by round (see ratio.py): below 1 is less. Gain or not is
told by time alone; where a gain comes from, by the locks.
"""

import statistics

from gang import interval
from ratio import differs, ratio

FIRST = "linux"
# What the slides say that monitoring and shuffling cost, of system time ("Shuffling Overhead Negligible").
MOST_OWN_PERCENT = 1.0


def judge(report):
    """Adds what follows to every cell, and to the report as a whole."""
    for cell in report["cells"]:
        if cell["failed"]:
            continue
        first = cell["runs"][FIRST]
        cell["median"] = {variant: {key: middle(values) for key, values in runs.items()}
                          for variant, runs in cell["runs"].items()}
        cell["time_ratio"] = {variant: ratio(runs["seconds"], first["seconds"])
                              for variant, runs in cell["runs"].items() if variant != FIRST}
        cell["verdict"] = {variant: verdict(found) for variant, found in cell["time_ratio"].items()}
        cell["across_ratio"] = {variant: across(runs["across_share"], first["across_share"])
                                for variant, runs in cell["runs"].items() if variant != FIRST}


def middle(values):
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def verdict(found):
    if found["interval"] is None or not differs(found):
        return "no significant difference"
    return "faster" if found["value"] < 1 else "slower"


def across(ours, theirs):
    """The share of transfers that go across against the first variant's; None where there were none in a round."""
    known = all(ours) and all(theirs)
    return ratio(ours, theirs) if known else None


def percent(share):
    return "-" if share is None else f"{100 * share:.0f} %"


def sentences(report):
    """The report in sentences."""
    done = [cell for cell in report["cells"] if not cell["failed"]]
    for cell in report["cells"]:
        if cell["failed"]:
            yield f"{cell['cell']} failed: its figures count nowhere."
    for cell in done:
        before = cell["median"][FIRST]
        for variant, found in cell["time_ratio"].items():
            after = cell["median"][variant]
            yield (f"{cell['cell']}, {variant}: {interval(found)} of plain Linux' time: {cell['verdict'][variant]}. Of its lock "
                   f"transfers {percent(after['across_share'])} go across instead of {percent(before['across_share'])}; its "
                   f"threads wait {percent(after['lock_share'])} of their time at locks instead of "
                   f"{percent(before['lock_share'])}.")
    for variant in [variant for variant in report["variants"] if variant != FIRST]:
        verdicts = [cell["verdict"][variant] for cell in done]
        yield (f"{variant}: faster in {verdicts.count('faster')} of {len(done)} cells, slower in {verdicts.count('slower')}, "
               f"no significant difference in {verdicts.count('no significant difference')}.")
    for variant, used in report["own"].items():
        yield (f"{variant}: cosched itself uses {used:.3f} % of the machine, measuring and moving; below {MOST_OWN_PERCENT:g} %, "
               f"as in the slides: {'met' if used < MOST_OWN_PERCENT else 'missed'}.")


def markdown(report):
    """The report as a table."""
    yield (f"{report['cpus']} CPUs, groups {report['groups']}; {report['rounds']} rounds, {report['seconds']:g} s each, "
           f"figures of locks by {report['source']}, {report['started_at']}.\n")
    yield from (f"- {sentence}" for sentence in sentences(report))
    others = [variant for variant in report["variants"] if variant != FIRST]
    yield ("\n| cell | linux s | " + " | ".join(f"{variant}, of that time" for variant in others)
           + " | transfers/s | " + " | ".join(f"across, {variant}" for variant in report["variants"])
           + " | " + " | ".join(f"at locks, {variant}" for variant in report["variants"]) + " |")
    yield "|---" * (3 + len(others) + 2 * len(report["variants"])) + "|"
    for cell in report["cells"]:
        if cell["failed"]:
            continue
        median = cell["median"]
        figures = [f"{median[FIRST]['seconds']:.2f}", *(interval(cell["time_ratio"][variant]) for variant in others),
                   f"{median[FIRST]['transfers_per_second']:.0f}",
                   *(percent(median[variant]["across_share"]) for variant in report["variants"]),
                   *(percent(median[variant]["lock_share"]) for variant in report["variants"])]
        yield f"| {cell['cell']} | {' | '.join(figures)} |"
