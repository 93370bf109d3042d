#!/usr/bin/env python3
"""shuffling.py: what thread shuffling does to locks and to programs on this machine. `make bench-shuffling` runs it.

The CPUs are two groups, halves of those that may be used. In each cell a program with threads that fight for locks is run in
turn (A B C, B C A): under plain Linux, with `cosched attach --policy shuffling --no-guard` (what the slides describe), and
with the guard. In every run `cosched stat` tells how many locks are handed on between the groups, and how long threads wait
at locks; the program tells how fast it is.

It writes shuffling.json (for scripts; docs/research/shuffling-benchmark.md describes it) and shuffling.md into --out.
Only the standard library is needed. What cannot be had here is left out, and said so.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import command_line
import shuffling_verdicts
from gang import WORKLOADS, elapsed, plain_environment, say
from monitor import ENOUGH, cpu_seconds, halves, in_turn

SCHEMA = "cosched-bench-shuffling/2"
# The guard's moments are as long as an interval: with the slides' half second a run would be over before a trial is.
VARIANTS = {"linux": None, "unguarded": ["--no-guard"], "guarded": ["--interval", "100ms"]}
PORT, CLIENTS = 21211, 4
# Seconds for which cosched's own CPU time is taken, after so many in which it starts.
WATCH, START = 8, 3


def main():
    options = arguments()
    began = time.time()
    plain_environment()
    groups = halves()
    report = {"schema": SCHEMA, "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
              "cpus": len(os.sched_getaffinity(0)), "groups": groups, "rounds": options.runs,
              "seconds": options.seconds, "variants": {variant: " ".join(words or []) for variant, words in VARIANTS.items()},
              "source": None, "left_out": {}, "own": {}, "cells": []}
    chosen = command_line.chosen(cells(report["cpus"]), options)
    if not shutil.which("memcached") or not shutil.which("memcslap"):
        report["left_out"]["memcached"] = "there is no memcached or no memcslap here (Debian: libmemcached-tools)"
        say(f"memcached is left out: {report['left_out']['memcached']}")
        chosen = [cell for cell in chosen if not isinstance(cell, Server)]
    say("what cosched itself uses")
    report["own"] = {variant: own_use(options, report["cpus"], groups, words) for variant, words in VARIANTS.items() if words}
    for number, cell in enumerate(chosen):
        say(f"cell {number + 1} of {len(chosen)}: {cell.name}; {elapsed(began)} so far")
        report["cells"].append(measured(options, cell, groups, report))
        shuffling_verdicts.judge(report)
        save(options.out, report)
    say(f"done in {elapsed(began)}: {options.out}/shuffling.json and shuffling.md")
    print("\n".join(shuffling_verdicts.sentences(report)))


def arguments():
    parser = command_line.common(__doc__.splitlines()[0], 4.0, "of each run")
    return command_line.parsed(parser, "shuffling", ["json", "md"])


class Kernel:
    """A program of workloads/ that does so much work."""

    def __init__(self, name, *words):
        self.name, self.words = name, [str(word) for word in words]

    @contextlib.contextmanager
    def started(self, amount, folder):
        """The process, and a function that waits for its end and gives seconds."""
        command = [WORKLOADS / "bin" / self.words[0], *self.words[1:], "--work", f"{amount:.4g}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            def ended():
                match = re.search(r" ok .* seconds=([0-9.]+)", process.communicate()[0])
                return float(match[1]) if match else None

            yield process, ended


class Server:
    """A memcached of our own on the loopback, with clients that store so many thousand keys each."""

    def __init__(self, name, threads):
        self.name, self.threads = name, threads

    @contextlib.contextmanager
    def started(self, amount, folder):
        user = ["-u", "root"] if os.geteuid() == 0 else []
        command = ["memcached", *user, "-l", "127.0.0.1", "-p", str(PORT), "-U", "0", "-t", str(self.threads)]
        with subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL) as server:
            try:
                wait_for_port(server)

                def ended():
                    load = ["memcslap", f"--servers=127.0.0.1:{PORT}", "-c", str(CLIENTS), "-t", "set", "-e",
                            str(max(100, round(1000 * amount)))]
                    done = subprocess.run(load, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                    match = re.search(r"^Time to set +\d+ keys by .*: +([0-9.]+) seconds", done.stdout, re.MULTILINE)
                    return float(match[1]) if match else None

                yield server, ended
            finally:
                server.terminate()


def wait_for_port(server):
    for _ in range(500):
        with socket.socket() as line:
            if server.poll() is None and line.connect_ex(("127.0.0.1", PORT)) == 0:
                return
        time.sleep(0.02)
    sys.exit(f"bench: memcached did not answer on port {PORT} of the loopback within 10 s")


def cells(cpus):
    """Threads that all wait for one lock; that wait equally long for one of two; for some of many; a server."""
    many = 4 * cpus
    return [
        Kernel(f"lock-loop 1000/1000 x{many}", "lock-loop", "--threads", many, "--hold", 1000, "--gap", 1000),
        Kernel(f"lock-loop 1000/1000 x{many}, 2 locks", "lock-loop", "--threads", many, "--hold", 1000, "--gap", 1000,
               "--locks", 2),
        Kernel(f"lock-loop 100/100 x{many}, 2 locks", "lock-loop", "--threads", many, "--hold", 100, "--gap", 100,
               "--locks", 2),
        Kernel(f"nested-locks 8 x{many}", "nested-locks", "--threads", many, "--accounts", 8),
        Server(f"memcached x{2 * cpus}", 2 * cpus),
    ]


def measured(options, cell, groups, report):
    """What all variants make of one cell."""
    folder = options.folder / "".join(letter if letter.isalnum() else "-" for letter in cell.name)
    folder.mkdir()
    amount = fitted(options, cell, folder)
    found = {"cell": cell.name, "amount": amount, "failed": amount is None, "runs": {}}
    if amount is None:
        return found

    def variant(name):
        rounds = iter(range(options.runs))
        return lambda: run(options, cell, amount, groups, VARIANTS[name], folder / f"{name}-{next(rounds)}")

    results = in_turn(options.runs, {name: variant(name) for name in VARIANTS})
    found["failed"] = any(one["seconds"] is None for rounds in results.values() for one in rounds)
    report["source"] = report["source"] or results["linux"][0]["source"]
    found["runs"] = {name: {key: [one[key] for one in rounds] for key in rounds[0] if key != "source"}
                     for name, rounds in results.items()}
    return found


def fitted(options, cell, folder):
    """How much work takes the time that is wanted, under plain Linux."""
    amount = 0.5
    for _ in range(8):
        with cell.started(amount, folder) as (_, ended):
            took = ended()
        if took is None:
            return None
        if took >= ENOUGH * options.seconds:
            return amount * options.seconds / took
        amount *= min(10.0, 0.5 * options.seconds / max(took, 1e-3))
    return None


def run(options, cell, amount, groups, words, folder):
    """One run: what the program tells of itself, and cosched of its locks and of what it used."""
    folder.mkdir()
    with cell.started(amount, folder) as (process, ended):
        watch = [options.cosched.executable, "stat", "--groups", groups, "--interval", "200ms", "--json", "--pid"]
        with open(folder / "stat.jsonl", "w") as lines, \
             subprocess.Popen([*watch, str(process.pid)], stdout=lines, stderr=subprocess.DEVNULL) as stat:
            policy = None
            if words is not None:
                attach = [options.cosched.executable, "attach", "--policy", "shuffling", "--groups", groups, *words,
                          "--out", folder / "out", str(process.pid)]
                policy = subprocess.Popen(attach, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            seconds = ended()
            for cosched in filter(None, [stat, policy]):
                with contextlib.suppress(ProcessLookupError):
                    cosched.send_signal(signal.SIGINT)
            if policy:
                policy.wait()
    return {"seconds": seconds, **locks(folder / "stat.jsonl"), **moves(folder / "out" / "run.json")}


def locks(file):
    """Of all intervals: transfers per second, the share of them that go across, and the share of time at locks."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    programs = [(line["interval_seconds"], line["programs"][0]) for line in lines]
    length = sum(seconds for seconds, _ in programs) or 1.0
    count = [seconds * (program["lock_transfers_per_second"] or 0.0) for seconds, program in programs]
    across = sum(one * (program["across_share"] or 0.0) for one, (_, program) in zip(count, programs))
    waited = sum(seconds * (program["lock_share"] or 0.0) for seconds, program in programs)
    return {"source": lines[0]["source"] if lines else None, "transfers_per_second": sum(count) / length,
            "across_share": across / sum(count) if sum(count) else None, "lock_share": waited / length}


def own_use(options, cpus, groups, words):
    """What a cosched that shuffles uses of all CPUs, in percent, once it has started."""
    kernel = [WORKLOADS / "bin" / "lock-loop", "--threads", str(4 * cpus), "--hold", "1000", "--gap", "1000", "--work", "1000"]
    with subprocess.Popen(kernel, stdout=subprocess.DEVNULL) as process:
        try:
            attach = [options.cosched.executable, "attach", "--policy", "shuffling", "--groups", groups, *words, "--out",
                      options.folder / f"own{len(words)}", str(process.pid)]
            with subprocess.Popen(attach, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as cosched:
                time.sleep(START)
                before, since = cpu_seconds(cosched.pid), time.monotonic()
                time.sleep(WATCH)
                used, took = cpu_seconds(cosched.pid) - before, time.monotonic() - since
                cosched.send_signal(signal.SIGINT)
        finally:
            process.kill()
    return 100 * used / took / cpus


def moves(file):
    """How often threads were moved, and how often the guard has kept groups."""
    if not file.exists():
        return {"moved": None, "kept": None}
    result = json.loads(file.read_text())
    reasons = [reason for decision in result["decisions"] for reason in decision["reasons"]]
    moved = sum(reason["moved"] for reason in reasons if reason["why"] == "shuffled")
    return {"moved": moved, "kept": sum(reason["why"] == "groups-kept" for reason in reasons)}


def save(out, report):
    (out / "shuffling.json").write_text(json.dumps(report, indent=1) + "\n")
    (out / "shuffling.md").write_text("\n".join(shuffling_verdicts.markdown(report)) + "\n")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("bench: interrupted; what was measured before is in shuffling.json")
