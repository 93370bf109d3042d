#!/usr/bin/env python3
"""gang.py: how gangs do beside the variants that people really use. `make bench` runs it.

For every mix of programs it has `cosched compare` run all variants in turn (A B C A B C), with the times
alone measured in every round, and collects the figures with their intervals. Then it measures the
gap between two gangs with each backend of freezing, and what cosched itself costs.

It writes gang.json (for scripts) and gang.md (the same as tables) into --out. Only the standard
library is needed. A variant that this machine or user cannot do is left out, and said so.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SCHEMA = "cosched-bench-gang/3"
HERE = pathlib.Path(__file__).resolve().parent
WORKLOADS = HERE.parent / "workloads"
# The three workloads of the thesis on scaff, of twelve programs each.
THESIS = ["cpu", "memory", "mixed"]
# Variants in which no program is frozen.
ONE_GO = ["linux", "linux-groups", "passive", "llvm", "one-thread", "fcfs"]
VARIANTS = [*ONE_GO, "gang", "greedy", "cgreedy", "minwait"]
# What is taken over from `cosched compare --json`, by our names.
FIGURES = {name: name for name in ["ratio_to_solo_sum", "total_seconds", "mean_turnaround_seconds", "unfairness",
                                   "own_cpu_percent", "failed", "against", "samples"]}
FIGURES["responsiveness_max_seconds"] = "responsiveness_longest_gap_seconds"
# Twelve programs in gangs of their own, and nothing else to do: what is used beside them is ours.
PROGRAMS_FOR_OWN_CPU, SECONDS_FOR_OWN_CPU = 12, 60


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def main():
    options = arguments()
    began = time.time()
    plain_environment()
    mixes = programs_of(options.programs, options.out) if options.programs else our_mixes(options)
    report = {
        "schema": SCHEMA,
        "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
        "rounds": options.runs,
        "quantum": options.quantum,
        "mixes": {},
    }
    # Nothing of an earlier run may pass for this one's.
    save(options.out, report)
    variants, report["left_out"] = possible(options.cosched, {variant: ["--policies", variant] for variant in options.variants})
    for number, (name, file) in enumerate(mixes, 1):
        say(f"mix {number} of {len(mixes)}: {name}; {elapsed(began)} so far")
        report["mixes"][name] = compare(options, file, variants, report)
        save(options.out, report)
    if not options.programs:
        say(f"gaps between gangs; {elapsed(began)} so far")
        report["gap_ms"] = gaps(options)
        save(options.out, report)
        say("what cosched itself costs")
        report["own_cpu_percent"] = own_cpu(options)
        save(options.out, report)
    say(f"done in {elapsed(began)}: {options.out}/gang.json and gang.md")
    failed = [name for name, variants in report["mixes"].items() if any(variant["failed"] for variant in variants.values())]
    if failed:
        sys.exit(f"bench: programs failed in {', '.join(failed)}: their figures mean little")


def plain_environment():
    """What a shell has set for OpenMP would turn plain Linux into another variant."""
    for name in [name for name in os.environ if name.startswith(("OMP_", "GOMP_", "OPENBLAS_", "MKL_"))]:
        say(f"{name} is set in this shell; the programs run without it")
        del os.environ[name]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cosched", type=pathlib.Path, required=True, help="the executable")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("target/bench"))
    parser.add_argument("--runs", type=int, default=10, help="rounds of each mix")
    parser.add_argument("--quantum", default="100ms")
    parser.add_argument("--seconds", default="1", help="of each of the thesis' programs, alone")
    parser.add_argument("--variants", default=",".join(VARIANTS), help="separated by commas")
    parser.add_argument("--mixes", default="", help="only these, separated by commas")
    parser.add_argument("--programs", type=pathlib.Path,
                        help="a folder: every executable file in it is a program of one mix")
    options = parser.parse_args()
    options.variants = [variant for variant in options.variants.split(",") if variant]
    if not options.variants:
        parser.error("--variants names no variant")
    if options.programs and not options.programs.is_dir():
        parser.error(f"--programs {options.programs}: not a folder")
    if not os.access(options.cosched, os.X_OK):
        parser.error(f"--cosched {options.cosched}: no executable file; make build makes one")
    options.cosched = Cosched(options.cosched.resolve())
    options.out = options.out.resolve()
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "gang.json").touch()
    except OSError as error:
        parser.error(f"--out: {error}")
    return options


def elapsed(began):
    return f"{(time.time() - began) / 60:.0f} min"


def our_mixes(options):
    """The mixes of this folder and the thesis' workloads, made for the CPUs of this machine."""
    sources = {file.stem: file for file in sorted((HERE / "mixes").glob("*.toml"))}
    sources |= {name: WORKLOADS / f"{name}.toml" for name in THESIS}
    names = options.mixes.split(",") if options.mixes else list(sources)
    unknown = [name for name in names if name not in sources]
    if unknown:
        sys.exit(f"bench: --mixes: there is no {', '.join(unknown)}; choose from {', '.join(sources)}")
    folder = options.out / "mixes"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in names:
        text = scaled(sources[name], options) if name in THESIS else filled_in(sources[name])
        (folder / f"{name}.toml").write_text(text)
    return [(name, folder / f"{name}.toml") for name in names]


def filled_in(file):
    cpus = len(os.sched_getaffinity(0))
    text = file.read_text()
    for word, value in {"@WORKLOADS@": WORKLOADS, "@CPUS@": cpus, "@HALF@": max(1, cpus // 2)}.items():
        text = text.replace(word, str(value))
    return text


def scaled(file, options):
    say(f"finding how many threads the programs of {file.name} need here")
    done = subprocess.run([WORKLOADS / "scale.sh", file, options.seconds], text=True, check=True,
                          stdout=subprocess.PIPE)
    return done.stdout


def programs_of(folder, out):
    """One mix of the executable files in a folder, without those that fail alone."""
    files = sorted({f.resolve() for f in folder.iterdir() if f.is_file() and os.access(f, os.X_OK)})
    tables = []
    for f in files:
        if problem := cannot_be_measured(f):
            say(f"{f.name!a} is left out: {problem}")
        else:
            tables.append(f"[[program]]\nname = {json.dumps(f.name)}\ncommand = [{json.dumps(str(f))}]\n")
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


class Cosched:
    """The executable, run for one command after another. An interruption of this script ends the command first, which
    then tells what it has. The command is in a session of its own, so that Ctrl-C comes to it once, through this script."""

    def __init__(self, executable):
        self.executable = executable
        self.running = None
        self.interrupted = False
        for number in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]:
            signal.signal(number, self.interrupt)

    def interrupt(self, *_):
        self.interrupted = True
        if self.running:
            self.running.terminate()

    def __call__(self, *words, **keywords):
        if self.interrupted:
            raise KeyboardInterrupt
        command = [self.executable, *map(str, words)]
        with subprocess.Popen(command, text=True, start_new_session=True, **keywords) as self.running:
            out, err = self.running.communicate()
        done = subprocess.CompletedProcess(command, self.running.returncode, out, err)
        self.running = None
        return done


def possible(cosched, asked):
    """The variants that can be had here, and why the others cannot; `asked` are the words for each."""
    variants, left_out = [], {}
    program = '[[program]]\ncommand = "true"\nthreads = 1\nmisses_per_kilo_instruction = 1.0\n'
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(program)
        file.flush()
        for variant, words in asked.items():
            tried = cosched("compare", file.name, *words, "--runs", 1, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if tried.returncode == 0:
                variants.append(variant)
            else:
                left_out[variant] = tried.stderr.strip().splitlines()[0]
                say(f"{variant} is left out: {left_out[variant]}")
    if not variants:
        sys.exit("bench: no variant can be had here")
    return variants, left_out


def compare(options, file, variants, report):
    """All variants on one mix; cgreedy is left out where the programs' cache misses are not known."""
    words = ["--runs", options.runs, "--solo", "--json"]
    if any(variant not in ONE_GO for variant in variants):
        words += ["--quantum", options.quantum]
    if "cgreedy" in variants and not knows_misses(file):
        tried = options.cosched("compare", file, "--policies", "cgreedy", "--runs", 1,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if tried.returncode == 2 and "cgreedy" in tried.stderr:
            say("cgreedy is left out: the cache misses of these programs are not known here")
            variants = [variant for variant in variants if variant != "cgreedy"]
    done = options.cosched("compare", file, "--policies", ",".join(variants), *words, stdout=subprocess.PIPE)
    if not done.stdout and options.cosched.interrupted:
        raise KeyboardInterrupt
    if not done.stdout:
        sys.exit(f"bench: cosched compare failed on {file}")
    document = json.loads(done.stdout)
    report["machine"] = document["machine"]
    return {variant["variant"]: {ours: variant[theirs] for ours, theirs in FIGURES.items()} for variant in document["variants"]}


def knows_misses(file):
    text = file.read_text()
    return text.count("[[program]]") == text.count("misses_per_kilo_instruction")


def gaps(options):
    done = options.cosched("doctor", "--measure", "--json", stdout=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit("bench: cosched doctor --measure failed")
    backends = {}
    for row in json.loads(done.stdout)["gaps"]:
        figures = {}
        for what in ["gap", "freeze", "thaw"]:
            figures[what] = {"p50": row[f"{what}_ms_p50"], "p99": row[f"{what}_ms_p99"]}
        backends.setdefault(row["backend"], {})[str(row["threads"])] = figures
    return backends


def own_cpu(options):
    """CPU time of cosched in percent of one CPU, with twelve gangs at the quantum."""
    cpus = len(os.sched_getaffinity(0))
    work = cpus * SECONDS_FOR_OWN_CPU / PROGRAMS_FOR_OWN_CPU
    spin = [str(WORKLOADS / "bin" / "compute"), "--work", f"{work:.2f}"]
    table = f"[[program]]\ncommand = {json.dumps(spin)}\nthreads = {cpus}\n"
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write("\n".join([table] * PROGRAMS_FOR_OWN_CPU))
        file.flush()
        done = options.cosched("run", file.name, "--policy", "gang", "--quantum", options.quantum,
                               "--json", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    own = json.loads(done.stdout)["own"]
    return {"programs": PROGRAMS_FOR_OWN_CPU, "percent": own["cpu_percent"],
            "switches": own["switches"]}


def save(out, report):
    (out / "gang.json").write_text(json.dumps(report, indent=1) + "\n")
    (out / "gang.md").write_text("\n".join(markdown(report)) + "\n")


def markdown(report):
    """The report as tables."""
    machine = report.get("machine", {})
    yield (f"{machine.get('model')}, {machine.get('cpus')} CPUs, Linux {machine.get('kernel')}; "
           f"{report['rounds']} rounds, quantum {report['quantum']}, {report['started_at']}.")
    for name, variants in report["mixes"].items():
        first = next(iter(variants))
        yield f"\n### {name}\n"
        yield (f"| variant | total / sum of solo | total / {first} | mean turnaround s | unfairness "
               "| longest freeze s | failed |")
        yield "|---|---|---|---|---|---|---|"
        for variant, figures in variants.items():
            against = figures["against"]
            beside = with_verdict(against) if against else "1"
            yield (f"| {variant} | {interval(figures['ratio_to_solo_sum'])} | {beside} "
                   f"| {interval(figures['mean_turnaround_seconds'])} | {interval(figures['unfairness'])} "
                   f"| {interval(figures['responsiveness_max_seconds'], 2)} | {figures['failed']} |")
    if "gap_ms" in report:
        yield "\n### From the old gang stopped to the new gang running\n"
        yield "| freezing by | threads | gap p50 ms | p99 | freeze p50 ms | p99 | thaw p50 ms | p99 |"
        yield "|---|---|---|---|---|---|---|---|"
        for backend, rows in report["gap_ms"].items():
            for threads, row in rows.items():
                cells = [f"{row[what][share]:.3f}" for what in ["gap", "freeze", "thaw"]
                         for share in ["p50", "p99"]]
                yield f"| {backend} | {threads} | " + " | ".join(cells) + " |"
    if "own_cpu_percent" in report:
        own = report["own_cpu_percent"]
        yield (f"\ncosched itself with {own['programs']} programs: {own['percent']:.3f} % of one CPU "
               f"({own['switches']} switches).")


def interval(estimate, digits=3):
    if estimate is None:
        return "–"
    if estimate["interval"] is None:
        return f"{estimate['value']:.{digits}f}"
    low, high = estimate["interval"]
    return f"{estimate['value']:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def with_verdict(against):
    return f"{interval(against['total_ratio'])} {against['verdict'].replace('-', ' ')}"


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("bench: interrupted; what was measured before is in gang.json")
