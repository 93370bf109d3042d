#!/usr/bin/env python3
"""malleable.py: what it costs a program to be malleable, where that brings it nothing.

Two questions:

- region: what does a parallel region cost without the hook, with it where no policy decides, and with a limit of all
  and of half the threads? (crates/hook/examples/cost.c, run in turn; medians of the rounds.) And on LLVM's runtime:
  without the hook, limited, and limited while the runtime reports its barriers (OMPT).
- loss: how much longer does a program take, alone on the machine, with `malleable = true` under adaptive-minwait than
  without the key under minwait? Runs in turn (A B, B A), ratio pair by pair with an interval of 98 %. Bar: 1.01. And beside
  the time, which a shared machine makes uncertain, what it is made of: the CPU time of cosched itself, and how much later a
  program ends that does nothing.

It writes malleable.json into --out. The machine has to be idle.

`make bench-malleable` builds what it takes, and runs it.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

from gang import WORKLOADS, elapsed, interval, plain_environment, say
from monitor import fitted, held_against, in_turn
from ratio import FEWEST
from storms import llvm_runtime

SCHEMA = "cosched-bench-malleable/3"
HOOK = WORKLOADS.parent / "crates" / "hook"
HOOK_LIBRARY = "libcosched_hook.so"
# What is good enough: of the time without the key, and nanoseconds for each region.
MOST_LOSS, MOST_REGION = 1.01, 1000
# Runs of a program that does nothing, for each of the loss' rounds.
EMPTY = 3
VARIANTS = {"plain": ("minwait", False), "malleable": ("adaptive-minwait", True)}
# What the cost of a region is held against, where it is not what it costs without the hook.
BEFORE = {"llvm-limited": "llvm", "llvm-observed": "llvm-limited"}


def main():
    options = arguments()
    began = time.time()
    plain_environment()
    report = {"schema": SCHEMA, "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
              "cpus": len(os.sched_getaffinity(0)), "rounds": options.runs, "seconds": options.seconds}
    for name, measure in [("region", region), ("loss", loss)]:
        if name in options.parts:
            say(f"{name}; {elapsed(began)} so far")
            report[name] = measure(options)
            (options.out / "malleable.json").write_text(json.dumps(report, indent=1) + "\n")
    say(f"done in {elapsed(began)}: {options.out}/malleable.json")
    print("\n".join(sentences(report)))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cosched", type=pathlib.Path, required=True, help="the executable")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("target/bench"))
    parser.add_argument("--runs", type=int, default=15, help="rounds; below 7 no difference is significant")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each run of the loss")
    parser.add_argument("--parts", default="region,loss", help="which of both, separated by a comma")
    options = parser.parse_args()
    options.parts = options.parts.split(",")
    if unknown := set(options.parts) - {"region", "loss"}:
        parser.error(f"--parts: there is no {', '.join(sorted(unknown))}; choose from region, loss")
    options.cosched, options.out = options.cosched.resolve(), options.out.resolve()
    options.limited = options.cosched.parent / "examples" / "limited"
    if "region" in options.parts and not options.limited.exists():
        parser.error(f"{options.limited} is missing: cargo build --release -p cosched-hook --examples")
    options.out.mkdir(parents=True, exist_ok=True)
    if options.runs < FEWEST:
        say(f"{options.runs} rounds show no difference with certainty: that takes {FEWEST}")
    return options


def region(options):
    """Nanoseconds by variants and threads."""
    program = options.out / "cost"
    subprocess.run(["gcc", "-O2", "-fopenmp", "-I", HOOK / "include", HOOK / "examples" / "cost.c", "-o", program],
                   check=True)
    folders = [options.cosched.parent / "deps", options.cosched.parent]
    library = next((folder / HOOK_LIBRARY for folder in folders if (folder / HOOK_LIBRARY).exists()), None)
    if not library:
        sys.exit(f"bench: {HOOK_LIBRARY} is not beside {options.cosched}; make build makes it")
    threads = sorted({1, 2, len(os.sched_getaffinity(0))})
    found = []
    for count in threads:
        runs = in_turn(options.runs, {
            variant: lambda before=before, env=env: cost([*before, program], {"OMP_NUM_THREADS": count, **env})
            for variant, (before, env) in variants_of_region(options.limited, library, count).items()})
        figures = {variant: {name: statistics.median(run[name] for run in all_runs) for name in all_runs[0]}
                   for variant, all_runs in runs.items()}
        found.append({"threads": count, "nanoseconds": figures})
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
    threads = min(2, len(os.sched_getaffinity(0)))
    os.environ["OMP_NUM_THREADS"] = str(threads)
    command = list(map(str, fitted(options, ["stencil"])))
    del os.environ["OMP_NUM_THREADS"]

    def variant(name, command, quiet=False):
        policy, malleable = VARIANTS[name]
        file = options.out / f"malleable-{name}-{'empty' if quiet else 'stencil'}.toml"
        file.write_text(f"[[program]]\ncommand = {json.dumps(command)}\nthreads = {threads}\n"
                        f"malleable = {json.dumps(malleable)}\n")
        return lambda: run(options, file, policy)

    both = {kind: {name: variant(name, words, kind == "empty") for name in VARIANTS}
            for kind, words in [("stencil", command), ("empty", ["true"])]}
    runs = {kind: in_turn(options.runs * (EMPTY if kind == "empty" else 1), variants) for kind, variants in both.items()}
    result = {"program": command}
    for kind, by_variant in runs.items():
        times = {name: [one["seconds"] for one in of_it] for name, of_it in by_variant.items()}
        result[kind] = held_against(times, "plain")
        for name, of_it in by_variant.items():
            result[kind][name]["own_cpu_seconds"] = statistics.median(one["own"] for one in of_it)
    return result


def run(options, file, policy):
    done = subprocess.run([options.cosched, "run", file, "--policy", policy, "--json"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"bench: {file} failed under {policy}")
    result = json.loads(done.stdout)
    seconds = result["total_seconds"]
    return {"seconds": seconds, "own": seconds * result["own"]["cpu_percent"] / 100}


def sentences(report):
    """The report in sentences."""
    for one in report.get("region", []):
        figures = one["nanoseconds"]
        for variant, of_it in figures.items():
            plain = figures[BEFORE.get(variant, "without")]["parallel"]
            more = f", {of_it['parallel'] - plain:+.0f} ns: {judged_region(of_it, plain, variant, one['threads'])}"
            more = "" if variant in ["without", "llvm"] else more
            rest = (f"; cosched_region {of_it['region']:.0f} ns, a request {of_it['request'] / 1000:.0f} us "
                    f"(longest {of_it['longest'] / 1000:.0f} us)" if "region" in of_it else "")
            yield f"{one['threads']} threads, {variant}: an empty region takes {of_it['parallel']:.0f} ns{more}{rest}."
    if found := report.get("loss"):
        ratio = found["stencil"]["malleable"]["ratio"]
        yield f"malleable under adaptive-minwait against plain under minwait: {interval(ratio)}; {judged_loss(ratio)}."
        plain, malleable = (found["stencil"][name] for name in ["plain", "malleable"])
        own = malleable["own_cpu_seconds"] - plain["own_cpu_seconds"]
        yield (f"Of that, cosched's own CPU time: {1000 * own:+.1f} ms in {plain['median_seconds']:.1f} s "
               f"({100 * own / plain['median_seconds']:+.2f} %).")
        plain, malleable = (found["empty"][name]["median_seconds"] for name in ["plain", "malleable"])
        yield f"A program that does nothing ends {1000 * (malleable - plain):+.1f} ms later (of {1000 * plain:.1f} ms)."


def judged_region(of_it, plain, variant, threads):
    """A limit of fewer threads makes another region of it: that is no cost."""
    if variant == "limit-1" and threads > 1:
        return "another region"
    return f"at most {MOST_REGION}, {'met' if of_it['parallel'] - plain <= MOST_REGION else 'missed'}"


def judged_loss(ratio):
    """The whole interval lies on one side of the bar, or the verdict is undecided."""
    if not ratio["interval"]:
        return f"at most {MOST_LOSS}: too few rounds to tell"
    low, high = ratio["interval"]
    verdict = "met" if high <= MOST_LOSS else "missed" if low > MOST_LOSS else "the interval holds the bar: undecided"
    return f"at most {MOST_LOSS}: {verdict}"


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("bench: interrupted; what was measured before is in malleable.json")
