"""The paper's 21 programs, made of what programs.toml says of each, and the microbenchmark.

The work of a program is the same whatever its number of threads, as that of the paper's inputs is.
"""

import pathlib

from common.sim import load

MODELS = load(pathlib.Path(__file__).resolve().with_suffix(".toml"))
CLASSES, MEMORY, PROGRAMS, PIPELINES, PHASES = (
    MODELS[key] for key in ("classes", "memory", "programs", "pipelines", "phases"))
CORES, GIGAHERTZ = 24, 2.4
# Seconds of computing on all cores: as long as a few intervals of the policy, and short enough to be simulated often.
SECONDS = 12.0
# Inside each critical section, seconds; about ten times what putting a thread to sleep and waking it costs.
HOLD = 50e-6
# A thread spins for a mutex for so long at most (libc's 1,000 looks), and at a barrier (the runtime's).
SPIN = "10us"
# How threads wait: as the paper's do, or as those of its rival [1] (load control; the interval is in sections I and VI).
OWN = {"adaptive": SPIN, "spin": SPIN}
LOAD_CONTROL = {"load_control": "7ms"}


def misses(memory, scale):
    """The keys of a phase with so many times the misses of such a memory."""
    found = MEMORY[memory]
    return {
        "misses_per_kilo_instruction": found["with"] * scale,
        "misses_without_cache": found["without"] * scale,
        "footprint_mib": found["footprint"],
        "misses_in_flight": 4.0,
    }


def phase(kind, missing, share, threads, seconds, scale):
    """A phase of so many seconds of all cores; `share` of each thread's own time lies in critical
    sections, and `missing` has its misses."""
    total = CORES * GIGAHERTZ * 1e9 * seconds
    parts = max(1, round(CLASSES[kind]["barriers"] * seconds))
    hold = HOLD * GIGAHERTZ * 1e9 * scale
    sections = max(1, round(share * total / hold / parts / threads))
    found = {"repeat": parts, "instructions": total / parts, "barriers": 1, **missing}
    if share > 0 and sections * hold < total / parts / threads:
        found["critical"] = {"sections": sections, "instructions": hold}
    return found


def pipeline(shares, items, threads, total):
    """So many items with all the work: a thread for each stage, the others for the largest one."""
    most = shares.index(max(shares))
    counts = [threads - len(shares) + 1 if stage == most else 1 for stage in range(len(shares))]
    stages = [{"threads": count, "instructions": total / items * share}
              for count, share in zip(counts, shares)]
    return {"items": items, "capacity": 20, "stages": stages}


def program(name, threads, seconds=SECONDS, scale=1.0, memory_scale=1.0, waits=OWN):
    """A program of a workload. `scale` changes critical sections, `memory_scale` misses; `waits` says how threads wait."""
    kind, memory, times = PROGRAMS[name]
    missing = misses(memory, memory_scale)
    if name in PIPELINES:
        stages = pipeline(PIPELINES[name], 1200, threads, CORES * GIGAHERTZ * 1e9 * seconds)
        written = [{"repeat": 1, **missing, "pipeline": stages}]
    elif name in PHASES:
        first, shares, memories = (PHASES[name][key] for key in ("first", "share", "memory"))
        parts = zip(memories, shares, (first, 1 - first))
        written = [phase(kind, misses(one, memory_scale), part * scale, threads, seconds * length,
                         scale) for one, part, length in parts]
    else:
        share = CLASSES[kind]["share"] * times * scale
        written = [phase(kind, missing, share, threads, seconds, scale)]
    imbalance = CLASSES[kind]["imbalance"]
    model = {**waits, "imbalance": imbalance, "phase": written}
    return {"command": name, "threads": threads, "model": model}


def nested(threads, seconds):
    """A program with a lock inside a lock: like applu, with a quarter of each critical section under the second one."""
    found = program("applu", threads, seconds)
    critical = found["model"]["phase"][0]["critical"]
    critical["nested"] = critical["instructions"] / 4
    return {**found, "command": "nested"}


def micro(threads, delay, rounds, scale=1.0, waits=OWN):
    """The microbenchmark: one global lock, held for 300 ns; a delay (nanoseconds) between. Rounds of all threads."""
    hold, gap = 300 * GIGAHERTZ * scale, delay * GIGAHERTZ
    each = max(1, rounds // threads)
    critical = {"sections": each, "instructions": hold}
    only = {"instructions": threads * each * (hold + gap), "critical": critical}
    return {"command": "micro", "threads": threads, "model": {**waits, "phase": [only]}}
