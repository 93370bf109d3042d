"""shuffling_verdicts.py: what the figures of the shuffling bench say. Everything here follows from the report alone.

Figures of two variants are held against each other round by round: below 1 is less. Gain or not is told by time alone; where
a gain comes from, by the locks.
"""

import statistics

from lib.report import interval, page
from lib.verdicts import judging, met, ratio, ratios

FIRST = "linux"
VERDICTS = {"better": "faster", "worse": "slower"}
SAME = "no significant difference"
# What the slides say that monitoring and shuffling cost, of system time ("Shuffling Overhead Negligible").
MOST_OWN_PERCENT = 1.0


def judge_cell(cell):
    runs = cell["runs"]
    others = [variant for variant in runs if variant != FIRST]
    times = ratios({variant: figures["seconds"] for variant, figures in runs.items()}, FIRST)
    cell["median"] = {variant: {key: middle(values) for key, values in figures.items()} for variant, figures in runs.items()}
    cell["time_ratio"] = {variant: times[variant] for variant in others}
    cell["verdict"] = {variant: VERDICTS.get(times[variant]["verdict"], SAME) for variant in others}
    cell["across_ratio"] = {variant: across(runs[variant]["across_share"], runs[FIRST]["across_share"]) for variant in others}


judge = judging(judge_cell)


def middle(values):
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


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
               f"{SAME} in {verdicts.count(SAME)}.")
    for variant, used in report["own"].items():
        yield (f"{variant}: cosched itself uses {used:.3f} % of the machine, measuring and moving; below {MOST_OWN_PERCENT:g} %, "
               f"as in the slides: {met(used < MOST_OWN_PERCENT)}.")


def markdown(report):
    """The report as a table."""
    head = (f"{report['cpus']} CPUs, groups {report['groups']}; {report['rounds']} rounds, {report['seconds']:g} s each, "
            f"figures of locks by {report['source']}, {report['started_at']}")
    names = list(report["variants"])
    others = [name for name in names if name != FIRST]
    columns = ["cell", "linux s", *(f"{name}, of that time" for name in others), "transfers/s",
               *(f"across, {name}" for name in names), *(f"at locks, {name}" for name in names)]
    return page(head, sentences(report), columns, (row(cell, names, others) for cell in report["cells"] if not cell["failed"]))


def row(cell, names, others):
    median = cell["median"]
    shares = [percent(median[name][key]) for key in ("across_share", "lock_share") for name in names]
    return [cell["cell"], f"{median[FIRST]['seconds']:.2f}", *(interval(cell["time_ratio"][name]) for name in others),
            f"{median[FIRST]['transfers_per_second']:.0f}", *shares]
