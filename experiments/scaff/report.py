"""The page of results."""

from common.report import page
from lib.report import table
from rival import rivals

BEST = {"total": (min, "{:.2f}"), "weighted": (max, "{:.2f}"), "fairness": (min, "{:.4f}")}


def tell(rows, settings, first, threads):
    """The claims, and the policy `bandwidth` beside those of the thesis."""
    compared = rivals(first.cosched, first, threads)
    text = page("scaff", "thesis on scaff", rows, ("assumption", "constant"), source="the thesis", figure=None,
                rest="the others are inputs or pictures", unchecked="only in pictures: not judged")
    return {"claims": rows, "rivals": compared}, text + "\n".join(more(settings, compared)) + "\n"


def more(settings, compared):
    yield "\nOther assumptions: " + "; ".join(p.name for p in settings if p.kind == "assumption") + ".\n"
    yield "## The policy `bandwidth`\n"
    yield ("Seconds until every program has ended once / sum of the programs' speeds relative to alone / F. "
           "The best of each row is bold.\n")
    names = list(compared[0]["policies"])
    yield from table(["machine, workload, placement", *names], (
        [f"{row['machine']}, {row['workload']}, {row['placement']}",
         *(" / ".join(mark(row["policies"], name, key) for key in BEST) for name in names)] for row in compared))


def mark(policies, name, key):
    """A figure, bold if no other policy has a better one."""
    best, form = BEST[key]
    shown = {other: form.format(found[key]) for other, found in policies.items()}
    return f"**{shown[name]}**" if shown[name] == best(shown.values(), key=float) else shown[name]
