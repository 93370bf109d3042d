#!/usr/bin/env python3
"""shuffling.py: what thread shuffling does to locks and programs. `make bench-shuffling` runs it.

docs/research/shuffling-benchmark.md has its cells and variants. In every run `cosched stat` tells
how many locks are handed on between the groups, and how long threads wait at locks; the program
tells how fast it is. It writes shuffling.json (for scripts) and shuffling.md into --out.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import shuffling_verdicts
from lib import rounds
from lib.options import read
from lib.report import Report
from lib.runner import (QUIET, beside, cell_folder, cpu_percent, cpus, fitted, halves, kernel,
                        leave_out, plain_environment, run, say, told_seconds)

SCHEMA = "cosched-bench-shuffling/2"
# The guard's moments are as long as an interval: with the slides' half second a run would be over before a trial is.
VARIANTS = {"linux": None, "unguarded": ["--no-guard"], "guarded": ["--interval", "100ms"]}
PORT, CLIENTS = 21211, 4
# Seconds for which cosched's own CPU time is taken, after so many in which it starts.
WATCH, START = 8, 3


def main():
    options = read(__doc__, "shuffling", seconds=4.0, cells=True)
    plain_environment()
    groups = halves()
    report = Report(options, SCHEMA, shuffling_verdicts.sentences, shuffling_verdicts.markdown, shuffling_verdicts.judge,
                    cpus=cpus(), groups=groups, seconds=options.seconds,
                    variants={variant: " ".join(words or []) for variant, words in VARIANTS.items()},
                    source=None, left_out={}, own={}, cells=[])
    chosen = rounds.chosen(cells(cpus()), options)
    if not shutil.which("memcached") or not shutil.which("memcslap"):
        leave_out(report["left_out"], "memcached", "there is no memcached or no memcslap here (Debian: libmemcached-tools)")
        chosen = [cell for cell in chosen if not isinstance(cell, Server)]
    say("what cosched itself uses")
    report["own"] = {variant: own_use(options, groups, words) for variant, words in VARIANTS.items() if words}
    report.measure(chosen, lambda cell: measured(options, cell, groups, report))
    report.done()


class Kernel:
    """A program of workloads/ that does so much work."""

    def __init__(self, name, *words):
        self.name, self.words = name, words

    @contextlib.contextmanager
    def started(self, amount, folder):
        """The process, and a function that waits for its end and gives seconds."""
        command = kernel(*self.words, "--work", f"{amount:.4g}")
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            yield process, lambda: told_seconds(process.communicate()[0])


class Server:
    """A memcached of our own on the loopback, with clients that store so many thousand keys each."""

    def __init__(self, name, threads):
        self.name, self.threads = name, threads

    @contextlib.contextmanager
    def started(self, amount, folder):
        user = ["-u", "root"] if os.geteuid() == 0 else []
        command = ["memcached", *user, "-l", "127.0.0.1", "-p", str(PORT), "-U", "0", "-t", str(self.threads)]

        def ended():
            keys = max(100, round(1000 * amount))
            load = ["memcslap", f"--servers=127.0.0.1:{PORT}", "-c", str(CLIENTS), "-t", "set",
                    "-e", str(keys)]
            done = subprocess.run(load, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            told = r"^Time to set +\d+ keys by .*: +([0-9.]+) seconds"
            match = re.search(told, done.stdout, re.MULTILINE)
            return float(match[1]) if match else None

        with beside(command, signal.SIGTERM, cwd=folder, stderr=subprocess.DEVNULL) as server:
            wait_for_port(server)
            yield server, ended


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

    def loop(hold, *more):
        name = f"lock-loop {hold}/{hold} x{many}" + (", 2 locks" if more else "")
        return Kernel(name, "lock-loop", "--threads", many, "--hold", hold, "--gap", hold, *more)

    return [loop(1000), loop(1000, "--locks", 2), loop(100, "--locks", 2),
            Kernel(f"nested-locks 8 x{many}", "nested-locks", "--threads", many, "--accounts", 8),
            Server(f"memcached x{2 * cpus}", 2 * cpus)]


def measured(options, cell, groups, report):
    """What all variants make of one cell."""
    folder = cell_folder(options.folder, cell.name)

    def took(amount):
        with cell.started(amount, folder) as (_, ended):
            return ended()

    def variant(name):
        numbers = iter(range(options.runs))
        return lambda: one_run(options, cell, amount, groups, VARIANTS[name], folder / f"{name}-{next(numbers)}")

    amount = fitted(took, 0.5, options.seconds)
    found = {"cell": cell.name, "amount": amount, "failed": amount is None, "runs": {}}
    if amount is None:
        return found
    runs = rounds.by_figure(rounds.in_turn(options.runs, {name: variant(name) for name in VARIANTS}))
    sources = [of_variant.pop("source") for of_variant in runs.values()]
    report["source"] = report["source"] or sources[0][0]
    return found | {"failed": any(None in of_variant["seconds"] for of_variant in runs.values()), "runs": runs}


def shuffled(options, groups, words, out, process):
    """A cosched that shuffles a process until it is not needed any more."""
    return options.cosched.beside("attach", "--policy", "shuffling", "--groups", groups, *words, "--out", out, process.pid, **QUIET)


def one_run(options, cell, amount, groups, words, folder):
    """One run: what the program tells of itself, and cosched of its locks and of what it used."""
    folder.mkdir()
    watch = ["stat", "--groups", groups, "--interval", "200ms", "--json", "--pid"]
    with cell.started(amount, folder) as (process, ended), open(folder / "stat.jsonl", "w") as lines:
        shuffles = contextlib.nullcontext() if words is None else shuffled(options, groups, words, folder / "out", process)
        with options.cosched.beside(*watch, process.pid, **QUIET | {"stdout": lines}), shuffles:
            seconds = ended()
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


def own_use(options, groups, words):
    """What a cosched that shuffles uses of all CPUs, in percent, once it has started."""
    program = kernel("lock-loop", "--threads", 4 * cpus(), "--hold", 1000, "--gap", 1000, "--work", 1000)
    out = options.folder / f"own{len(words)}"
    with beside(program) as process:
        with shuffled(options, groups, words, out, process) as cosched:
            percent, _ = cpu_percent(cosched.pid, START, WATCH)
    return percent / cpus()


def moves(file):
    """How often threads were moved, and how often the guard has kept groups."""
    if not file.exists():
        return {"moved": None, "kept": None}
    result = json.loads(file.read_text())
    reasons = [reason for decision in result["decisions"] for reason in decision["reasons"]]
    moved = sum(reason["moved"] for reason in reasons if reason["why"] == "shuffled")
    return {"moved": moved, "kept": sum(reason["why"] == "groups-kept" for reason in reasons)}


if __name__ == "__main__":
    run(main, "what was measured before is in shuffling.json")
