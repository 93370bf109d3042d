#!/usr/bin/env python3
"""Records what this kernel does with a few threads, and prints it as a table (TOML).

    sudo ./record.py > linux-6.18-2cpus.toml
    guest/record.sh 8 > linux-6.12-8cpus.toml     in an emulated machine with a clock that counts
                                                  instructions

Needs root, gcc, tracefs and an otherwise idle machine with 2, 4 or 8 CPUs: each has cases of its
own. Every case is recorded three times for four seconds with the events sched_switch and
sched_waking; the run with the median of the switches is kept. With threads.c, compiled,
as an argument (`record.py PROGRAM`), every case is recorded once: for deterministic machines, and
for machines without gcc.
"""
import os
import re
import subprocess
import sys
import tempfile

TRACING = "/sys/kernel/tracing/instances/threads"
SECONDS = 4
# Name, mask of CPUs, threads: microseconds of CPU time / of sleep.
TWO_CPUS = [
    ("two spin on one CPU", 2, ["1000/0"] * 2),
    ("three spin on one CPU", 2, ["1000/0"] * 3),
    ("three spin on two CPUs", 3, ["1000/0"] * 3),
    ("four spin on two CPUs", 3, ["1000/0"] * 4),
    ("five spin on two CPUs", 3, ["1000/0"] * 5),
    ("one spins, one sleeps, on one CPU", 2, ["1000/0", "500/5000"]),
    ("two spin, one sleeps, on one CPU", 2, ["1000/0", "1000/0", "1000/4000"]),
    ("two spin, one sleeps long, on one CPU", 2, ["1000/0", "1000/0", "300/20000"]),
    ("three spin, three sleep, on two CPUs", 3, ["1000/0"] * 3 + ["500/3000", "500/5000", "2000/9000"]),
    ("nice 0 and nice 5 on one CPU", 2, ["1000/0", "1000/0,nice=5"]),
    ("slices of 20 and 3 ms on one CPU", 2, ["1000/0,slice=20000", "1000/0,slice=3000"]),
    ("slices of 20 ms on one CPU", 2, ["1000/0,slice=20000"] * 2),
    ("a short slice wakes up on one CPU", 2, ["1000/0", "1000/0", "200/5000,slice=100"]),
    ("batch wakes up on one CPU", 2, ["1000/0", "1000/0", "1000/4000,batch"]),
]
# CPUs of an emulated machine take turns: each is slower the more of them are busy, and a wake-up
# takes long. All are therefore busy here, and threads compute and sleep for 10 ms or more.
FOUR_CPUS = [
    ("three spin on four CPUs", 15, ["1000/0"] * 3),
    ("five spin on four CPUs", 15, ["1000/0"] * 5),
    ("six spin on four CPUs", 15, ["1000/0"] * 6),
    ("eight spin on four CPUs", 15, ["1000/0"] * 8),
    ("twelve spin on four CPUs", 15, ["1000/0"] * 12),
    ("eight spin, four sleep, on four CPUs", 15, ["1000/0"] * 8 + ["3000/30000"] * 4),
    ("four spin, four sleep, on four CPUs", 15, ["1000/0"] * 4 + ["3000/50000"] * 4),
    ("nice 0 and nice 5 on four CPUs", 15, ["1000/0"] * 4 + ["1000/0,nice=5"] * 4),
]
EIGHT_CPUS = [
    ("six spin on eight CPUs", 255, ["1000/0"] * 6),
    ("nine spin on eight CPUs", 255, ["1000/0"] * 9),
    ("twelve spin on eight CPUs", 255, ["1000/0"] * 12),
    ("sixteen spin on eight CPUs", 255, ["1000/0"] * 16),
    ("eight spin, four sleep, on eight CPUs", 255, ["1000/0"] * 8 + ["1500/30000"] * 4),
]
CASES = {2: TWO_CPUS, 4: FOUR_CPUS, 8: EIGHT_CPUS}


def write(name, text):
    with open(os.path.join(TRACING, name), "w") as file:
        file.write(text)


def record(program, mask, threads):
    write("tracing_on", "0")
    write("trace", "")
    write("buffer_size_kb", "8192")
    write("options/event-fork", "1")
    for event in ("sched_switch", "sched_waking"):
        write(f"events/sched/{event}/enable", "1")
    words = " ".join(threads)
    script = f"echo $$ > {TRACING}/set_event_pid; echo 1 > {TRACING}/tracing_on; exec {program} {SECONDS} {mask} {words}"
    out = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    write("tracing_on", "0")
    with open(f"{TRACING}/trace") as file:
        trace = file.read().splitlines()
    write("set_event_pid", "")
    return [line.split() for line in out.splitlines()], trace


def latencies(tids, trace):
    """From waking to running, microseconds, for each thread."""
    found, woken = {tid: [] for tid in tids}, {}
    for line in trace:
        match = re.search(r"\s(\d+\.\d+): (sched_\w+): (.*)", line)
        if not match:
            continue
        at, event, rest = float(match[1]), match[2], match[3]
        if event == "sched_waking":
            woken[re.search(r" pid=(\d+)", rest)[1]] = at
        else:
            tid = re.search(r"next_pid=(\d+)", rest)[1]
            if tid in woken and tid in found:
                found[tid].append((at - woken.pop(tid)) * 1e6)
    return found


def compiled():
    program = os.path.join(tempfile.mkdtemp(), "threads")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "threads.c")
    subprocess.run(["gcc", "-O2", "-pthread", "-o", program, source], check=True)
    return program


def main():
    program, times = (sys.argv[1], 1) if len(sys.argv) > 1 else (compiled(), 3)
    if not os.path.exists("/sys/kernel/tracing/trace"):
        subprocess.run(["mount", "-t", "tracefs", "nodev", "/sys/kernel/tracing"], check=True)
    os.makedirs(TRACING, exist_ok=True)
    print("# Recorded by record.py; per thread: share of one CPU, switches per second because it waited and because the CPU was")
    print("# taken away, share of the time in queues, and microseconds from waking to running (median, 95 %).")
    print(f"kernel = \"{os.uname().release.split('-')[0]}\"\ncpus = {os.cpu_count()}\nseconds = {SECONDS}")
    for name, mask, threads in CASES[os.cpu_count()]:
        runs = []
        for _ in range(times):
            lines, trace = record(program, mask, threads)
            runs.append((sum(int(l[2]) + int(l[3]) for l in lines), lines, trace))
        _, lines, trace = sorted(runs, key=lambda run: run[0])[times // 2]
        waits = latencies([line[0] for line in lines], trace)
        print(f"\n[[case]]\nname = \"{name}\"\ncpus = {bin(mask).count('1')}")
        for thread, line in zip(threads, lines):
            tid, ran, voluntary, involuntary, queued = line
            wait = sorted(waits[tid])
            quantile = lambda share: wait[int(share * (len(wait) - 1))] if len(wait) > 20 else 0
            print(
                f"[[case.thread]]\ndoes = \"{thread}\"\nshare = {int(ran) / SECONDS / 1e9:.4f}\n"
                f"voluntary = {int(voluntary) / SECONDS:.1f}\ninvoluntary = {int(involuntary) / SECONDS:.1f}\n"
                f"queued = {int(queued) / SECONDS / 1e9:.4f}\nlatency = [{quantile(0.5):.0f}, {quantile(0.95):.0f}]"
            )
        sys.stdout.flush()
    os.rmdir(TRACING)


main()
