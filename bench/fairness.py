#!/usr/bin/env python3
"""fairness.py: how equal slowdowns are under fair progress. `make bench-fairness` runs it.

docs/research/benchmarks.md has its programs and the bar. A program's slowdown is the median of its
slowdowns in all rounds; unfairness is the largest of the programs' over the smallest. (In a single
round, noise alone makes the largest differ from the smallest; each round's own stands beside it.)
What it costs where there is nothing to equalise is in fairness_overhead.py.

It writes fairness.json (for scripts) and fairness.md into --out.
"""

import json
import os
import statistics
import subprocess
import sys
from typing import NamedTuple

import fairness_overhead
from lib import rounds, runner
from lib.options import read
from lib.report import Report, interval, machine_line, table, with_verdict
from lib.runner import cpus, plain_environment, run
from lib.verdicts import ratios

SCHEMA = "cosched-bench-fairness/2"
CELLS_PART, OVERHEAD = PARTS = ["cells", "overhead"]
FIRST, OURS = "linux", "fair-progress"
VARIANTS = [FIRST, "linux-groups", "gang", "minwait", OURS]
FIGURES = ["unfairness", "total_seconds", "mean_turnaround_seconds", "own_cpu_percent", "failed", "deviations", "against", "samples"]
# The least share of the excess that has to go, and the most time that it may cost.
GONE, COST = 0.5, 1.03
# With less unfairness than this there is nothing to be gained.
WORTH = 1.05
# A program that takes longer alone than the others ends without co-runners, and is slowed less, however fair that was.
# Beyond this ratio of the solo times, slowdowns say nothing of fairness.
EQUAL = 1.1
# What each kind of program is, and an amount of work with which to find out how fast it is.
KINDS = {
    "triad": (["./bin/triad", "--mebibytes", "96", "--work"], 0.1),
    "compute": (["./bin/compute", "--work"], 0.1),
    "cg": (["./bin/cg", "--work"], 0.1),
    "numpy": (["/usr/bin/python3", "./numpy-matmul.py"], 40),
}


class Cell(NamedTuple):
    """A mix: kinds of programs on all CPUs, and kinds on one, of which there are two programs for each CPU less the multi-threaded ones."""

    name: str
    multi_threaded: list
    single_threaded: list

    def programs(self, cpus):
        """The kind of each, and how many threads it has."""
        singles = [(self.single_threaded[number % len(self.single_threaded)], 1) for number in range(2 * cpus - len(self.multi_threaded))]
        return [(kind, cpus) for kind in self.multi_threaded] + singles


CELLS = [
    Cell("triad and compute", [], ["triad", "compute"]),
    Cell("all four", [], ["triad", "compute", "cg", "numpy"]),
    Cell("cg and single-threaded", ["cg", "cg"], ["compute", "triad"]),
    Cell("numpy and single-threaded", ["numpy", "numpy"], ["compute", "triad"]),
]


def main():
    options = read(__doc__, "fairness", seconds=4.0, of="of each program alone", cells=True, parts=PARTS)
    plain_environment()
    # The solo times that are kept here are the bench's own.
    os.environ["XDG_DATA_HOME"] = str(options.folder / "data")
    report = Report(options, SCHEMA, sentences, markdown, seconds=options.seconds, cells=[], overhead=[],
                    bar={"excess_gone": GONE, "time": COST, "least_unfairness": WORTH})
    chosen = rounds.chosen(CELLS, options) if CELLS_PART in options.parts else []
    equals = fairness_overhead.CELLS if OVERHEAD in options.parts else []
    needed = {program for cell in [*chosen, *equals] for program in cell.programs(cpus())}
    amounts = {program: amount(options, *program) for program in sorted(needed)}
    for cell in report.each([*chosen, *equals]):
        file = written(options, cell, amounts)
        if cell in chosen:
            report["cells"].append(measured(options, cell, file, report))
        else:
            report["overhead"].append(fairness_overhead.measured(options, cell, file, report))
        report.save()
    report.done()


def amount(options, kind, threads):
    """How much work takes so long alone, as cosched measures solo times: from the difference of two small amounts, and then from
    runs of that length."""
    file = options.folder / "alone.toml"

    def took(work):
        file.write_text(program(f"{kind}-alone", kind, threads, work))
        found = options.cosched.json("profile", file, "--runs", 3, may_fail=True, stderr=subprocess.DEVNULL)
        if not found:
            sys.exit(f"bench: {kind} cannot be run alone: cosched profile {file}")
        return found["programs"][0]["threads"][0]["solo_seconds"]

    base = KINDS[kind][1]
    least, more = took(base), took(4 * base)
    each = (more - least) / (3 * base)
    work = max(base, base + (options.seconds - least) / each)
    # Some tenths of a second tell too little of what takes seconds.
    for _ in range(2):
        work = max(base, work * options.seconds / took(work))
    return work


def written_amount(kind, work):
    """An amount as the program takes it: numpy's are whole repetitions."""
    return str(round(work)) if kind == "numpy" else f"{work:.4g}"


def measured(options, cell, file, report):
    """What all variants make of one mix."""
    out = file.with_suffix("")
    document = options.cosched.compare(report, file, dict(zip(VARIANTS, VARIANTS)), "--solo", "--out", out)
    variants = {variant["variant"]: {key: variant[key] for key in FIGURES} for variant in document["variants"]}
    for name, variant in variants.items():
        variant["slowdowns"] = of_programs(out, name, lambda program: program["turnaround_seconds"] / program["solo_seconds"])
    alone = of_programs(out, FIRST, lambda program: program["solo_seconds"])
    return judged({"cell": cell.name, "alone_seconds": medians(alone), "variants": variants})


def of_programs(out, variant, figure):
    """A figure of each program, in every round."""
    found = {}
    for folder in runner.round_folders(out, variant):
        for one in json.loads((folder / "run.json").read_text())["programs"]:
            found.setdefault(one["name"], []).append(figure(one))
    return found


def medians(by_program):
    return {program: statistics.median(rounds_) for program, rounds_ in by_program.items()}


def written(options, cell, amounts):
    """The workload file of a mix, beside which its runs go."""
    file = options.folder / f"{cell.name.replace(' ', '-')}.toml"
    file.write_text(workload(cell, amounts, cpus()))
    return file


def workload(cell, amounts, cpus):
    """As a workload file."""
    return "\n".join(program(f"{kind}-{number}", kind, threads, amounts[kind, threads])
                     for number, (kind, threads) in enumerate(cell.programs(cpus), 1))


def program(name, kind, threads, work):
    """A program in a workload file."""
    return runner.program([*KINDS[kind][0], written_amount(kind, work)], name=name, cwd=runner.WORKLOADS, threads=threads, progress=True)


def judged(cell):
    """Adds what follows for each variant: which part of the first one's excess unfairness is gone."""
    variants = cell["variants"]
    turnaround = ratios({name: variant["samples"]["mean_turnaround_seconds"] for name, variant in variants.items()}, FIRST)
    for variant in variants.values():
        typical = medians(variant["slowdowns"]).values()
        variant["typical_unfairness"] = max(typical) / min(typical)
    before = variants[FIRST]["typical_unfairness"]
    for name, variant in variants.items():
        variant["excess_gone"] = (before - variant["typical_unfairness"]) / (before - 1) if before > WORTH else None
        variant["turnaround"] = turnaround[name]
    ours = variants[OURS]
    if max(cell["alone_seconds"].values()) > EQUAL * min(cell["alone_seconds"].values()):
        verdict = "not equally long alone"
    elif before <= WORTH:
        verdict = "nothing to gain"
    elif any(variant["failed"] for variant in variants.values()):
        verdict = "programs failed"
    else:
        verdict = "met" if ours["excess_gone"] >= GONE and ours["against"]["total_ratio"]["value"] <= COST else "not met"
    return cell | {"verdict": verdict}


def sentence(cell):
    """The verdict, for people."""
    linux, ours = cell["variants"][FIRST], cell["variants"][OURS]
    gone = "" if ours["excess_gone"] is None else f", {ours['excess_gone']:.0%} of the excess gone"
    return (f"{cell['cell']}: unfairness {linux['typical_unfairness']:.3f} under plain Linux, "
            f"{ours['typical_unfairness']:.3f} under fair progress{gone}, "
            f"{ours['against']['total_ratio']['value'] - 1:+.1%} time: {cell['verdict']}")


def sentences(report):
    """All verdicts."""
    yield from map(sentence, report["cells"])
    for cell in report["overhead"]:
        yield from fairness_overhead.sentences(cell)


def markdown(report):
    """The report as tables."""
    yield machine_line(report, f"programs of {report['seconds']:g} s alone", report["started_at"]) + "."
    for cell in report["cells"]:
        yield f"\n### {cell['cell']}: {cell['verdict']}\n"
        yield f"Alone, in seconds: {listed(cell['alone_seconds'])}.\n"
        yield from table(["variant", "slowdowns", "unfairness", "of a round", "excess gone", f"total / {FIRST}", f"turnaround / {FIRST}",
                          "cosched, % of a CPU", "failed"], (row(name, variant) for name, variant in cell["variants"].items()))
    for cell in report["overhead"]:
        yield from fairness_overhead.markdown(cell)


def row(name, variant):
    gone = "–" if name == FIRST or variant["excess_gone"] is None else f"{variant['excess_gone']:.0%}"
    return [name, listed(medians(variant["slowdowns"])), f"{variant['typical_unfairness']:.3f}", interval(variant["unfairness"]), gone,
            with_verdict(variant["against"]), interval(variant["turnaround"]), interval(variant["own_cpu_percent"], 2), variant["failed"]]


def listed(by_program):
    return ", ".join(f"{program} {value:.2f}" for program, value in by_program.items())


if __name__ == "__main__":
    run(main, "what was measured before is in fairness.json")
