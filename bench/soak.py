#!/usr/bin/env python3
"""soak.py: whether cosched itself grows in a long run. `make soak` runs it.

Twenty short programs are run again and again beside two that compute. Every ten seconds the memory, the open
descriptors and the undo log of cosched are read. After the first ten minutes none of them may grow by more than the
limits below. With --hours 0.25 it takes a quarter of an hour.
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from lib.runner import program

WARM_UP = 600.0
PAUSE = 10.0
# How much each may grow after the warm-up.
LIMITS = {"memory KiB": 2048, "descriptors": 4, "undo log bytes": 2 << 20}
PROGRAMS = 20
WORKLOAD = "\n".join([
    *(program(["sh", "-c", f"sleep 0.{i % 10}"], name=f"short-{i}", repeat=4_000_000_000, threads=1) for i in range(PROGRAMS)),
    *(program(["sh", "-c", "while :; do :; done"], name=f"long-{i}", threads=1) for i in range(2))])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cosched", type=pathlib.Path, required=True)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--policy", default="turns")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "jobs.toml").write_text(WORKLOAD)
        (folder / "run").mkdir(mode=0o700)
        environment = os.environ | {"XDG_RUNTIME_DIR": str(folder / "run"), "XDG_DATA_HOME": str(folder / "data")}
        run = subprocess.Popen(
            [options.cosched.absolute(), "run", "jobs.toml", "--policy", options.policy, "--out", "out"],
            cwd=folder, env=environment, stdout=subprocess.DEVNULL)
        try:
            grown = watch(run, folder, time.time() + 3600 * options.hours)
        finally:
            run.send_signal(signal.SIGTERM)
            run.wait()
    for what, (first, last) in grown.items():
        print(f"{what}: {first} after the warm-up, {last} at the end, at most {LIMITS[what]} more allowed")
    if any(last - first > LIMITS[what] for what, (first, last) in grown.items()):
        sys.exit("soak: cosched has grown")


def watch(run, folder, end):
    """What was found after the warm-up, and at the end."""
    began, first, last = time.time(), None, None
    while time.time() < end:
        time.sleep(PAUSE)
        if run.poll() is not None:
            sys.exit(f"soak: cosched has ended with {run.returncode}")
        last = look(run.pid, folder)
        print(f"soak: {time.time() - began:.0f} s: " + ", ".join(f"{value} {what}" for what, value in last.items()), flush=True)
        if first is None and time.time() - began >= min(WARM_UP, (end - began) / 2):
            first = last
    return {what: (first[what], last[what]) for what in LIMITS}


def look(pid, folder):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    memory = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon"))
    logs = (folder / "run/cosched").glob("*.undo")
    return {"memory KiB": memory, "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
            "undo log bytes": sum(log.stat().st_size for log in logs)}


if __name__ == "__main__":
    main()
