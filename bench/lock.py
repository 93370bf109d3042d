#!/usr/bin/env python3
"""lock.py: what faithful scheduling gains where threads wait for locks. `make bench-lock` runs it.

docs/research/lock-benchmark.md has its cells (cells.py), variants, bars and files.
"""

import json
import os
import statistics
import subprocess
import sys

import cells
import lock_verdicts
import mariadb
import picture
from lib import rounds
from lib.options import read
from lib.report import Report
from lib.runner import cell_folder, cpus, fitted, leave_out, plain_environment, possible, round_folders, run, say
from lock_verdicts import ACTUATORS

SCHEMA = "cosched-bench-lock/4"
# A program is measured for two intervals before anything is done to it. What is held fixed is to be in force soon.
FIXED_EVERY = "100ms"
# The policy and options of each variant; the first one is what the others are held against.
VARIANTS = {"linux": "linux", "faithful": "faithful", "relearn": "faithful --relearn", "unguarded": "faithful --no-guard",
            **{name: f"faithful --no-guard --actuators {name} --interval {FIXED_EVERY}" for name in ACTUATORS}}
ALWAYS = ["linux", "faithful"]
# So many runs try out what helps, one actuator each, before faithful is measured as users have it from then on.
LEARNING = 2


def main():
    options = read(__doc__, "lock", seconds=4.0, of="of each program, under plain Linux", cells=True, resumable=True,
                   interval={"help": "how often faithful measures; the default is its own"},
                   variants={"default": "", "help": "only these, separated by commas, beside linux and faithful"})
    plain_environment()
    # What is learnt here is of no use to other runs.
    os.environ["XDG_DATA_HOME"] = str(options.folder / "data")
    variants, left_out = possible(options.cosched, rounds.chosen_variants(options.variants, ALWAYS, VARIANTS))
    if list(variants)[:2] != ALWAYS or not set(variants) & set(ACTUATORS):
        sys.exit("bench: without linux, faithful and a fixed actuator there is nothing to compare")
    report = Report(options, SCHEMA, lock_verdicts.sentences, lock_verdicts.markdown, lock_verdicts.judge, picture=picture.svg,
                    seconds=options.seconds, interval=options.interval, variants=variants, left_out=left_out, cells=[])
    rounds.resume(report, options.earlier)
    report.measure(rounds.not_yet(chosen_cells(options, left_out), report), lambda cell: measured(options, cell, report))
    report.done(failed=(cell["cell"] for cell in report["cells"] if cell["failed"]))


def chosen_cells(options, left_out):
    """The cells that were asked for and can be had."""
    data = options.folder / "mariadb"
    found = rounds.chosen(cells.all_cells(cpus(), data), options)
    for kind, programs in [("sysbench", ["sysbench"]), ("mariadb", mariadb.NEEDED)]:
        missing = [program for program in programs if not mariadb.found(program)]
        if missing and any(cell.kind.startswith(kind) for cell in found):
            leave_out(left_out, kind, f"there is no {', '.join(missing)} here")
            found = [cell for cell in found if not cell.kind.startswith(kind)]
    if any(cell.kind == "mariadb" for cell in found):
        say("making the data of a MariaDB server")
        mariadb.prepare(data)
    return found


def measured(options, cell, report):
    """What all variants make of one cell. One that fails is no reason to throw the others away."""
    folder = cell_folder(options.folder, cell.name)
    file = folder / "workload.toml"
    times = fitted(lambda times: first_run(options, cell, times, file), 1.0, options.seconds)
    amount = cell.amount(times) if times else None
    document = compared(options, cell, amount, file, report) if amount else None
    found = {"cell": cell.name, "kind": cell.kind, "threads": cell.threads, "amount": amount, "failed": True, "variants": {}}
    if document:
        found["failed"] = any(variant["failed"] for variant in document["variants"])
        found["variants"] = {variant["variant"]: figures(cell, folder / "runs", variant) for variant in document["variants"]}
    return found


def first_run(options, cell, times, file):
    """How long so many times the first amount of work takes under plain Linux."""
    file.write_text(cell.workload(cell.amount(times)))
    folder = file.parent / f"first-{times:.4g}"
    if problem := options.cosched.fails(file, "linux", folder):
        say(f"a first run of {cell.name} failed, see {folder}:\n{problem}")
        return None
    return cell.times(folder)[0]


def compared(options, cell, amount, file, report):
    """What `cosched compare` tells of a cell with so much work."""
    file.write_text(cell.workload(amount))
    for number in range(LEARNING):
        options.cosched("run", file, "--policy", "faithful", "--out", file.parent / f"learning-{number}", "--json",
                        stdout=subprocess.DEVNULL)
    words = ["--interval", options.interval] if options.interval else []
    return options.cosched.compare(report, file, report["variants"], *words, "--out", file.parent / "runs", may_fail=True)


def figures(cell, runs, variant):
    """A variant's figures: those of compare's document, and the times of its runs."""
    found = {"failed": variant["failed"], "deviations": variant["deviations"],
             "own_cpu_percent": variant["own_cpu_percent"]["value"]}
    if not variant["failed"]:
        folders = round_folders(runs, variant["variant"])
        seconds, starts = zip(*map(cell.times, folders))
        found |= {"seconds": seconds, "start_seconds": statistics.median(starts)}
        if variant["variant"] in ("faithful", "relearn"):
            found["guard"] = [lock_verdicts.guard(json.loads((folder / "run.json").read_text())) for folder in folders]
    return found


if __name__ == "__main__":
    run(main, "what was measured before is in lock.json")
