"""The table of results."""

from common.report import page
from programs import INTERVALS, OURS
from results import CASES, OTHERS

HEAD = """# What is reproduced of the paper on the time donating barrier

Written by `experiments/tidon/run`; [README.md](README.md) tells the assumptions and what the verdicts mean.
"""
SWEEPS = {"assumption": "holds under other assumptions", "constant": "holds under ±20 %"}


def markdown(found, fig):
    return page(HEAD, found, SWEEPS) + "\n" + intervals() + "\n" + means(fig)


def intervals():
    """What the models were made with."""
    rows = ["## Between two barriers", "", "With 16 threads; the last three are assumptions.", "", "| program | µs |", "|---|---|"]
    return "\n".join(rows + [f"| {name} | {1e6 * seconds:.0f} |" for name, seconds in INTERVALS.items()]) + "\n"


def means(fig):
    """Means over the nine main programs, as in figure 6."""
    variants = (*OTHERS, "Tidon", OURS)
    rows = ["## Beside each co-runner", "", f"Means over the nine main programs: throughput / unfairness. {OURS} is donating under balance scheduling, which the paper has not.", "",
            "| co-runner | " + " | ".join(variants) + " | type |", "|---|" + "---|" * (len(variants) + 1)]
    for co, count in CASES:
        cells = [f"{fig.mean(fig.throughput, co, count, variant):.2f} / {fig.mean(fig.unfairness, co, count, variant):.2f}" for variant in variants]
        rows.append(f"| {co}, {count} threads | " + " | ".join(cells) + f" | {fig.kind(co, count) or '–'} |")
    return "\n".join(rows) + "\n"
