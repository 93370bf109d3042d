#!/usr/bin/env python3
"""barrier.py: what barriers gain that know which threads run. `make bench-barrier` runs it.

docs/research/barrier-benchmark.md has its cells (storms.py), variants, bars and files.
"""

import sys

import barrier_verdicts
import storms
from barrier_verdicts import SOLO, SOLO_CO_RUNNER
from lib import rounds
from lib.options import read
from lib.report import Report
from lib.runner import cell_folder, cpus, leave_out, llvm_runtime, plain_environment, run, say

SCHEMA = "cosched-bench-barrier/3"


def main():
    options = read(__doc__, "barrier", seconds=1.5, cells=True, resumable=True, variants={
        "default": "", "help": "only these, separated by commas, beside default and donate; ideas: " + ", ".join(storms.IDEAS)})
    plain_environment()
    variants, left_out = possible(options)
    report = Report(options, SCHEMA, barrier_verdicts.sentences, barrier_verdicts.markdown, barrier_verdicts.judge, seconds=options.seconds,
                    cpus=cpus(), states=states(options), variants=list(variants), left_out=left_out, cells=[])
    rounds.resume(report, options.earlier)
    report.measure(rounds.not_yet(chosen_cells(options, left_out), report), lambda cell: measured(options, cell, variants))
    report.done(failed=(cell["cell"] for cell in report["cells"] if cell["failed"]))


def possible(options):
    """The keys that each variant adds, of those that can be had here, and why the others cannot."""
    variants = rounds.chosen_variants(options.variants, ["default", "donate"], storms.VARIANTS, storms.IDEAS)
    left_out = {}
    if "llvm" in variants and (runtime := llvm_runtime()):
        variants["llvm"] = {"env": {"LD_PRELOAD": runtime}}
    elif variants.pop("llvm", 0) is None:
        leave_out(left_out, "llvm", "there is no libomp.so.5 here (Debian, Ubuntu: apt-get install libomp5-14, or a newer number)")
    if problem := options.cosched.lacks("run", "--policy", "linux", "--barrier", "donate", "--", "true"):
        sys.exit(f"bench: without donate there is nothing to compare: {problem}")
    return variants, left_out


def states(options):
    """Whether waiting threads can know which others run, as cosched tells it."""
    found = options.cosched.json("doctor")["barriers"]
    if not found["states"]:
        say(f"donate knows nothing here: {found['detail']}")
    return found["states"]


def chosen_cells(options, left_out):
    """The cells that were asked for and can be had."""
    found = rounds.chosen(storms.all_cells(options.seconds), options)
    if any(cell.groups for cell in found):
        if problem := options.cosched.lacks("run", "--policy", "linux-groups", "--", "true"):
            leave_out(left_out, "groups", problem)
            found = [cell for cell in found if not cell.groups]
    return found


class Failed(Exception):
    """A program of a run ended badly."""


def measured(options, cell, variants):
    """What all variants make of one cell. One that fails is no reason to throw the others away."""
    folder = cell_folder(options.folder, cell.name)
    names = [program.name for program in cell.programs]
    runs = {variant: one_run(options, cell, folder, variant, variants[variant], names) for variant in cell.variants(variants)}
    if cell.co_runner:
        runs |= {solo: one_run(options, cell, folder, solo, {}, [name])
                 for solo, name in [(SOLO, storms.MAIN), (SOLO_CO_RUNNER, storms.CO_RUNNER)]}
    found = {"cell": cell.name, "runtime": cell.runtime, "threads": cell.threads, "co_runner": cell.co_runner,
             "co_runner_threads": cell.co_runner_threads, "groups": cell.groups, "filled": cell.fills(cpus()),
             "failed": False, "runs": {}}
    try:
        return found | {"runs": rounds.by_figure(rounds.in_turn(options.runs, runs))}
    except Failed as why:
        say(f"{cell.name} failed: {why}")
        return found | {"failed": True}


def one_run(options, cell, folder, variant, added, names):
    """One run of the programs with these names in a variant, to be made as often as needed."""
    file = folder / f"{variant}.toml"
    file.write_text(cell.in_variant(added, names))
    numbers = iter(range(options.runs))

    def one():
        out = folder / f"{variant}-{next(numbers)}"
        if problem := options.cosched.fails(file, cell.policy, out):
            raise Failed(f"{variant}, see {out}: {problem}")
        return storms.read(out, names)

    return one


if __name__ == "__main__":
    run(main, "what was measured before is in barrier.json")
