"""Rules of ours that no paper has, of rules.toml: how each is switched off, and where that is simulated.

Nothing was chosen by these mixes. They are the held-out mixes of mixes.py with locks or memory, and
mixes that are drawn by lot from the programs of the papers.
"""

import importlib.util
import pathlib
import random
import sys
from typing import Callable, NamedTuple

from common.sim import load
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


class Rule(NamedTuple):
    """A rule, and the options that switch it off."""

    name: str
    words: str
    # Against what it protects on a live machine, which no simulation shows; `None`: it is no rule.
    kept: str | None = ""


class Part(NamedTuple):
    """Mixes on a machine, with the options of every run there."""

    machine: str
    mixes: list
    words: str


class Suite(NamedTuple):
    """The rules of a policy, and where they are simulated."""

    name: str
    words: str
    parts: list
    rules: list


class OfPapers(NamedTuple):
    """A mix of programs of the papers: `make` returns their tables, for seconds of work of each."""

    name: str
    make: Callable

    def tables(self, _, seconds):
        """The workload, as Python values."""
        return self.make(seconds)


# Not a rule: how much chance alone changes.
CHANCE = Rule("none, but another seed", "--seed 2", None)


def suites(every, many):
    """All of them: one in `every` of the held-out mixes, and `many` mixes of the papers."""
    described = load(HERE / "rules.toml")
    drawn = {"held-out": lambda: held_out(every), "faithful": lambda: drawn_faithful(many),
             "shuffling": lambda: drawn_shuffling(many), "fair-progress": lambda: drawn_fair(many)}
    for suite in described["suite"]:
        parts = [Part(machine, list(drawn[mixes]()), words) for machine, mixes, words in suite["parts"]]
        guard = [[name, words.format(settle=suite.get("settle")), *kept] for name, words, *kept in described["guard"]]
        rules = [rule for rules in suite["rules"] for rule in (guard if rules == "guard" else [rules])]
        yield Suite(suite["name"], suite["words"], parts, [CHANCE, *(Rule(*rule) for rule in rules)])


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
