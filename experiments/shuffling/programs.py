"""The programs of the slides as models: chosen before any claim was run, and fitted to none.

The slides name 23 programs by their suites, and of them bodytrack. What is known of these is as little as for the paper on
faithful scheduling, so classes of contention, memory and factors are those of its experiment (`../faithful/programs.toml`);
bodytrack, on which the slides show hot locks, is in the class with hot locks. What the slides are about, and that
experiment has no need of, is added: how much data goes along with a lock, and that threads of a program come to it at
different rates.
"""

from faithful.programs import CLASSES, HOLD, PIPELINES, SPIN, misses, pipeline
from faithful.programs import PROGRAMS as THEIRS

CORES, GIGAHERTZ, THREADS = 64, 2.3, 64
# Seconds of computing on all cores: a dozen intervals, and more where locks are hot.
SECONDS = 6.0
# Cache lines that a critical section finds where they were written last: 4 KiB.
LINES = 64
# The thread with the most work between two barriers has this part more than the average, the one with the least so much less.
IMBALANCE = 0.5

SPLASH = {
    "barnes": ("medium", "middle", 1.0),
    "radiosity": ("high", "small", 0.6),
    "raytrace": ("medium", "small", 2.0),
}
PROGRAMS = {name: of for name, of in THEIRS.items() if name != "TATP"} | SPLASH
PROGRAMS["bodytrack"] = ("high", "small", 1.0)
# Beside the 23.
SERVERS = {
    "memcached": ("medium", "small", 2.0),
    "TATP": THEIRS["TATP"],
}
assert len(PROGRAMS) == 23


def program(name, scale=1.0, memory_scale=1.0, lines=LINES, imbalance=IMBALANCE, times_as_long=1):
    """A program of a workload. `scale` changes the time in critical sections, `memory_scale` misses; `times_as_long`: so much
    more of the same work."""
    kind, memory, times = (PROGRAMS | SERVERS)[name]
    seconds = SECONDS * times_as_long
    contention = CLASSES[kind]
    total = CORES * GIGAHERTZ * 1e9 * seconds
    written = misses(memory, memory_scale)
    if name in PIPELINES:
        written["pipeline"] = pipeline(PIPELINES[name], 1200 * times_as_long, THREADS, total)
    else:
        parts = max(1, round(contention["barriers"] * seconds))
        hold = HOLD * GIGAHERTZ * 1e9
        share = contention["share"] * times * scale
        sections = max(1, round(share * total / hold / parts / THREADS))
        critical = {"sections": sections, "instructions": hold, "lines": lines}
        written |= {"repeat": parts, "instructions": total / parts, "barriers": 1,
                    "critical": critical}
    model = {"adaptive": SPIN, "spin": SPIN, "imbalance": imbalance, "phase": [written]}
    return {"command": name, "threads": THREADS, "model": model}
