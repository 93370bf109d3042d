"""The programs of the slides as models: chosen before any claim was run, and fitted to none.

The slides name 23 programs by their suites, and of them bodytrack. What is known of these is as little as for the paper on
faithful scheduling, so classes of contention, memory and factors are those of its experiment (`../faithful/programs.py`);
bodytrack, on which the slides show hot locks, is in the class with hot locks. What the slides are about, and that
experiment has no need of, is added: how much data goes along with a lock, and that threads of a program come to it at
different rates.
"""

from faithful.programs import CLASSES, LARGE, MIDDLE, PIPELINES, SMALL, SPIN
from faithful.programs import PROGRAMS as THEIRS
from faithful.programs import Memory, stages

CORES, GIGAHERTZ, THREADS = 64, 2.3, 64
# Seconds of computing on all cores: a dozen intervals, and more where locks are hot.
SECONDS = 6.0
# Inside each critical section, seconds, as in the experiment on faithful scheduling.
HOLD = 50e-6
# Cache lines that a critical section finds where they were written last: 4 KiB.
LINES = 64
# The thread with the most work between two barriers has this part more than the average, the one with the least so much less.
IMBALANCE = 0.5

SPLASH = {
    "barnes": ("medium", MIDDLE, 1.0),
    "radiosity": ("high", SMALL, 0.6),
    "raytrace": ("medium", SMALL, 2.0),
}
PROGRAMS = {name: of for name, of in THEIRS.items() if name != "TATP"} | SPLASH
PROGRAMS["bodytrack"] = ("high", SMALL, 1.0)
# Beside the 23.
SERVERS = {
    "memcached": ("medium", SMALL, 2.0),
    "TATP": THEIRS["TATP"],
}
assert len(PROGRAMS) == 23


def program(name, scale=1.0, memory_scale=1.0, lines=LINES, imbalance=IMBALANCE, times_as_long=1):
    """A program of a workload. `scale` changes the time in critical sections, `memory_scale` misses; `times_as_long`: so much
    more of the same work."""
    kind, memory, times = (PROGRAMS | SERVERS)[name]
    seconds = SECONDS * times_as_long
    memory = Memory(memory.misses * memory_scale, memory.without * memory_scale, memory.footprint)
    contention = CLASSES[kind]
    total = CORES * GIGAHERTZ * 1e9 * seconds
    found = {
        "misses_per_kilo_instruction": memory.misses,
        "misses_without_cache": memory.without,
        "footprint_mib": memory.footprint,
        "misses_in_flight": 4.0,
    }
    if name in PIPELINES:
        shares, items = PIPELINES[name], 1200 * times_as_long
        parts = zip(stages(shares, THREADS), shares)
        pipeline = [{"threads": count, "instructions": total / items * part} for count, part in parts]
        written = {**found, "pipeline": {"items": items, "capacity": 20, "stages": pipeline}}
    else:
        parts = max(1, round(contention.barriers * seconds))
        hold = HOLD * GIGAHERTZ * 1e9
        sections = max(1, round(contention.share * times * scale * total / hold / parts / THREADS))
        critical = {"sections": sections, "instructions": hold, "lines": lines}
        written = {**found, "repeat": parts, "instructions": total / parts, "barriers": 1, "critical": critical}
    model = {"adaptive": SPIN, "spin": SPIN, "imbalance": imbalance, "phase": [written]}
    return {"command": name, "threads": THREADS, "model": model}
