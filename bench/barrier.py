#!/usr/bin/env python3
"""barrier.py: what barriers gain that know which threads run. `make bench-barrier` runs it.

In each cell (see storms.py) all variants of waiting are run in turn (A B C, B C A): the runtime's own, those that
people can set (passive, LLVM's runtime), the fixed ones of cosched's barrier, and `donate`. Then `donate` is held
against the variant that was best there. With a co-runner, both programs are run alone, too, in the same
rounds: for unfairness.

It writes barrier.json (for scripts; docs/research/barrier-benchmark.md describes it) and barrier.md into --out. Only
the standard library is needed. A variant or cell that cannot be had here is left out, and said so.
"""

import json
import os
import shutil
import subprocess
import sys
import time

import barrier_verdicts
import command_line
import storms
from barrier_verdicts import SOLO, SOLO_CO_RUNNER
from gang import elapsed, plain_environment, say
from monitor import in_turn

SCHEMA = "cosched-bench-barrier/3"


def main():
    options = arguments()
    began = time.time()
    plain_environment()
    variants, left_out = possible(options)
    report = {
        "schema": SCHEMA,
        "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
        "rounds": options.runs,
        "seconds": options.seconds,
        "cpus": len(os.sched_getaffinity(0)),
        "states": states(options),
        "variants": list(variants),
        "left_out": left_out,
        "cells": [],
    }
    report = command_line.resumed(report, options.earlier)
    chosen = command_line.not_yet(chosen_cells(options, left_out), report)
    for number, cell in enumerate(chosen):
        so_far = (time.time() - began) / 60
        rest = f"about {so_far / number * (len(chosen) - number):.0f} min left" if number else "the first"
        say(f"cell {number + 1} of {len(chosen)}: {cell.name}; {elapsed(began)} so far, {rest}")
        report["cells"].append(measured(options, cell, variants))
        barrier_verdicts.judge(report)
        save(options.out, report)
    say(f"done in {elapsed(began)}: {options.out}/barrier.json and barrier.md")
    print("\n".join(barrier_verdicts.sentences(report)))
    failed = [cell["cell"] for cell in report["cells"] if cell["failed"]]
    if failed:
        sys.exit(f"bench: programs failed in {', '.join(failed)}: their figures count nowhere")


def arguments():
    parser = command_line.common(__doc__.splitlines()[0], 1.5, "of each run", resumable=True)
    parser.add_argument("--variants", default="", help="only these, separated by commas, beside default and donate; ideas: "
                        + ", ".join(storms.IDEAS))
    return command_line.parsed(parser, "barrier", ["json", "md"])


def possible(options):
    """The keys that each variant adds, of those that can be had here, and why the others cannot."""
    variants = command_line.chosen_variants(options.variants, ["default", "donate"], storms.VARIANTS, storms.IDEAS)
    left_out = {}
    if "llvm" not in variants:
        pass
    elif runtime := storms.llvm_runtime():
        variants["llvm"] = {"env": {"LD_PRELOAD": runtime}}
    else:
        left_out["llvm"] = "there is no libomp.so.5 here (Debian, Ubuntu: apt-get install libomp5-14, or a newer number)"
        say(f"llvm is left out: {left_out['llvm']}")
        del variants["llvm"]
    tried = options.cosched("run", "--policy", "linux", "--barrier", "donate", "--", "true", stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE)
    if tried.returncode != 0:
        sys.exit(f"bench: without donate there is nothing to compare: {tried.stderr.strip()}")
    return variants, left_out


def states(options):
    """Whether waiting threads can know which others run, as cosched tells it."""
    done = options.cosched("doctor", "--json", stdout=subprocess.PIPE)
    found = json.loads(done.stdout)["barriers"]
    if not found["states"]:
        say(f"donate knows nothing here: {found['detail']}")
    return found["states"]


def chosen_cells(options, left_out):
    """The cells that were asked for and can be had."""
    found = command_line.chosen(storms.all_cells(options.seconds), options)
    if any(cell.groups for cell in found):
        tried = options.cosched("run", "--policy", "linux-groups", "--", "true", stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE)
        if tried.returncode != 0:
            left_out["groups"] = tried.stderr.strip().splitlines()[0]
            say(f"groups are left out: {left_out['groups']}")
            found = [cell for cell in found if not cell.groups]
    return found


class Failed(Exception):
    """A program of a run ended badly."""


def measured(options, cell, variants):
    """What all variants make of one cell. One that fails is no reason to throw the others away."""
    folder = options.folder / "".join(letter if letter.isalnum() else "-" for letter in cell.name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    names = [program.name for program in cell.programs]
    runs = {variant: run(options, cell, folder, variant, variants[variant], names) for variant in cell.variants(variants)}
    if cell.co_runner:
        runs |= {solo: run(options, cell, folder, solo, {}, [name])
                 for solo, name in [(SOLO, storms.MAIN), (SOLO_CO_RUNNER, storms.CO_RUNNER)]}
    found = {"cell": cell.name, "runtime": cell.runtime, "threads": cell.threads, "co_runner": cell.co_runner,
             "co_runner_threads": cell.co_runner_threads, "groups": cell.groups,
             "filled": cell.fills(len(os.sched_getaffinity(0))), "failed": False, "runs": {}}
    try:
        results = in_turn(options.runs, runs)
    except Failed as why:
        say(f"{cell.name} failed: {why}")
        return {**found, "failed": True}
    found["runs"] = {variant: {key: [one[key] for one in rounds] for key in rounds[0]} for variant, rounds in results.items()}
    return found


def run(options, cell, folder, variant, added, names):
    """One run of the programs with these names in a variant, to be made as often as needed."""
    file = folder / f"{variant}.toml"
    file.write_text(cell.in_variant(added, names))
    rounds = iter(range(options.runs))

    def one():
        out = folder / f"{variant}-{next(rounds)}"
        done = options.cosched("run", file, "--policy", cell.policy, "--out", out, "--json", stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
        if options.cosched.interrupted:
            raise KeyboardInterrupt
        if done.returncode != 0:
            raise Failed(f"{variant}, see {out}: {done.stderr.strip()}")
        return storms.read(out, names)

    return one


def save(out, report):
    (out / "barrier.json").write_text(json.dumps(report, indent=1) + "\n")
    (out / "barrier.md").write_text("\n".join(barrier_verdicts.markdown(report)) + "\n")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("bench: interrupted; what was measured before is in barrier.json")
