"""Rules of ours that no paper has: how each is switched off, and where that is simulated.

A rule is switched off by an extreme value of one of its constants, or by an option. Constants
called `off` are in no release, but in a build with rules.patch.

Nothing was chosen by these mixes. They are the held-out mixes of mixes.py with locks or memory, and
mixes that are drawn by lot from the programs of the papers.
"""

import dataclasses
import importlib.util
import pathlib
import random
import sys

from drawn import LOT
from mixes import all_mixes

HERE = pathlib.Path(__file__).resolve().parent
# In the names of mixes.
LOCKS_OR_MEMORY = ("locks", "stream", "cached")
# Programs with so frequent barriers take too long to simulate that often.
SLOW = " 100us"
# Programs of one thread in a mix of the paper on fair-progress scheduling.
MANY = 12


def of_paper(folder):
    """The programs of a paper's experiment."""
    name = f"of_{folder}"
    described = importlib.util.spec_from_file_location(name, HERE.parent / folder / "programs.py")
    # Where dataclasses look for a module.
    sys.modules[name] = importlib.util.module_from_spec(described)
    described.loader.exec_module(sys.modules[name])
    return sys.modules[name]


FAITHFUL, SHUFFLING, FAIR = map(of_paper, ("faithful", "shuffling", "fair-progress"))


@dataclasses.dataclass(frozen=True)
class Rule:
    """A rule, and the options that switch it off."""

    name: str
    words: str
    # Against what it protects on a live machine, which no simulation shows; `None`: it is no rule.
    kept: str | None = ""


@dataclasses.dataclass(frozen=True)
class Part:
    """Mixes on a machine, with the options of every run there."""

    machine: str
    mixes: list
    words: str = ""


@dataclasses.dataclass(frozen=True)
class Suite:
    """The rules of a policy, and where they are simulated."""

    name: str
    words: str
    parts: list
    rules: list


@dataclasses.dataclass(frozen=True)
class OfPapers:
    """A mix of programs of the papers: `make` returns their tables, for seconds of work of each."""

    name: str
    make: object

    def tables(self, _, seconds):
        """The workload, as Python values."""
        return self.make(seconds)


def held_out(every):
    """One in so many of the held-out mixes with locks or memory."""
    mixes = [mix for mix in all_mixes() if mix.held_out and SLOW not in mix.name]
    return [mix for mix in mixes if any(word in mix.name for word in LOCKS_OR_MEMORY)][::every]


def drawn_faithful(many):
    """Two or three programs of the paper on faithful scheduling, of 12 to 36 threads each."""
    lot = random.Random(LOT)
    for _ in range(many):
        names = lot.sample(list(FAITHFUL.PROGRAMS), lot.choice([2, 3]))
        members = [(name, lot.choice([12, 24, 36])) for name in names]

        def make(seconds, members=members):
            return [FAITHFUL.program(name, threads, seconds) for name, threads in members]

        yield OfPapers(", ".join(f"{name} {threads}" for name, threads in members), make)


def drawn_shuffling(many):
    """Two programs of the slides on thread shuffling, unequal at their locks by drawn amounts."""
    lot = random.Random(LOT)
    for _ in range(many):
        members = [(name, lot.choice([0.3, 0.5, 0.7, 0.9]), lot.choice([16, 64, 256]))
                   for name in lot.sample(list(SHUFFLING.PROGRAMS), 2)]

        def make(_, members=members):
            return [SHUFFLING.program(name, imbalance=imbalance, lines=lines)
                    for name, imbalance, lines in members]

        words = [f"{name} {imbalance} {lines}" for name, imbalance, lines in members]
        yield OfPapers(", ".join(words), make)


def drawn_fair(many):
    """Programs of SPEC CPU2006, as in the paper on fair-progress scheduling."""
    lot = random.Random(LOT)
    for _ in range(many):
        members = sorted(lot.sample(list(FAIR.BENCHMARKS), MANY))

        def make(_, members=members):
            return [FAIR.program(name) for name in members]

        yield OfPapers(", ".join(members), make)


# Not a rule: how much chance alone changes.
CHANCE = Rule("none, but another seed", "--seed 2", None)


def guard(settle):
    """The rules of the guard, under a policy with this constant for the settling time."""
    return [
        Rule("guard: what is faster is kept only if that is significant",
             "--set guard.clear=0", "noise of live measurements"),
        Rule("guard: a gain below 2 % is not kept",
             "--set guard.worthwhile=0", "progress is measured with errors on a live machine"),
        Rule("guard: a clear trial ends early",
             "--set guard.fewest_pairs=10", "changes cost time on a live machine"),
        Rule("guard: a hopeless trial ends early",
             "--set guard.hope=100", "changes cost time on a live machine"),
        Rule("guard: a moment begins without measurement", f"--set {settle}=1ms",
             "threads and caches of a live kernel, which follow late"),
        Rule("guard: a moment is longer for many threads",
             "--set guard.for_each_thread=0us", "changes cost time on a live machine"),
        Rule("guard: a moment is longer where user time is in ticks",
             "--set guard.long_moment=20ms", "user time in ticks"),
        Rule("guard: an idle program decides nothing",
             "--set guard.floor=0.0001", "the logarithm of zero"),
        Rule("guard: time without trials after a trial",
             "--set guard.peace=0", "changes cost time on a live machine"),
        Rule("guard: all is tried again after a pause",
             "--set guard.first_pause=10000s --set guard.longest_pause=10000s",
             "programs that change after longer than these runs"),
        Rule("guard: each pause is twice as long as the one before",
             "--set guard.longest_pause=10s"),
        Rule("guard: the order in a pair is pseudo-random",
             "--set guard.off=1", "programs in step with the moments"),
        Rule("guard: the progress of all programs counts", "--set guard.off=2",
             "gains at the expense of other programs"),
        Rule("guard: the setting in force is tried again", "--set guard.off=4"),
        Rule("guard: a new phase makes trials come soon", "--set guard.off=8"),
    ]


def suites(every, many):
    """All of them: one in `every` of the held-out mixes, and `many` mixes of the papers."""
    yield Suite(
        "faithful", "--policy faithful",
        [Part("dunnington-24", held_out(every), "--kernel eevdf"),
         Part("r905-24", list(drawn_faithful(many)), "--kernel eevdf"),
         Part("r905-24", list(drawn_faithful(many)), "--kernel solaris-ts")],
        [CHANCE,
         Rule("the guard, and what is tried: as in the paper", "--no-guard"),
         *guard("faithful.settle"),
         Rule("faithful: nothing is tried above a scaling factor of 0.9",
              "--set faithful.nothing_to_win=1",
              "changes cost time on a live machine"),
         Rule("faithful: the first intervals are short", "--set faithful.first=1s",
              "short programs, which gain more on a live machine"),
         Rule("faithful: batch is tried, too", "--actuators slice"),
         Rule("faithful: batch with a slice is tried, too", "--actuators batch",
              "live threads, for which slices changed something"),
         Rule("faithful: idle threads do not count", "--set guard.off=32")])
    yield Suite(
        "shuffling", "--policy shuffling",
        [Part("dunnington-24", held_out(every), "--kernel eevdf"),
         Part("opteron-64", list(drawn_shuffling(many)), "--kernel eevdf")],
        [CHANCE,
         Rule("the guard, and with it the pages: as in the slides", "--no-guard"),
         *guard("shuffling.settle"),
         Rule("guard: a program without contention keeps its time without trials",
              "--set guard.off=16"),
         Rule("shuffling: threads are released after some intervals without contention",
              "--set shuffling.patience=1000"),
         Rule("shuffling: that is below half of the threshold", "--set guard.off=64"),
         Rule("shuffling: another share of time at locks is another phase",
              "--set shuffling.phase=1"),
         Rule("shuffling: groups that helped return with contention", "--set guard.off=512"),
         Rule("shuffling: hysteresis", "--hysteresis 0"),
         Rule("shuffling: threads are sorted by lock first", "--sort-by lock-time",
              "programs of several locks, which are not among these"),
         Rule("shuffling: waits within a hundredth are equal",
              "--set shuffling.tie=0.0001", "noise of live measurements"),
         Rule("shuffling: threads that miss often stay at their pages",
              "--set shuffling.farther=0", "memory of other nodes, which is not simulated"),
         Rule("shuffling: groups are paired with sockets by pages, too",
              "--set shuffling.lost_per_move=0", "memory of other nodes, which is not simulated"),
         Rule("shuffling: threads are released where they were",
              "--set guard.off=128", "threads that a live kernel leaves where they are"),
         Rule("shuffling: threads that did not run, or came late, are not sorted",
              "--set guard.off=256", "threads that sleep, which would fill groups")])
    rules = [
        CHANCE,
        Rule("a training quantum is short", "--set fair-progress.part=1"),
        Rule("a program with hardly any CPU time has no speed",
             "--set fair-progress.least_cpu_time=0"),
        Rule("training of a phase is given up after some failures",
             "--set fair-progress.given_up=1000"),
        Rule("a program without repeated phases gets equal time",
             "--set fair-progress.enough_segments=10000"),
        Rule("only the likeliest phases are predicted", "--set fair-progress.several=1000"),
        Rule("where work comes in lumps, many make a phase known",
             "--set fair-progress.lumps=1", "machines without counters"),
        Rule("no program is frozen for too long", "--max-frozen 1000s", "programs with timeouts"),
        Rule("no training while it would freeze a program for too long",
             "--set fair-progress.off=32",
             "programs with timeouts"),
        Rule("CPUs that become free are given away at once", "--set fair-progress.off=1",
             "programs shorter than a quantum: unfairness +36 % without it"),
        Rule("the less loaded package counts", "--set fair-progress.off=2"),
        Rule("a program gets the CPU that it had last", "--set fair-progress.off=4"),
        Rule("a program that does not fit is passed over", "--set fair-progress.off=8"),
        Rule("a newcomer begins with a pause", "--set fair-progress.off=16"),
        Rule("a segment is of the nearest phase", "--set fair-progress.off=64",
             "claim fps-31, which holds only partly without it"),
        Rule("a segment is never faster than alone", "--set fair-progress.off=128"),
        Rule("the fastest segment gives the need of traffic", "--set fair-progress.off=256"),
    ]
    by_corunners = [
        CHANCE,
        Rule("a set of co-runners counts from some segments on", "--set fair-progress.segments=1",
             "noise of live measurements"),
        Rule("unknown speeds of two programs are measured first",
             "--set fair-progress.enough_quanta=0",
             "machines without counters: unfairness 1.46 without it, below 1.06 with it"),
    ]
    parts = [Part("dunnington-24", held_out(every), "--kernel eevdf"),
             Part("e5410-8", list(drawn_fair(many)), "--kernel eevdf")]
    yield Suite("fair-progress", "--policy fair-progress", parts, rules)
    yield Suite("fair-progress with --by-corunners", "--policy fair-progress --by-corunners",
                parts, by_corunners)
