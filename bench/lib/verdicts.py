"""verdicts.py: what rounds show. Ratios, intervals and verdicts are those of `cosched stats`, which are those of `cosched compare`.

A ratio is taken pair by pair from the same rounds: below 1 is less. Its interval is one of 98 %; without seven pairs it has
none (crates/results/src/statistics.rs).
"""

import functools
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

# With fewer rounds than this there is no interval, and no verdict.
FEWEST = 7
VERSION = 1
# A second name for the variant that the others are held against, which so has a ratio, too.
BASE = "over"

_executable = os.environ.get("COSCHED") or pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "release" / "cosched"


def judge_by(executable):
    """From now on, this cosched is asked."""
    global _executable
    _executable = executable
    _asked.cache_clear()


@functools.cache
def _asked(question):
    if not shutil.which(_executable):
        sys.exit(f"bench: {_executable} is no executable file; make build makes one, and COSCHED names another")
    done = subprocess.run([_executable, "stats", "--json"], input=question, text=True, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["variants"]


def ratios(rounds, over):
    """Each variant over one of them, which is 1 over itself. An estimate is as in compare's JSON, and has its verdict, too."""
    named = {f"-{name}": list(values) for name, values in rounds.items()} | {BASE: list(rounds[over])}
    found = _asked(json.dumps({"version": VERSION, "rounds": named, "over": BASE}, sort_keys=True))
    return {name: found[f"-{name}"]["ratio"] | {"verdict": found[f"-{name}"]["verdict"]} for name in rounds}


def ratio(ours, theirs):
    return ratios({"ours": ours, "theirs": theirs}, "theirs")["ours"]


def differs(estimate):
    """Whether a ratio differs significantly from 1."""
    return estimate["verdict"] in ("better", "worse")


geometric_mean = statistics.geometric_mean


def mean_of_known(values):
    """The geometric mean; None where one of them is not known, or there is none."""
    values = list(values)
    return geometric_mean(values) if values and None not in values else None


def best(names, rounds):
    """The variant with the least median."""
    return min(names, key=lambda name: statistics.median(rounds[name]))


def over_best_of_others(names, rounds, ours):
    """Over the rounds, the geometric mean of ours over what was best in all other rounds; None with one round. So chance has no
    say in which one is the best."""
    numbers = range(len(rounds[ours]))
    if len(numbers) < 2:
        return None

    def one(number):
        others = {name: [rounds[name][other] for other in numbers if other != number] for name in names}
        return rounds[ours][number] / rounds[best(names, others)][number]

    return geometric_mean(map(one, numbers))


def met(is_met):
    return "met" if is_met else "missed"


def judging(judge_cell, summary=None):
    """A function that adds what follows to every cell of a report in which no program failed, and to the report as a whole."""
    def judge(report):
        judged = [cell for cell in report["cells"] if not cell["failed"]]
        for cell in judged:
            judge_cell(cell)
        if summary:
            report["summary"] = summary(judged) if judged else None

    return judge


def held_against(rounds, first):
    """The times of each variant, their median, and their ratio to the first one."""
    found = ratios(rounds, first)
    return {name: {"seconds": times, "median_seconds": statistics.median(times), "ratio": None if name == first else found[name]}
            for name, times in rounds.items()}
