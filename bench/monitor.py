#!/usr/bin/env python3
"""monitor.py: what it costs that cosched watches. `make bench-lock` runs it after lock.py.

docs/research/lock-benchmark.md has its four questions, which --parts chooses from, and what it
writes. Without the right to attach programs in the kernel (BPF) cosched samples /proc; the report
says which it was.
"""

import contextlib
import json
import subprocess

from lib.options import read
from lib.report import Report, interval
from lib.rounds import in_turn
from lib.runner import (QUIET, beside, cpu_percent, cpus, fitted_kernel, halves, kernel,
                        plain_environment, run, say, seconds_of)
from lib.verdicts import differs, held_against, met, ratio

SCHEMA = "cosched-bench-monitor/3"
INTERVALS = ["1s", "10ms"]
PARTS = ["storm", "bystander", "locks", "own"]
# Threads that are watched, and how long each computes, in milliseconds, before a second of sleep.
CROWD, BURST = 1000, 0.2
# Seconds until these have been made, and the first interval has been read.
START = 3
# What is good enough: of the time unwatched, and percent of a CPU.
MOST_IN_STORM, MOST_OWN = 1.01, 0.1


def main():
    options = read(__doc__, "monitor", runs=10, seconds=3.0, of="of each program", parts=PARTS,
                   watch={"type": float, "default": 20.0, "help": "seconds for which cosched's own CPU time is taken"})
    plain_environment()
    report = Report(options, SCHEMA, sentences, cpus=cpus(), seconds=options.seconds, source=source(options), storm=[], bystander=[],
                    locks=[], own=None)
    if report["source"] != "kernel":
        say("cosched may not attach programs in the kernel here (BPF; `cosched doctor` tells more): it samples /proc")
    threads = ["--threads", 4 * cpus()]
    storms = [["lock-loop", *threads, "--hold", 100, "--gap", 100],
              *(["nested-locks", *threads, "--accounts", accounts] for accounts in [2, 8])]
    bystanders = [["system-calls", "--threads", cpus()], ["pipe-ring", "--threads", 2]]
    # There are no two groups on one CPU.
    fights = [storms[0], storms[-1]] if cpus() > 1 else []
    parts = [("storm", storms, storm), ("bystander", bystanders, bystander), ("locks", fights, locks)]
    for kind, programs, measure in parts:
        chosen = programs if kind in options.parts else []
        for words in report.each(chosen, kind, lambda words: " ".join(map(str, words))):
            report[kind].append(measure(options, words))
            report.save()
    if "own" in options.parts:
        say(f"own: {CROWD} threads; {report.elapsed()}")
        report["own"] = own(options)
    report.save()
    report.done()


def stat(options, every, *words):
    return [options.cosched.executable, "stat", "--interval", every, *map(str, words)]


def source(options):
    """Where cosched's figures come from: kernel, or sampled."""
    done = subprocess.run(stat(options, "10ms", "--json", "--", "sleep", "0.1"), stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout.splitlines()[0])["source"]


def compared(options, words, watching):
    """A program that runs unwatched, and in several ways watched; each makes a run of a command."""
    command = fitted_kernel(options.seconds, *words)
    watching = {"unwatched": seconds_of, **watching}
    samples = in_turn(options.runs, {name: lambda watch=watch: watch(command) for name, watch in watching.items()})
    return samples, {"program": words[0], "arguments": command[1:], "variants": held_against(samples, "unwatched")}


def below(words):
    """Watched by a command that starts it."""
    return lambda command: seconds_of([*words, "--", *command])


def storm(options, words):
    """Programs that fight for locks, watched and not."""
    return compared(options, words, {every: below(stat(options, every)) for every in INTERVALS})[1]


def bystander(options, words):
    """An unrelated program, while a process is watched that sleeps."""
    def watching(command):
        with watched(options, "1s", ["sleep", "3600"]):
            return seconds_of(command)

    return compared(options, words, {"watched": watching})[1]


def locks(options, words):
    """The same storm, watched with more and more of its locks seen; and what each of these costs."""
    # With this threshold nothing is ever shuffled.
    policy = [options.cosched.executable, "exec", "--policy", "shuffling", "--no-guard", "--threshold", 1, "--groups", halves()]
    watching = {
        "stat": stat(options, "1s", "--no-transfers"),
        "stat-transfers": stat(options, "1s"),
        "policy": [*policy, "--sort-by", "lock-time"],
        "policy-locks": [*policy, "--sort-by", "lock"],
    }
    samples, found = compared(options, words, {name: below(watch) for name, watch in watching.items()})
    return found | {"costs": costs(samples)}


def costs(samples):
    return {"transfers": ratio(samples["stat-transfers"], samples["stat"]),
            "locks-apart": ratio(samples["policy-locks"], samples["policy"])}


@contextlib.contextmanager
def watched(options, every, command):
    """Runs a command and a cosched that watches it; gives the cosched, once it has printed its first line."""
    with beside(command) as subject:
        looks = ["stat", "--interval", every, "--pid", subject.pid]
        with options.cosched.beside(*looks, **QUIET | {"stdout": subprocess.PIPE}) as cosched:
            cosched.stdout.readline()
            yield cosched


def own(options):
    """CPU time of a cosched that watches many threads, in percent of one CPU."""
    sleepers = kernel("sleeper", "--threads", CROWD, "--burst", BURST, "--pause", 1000, "--work", 10 * options.watch)
    with watched(options, "1s", sleepers) as cosched:
        percent, took = cpu_percent(cosched.pid, START, options.watch)
    return {"threads": CROWD, "interval": "1s", "seconds": took, "cpu_percent": percent}


def sentences(report):
    """The report in sentences."""
    yield f"Figures by cosched come from: {report['source']}."
    for one in report["storm"]:
        for every in INTERVALS:
            found = one["variants"][every]["ratio"]
            yield (f"{named(one)} watched every {every}: {interval(found)} of its time unwatched; "
                   f"at most {MOST_IN_STORM:.2f}: {judged(found)}.")
    for one in report["bystander"]:
        yield f"{named(one)} while another process is watched: {interval(one['variants']['watched']['ratio'])}."
    for one in report["locks"]:
        ratios = ", ".join(f"{name} {interval(variant['ratio'])}" for name, variant in one["variants"].items() if variant["ratio"])
        yield f"{named(one)}, of its time unwatched: {ratios}."
        yield (f"  To see lock transfers takes {interval(one['costs']['transfers'])} of the time without, to tell locks apart "
               f"{interval(one['costs']['locks-apart'])}.")
    if own_use := report["own"]:
        percent = own_use["cpu_percent"]
        yield (f"cosched itself, watching {own_use['threads']} threads each second: {percent:.3f} % of one CPU; "
               f"at most {MOST_OWN} %: {met(percent <= MOST_OWN)}.")


def named(one):
    return " ".join(map(str, [one["program"], *one["arguments"]]))


def judged(found):
    """What is above the bar is missed only where it differs significantly from no cost at all; few rounds tell nothing."""
    if found["interval"] and found["value"] <= MOST_IN_STORM:
        return "met"
    return "missed" if differs(found) else "undecided"


if __name__ == "__main__":
    run(main, "what was measured before is in monitor.json")
