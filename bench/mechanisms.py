#!/usr/bin/env python3
"""mechanisms.py: mechanisms of the five papers beside their rivals. `make bench-mechanisms` runs it.

mechanisms.toml has its cells: a workload, and the variants in which `cosched compare` runs it, interleaved.

It writes mechanisms.json (for scripts) and mechanisms.md into --out.
"""

import dataclasses
import os
import tomllib

from lib import rounds, runner
from lib.options import read
from lib.report import Report, figures, interval, machine_line, table
from lib.runner import plain_environment, run

SCHEMA = "cosched-bench-mechanisms/1"


@dataclasses.dataclass
class Cell:
    """`variants`: what `cosched compare` runs, by name; the first one is what others are held against. `program`: tables of a
    workload file; programs are those of workloads/."""
    name: str
    variants: dict
    program: list

    def workload(self):
        return "\n".join(runner.program(**{"cwd": runner.WORKLOADS, **keys}) for keys in self.program)


def all_cells():
    found = tomllib.loads((runner.BENCH / "mechanisms.toml").read_text())
    return [Cell(name, **keys) for name, keys in found.items()]


def main():
    options = read(__doc__, "mechanisms", cells=True, resumable=True)
    plain_environment()
    # Learned settings of the user must not help.
    os.environ["XDG_DATA_HOME"] = str(options.folder / "data")
    report = Report(options, SCHEMA, sentences, markdown, root=os.geteuid() == 0, left_out={}, cells=[])
    rounds.resume(report, options.earlier)
    todo = rounds.not_yet(rounds.chosen(all_cells(), options), report, named="cell")
    report.measure(todo, lambda cell: measured(options, cell, report))
    report.done(cell["cell"] for cell in report["cells"] if cell["failed"])


def measured(options, cell, report):
    """What each variant makes of a cell."""
    file = options.folder / f"{''.join(letter if letter.isalnum() else '-' for letter in cell.name)}.toml"
    file.write_text(cell.workload())
    document = options.cosched.compare(report, file, cell.variants)
    found = figures(document)
    return {"cell": cell.name, "variants": found, "words": cell.variants, "failed": sum(variant["failed"] for variant in found.values())}


def sentences(report):
    """What is better or worse than the first variant of its cell."""
    for cell in report["cells"]:
        verdicts = {name: variant["against"]["verdict"] for name, variant in cell["variants"].items() if variant["against"]}
        for verdict in ("better", "worse"):
            if names := [name for name, found in verdicts.items() if found == verdict]:
                yield f"{cell['cell']}: {verdict} than {next(iter(cell['variants']))}: {', '.join(names)}."


def markdown(report):
    """The report as one table for each cell."""
    yield machine_line(report) + ".\n"
    yield from (f"- {sentence}" for sentence in sentences(report))
    for cell in report["cells"]:
        yield f"\n## {cell['cell']}\n"
        yield from table(["variant", "seconds", "over the first", "verdict", "mean turnaround"],
                         (row(cell, name, variant) for name, variant in cell["variants"].items()))


def row(cell, name, variant):
    words = cell["words"][name]
    told = name if words == name else f"{name} (`{words}`)"
    against = variant["against"]
    verdict = [interval(against["total_ratio"], 2), against["verdict"].replace("-", " ")] if against else ["–", "–"]
    return [told, interval(variant["total_seconds"], 2), *verdict, interval(variant["mean_turnaround_seconds"], 2)]


if __name__ == "__main__":
    run(main, "what was measured before is kept, and --resume goes on")
