"""The page of results."""

from common.report import page
from lib.report import table
from programs import INTERVALS, OURS
from results import CASES, OTHERS


def tell(rows, settings, first, _):
    """The claims, and the page of all."""
    text = page("tidon", "paper on the time donating barrier", rows, ("assumption", "constant"))
    return {"claims": rows}, text + "\n".join([*intervals(), *means(first)]) + "\n"


def intervals():
    """What the models were made with."""
    yield "\n## Between two barriers\n\nWith 16 threads; the last three are assumptions.\n"
    yield from table(["program", "µs"], ([name, f"{1e6 * seconds:.0f}"] for name, seconds in INTERVALS.items()))


def means(fig):
    """Means over the nine main programs, as in figure 6."""
    variants = (*OTHERS, "Tidon", OURS)
    yield "\n## Beside each co-runner\n"
    yield (f"Means over the nine main programs: throughput / unfairness. {OURS} is donating under balance scheduling, which the paper "
           "has not.\n")
    figures = lambda *case: " / ".join(f"{fig.mean(figure, *case):.2f}" for figure in (fig.throughput, fig.unfairness))
    yield from table(["co-runner", *variants, "type"], (
        [f"{co}, {count} threads", *(figures(co, count, variant) for variant in variants), fig.kind(co, count) or "–"]
        for co, count in CASES))
