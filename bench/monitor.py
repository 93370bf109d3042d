#!/usr/bin/env python3
"""monitor.py: what it costs that cosched watches. `make bench-lock` runs it after lock.py.

Four questions, each answered by runs in turn (A B C, B C A), with intervals of 98 %:

- storm: how much longer do programs take that fight for locks as much as they can while `cosched stat` watches them,
  each second and every 10 ms?
- bystander: how much longer does an unrelated program take that lives in system calls or wake-ups, while something
  else is watched? What is attached in the kernel is attached for the whole machine.
- locks: of that, what does it cost to see lock transfers (`cosched stat` does), and to tell locks apart (the policy
  `shuffling` does)? The policy watches here, and does nothing.
- own: how much CPU time does cosched itself use that watches 1,000 threads each second, all of which work a little?

It writes monitor.json into --out (docs/research/lock-benchmark.md describes it); `--parts` chooses some of them only.
Without the right to attach programs in the kernel (BPF) cosched samples /proc; the report says which it was.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import time

from gang import WORKLOADS, elapsed, interval, plain_environment, say
from ratio import differs, ratio

SCHEMA = "cosched-bench-monitor/3"
INTERVALS = ["1s", "10ms"]
PARTS = ["storm", "bystander", "locks", "own"]
# A first run takes at least this share of the time that is wanted, before its work is scaled.
ENOUGH = 0.2
# Threads that are watched, and how long each computes, in milliseconds, before a second of sleep.
CROWD, BURST = 1000, 0.2
# What is good enough: of the time unwatched, and percent of a CPU.
MOST_IN_STORM, MOST_OWN = 1.01, 0.1


def main():
    options = arguments()
    began = time.time()
    plain_environment()
    report = {"schema": SCHEMA, "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
              "cpus": len(os.sched_getaffinity(0)), "rounds": options.runs, "seconds": options.seconds,
              "source": source(options), "storm": [], "bystander": [], "locks": [], "own": None}
    if report["source"] != "kernel":
        say("cosched may not attach programs in the kernel here (BPF; `cosched doctor` tells more): it samples /proc")
    # Nothing of an earlier run may pass for this one's.
    save(options.out, report)
    cpus = report["cpus"]
    storms = [["lock-loop", "--threads", 4 * cpus, "--hold", 100, "--gap", 100],
              *(["nested-locks", "--threads", 4 * cpus, "--accounts", accounts] for accounts in [2, 8])]
    bystanders = [["system-calls", "--threads", cpus], ["pipe-ring", "--threads", 2]]
    # There are no two groups on one CPU.
    fights = [storms[0], storms[-1]] if cpus > 1 else []
    parts = [("storm", storms, storm), ("bystander", bystanders, bystander), ("locks", fights, locks)]
    for kind, programs, measure in parts:
        for words in programs if kind in options.parts else []:
            say(f"{kind}: {' '.join(map(str, words))}; {elapsed(began)} so far")
            report[kind].append(measure(options, words))
            save(options.out, report)
    if "own" in options.parts:
        say(f"own: {CROWD} threads; {elapsed(began)} so far")
        report["own"] = own(options)
    save(options.out, report)
    say(f"done in {elapsed(began)}: {options.out}/monitor.json")
    print("\n".join(sentences(report)))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cosched", type=pathlib.Path, required=True, help="the executable")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("target/bench"))
    parser.add_argument("--runs", type=int, default=10, help="rounds; below 7 no difference is significant")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each program")
    parser.add_argument("--watch", type=float, default=20.0, help="seconds for which cosched's own CPU time is taken")
    parser.add_argument("--parts", default=",".join(PARTS), help="only these, separated by commas")
    options = parser.parse_args()
    options.parts = options.parts.split(",")
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"--parts: {', '.join(sorted(unknown))}: the parts are {', '.join(PARTS)}")
    options.cosched, options.out = options.cosched.resolve(), options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    return options


def save(out, report):
    (out / "monitor.json").write_text(json.dumps(report, indent=1) + "\n")


def stat(options, every, *words):
    return [options.cosched, "stat", "--interval", every, *map(str, words)]


def source(options):
    """Where cosched's figures come from: kernel, or sampled."""
    done = subprocess.run(stat(options, "10ms", "--json", "--", "sleep", "0.1"), stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout.splitlines()[0])["source"]


def seconds(command):
    """How long a kernel took, by its own word."""
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    match = re.search(r" ok .* seconds=([0-9.]+)", done.stdout)
    if done.returncode != 0 or not match:
        sys.exit(f"bench: {' '.join(map(str, command))} failed")
    return float(match[1])


def fitted(options, words):
    """The kernel's command, with as much work as takes the time that is wanted."""
    command, work = [WORKLOADS / "bin" / words[0], *words[1:], "--work"], 0.2
    while (took := seconds([*command, work])) < ENOUGH * options.seconds:
        work *= min(10.0, 0.5 * options.seconds / max(took, 1e-3))
    return [*command, f"{work * options.seconds / took:.4g}"]


def in_turn(rounds, variants):
    """How long each of the variants took in each round; each round begins with the next one."""
    samples = {name: [] for name in variants}
    names = list(variants)
    for round_ in range(rounds):
        for name in names[round_ % len(names):] + names[:round_ % len(names)]:
            samples[name].append(variants[name]())
    return samples


def held_against(samples, first):
    """The figures of each variant, with its ratio to the first one."""
    return {name: {"seconds": times, "median_seconds": statistics.median(times),
                   "ratio": None if name == first else ratio(times, samples[first])} for name, times in samples.items()}


def storm(options, words):
    """Programs that fight for locks, watched and not."""
    command = fitted(options, words)
    variants = {"unwatched": lambda: seconds(command)}
    for every in INTERVALS:
        variants[every] = lambda every=every: seconds([*stat(options, every, "--"), *command])
    return {"program": words[0], "arguments": command[1:], "variants": held_against(in_turn(options.runs, variants), "unwatched")}


def bystander(options, words):
    """An unrelated program, while a process is watched that sleeps."""
    command = fitted(options, words)

    def beside():
        with watched(options, "1s", ["sleep", "3600"]):
            return seconds(command)

    variants = {"unwatched": lambda: seconds(command), "watched": beside}
    return {"program": words[0], "arguments": command[1:],
            "variants": held_against(in_turn(options.runs, variants), "unwatched")}


def locks(options, words):
    """The same storm, watched with more and more of its locks seen; and what each of these costs."""
    command = fitted(options, words)
    # With this threshold nothing is ever shuffled.
    policy = [options.cosched, "exec", "--policy", "shuffling", "--no-guard", "--threshold", 1, "--groups", halves()]
    watching = {
        "stat": stat(options, "1s", "--no-transfers"),
        "stat-transfers": stat(options, "1s"),
        "policy": [*policy, "--sort-by", "lock-time"],
        "policy-locks": [*policy, "--sort-by", "lock"],
    }
    variants = {"unwatched": lambda: seconds(command)}
    for name, watch in watching.items():
        variants[name] = lambda watch=watch: seconds([*watch, "--", *command])
    samples = in_turn(options.runs, variants)
    costs = {"transfers": ratio(samples["stat-transfers"], samples["stat"]),
             "locks-apart": ratio(samples["policy-locks"], samples["policy"])}
    return {"program": words[0], "arguments": command[1:], "variants": held_against(samples, "unwatched"), "costs": costs}


def halves():
    """Two groups of the CPUs that may be used, as options of cosched name them."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        sys.exit("bench: with one CPU there is nothing to shuffle between")
    half = len(cpus) // 2
    return ",".join("+".join(map(str, part)) for part in (cpus[:half], cpus[half:]))


@contextlib.contextmanager
def watched(options, every, command):
    """Runs a command and a cosched that watches it; gives the cosched, once it has printed its first line."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as subject:
        try:
            looks = stat(options, every, "--pid", subject.pid)
            with subprocess.Popen(looks, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as cosched:
                try:
                    cosched.stdout.readline()
                    yield cosched
                finally:
                    cosched.send_signal(signal.SIGINT)
        finally:
            subject.kill()


def own(options):
    """CPU time of a cosched that watches many threads, in percent of one CPU."""
    work = 10 * options.watch
    sleepers = [WORKLOADS / "bin" / "sleeper", "--threads", CROWD, "--burst", BURST, "--pause", 1000, "--work", work]
    with watched(options, "1s", [str(word) for word in sleepers]) as cosched:
        # The threads have been made, and the first interval has been read.
        time.sleep(3)
        before, since = cpu_seconds(cosched.pid), time.monotonic()
        time.sleep(options.watch)
        used, took = cpu_seconds(cosched.pid) - before, time.monotonic() - since
    return {"threads": CROWD, "interval": "1s", "seconds": took, "cpu_percent": 100 * used / took}


def cpu_seconds(process):
    """CPU time of all threads so far, to the nanosecond."""
    tasks = pathlib.Path(f"/proc/{process}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


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
               f"at most {MOST_OWN} %: {'met' if percent <= MOST_OWN else 'missed'}.")


def named(one):
    return " ".join(map(str, [one["program"], *one["arguments"]]))


def judged(found):
    """What is above the bar is missed only where it differs significantly from no cost at all; few rounds tell nothing."""
    if found["interval"] and found["value"] <= MOST_IN_STORM:
        return "met"
    return "missed" if differs(found) else "undecided"


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("bench: interrupted; what was measured before is in monitor.json")
