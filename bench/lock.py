#!/usr/bin/env python3
"""lock.py: what faithful scheduling gains where threads wait for locks. `make bench-lock` runs it.

In each cell (see cells.py) `cosched compare` runs all variants in turn (A B C, B C A): plain Linux, `faithful`,
`faithful` that knows nothing of the program yet, `faithful` without its guard, and each actuator held fixed. Then
faithful is held against the actuator that was best there.

It writes lock.json (for scripts; docs/research/lock-benchmark.md describes it), lock.md and lock.svg into --out. Only
the standard library is needed. A variant or cell that cannot be had here is left out, and said so.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time

import cells
import command_line
import guarded
import mariadb
import picture
import verdicts
from gang import elapsed, plain_environment, possible, say

SCHEMA = "cosched-bench-lock/4"
ACTUATORS = ["none", "slice", "batch", "batch-slice", "round-robin"]
# A program is measured for two intervals before anything is done to it. What is held fixed is to be in force soon.
FIXED_EVERY = "100ms"
# What each variant is asked for by; the first one is what the others are held against.
VARIANTS = {"linux": ["--policies", "linux"], "faithful": ["--policies", "faithful"],
        "relearn": ["--variant", "relearn=faithful --relearn"],
        "unguarded": ["--variant", "unguarded=faithful --no-guard"],
        **{name: ["--variant", f"{name}=faithful --no-guard --actuators {name} --interval {FIXED_EVERY}"] for name in ACTUATORS}}
ALWAYS = ["linux", "faithful"]
# So many runs try out what helps, one actuator each, before faithful is measured as users have it from then on.
LEARNING = 2
# A first run takes at least this share of the time that is wanted, before its amount of work is scaled.
ENOUGH = 0.2


def main():
    options = arguments()
    began = time.time()
    plain_environment()
    # What is learnt here is of no use to other runs.
    os.environ["XDG_DATA_HOME"] = str(options.folder / "data")
    asked = command_line.chosen_variants(options.variants, ALWAYS, VARIANTS)
    variants, left_out = possible(options.cosched, asked)
    if variants[:2] != ALWAYS or not set(variants) & set(ACTUATORS):
        sys.exit("bench: without linux, faithful and a fixed actuator there is nothing to compare")
    report = {
        "schema": SCHEMA,
        "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
        "rounds": options.runs,
        "seconds": options.seconds,
        "interval": options.interval,
        "variants": {variant: VARIANTS[variant][1].partition("=")[2] or variant for variant in variants},
        "left_out": left_out,
        "cells": [],
    }
    report = command_line.resumed(report, options.earlier)
    chosen = command_line.not_yet(chosen_cells(options, left_out), report)
    for number, cell in enumerate(chosen):
        say(f"cell {number + 1} of {len(chosen)}: {cell.name}; {left(options, report, number, len(chosen), began)}")
        measured(options, cell, report)
        save(options.out, report)
    say(f"done in {elapsed(began)}: {options.out}/lock.json, lock.md and lock.svg")
    print("\n".join(verdicts.sentences(report)))
    failed = [cell["cell"] for cell in report["cells"] if cell["failed"]]
    if failed:
        sys.exit(f"bench: programs failed in {', '.join(failed)}: their figures count nowhere")


def arguments():
    parser = command_line.common(__doc__.splitlines()[0], 4.0, "of each program, under plain Linux", resumable=True)
    parser.add_argument("--interval", help="how often faithful measures; the default is its own")
    parser.add_argument("--variants", default="", help="only these, separated by commas, beside linux and faithful")
    return command_line.parsed(parser, "lock", ["json", "md", "svg"])


def chosen_cells(options, left_out):
    """The cells that were asked for and can be had."""
    data = options.folder / "mariadb"
    found = command_line.chosen(cells.all_cells(len(os.sched_getaffinity(0)), data), options)
    for kind, programs in [("sysbench", ["sysbench"]), ("mariadb", mariadb.NEEDED)]:
        missing = [program for program in programs if not mariadb.found(program)]
        if missing and any(cell.kind.startswith(kind) for cell in found):
            left_out[kind] = f"there is no {', '.join(missing)} here"
            say(f"{kind} is left out: {left_out[kind]}")
            found = [cell for cell in found if not cell.kind.startswith(kind)]
    if any(cell.kind == "mariadb" for cell in found):
        say("making the data of a MariaDB server")
        mariadb.prepare(data)
    return found


def left(options, report, done, all_of_them, began):
    """How long it still takes: as long for each cell as for the others, or as long as was asked for."""
    per_cell = (time.time() - began) / done if done else options.seconds * (len(report["variants"]) * options.runs + 2 + LEARNING)
    return f"{elapsed(began)} so far, about {per_cell * (all_of_them - done) / 60:.0f} min left"


def measured(options, cell, report):
    """Adds what all variants make of one cell. One that fails is no reason to throw the others away."""
    folder = options.folder / cell.name.replace("/", "-").replace(" ", "-")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    file = folder / "workload.toml"
    amount = fitted(options, cell, file)
    document = compared(options, cell, amount, file, report["variants"]) if amount else None
    found = {"cell": cell.name, "kind": cell.kind, "threads": cell.threads, "amount": amount, "failed": True, "variants": {}}
    if document:
        report["machine"] = document["machine"]
        found["failed"] = any(variant["failed"] for variant in document["variants"])
        found["variants"] = {variant["variant"]: figures(cell, folder / "runs", variant) for variant in document["variants"]}
    report["cells"].append(found)
    verdicts.judge(report, ACTUATORS)


def fitted(options, cell, file):
    """How much work takes the time that is wanted, under plain Linux: more and more until it takes some time at all."""
    times = 1.0
    for attempt in range(8):
        file.write_text(cell.workload(cell.amount(times)))
        folder = file.parent / f"first-{attempt}"
        done = options.cosched("run", file, "--policy", "linux", "--out", folder, "--json",
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if options.cosched.interrupted:
            raise KeyboardInterrupt
        if done.returncode != 0:
            say(f"a first run of {cell.name} failed, see {folder}:\n{done.stderr}")
            return None
        took, _ = cell.times(folder)
        if took >= ENOUGH * options.seconds:
            break
        times *= min(10.0, 0.5 * options.seconds / max(took, 1e-3))
    return cell.amount(times * options.seconds / took)


def compared(options, cell, amount, file, variants):
    """What `cosched compare` tells of a cell with so much work."""
    file.write_text(cell.workload(amount))
    for number in range(LEARNING):
        options.cosched("run", file, "--policy", "faithful", "--out", file.parent / f"learning-{number}", "--json",
                        stdout=subprocess.DEVNULL)
    words = [word for variant in variants if variant not in ALWAYS for word in VARIANTS[variant]]
    words += ["--interval", options.interval] if options.interval else []
    done = options.cosched("compare", file, "--policies", "linux,faithful", *words, "--runs", options.runs,
                           "--out", file.parent / "runs", "--json", stdout=subprocess.PIPE)
    if options.cosched.interrupted:
        raise KeyboardInterrupt
    return json.loads(done.stdout) if done.stdout else None


def figures(cell, runs, variant):
    """A variant's figures: those of compare's document, and the times of its runs."""
    found = {"failed": variant["failed"], "deviations": variant["deviations"],
             "own_cpu_percent": variant["own_cpu_percent"]["value"]}
    if not variant["failed"]:
        rounds = sorted(runs.glob("round-[0-9]*")) or [runs]
        seconds, starts = zip(*[cell.times(one / variant["variant"]) for one in rounds])
        found |= {"seconds": seconds, "start_seconds": statistics.median(starts)}
        if variant["variant"] in ("faithful", "relearn"):
            runs = [json.loads((one / variant["variant"] / "run.json").read_text()) for one in rounds]
            found["guard"] = [guarded.summary(run) for run in runs]
    return found


def save(out, report):
    (out / "lock.json").write_text(json.dumps(report, indent=1) + "\n")
    (out / "lock.md").write_text("\n".join(verdicts.markdown(report)) + "\n")
    (out / "lock.svg").write_text(picture.svg(report))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("bench: interrupted; what was measured before is in lock.json")
