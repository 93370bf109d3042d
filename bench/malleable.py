#!/usr/bin/env python3
"""malleable.py: what being malleable costs where it brings nothing. `make bench-malleable` runs it.

- region: what does a parallel region cost without the hook, with it where no policy decides, and
  limited? And on LLVM's runtime, also while the runtime reports its barriers (OMPT).
- loss: how much longer does a program take, alone on the machine, with `malleable = true` under
  adaptive-minwait than without the key under minwait? And what is that made of: the CPU time of
  cosched itself, and how much later a program ends that does nothing.

It writes malleable.json into --out. The machine has to be idle.
"""

import os
import re
import statistics
import subprocess
import sys

from lib import runner
from lib.options import read
from lib.report import Report, interval
from lib.rounds import by_figure, in_turn
from lib.runner import HOOK, cpus, fitted_kernel, llvm_runtime, plain_environment, run, say
from lib.verdicts import held_against, met

SCHEMA = "cosched-bench-malleable/3"
HOOK_LIBRARY = "libcosched_hook.so"
# What is good enough: of the time without the key, and nanoseconds for each region.
MOST_LOSS, MOST_REGION = 1.01, 1000
# Runs of a program that does nothing, for each of the loss' rounds.
EMPTY = 3
VARIANTS = {"plain": ("minwait", False), "malleable": ("adaptive-minwait", True)}
# What the cost of a region is held against, where it is not what it costs without the hook.
BEFORE = {"llvm-limited": "llvm", "llvm-observed": "llvm-limited"}


def main():
    options = read(__doc__, "malleable", runs=15, seconds=10.0, of="of each run of the loss", parts=["region", "loss"])
    options.built = options.cosched.executable.parent
    options.limited = options.built / "examples" / "limited"
    if "region" in options.parts and not options.limited.exists():
        options.error(f"{options.limited} is missing: cargo build --release -p cosched-hook --examples")
    plain_environment()
    report = Report(options, SCHEMA, sentences, cpus=cpus(), seconds=options.seconds)
    for name, measure in [("region", region), ("loss", loss)]:
        if name in options.parts:
            say(f"{name}; {report.elapsed()}")
            report[name] = measure(options)
            report.save()
    report.done()


def region(options):
    """Nanoseconds by variants and threads."""
    program = options.out / "cost"
    subprocess.run(["gcc", "-O2", "-fopenmp", "-I", HOOK / "include", HOOK / "examples" / "cost.c", "-o", program],
                   check=True)
    folders = [options.built / "deps", options.built]
    library = next((folder / HOOK_LIBRARY for folder in folders if (folder / HOOK_LIBRARY).exists()), None)
    if not library:
        sys.exit(f"bench: {HOOK_LIBRARY} is not beside {options.cosched.executable}; make build makes it")
    found = []
    for count in sorted({1, 2, cpus()}):
        runs = by_figure(in_turn(options.runs, {
            variant: lambda before=before, env=env: cost([*before, program], {"OMP_NUM_THREADS": count, **env})
            for variant, (before, env) in variants_of_region(options.limited, library, count).items()}))
        medians = {variant: {name: statistics.median(values) for name, values in of_it.items()} for variant, of_it in runs.items()}
        found.append({"threads": count, "nanoseconds": medians})
    return found


def variants_of_region(limited, library, threads):
    """What stands before the program, and in its environment."""
    variants = {"without": ([], {}), "no-policy": ([], {"LD_PRELOAD": library}),
                **{f"limit-{n}": ([limited, n], {}) for n in sorted({1, threads})}}
    if not (llvm := llvm_runtime()):
        say("LLVM's runtime is left out: there is no libomp.so.5 here")
        return variants
    before, env = [limited, threads], {"LD_PRELOAD": llvm}
    return variants | {"llvm": ([], env), "llvm-limited": (before, {**env, "OMP_TOOL": "disabled"}),
                       "llvm-observed": (before, env)}


def cost(command, env):
    words, env = [str(word) for word in command], {name: str(value) for name, value in env.items()}
    done = subprocess.run(words, env={**os.environ, **env}, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=True)
    return figures(done.stdout)


def figures(text):
    return {name: float(value) for name, value in re.findall(r"(\w+)=([\d.]+)", text)}


def loss(options):
    """A program of many regions that scales, and one that does nothing, malleable and not."""
    threads = min(2, cpus())
    os.environ["OMP_NUM_THREADS"] = str(threads)
    command = fitted_kernel(options.seconds, "stencil")
    del os.environ["OMP_NUM_THREADS"]
    result = {"program": command}
    for kind, words, rounds in [("stencil", command, options.runs), ("empty", ["true"], options.runs * EMPTY)]:
        runs = by_figure(in_turn(rounds, {name: variant(options, kind, words, threads, name) for name in VARIANTS}))
        result[kind] = held_against({name: of_it["seconds"] for name, of_it in runs.items()}, "plain")
        for name, of_it in runs.items():
            result[kind][name]["own_cpu_seconds"] = statistics.median(of_it["own"])
    return result


def variant(options, kind, command, threads, name):
    """A run of a program under a policy, to be made as often as needed."""
    policy, malleable = VARIANTS[name]
    file = options.out / f"malleable-{name}-{kind}.toml"
    file.write_text(runner.program(command, threads=threads, malleable=malleable))

    def one():
        result = options.cosched.json("run", file, "--policy", policy, strict=True, stderr=subprocess.DEVNULL)
        seconds = result["total_seconds"]
        return {"seconds": seconds, "own": seconds * result["own"]["cpu_percent"] / 100}

    return one


def sentences(report):
    """The report in sentences."""
    for one in report.get("region", []):
        variants = one["nanoseconds"]
        for variant, of_it in variants.items():
            plain = variants[BEFORE.get(variant, "without")]["parallel"]
            more = f", {of_it['parallel'] - plain:+.0f} ns: {judged_region(of_it, plain, variant, one['threads'])}"
            more = "" if variant in ["without", "llvm"] else more
            rest = (f"; cosched_region {of_it['region']:.0f} ns, a request {of_it['request'] / 1000:.0f} us "
                    f"(longest {of_it['longest'] / 1000:.0f} us)" if "region" in of_it else "")
            yield f"{one['threads']} threads, {variant}: an empty region takes {of_it['parallel']:.0f} ns{more}{rest}."
    if found := report.get("loss"):
        ratio = found["stencil"]["malleable"]["ratio"]
        yield f"malleable under adaptive-minwait against plain under minwait: {interval(ratio)}; {judged_loss(ratio)}."
        plain, malleable = (found["stencil"][name] for name in VARIANTS)
        own = malleable["own_cpu_seconds"] - plain["own_cpu_seconds"]
        yield (f"Of that, cosched's own CPU time: {1000 * own:+.1f} ms in {plain['median_seconds']:.1f} s "
               f"({100 * own / plain['median_seconds']:+.2f} %).")
        plain, malleable = (found["empty"][name]["median_seconds"] for name in VARIANTS)
        yield f"A program that does nothing ends {1000 * (malleable - plain):+.1f} ms later (of {1000 * plain:.1f} ms)."


def judged_region(of_it, plain, variant, threads):
    """A limit of fewer threads makes another region of it: that is no cost."""
    if variant == "limit-1" and threads > 1:
        return "another region"
    return f"at most {MOST_REGION}, {met(of_it['parallel'] - plain <= MOST_REGION)}"


def judged_loss(ratio):
    """The whole interval lies on one side of the bar, or the verdict is undecided."""
    if not ratio["interval"]:
        return f"at most {MOST_LOSS}: too few rounds to tell"
    low, high = ratio["interval"]
    verdict = "met" if high <= MOST_LOSS else "missed" if low > MOST_LOSS else "the interval holds the bar: undecided"
    return f"at most {MOST_LOSS}: {verdict}"


if __name__ == "__main__":
    run(main, "what was measured before is in malleable.json")
