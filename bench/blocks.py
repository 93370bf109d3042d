#!/usr/bin/env python3
"""blocks.py: which size of code blocks lets fair-progress tell phases apart. bench/results/blocks.md has what it found.

Real programs are sampled as cosched samples them without counters: about each millisecond of CPU time, in user mode. A
quantum has 100 samples then, a quantum of training a quarter. With counters there are 600 or more. Distances are those of
equation 4 of the paper on fair-progress scheduling, 0 to 2; two quanta less than 0.7 apart are of one phase. There are no
times in it, so other processes may run.
"""

import argparse
import ctypes
import json
import mmap
import os
import pathlib
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

PERIOD, SIMILAR = 999_983, 0.7
SIZES = [64, 256, 512, 1024, 2048, 4096, 8192, 16384, 65536]
PAGES = 128
SYS_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}[os.uname().machine]
SAMPLE = 9

# Each operation of a program with known phases lasts for so many CPU seconds in user mode, again and again.
PHASE = 1.2
LOOP = """
import resource, sys
used = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_utime
marks = open(sys.argv[1], "w")
while True:
    for number, operation in enumerate(operations):
        began = used()
        print(number, began, file=marks, flush=True)
        while used() < began + %f: operation()
""" % PHASE
NUMPY = """
import numpy as np
a = np.random.default_rng(1).random((300, 300))
operations = [lambda: a @ a, lambda: np.sort(a, axis=0), lambda: np.linalg.svd(a[:100, :100]), lambda: np.exp(a).sum(axis=0)]
"""
PURE = """
import json, re
data = [{"name": "x%d" % i, "value": [i, i * 2.5]} for i in range(2000)]
text = json.dumps(data)
def count():
    found = {}
    for i in range(20000): found[i % 97] = found.get(i % 97, 0) + i * i
operations = [lambda: json.dumps(data, indent=1), lambda: re.findall(r'"x(\\d+)"|(\\d\\.5)', text), count,
              lambda: sorted(str(n * 7919 % 100003) for n in range(20000))]
"""
SQLITE = """
import sqlite3
base = sqlite3.connect(":memory:")
base.execute("CREATE TABLE t(a INTEGER, b TEXT)")
base.executemany("INSERT INTO t VALUES (?, ?)", ((i, hex(i * 7919 % 10003)) for i in range(20000)))
base.execute("CREATE INDEX ib ON t(b)")
ask = lambda text: lambda: base.execute(text).fetchall()
operations = [ask("SELECT count(DISTINCT a), sum(a) FROM t WHERE b LIKE '%7%'"),
              ask("SELECT count(*) FROM t x JOIN t y ON x.b = y.b"),
              ask("SELECT a, b FROM t ORDER BY a * 7919 % 10007 LIMIT 10"), ask("SELECT group_concat(upper(b)) FROM t")]
"""
PERL = """
my %h; for my $r (1..1000) {
  for my $i (1..200000) { $h{$i % 5000} .= chr(65 + $i % 26) if $i % 3; }
  my $t = join ",", map { $h{$_} // "" } 0..4999; my $n = () = $t =~ /ABC|[XYZ]{2}/g; %h = ();
}
"""


def c_source(functions):
    """A program for the compiler to work on."""
    body = """double f%d(double *a, int n) {
    double s = %d;
    for (int i = 1; i < n; i++) {
        if (a[i] > s) s += a[i] * a[i - 1]; else s -= a[i] / (s + %d);
        switch (i %% 5) { case 0: s *= 2; break; case 1: s += i; break; default: s -= 1; }
    }
    return s;
}"""
    return "\n".join(body % (i, i, i) for i in range(functions))


def programs(folder, numpy):
    """Each with its command; those that are not here are left out. The first ones have known phases."""
    data = folder / "data"
    choice = random.Random(1).choice
    data.write_text(" ".join(choice(["alpha", "beta", "gamma", "%06d" % i]) for i in range(4_000_000)))
    (folder / "big.c").write_text(c_source(6000))
    compiler = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True).stdout.strip()
    marks = lambda name: str(folder / f"{name}.marks")
    wanted = {
        "numpy": [numpy, "-c", NUMPY + LOOP, marks("numpy")],
        "python": [sys.executable, "-c", PURE + LOOP, marks("python")],
        "sqlite": [sys.executable, "-c", SQLITE + LOOP, marks("sqlite")],
        "gcc -O2": [compiler, "-quiet", "-O2", str(folder / "big.c"), "-o", "/dev/null"],
        "xz -6": ["xz", "-6", "-T1", "-c", str(data)],
        "bzip2": ["bzip2", "-c", str(data)],
        "perl": ["perl", "-e", PERL],
    }
    return {name: command for name, command in wanted.items() if command[0] and shutil.which(command[0])}


def opened(pid):
    """An event of a process that has yet to execute its command: samples are taken from then on."""
    flags = 1 << 0 | 1 << 5 | 1 << 6 | 1 << 12  # disabled, no kernel, no hypervisor, on exec
    attributes = struct.pack("<IIQQQQQIIQ", 1, 64, 0, PERIOD, 1, 0, flags, 0, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    event = libc.syscall(SYS_PERF_EVENT_OPEN, ctypes.c_char_p(attributes), pid, -1, -1, 8)
    if event < 0:
        sys.exit(f"blocks.py: the kernel takes no samples for this user: {os.strerror(ctypes.get_errno())}")
    return event, mmap.mmap(event, (1 + PAGES) * mmap.PAGESIZE)


def taken(ring):
    """The instruction pointers that have come."""
    head, tail = struct.unpack_from("<QQ", ring, 1024)
    size, found = PAGES * mmap.PAGESIZE, []
    data = ring[mmap.PAGESIZE:]
    at = lambda position, length: bytes(data[(position + i) % size] for i in range(length))
    while tail < head:
        kind, _, length = struct.unpack("<IHH", at(tail, 8))
        if kind == SAMPLE:
            found.append(struct.unpack("<Q", at(tail + 8, 8))[0])
        tail += length
    struct.pack_into("<Q", ring, 1032, tail)
    return found


def sampled(command, samples):
    """The first samples of a command, and no more."""
    reader, writer = os.pipe()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    child = os.fork()
    if child == 0:
        os.read(reader, 1)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        os.execvpe(command[0], command, environment)
    event, ring = opened(child)
    os.write(writer, b"x")
    found = []
    while len(found) < samples:
        time.sleep(0.05)
        found += taken(ring)
        if os.waitpid(child, os.WNOHANG)[0]:
            found += taken(ring)
            break
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
    ring.close()
    for descriptor in (event, reader, writer):
        os.close(descriptor)
    return found[:samples]


def vector(pointers, size):
    counts = {}
    for pointer in pointers:
        counts[pointer // size] = counts.get(pointer // size, 0) + 1
    return {block: count / len(pointers) for block, count in counts.items()}


def distance(one, other):
    return sum(abs(one.get(block, 0) - other.get(block, 0)) for block in one.keys() | other.keys())


def by_chance(samples, length, size):
    """Distances of two quanta of the same time: every second sample of two quanta in a row makes one."""
    pairs = [samples[start:start + 2 * length] for start in range(0, len(samples) - 2 * length + 1, 2 * length)]
    return [distance(vector(both[::2], size), vector(both[1::2], size)) for both in pairs]


def known(samples, marks, length):
    """Quanta that lie within one known phase, each with the number of that."""
    lines = (line.split() for line in marks.read_text().splitlines())
    starts = [(int(number), float(at) * 1e9 / PERIOD) for number, at in lines]
    ends = [at for _, at in starts[1:]] + [starts[-1][1]]
    found = []
    for (number, begins), end in zip(starts, ends):
        # User time and samples differ by a little.
        first = int(begins) + 60
        while first + length + 60 < min(end, len(samples)):
            found.append((number, samples[first:first + length]))
            first += length
    return found


def judged(quanta, size):
    """How many pairs of quanta of one phase, and of different ones, are judged right; nothing without such pairs."""
    vectors = [(number, vector(pointers, size)) for number, pointers in quanta]
    same, different = [], []
    for i, (number, one) in enumerate(vectors):
        for other_number, other in vectors[i + 1:]:
            (same if number == other_number else different).append(distance(one, other) < SIMILAR)
    return {"same": statistics.mean(same), "different": 1 - statistics.mean(different)} if same and different else {}


def figures(samples, size, marks, quantum):
    share = lambda distances: sum(one < SIMILAR for one in distances) / len(distances)
    whole, training = by_chance(samples, quantum, size), by_chance(samples, quantum // 4, size)
    found = {"blocks": len({pointer // size for pointer in samples}), "chance": statistics.median(whole),
             "alike": share(whole), "alike_training": share(training)}
    if marks.exists():
        found |= judged(known(samples, marks, quantum), size)
    return found


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=20, help="CPU seconds of each program")
    options.add_argument("--samples", type=int, default=100, help="samples in a quantum")
    options.add_argument("--numpy", default=sys.executable, help="a Python that has numpy")
    options.add_argument("--json", type=pathlib.Path, help="where the figures go")
    given = options.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, command in programs(folder, given.numpy).items():
            samples = sampled(command, int(given.seconds * 1e9 / PERIOD))
            if len(samples) < 15 * given.samples:
                print(f"{name}: only {len(samples)} samples, left out", file=sys.stderr)
                continue
            marks = folder / f"{name}.marks"
            found[name] = {"samples": len(samples), **{str(size): figures(samples, size, marks, given.samples) for size in SIZES}}
            print(name, len(samples), file=sys.stderr, flush=True)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    print("| program | block | blocks | distance by chance | quanta alike | training alike | same phase | different phases |")
    print("|---|---|---|---|---|---|---|---|")
    for name, of in found.items():
        for size in SIZES:
            f = of[str(size)]
            right = " | ".join(f"{f[kind]:.0%}" if kind in f else "" for kind in ("same", "different"))
            print(f"| {name} | {size} | {f['blocks']} | {f['chance']:.2f} | {f['alike']:.0%} | {f['alike_training']:.0%} "
                  f"| {right} |")


if __name__ == "__main__":
    main()
