"""The paper's nine programs as models: what they compute between two barriers, chosen before any claim was run, fitted to none.

How many operations a NAS program has in class A is told by its own formula, and how many barriers by its source. How many
operations a thread does in a second was measured with the kernels of workloads/, each NAS program by the one that is most like
it; README.md tells how. The two programs of PARSEC are assumptions.
"""

import dataclasses

THREADS, GIGAHERTZ = 16, 2.6
# What a run takes alone; it is repeated until the other program has ended once.
SECONDS = 0.5
# gcc's runtime spins for about so long before it sleeps, with no more threads than CPUs (its own estimate).
SPIN = "3ms"
# Operations per second and thread of our kernels: floating point for the first two, keys for the third.
STENCIL, SPARSE, BUCKETS = 5.7e9, 3.6e9, 95e6


@dataclasses.dataclass(frozen=True)
class Nas:
    """A NAS program in class A: operations in all, barriers in all, operations per second and thread."""

    operations: float
    barriers: int
    rate: float

    def interval(self):
        """Seconds between two barriers with 16 threads."""
        return self.operations / self.barriers / (THREADS * self.rate)


# Barriers: steps times barriers in a step.
NAS = {
    "BT": Nas(168.3e9, 200 * 6, STENCIL),
    "CG": Nas(1.508e9, 15 * 82, SPARSE),
    "MG": Nas(3.892e9, 4 * 90 + 6, STENCIL),
    "SP": Nas(85.0e9, 400 * 9, STENCIL),
    "FT": Nas(7.136e9, 6 * 9 + 6, STENCIL),
    "IS": Nas(83.9e6, 10 * 4, BUCKETS),
}
# Between two barriers, seconds, with 16 threads. EP has none but at the end of a run.
INTERVALS = {
    **{name: nas.interval() for name, nas in NAS.items()},
    "bodytrack": 2e-3,
    "freqmine": 30e-3,
    "EP": SECONDS,
}
MAINS = ("BT", "CG", "MG", "SP", "FT", "IS", "bodytrack", "freqmine", "EP")
# The order of grain in table 1, without the programs with assumed intervals.
FINE, MEDIUM, COARSE = ("BT", "CG", "MG", "SP"), ("FT", "IS"), ("EP",)
# Those that the paper calls barrier-intensive, and the others.
INTENSIVE = ("BT", "CG", "MG", "SP", "FT", "IS", "bodytrack")
SELDOM = ("freqmine", "EP")
CO_RUNNERS, COUNTS = ("EP", "IS", "CG"), (1, 2, 4, 8, 16)
# Kernel, how long waiting threads spin, and how they wait at barriers.
VARIANTS = {
    "CFS-De": ("cfs", SPIN, "spin"),
    "CFS-Pa": ("cfs", "0s", "spin"),
    "BS-De": ("balance", SPIN, "spin"),
    "BS-Pa": ("balance", "0s", "spin"),
    "Tidon": ("cfs", SPIN, "donate"),
    "BS-Do": ("balance", SPIN, "donate"),
}
# The last one is not the paper's: a thread that donates takes the place of the sibling on its CPU.
OURS = "BS-Do"


def program(name, threads, variant, point):
    """A program with so many threads, as a point has it."""
    _, spin, barrier = VARIANTS[variant]
    # With fewer threads there is as much to do between two barriers, and a run has fewer of them.
    whole = name == "EP"
    instructions = GIGAHERTZ * 1e9 * (SECONDS * threads if whole else THREADS * point.grain * INTERVALS[name])
    rounds = max(1, round(GIGAHERTZ * 1e9 * SECONDS * threads / instructions))
    phase = {"repeat": rounds, "instructions": instructions, "barriers": 1}
    model = {"spin": spin, "barrier": barrier, "imbalance": point.imbalance, "phase": [phase]}
    return {"command": name, "threads": threads, "repeat": "until-all-finish", "model": model}
