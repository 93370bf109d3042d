#!/usr/bin/env python3
"""auto.py: how good the choices of the policy `auto` are. `make bench-auto` runs it.

Every mix of auto_mixes.py is run by `cosched compare` in all ways, interleaved: plain Linux, rivals, every policy that needs
no figures of the programs, and `auto` with its goals. auto_verdicts.py tells what follows.

With --profiles, the programs of a mix are profiled before, with all thread counts; else nothing is known of them. With
--moldable too, `auto` may start them with fewer threads. Whether it is run by root makes a difference, and stands in the
report.

It writes auto.json (for scripts) and auto.md into --out. Only the standard library is needed, but for what the mixes run. A
way, or a mix, that cannot be had here is left out, and said so.
"""

import os
import subprocess
import sys
import time

import auto_verdicts
import command_line
import mix_rounds
from auto_mixes import A_SECOND, all_mixes
from gang import elapsed, plain_environment, possible, say

SCHEMA = "cosched-bench-auto/1"
POLICIES = ["linux", "linux-groups", "passive", "llvm", "one-thread", "fcfs", "gang", "greedy", "minwait",
            "adaptive-minwait", "auto"]
# Ways with options of their own, which come after those.
GOALS = {f"auto-{goal}": f"auto --goal {goal}" for goal in ["throughput", "fair", "responsive"]}


def main():
    options = arguments()
    began = time.time()
    plain_environment()
    # What earlier runs have shown is not known here, unless it is asked for.
    os.environ["XDG_DATA_HOME"] = str(options.folder / "data")
    cpus = len(os.sched_getaffinity(0))
    report = {"schema": SCHEMA, "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
              "rounds": options.runs, "seconds": options.seconds, "ways": options.ways,
              "profiles": options.profiles, "moldable": options.moldable, "root": os.geteuid() == 0, "left_out": {},
              "mixes": []}
    report = command_line.resumed(report, options.earlier, "mixes")
    asked = {way: words(way) for way in options.ways}
    ways, report["left_out"] = possible(options.cosched, asked)
    mixes = mix_rounds.of_half(all_mixes(), options.half)
    chosen = command_line.not_yet(command_line.chosen(mixes, options), report, "mixes", "mix")
    for number, mix in mix_rounds.possible_mixes(chosen, report, cannot_run, began):
        file = options.folder / f"{number}.toml"
        file.write_text(mix.workload(options.seconds, cpus, options.moldable))
        if options.profiles:
            profile(options, mix, file, cpus)
        fit = [way for way in ways if way != "one-thread" or not mix.does_less_with_one_thread()]
        report["mixes"].append(mix_rounds.compared(options, mix, file, {way: asked[way] for way in fit}, report))
        auto_verdicts.judge(report)
        mix_rounds.save(options.out / "auto", report, auto_verdicts.markdown)
    if not report["mixes"]:
        sys.exit("bench: no mix can be had here")
    say(f"done in {elapsed(began)}: {options.out}/auto.json and auto.md")
    print("".join(auto_verdicts.sentences(report)), end="")


def arguments():
    parser = command_line.common(__doc__.splitlines()[0], 1.0, "of work of each program, alone", resumable=True)
    parser.add_argument("--ways", default=",".join([*POLICIES, *GOALS]), help="separated by commas")
    mix_rounds.add_half(parser)
    parser.add_argument("--profiles", action="store_true", help="profile the programs before")
    parser.add_argument("--moldable", action="store_true", help="programs may be started with fewer threads, where that is known "
                        "to be better; with --profiles")
    options = command_line.parsed(parser, "auto", ["json", "md"])
    if options.moldable and not options.profiles:
        parser.error("--moldable: how programs do with fewer threads is known from --profiles only; give both")
    options.ways = options.ways.split(",")
    unknown = [way for way in options.ways if way not in [*POLICIES, *GOALS]]
    if unknown:
        parser.error(f"--ways: there is no {', '.join(unknown)}; choose from {', '.join([*POLICIES, *GOALS])}")
    return options


def words(way):
    """What asks for it on the command line of `cosched compare`."""
    return ["--way", f"{way}={GOALS[way]}"] if way in GOALS else ["--policies", way]


def cannot_run(mix):
    """Why a mix cannot be had here; None if it can."""
    modules = {"numpy-matmul.py": "numpy", "sklearn-kmeans.py": "sklearn", "sklearn-pca.py": "sklearn"}
    for module in sorted({modules[p.kind] for p in mix.programs if p.kind in A_SECOND}):
        if subprocess.run(["/usr/bin/python3", "-c", f"import {module}"], stderr=subprocess.DEVNULL).returncode:
            return f"/usr/bin/python3 has no {module}"
    return None


def profile(options, mix, file, cpus):
    """Keeps how long each program takes alone, with all thread counts of the mixes."""
    counts = ",".join(map(str, sorted({1, max(1, cpus // 2), cpus})))
    done = options.cosched("profile", file, "--threads", counts, stdout=subprocess.DEVNULL)
    if options.cosched.interrupted:
        raise KeyboardInterrupt
    if done.returncode:
        sys.exit(f"bench: cosched profile failed on {mix.name}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("bench: interrupted; what was measured before is in auto.json")
