#!/usr/bin/env python3
"""fairness.py: how equal slowdowns are under fair progress, and what that costs. `make bench-fairness` runs it.

Programs that take equally long alone run together: some stream through memory, some compute, some solve (a barrier
every hundred microseconds), some are numpy's; on one CPU each, or multi-threaded ones with single-threaded ones. They report
their progress: by ticks (compute), parallel regions (triad), barriers (cg) and calls of OpenBLAS (numpy), so
no hardware counters are needed. `cosched compare` runs all policies in turn, with the solo times measured in every
round.

A program's slowdown is the median of its slowdowns in all rounds; unfairness is the largest of the programs' over the
smallest. (In a single round, noise alone makes the largest differ from the smallest; each round's own stands beside
it.)

The bar: of plain Linux's excess unfairness (what is above 1) at least half is gone, for at most 3 % more time. Where
plain Linux is hardly unfair, there is nothing to be gained, and no verdict.

Beside that, what it costs where there is nothing to equalise: fairness_overhead.py.

It writes fairness.json (for scripts) and fairness.md into --out. Only the standard library is needed.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from typing import NamedTuple

import command_line
import fairness_overhead
from gang import WORKLOADS, elapsed, interval, plain_environment, say, with_verdict
from ratio import ratio

SCHEMA = "cosched-bench-fairness/2"
CELLS_PART, OVERHEAD = PARTS = ["cells", "overhead"]
FIRST, OURS = "linux", "fair-progress"
VARIANTS = [FIRST, "linux-groups", "gang", "minwait", OURS]
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
    options = arguments()
    began = time.time()
    plain_environment()
    # The solo times that are kept here are the bench's own.
    os.environ["XDG_DATA_HOME"] = str(options.folder / "data")
    cpus = len(os.sched_getaffinity(0))
    report = {
        "schema": SCHEMA,
        "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
        "rounds": options.runs,
        "seconds": options.seconds,
        "bar": {"excess_gone": GONE, "time": COST, "least_unfairness": WORTH},
        "cells": [],
        "overhead": [],
    }
    chosen = command_line.chosen(CELLS, options) if CELLS_PART in options.parts else []
    equals = fairness_overhead.CELLS if OVERHEAD in options.parts else []
    needed = {program for cell in [*chosen, *equals] for program in cell.programs(cpus)}
    amounts = {program: amount(options, *program, options.seconds) for program in sorted(needed)}
    for number, cell in enumerate(chosen, 1):
        say(f"cell {number} of {len(chosen)}: {cell.name}; {elapsed(began)} so far")
        report["cells"].append(measured(options, cell, amounts, cpus, report))
        save(options.out, report)
    for cell in equals:
        say(f"overhead: {cell.name}; {elapsed(began)} so far")
        file = written(options, cell, amounts, cpus)
        report["overhead"].append(fairness_overhead.measured(options, cell, file, cpus, report))
        save(options.out, report)
    say(f"done in {elapsed(began)}: {options.out}/fairness.json and fairness.md")
    print("\n".join(sentences(report)))


def arguments():
    parser = command_line.common(__doc__.splitlines()[0], 4.0, "of each program alone")
    parser.add_argument("--parts", default=",".join(PARTS), help="only these, separated by commas")
    options = command_line.parsed(parser, "fairness", ["json", "md"])
    options.parts = options.parts.split(",")
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"--parts: {unknown.pop()} is none; there are {', '.join(PARTS)}")
    return options


def amount(options, kind, threads, seconds):
    """How much work takes so long alone, as cosched measures solo times: from the difference of two small amounts, and then from
    runs of that length."""
    file = options.folder / "alone.toml"

    def took(work):
        file.write_text(table(f"{kind}-alone", kind, threads, work))
        done = options.cosched("profile", file, "--runs", 3, "--json", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if options.cosched.interrupted:
            raise KeyboardInterrupt
        if done.returncode:
            sys.exit(f"bench: {kind} cannot be run alone: cosched profile {file}")
        return json.loads(done.stdout)["programs"][0]["threads"][0]["solo_seconds"]

    base = KINDS[kind][1]
    least, more = took(base), took(4 * base)
    each = (more - least) / (3 * base)
    work = max(base, base + (seconds - least) / each)
    # Some tenths of a second tell too little of what takes seconds.
    for _ in range(2):
        work = max(base, work * seconds / took(work))
    return work


def written_amount(kind, work):
    """An amount as the program takes it: numpy's are whole repetitions."""
    return str(round(work)) if kind == "numpy" else f"{work:.4g}"


def measured(options, cell, amounts, cpus, report):
    """What all variants make of one mix."""
    file = written(options, cell, amounts, cpus)
    out = file.with_suffix("")
    done = options.cosched("compare", file, "--policies", ",".join(VARIANTS), "--runs", options.runs, "--solo", "--out", out,
                           "--json", stdout=subprocess.PIPE)
    if options.cosched.interrupted:
        raise KeyboardInterrupt
    if not done.stdout:
        sys.exit(f"bench: cosched compare failed on {file}")
    document = json.loads(done.stdout)
    report["machine"] = document["machine"]
    variants = {variant["variant"]: {key: variant[key] for key in ["unfairness", "total_seconds", "mean_turnaround_seconds",
                                                   "own_cpu_percent", "failed", "deviations", "against", "samples"]}
            for variant in document["variants"]}
    for name, variant in variants.items():
        variant["slowdowns"] = of_programs(out, name, document["rounds"],
                                       lambda program: program["turnaround_seconds"] / program["solo_seconds"])
    alone = of_programs(out, FIRST, document["rounds"], lambda program: program["solo_seconds"])
    alone = {program: statistics.median(rounds) for program, rounds in alone.items()}
    return judged({"cell": cell.name, "alone_seconds": alone, "variants": variants})


def of_programs(out, variant, rounds, figure):
    """A figure of each program, in every round."""
    found = {}
    for number in range(1, rounds + 1):
        run = json.loads((out / f"round-{number:03}" / variant / "run.json").read_text())
        for program in run["programs"]:
            found.setdefault(program["name"], []).append(figure(program))
    return found


def written(options, cell, amounts, cpus):
    """The workload file of a mix, beside which its runs go."""
    file = options.folder / f"{cell.name.replace(' ', '-')}.toml"
    file.write_text(workload(cell, amounts, cpus))
    return file


def workload(cell, amounts, cpus):
    """As a workload file."""
    programs = enumerate(cell.programs(cpus), 1)
    return "\n".join(table(f"{kind}-{number}", kind, threads, amounts[kind, threads])
                     for number, (kind, threads) in programs)


def table(name, kind, threads, work):
    """A program in a workload file."""
    words = [*KINDS[kind][0], written_amount(kind, work)]
    return (f'[[program]]\nname = "{name}"\ncommand = {json.dumps(words)}\ncwd = {json.dumps(str(WORKLOADS))}\n'
            f'threads = {threads}\nprogress = true\n')


def judged(cell):
    """Adds what follows for each variant: which part of the first one's excess unfairness is gone."""
    first = cell["variants"][FIRST]
    for variant in cell["variants"].values():
        typical = [statistics.median(rounds) for rounds in variant["slowdowns"].values()]
        variant["typical_unfairness"] = max(typical) / min(typical)
    before = first["typical_unfairness"]
    for variant in cell["variants"].values():
        variant["excess_gone"] = (before - variant["typical_unfairness"]) / (before - 1) if before > WORTH else None
        variant["turnaround"] = ratio(variant["samples"]["mean_turnaround_seconds"], first["samples"]["mean_turnaround_seconds"])
    ours = cell["variants"][OURS]
    cost = ours["against"]["total_ratio"]["value"]
    if max(cell["alone_seconds"].values()) > EQUAL * min(cell["alone_seconds"].values()):
        cell["verdict"] = "not equally long alone"
    elif before <= WORTH:
        cell["verdict"] = "nothing to gain"
    elif any(variant["failed"] for variant in cell["variants"].values()):
        cell["verdict"] = "programs failed"
    else:
        cell["verdict"] = "met" if ours["excess_gone"] >= GONE and cost <= COST else "not met"
    return cell


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


def save(out, report):
    (out / "fairness.json").write_text(json.dumps(report, indent=1) + "\n")
    (out / "fairness.md").write_text("\n".join(markdown(report)) + "\n")


def markdown(report):
    """The report as tables."""
    machine = report.get("machine", {})
    yield (f"{machine.get('model')}, {machine.get('cpus')} CPUs, Linux {machine.get('kernel')}; {report['rounds']} rounds, "
           f"programs of {report['seconds']:g} s alone, {report['started_at']}.")
    for cell in report["cells"]:
        yield f"\n### {cell['cell']}: {cell['verdict']}\n"
        alone = ", ".join(f"{program} {seconds:.2f}" for program, seconds in cell["alone_seconds"].items())
        yield f"Alone, in seconds: {alone}.\n"
        yield (f"| variant | slowdowns | unfairness | of a round | excess gone | total / {FIRST} | turnaround / {FIRST} "
               "| cosched, % of a CPU | failed |")
        yield "|---|---|---|---|---|---|---|---|---|"
        for name, variant in cell["variants"].items():
            gone = "–" if name == FIRST or variant["excess_gone"] is None else f"{variant['excess_gone']:.0%}"
            beside = with_verdict(variant["against"]) if variant["against"] else "1"
            slow = ", ".join(f"{program} {statistics.median(rounds):.2f}" for program, rounds in variant["slowdowns"].items())
            yield (f"| {name} | {slow} | {variant['typical_unfairness']:.3f} | {interval(variant['unfairness'])} | {gone} | {beside} "
                   f"| {interval(variant['turnaround'])} | {interval(variant['own_cpu_percent'], 2)} | {variant['failed']} |")
    for cell in report["overhead"]:
        yield from fairness_overhead.markdown(cell)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("bench: interrupted; what was measured before is in fairness.json")
