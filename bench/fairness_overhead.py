"""fairness_overhead.py: what fair progress costs where there is nothing to equalise: equal programs, as in section 7.7 of the
paper.

Here there are no quanta as long as each program has a CPU. So twice as many programs run, too; then
each has half of the time under plain Linux as well, and what quanta cost is what they take longer.
"""

from typing import NamedTuple

from lib.report import interval, table, with_verdict
from lib.runner import cpus

FIRST = "linux"
VARIANTS = {
    "quanta": "fair-progress --training-limit 0 --no-phases",
    "with sampling": "fair-progress --training-limit 0",
    "with training": "fair-progress",
}
FIGURES = ["total_seconds", "own_cpu_percent", "failed", "deviations", "against"]
# The most that a variant may take of plain Linux's time. Training has a limit of its own.
MOST = {"quanta": 1.01, "with sampling": 1.025}
KIND = "compute"


class Equals(NamedTuple):
    """So many equal programs for each CPU, of one thread each."""

    per_cpu: int

    @property
    def name(self):
        return f"{self.per_cpu} per CPU"

    def programs(self, cpus):
        """The kind of each, and how many threads it has."""
        return [(KIND, 1)] * (self.per_cpu * cpus)


CELLS = [Equals(1), Equals(2)]


def measured(options, cell, file, report):
    """What all variants make of equal programs."""
    asked = {FIRST: FIRST} | {variant.replace(" ", "-"): words for variant, words in VARIANTS.items()}
    document = options.cosched.compare(report, file, asked, "--out", file.with_suffix(""))
    variants = {variant["variant"].replace("-", " "): {key: variant[key] for key in FIGURES} for variant in document["variants"]}
    return judged({"cell": cell.name, "programs": len(cell.programs(cpus())), "variants": variants})


def judged(cell):
    """Adds to each variant whether it costs more than it may, and what cosched uses beyond what it does under plain Linux."""
    first = cell["variants"][FIRST]
    for name, variant in cell["variants"].items():
        variant["own_beyond_percent"] = variant["own_cpu_percent"]["value"] - first["own_cpu_percent"]["value"]
        if name not in MOST:
            variant["verdict"] = None
        elif variant["failed"] or first["failed"]:
            variant["verdict"] = "programs failed"
        else:
            variant["verdict"] = "met" if variant["against"]["total_ratio"]["value"] <= MOST[name] else "not met"
    return cell


def sentences(cell):
    """The verdicts, for people."""
    for name, variant in cell["variants"].items():
        if name != FIRST:
            bar = f", at most {MOST[name] - 1:.1%}: {variant['verdict']}" if name in MOST else ""
            yield (f"{cell['programs']} equal programs, {name}: {variant['against']['total_ratio']['value'] - 1:+.2%} time{bar}; "
                   f"{variant['own_beyond_percent']:+.2f} % of a CPU for cosched itself")


def markdown(cell):
    """The figures as a table."""
    yield f"\n### {cell['programs']} equal programs\n"
    bars = {name: f"{most:.3f}: {cell['variants'][name]['verdict']}" for name, most in MOST.items()}
    yield from table(["variant", "total s", f"total / {FIRST}", "bar", "cosched, % of a CPU", "failed"],
                     ([name, interval(variant["total_seconds"], 2), with_verdict(variant["against"]), bars.get(name, "–"),
                       interval(variant["own_cpu_percent"], 2), variant["failed"]] for name, variant in cell["variants"].items()))
