#!/usr/bin/env python3
"""gang.py: how gangs do beside the variants that people really use. `make bench` runs it.

docs/research/benchmarks.md has its mixes and variants. It measures the gap between two gangs with
each backend of freezing, and what cosched itself costs, too. It writes gang.json (for scripts) and
gang.md into --out. A variant that this machine or user cannot do is left out, and said so.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from lib import runner
from lib.options import read
from lib.report import Report, figures, interval, machine_line, table, with_verdict
from lib.runner import BENCH, WORKLOADS, cpus, kernel, plain_environment, possible, run, say

SCHEMA = "cosched-bench-gang/3"
# The three workloads of the thesis on scaff, of twelve programs each.
THESIS = ["cpu", "memory", "mixed"]
# Variants in which no program is frozen.
ONE_GO = ["linux", "linux-groups", "passive", "llvm", "one-thread", "fcfs"]
VARIANTS = [*ONE_GO, "gang", "greedy", "cgreedy", "minwait"]
# Twelve programs in gangs of their own, and nothing else to do: what is used beside them is ours.
PROGRAMS_FOR_OWN_CPU, SECONDS_FOR_OWN_CPU = 12, 60
# What is measured of a gap between gangs.
GAP, SHARES = ["gap", "freeze", "thaw"], ["p50", "p99"]


def main():
    options = read(__doc__, "gang", runs=10, seconds=1.0, of="of each of the thesis' programs, alone", quantum={"default": "100ms"},
                   variants={"default": ",".join(VARIANTS), "help": "separated by commas"},
                   mixes={"default": "", "help": "only these, separated by commas"},
                   programs={"type": pathlib.Path, "help": "a folder: every executable file in it is a program of one mix"})
    names = [variant for variant in options.variants.split(",") if variant]
    if not names:
        options.error("--variants names no variant")
    if options.programs and not options.programs.is_dir():
        options.error(f"--programs {options.programs}: not a folder")
    plain_environment()
    mixes = programs_of(options.programs, options.out) if options.programs else our_mixes(options)
    report = Report(options, SCHEMA, markdown=markdown, quantum=options.quantum, mixes={})
    variants, report["left_out"] = possible(options.cosched, dict(zip(names, names)))
    for name, file in report.each(mixes, "mix", lambda mix: mix[0]):
        report["mixes"][name] = compare(options, file, variants, report)
        report.save()
    if not options.programs:
        say(f"gaps between gangs; {report.elapsed()}")
        report["gap_ms"] = gaps(options)
        report.save()
        say("what cosched itself costs")
        report["own_cpu_percent"] = own_cpu(options)
        report.save()
    report.done(failed=(name for name, found in report["mixes"].items() if any(variant["failed"] for variant in found.values())))


def our_mixes(options):
    """The mixes of this folder and the thesis' workloads, made for the CPUs of this machine."""
    sources = {file.stem: file for file in sorted((BENCH / "mixes").glob("*.toml"))}
    sources |= {name: WORKLOADS / f"{name}.toml" for name in THESIS}
    names = options.mixes.split(",") if options.mixes else list(sources)
    unknown = [name for name in names if name not in sources]
    if unknown:
        sys.exit(f"bench: --mixes: there is no {', '.join(unknown)}; choose from {', '.join(sources)}")
    folder = options.out / "mixes"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in names:
        text = scaled(sources[name], options) if name in THESIS else filled_in(sources[name].read_text())
        (folder / f"{name}.toml").write_text(text)
    return [(name, folder / f"{name}.toml") for name in names]


def filled_in(text):
    """A mix with the folder of the kernels and the CPUs of this machine."""
    for word, value in {"@WORKLOADS@": WORKLOADS, "@CPUS@": cpus(), "@HALF@": max(1, cpus() // 2)}.items():
        text = text.replace(word, str(value))
    return text


def scaled(file, options):
    say(f"finding how many threads the programs of {file.name} need here")
    done = subprocess.run([WORKLOADS / "scale.sh", file, f"{options.seconds:g}"], text=True, check=True, stdout=subprocess.PIPE)
    return done.stdout


def programs_of(folder, out):
    """One mix of the executable files in a folder, without those that fail alone."""
    files = sorted({f.resolve() for f in folder.iterdir() if f.is_file() and os.access(f, os.X_OK)})
    tables = []
    for f in files:
        if problem := cannot_be_measured(f):
            say(f"{f.name} is left out: {problem}")
        else:
            tables.append(runner.program([f], name=f.name))
    if not tables:
        sys.exit(f"bench: there is no executable file in {folder} that can be measured")
    file = out / "programs.toml"
    file.write_text("\n".join(tables))
    return [("programs", file)]


def cannot_be_measured(file):
    """Why a program can be no part of a mix; None if it can. It is run once."""
    if not str(file).isprintable():
        return "its name cannot be written into a workload file"
    try:
        done = subprocess.run([file], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    except OSError as error:
        return f"{error.strerror} (a script needs a first line such as #!/bin/sh)"
    return f"alone it ends with status {done.returncode}" if done.returncode else None


def compare(options, file, variants, report):
    """All variants on one mix; cgreedy is left out where the programs' cache misses are not known."""
    words = ["--quantum", options.quantum] if set(variants) - set(ONE_GO) else []
    if "cgreedy" in variants and not knows_misses(file):
        tried = options.cosched("compare", file, "--policies", "cgreedy", "--runs", 1,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if tried.returncode == 2 and "cgreedy" in tried.stderr:
            say("cgreedy is left out: the cache misses of these programs are not known here")
            variants = {variant: variant for variant in variants if variant != "cgreedy"}
    return figures(options.cosched.compare(report, file, variants, "--solo", *words, partial=True))


def knows_misses(file):
    text = file.read_text()
    return text.count("[[program]]") == text.count("misses_per_kilo_instruction")


def gaps(options):
    backends = {}
    for row in options.cosched.json("doctor", "--measure", strict=True)["gaps"]:
        measured = {what: {share: row[f"{what}_ms_{share}"] for share in SHARES} for what in GAP}
        backends.setdefault(row["backend"], {})[str(row["threads"])] = measured
    return backends


def own_cpu(options):
    """CPU time of cosched in percent of one CPU, with twelve gangs at the quantum."""
    work = cpus() * SECONDS_FOR_OWN_CPU / PROGRAMS_FOR_OWN_CPU
    one = runner.program(kernel("compute", "--work", f"{work:.2f}"), threads=cpus())
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write("\n".join([one] * PROGRAMS_FOR_OWN_CPU))
        file.flush()
        result = options.cosched.json("run", file.name, "--policy", "gang", "--quantum", options.quantum,
                                      stderr=subprocess.DEVNULL)
    own = result["own"]
    return {"programs": PROGRAMS_FOR_OWN_CPU, "percent": own["cpu_percent"], "switches": own["switches"]}


def markdown(report):
    """The report as tables."""
    yield machine_line(report, f"quantum {report['quantum']}", report["started_at"]) + "."
    for name, variants in report["mixes"].items():
        yield f"\n### {name}\n"
        yield from table(["variant", "total / sum of solo", f"total / {next(iter(variants))}", "mean turnaround s", "unfairness",
                          "longest freeze s", "failed"], (row(variant, found) for variant, found in variants.items()))
    if "gap_ms" in report:
        yield "\n### From the old gang stopped to the new gang running\n"
        yield from table(["freezing by", "threads", "gap p50 ms", "p99", "freeze p50 ms", "p99", "thaw p50 ms", "p99"],
                         ([backend, threads, *(f"{found[what][share]:.3f}" for what in GAP for share in SHARES)]
                          for backend, rows in report["gap_ms"].items() for threads, found in rows.items()))
    if "own_cpu_percent" in report:
        own = report["own_cpu_percent"]
        yield (f"\ncosched itself with {own['programs']} programs: {own['percent']:.3f} % of one CPU "
               f"({own['switches']} switches).")


def row(variant, found):
    return [variant, interval(found["ratio_to_solo_sum"]), with_verdict(found["against"]), interval(found["mean_turnaround_seconds"]),
            interval(found["unfairness"]), interval(found["responsiveness_max_seconds"], 2), found["failed"]]


if __name__ == "__main__":
    run(main, "what was measured before is in gang.json")
