#!/usr/bin/env python3
"""foreign.py: what a process outside the run gets, and how long programs take beside it. `make bench-foreign` runs it.

One process computes all the time, outside cosched's groups. Beside it, the programs of a mix are run in several variants, in
interleaved rounds. The share of the foreign process is its CPU time over the time of the run. It is fair if it is what the
process gets beside a single program of the mix, which Linux runs without cosched's groups.
"""

import os
import pathlib
import statistics
import subprocess
import tempfile

from kernel_mixes import all_mixes
from lib.options import read
from lib.report import Report, table
from lib.rounds import by_figure, in_turn
from lib.runner import beside, kernel, run

SCHEMA = "cosched-bench-foreign/2"
MIXES = ["compute x4", "numpy x4", "barriers-100us x3", "sleeper x4"]
# Each with how many programs of the mix it runs.
VARIANTS = {"one program": ("linux", 1), "one after another": ("fcfs", None), "turns": ("turns", None)}
TICK = os.sysconf("SC_CLK_TCK")


def main():
    options = read(__doc__, "foreign", runs=3, seconds=1.0, of="of work of each program, alone")
    report = Report(options, SCHEMA, sentences, mixes={})
    for mix in report.each([mix for mix in all_mixes() if mix.name in MIXES], "mix"):
        variants = {name: lambda words=words: beside_foreign(options, mix, *words) for name, words in VARIANTS.items()}
        report["mixes"][mix.name] = {
            variant: {figure: statistics.median(values) for figure, values in found.items()}
            for variant, found in by_figure(in_turn(options.runs, variants)).items()}
        report.save()
    report.done()


def sentences(report):
    rows = ([mix, *(f"{variant['seconds']:.1f} s ({variant['share']:.2f})" for variant in found.values()),
             f"{found['turns']['share'] / found['one program']['share']:.2f}"] for mix, found in report["mixes"].items())
    return table(["mix", *VARIANTS, "share under turns over the one beside one program"], rows)


def beside_foreign(options, mix, policy, programs):
    """The seconds of a run, and the foreign process's part of a CPU."""
    tables = mix.workload(options.seconds, os.cpu_count()).split("[[program]]")[1:]
    with tempfile.TemporaryDirectory() as folder:
        jobs = pathlib.Path(folder, "jobs.toml")
        jobs.write_text("".join(f"[[program]]{table}" for table in tables[:programs]))
        one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
        with beside(kernel("compute", "--work", 100_000), env=one_thread) as foreign:
            before = used(foreign.pid)
            result = options.cosched.json("run", jobs, "--policy", policy, strict=True,
                                          stderr=subprocess.DEVNULL)
            part = used(foreign.pid) - before
    return {"seconds": result["total_seconds"], "share": part / result["total_seconds"]}


def used(pid):
    """Its CPU time so far, seconds."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


if __name__ == "__main__":
    run(main, "what was measured before is in foreign.json")
