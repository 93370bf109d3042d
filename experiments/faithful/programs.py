"""The paper's 21 programs as models, by contention class: chosen before any claim was run, and fitted to none.

A class says how much of a thread's own time lies in critical sections under one lock, how often threads wait at a barrier, and
how unevenly work is divided. Beside that a program has its misses, of the order that is published for its suite. The work
of a program is the same whatever its number of threads, as that of the paper's inputs is.
"""

import dataclasses

CORES, GIGAHERTZ = 24, 2.4
# Seconds of computing on all cores: as long as a few intervals of the policy, and short enough to be simulated often.
SECONDS = 12.0
# Inside each critical section, seconds; about ten times what putting a thread to sleep and waking it costs.
HOLD = 50e-6
# A thread spins for a mutex for so long at most (libc's 1,000 looks), and at a barrier (the runtime's).
SPIN = "10us"


@dataclasses.dataclass(frozen=True)
class Contention:
    """Of a class: share of a thread's own time under the lock, barriers per second on 24 idle cores, imbalance."""

    share: float
    barriers: float
    imbalance: float


CLASSES = {
    # With 24 threads the lock is used all the time.
    "high": Contention(share=0.04, barriers=20, imbalance=0.10),
    # A quarter of the time.
    "medium": Contention(share=0.01, barriers=10, imbalance=0.10),
    # Hardly ever.
    "low": Contention(share=0.0005, barriers=2, imbalance=0.05),
}


@dataclasses.dataclass(frozen=True)
class Memory:
    """Misses per 1,000 instructions with and without the cache, and the footprint in MiB."""

    misses: float
    without: float
    footprint: float


SMALL, MIDDLE, LARGE = Memory(0.1, 1.0, 2), Memory(2.0, 5.0, 12), Memory(10.0, 14.0, 48)
# Program: class, memory, and what multiplies its class' share of critical sections.
PROGRAMS = {
    "applu": ("high", MIDDLE, 1.0),
    "ammp": ("high", MIDDLE, 1.0),
    "galgel": ("high", SMALL, 0.9),
    "art": ("high", LARGE, 0.8),
    "streamcluster": ("high", LARGE, 0.6),
    "SPECjbb2005": ("high", MIDDLE, 0.8),
    "TATP": ("high", SMALL, 1.2),
    "fluidanimate": ("medium", MIDDLE, 2.0),
    "bodytrack": ("medium", SMALL, 1.0),
    "x264": ("medium", SMALL, 1.0),
    "facesim": ("medium", MIDDLE, 1.0),
    "equake": ("medium", LARGE, 1.0),
    "fma3d": ("medium", MIDDLE, 1.0),
    "gafort": ("medium", MIDDLE, 2.0),
    "apsi": ("medium", MIDDLE, 0.8),
    "swaptions": ("low", SMALL, 0.2),
    "ferret": ("low", MIDDLE, 1.0),
    "canneal": ("low", LARGE, 1.0),
    "swim": ("low", LARGE, 1.0),
    "wupwise": ("low", SMALL, 1.0),
    "mgrid": ("low", LARGE, 1.0),
}
PIPELINES = {
    # Load, Segment, Extract, Vector, Rank, Out: of an item's instructions.
    "ferret": [0.01, 0.02, 0.03, 0.02, 0.90, 0.02],
    "x264": [0.03, 0.94, 0.03],
}
# The paper's own description of ammp: 25 s of high misses and hot locks, then few of both. Here shorter, by the same share.
AMMP = {"first": 0.4, "share": (0.15, 0.01), "memory": (LARGE, SMALL)}
# SPECjbb2005 also has two phases, which the paper does not describe: a start with fewer misses and the class' locks, then half.
SPECJBB = {"first": 0.3, "share": (0.032, 0.016), "memory": (MIDDLE, MIDDLE)}


def phase(kind, memory, share, threads, seconds, scale):
    """A phase of so many seconds of all cores; `share` of each thread's own time lies in critical sections."""
    contention = CLASSES[kind]
    total = CORES * GIGAHERTZ * 1e9 * seconds
    parts = max(1, round(contention.barriers * seconds))
    hold = HOLD * GIGAHERTZ * 1e9 * scale
    sections = max(1, round(share * total / hold / parts / threads))
    found = {
        "repeat": parts,
        "instructions": total / parts,
        "barriers": 1,
        "misses_per_kilo_instruction": memory.misses,
        "misses_without_cache": memory.without,
        "footprint_mib": memory.footprint,
        "misses_in_flight": 4.0,
    }
    if share > 0 and sections * hold < total / parts / threads:
        found["critical"] = {"sections": sections, "instructions": hold}
    return found


def stages(shares, threads):
    """Of a pipeline: one thread for each stage, and all others for the one that dominates."""
    most = shares.index(max(shares))
    return [threads - len(shares) + 1 if stage == most else 1 for stage in range(len(shares))]


def program(name, threads, seconds=SECONDS, scale=1.0, memory_scale=1.0):
    """A program of a workload. `scale` changes critical sections, `memory_scale` misses."""
    kind, memory, times = PROGRAMS[name]
    scaled = lambda m: Memory(m.misses * memory_scale, m.without * memory_scale, m.footprint)
    share = CLASSES[kind].share * times * scale
    phases = {"ammp": AMMP, "SPECjbb2005": SPECJBB}.get(name)
    if name in PIPELINES:
        shares, items = PIPELINES[name], 1200
        each = CORES * GIGAHERTZ * 1e9 * seconds / items
        count = stages(shares, threads)
        pipeline = [{"threads": n, "instructions": each * part} for n, part in zip(count, shares)]
        found = phase(kind, scaled(memory), 0, threads, seconds, scale)
        for key in ("instructions", "barriers"):
            del found[key]
        written = [{**found, "repeat": 1, "pipeline": {"items": items, "capacity": 20, "stages": pipeline}}]
    elif phases:
        lengths = (phases["first"], 1 - phases["first"])
        written = [
            phase(kind, scaled(m), s * scale, threads, seconds * length, scale)
            for m, s, length in zip(phases["memory"], phases["share"], lengths)
        ]
    else:
        written = [phase(kind, scaled(memory), share, threads, seconds, scale)]
    model = {"adaptive": SPIN, "spin": SPIN, "imbalance": CLASSES[kind].imbalance, "phase": written}
    return {"command": name, "threads": threads, "model": model}


def nested(threads, seconds):
    """A program with a lock inside a lock: like applu, with a quarter of each critical section under the second one."""
    found = program("applu", threads, seconds)
    critical = found["model"]["phase"][0]["critical"]
    critical["nested"] = critical["instructions"] / 4
    return {**found, "command": "nested"}


def micro(threads, delay, rounds, scale=1.0):
    """The microbenchmark: one global lock, held for 300 ns; a delay (nanoseconds) between. Rounds of all threads."""
    hold, gap = 300 * GIGAHERTZ * scale, delay * GIGAHERTZ
    each = max(1, rounds // threads)
    critical = {"sections": each, "instructions": hold}
    only = {"instructions": threads * each * (hold + gap), "critical": critical}
    return {"command": "micro", "threads": threads, "model": {"adaptive": SPIN, "spin": SPIN, "phase": [only]}}
