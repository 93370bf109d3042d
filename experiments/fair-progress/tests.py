#!/usr/bin/env python3
"""tests.py: the paper's figures of made-up runs. `make test` runs it."""

import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from results import CHANCE, TRAINING, Results, fours, reduced, segments


def program(name, cpu, turnaround, **estimates):
    """A program of a run, as JSON tells it."""
    usage = {"user_seconds": cpu - 0.5, "system_seconds": 0.5}
    told = {"estimates": {"training_idle_seconds": 0.0} | estimates} if estimates else {}
    return {"name": name, "turnaround_seconds": turnaround, "usage": usage, **told}


def result(weighted, programs, decisions=()):
    metrics = {"extended_weighted_speedup": weighted}
    return {"total_seconds": 30.0, "metrics": metrics, "programs": programs, "decisions": list(decisions)}


def figures(**runs):
    """Figures of runs of a workload, by the policy."""
    made = Results.__new__(Results)
    made.runs = {("WL", "PC", policy): reduced(run, []) for policy, run in runs.items()}
    return made


class Cycles(unittest.TestCase):
    """Programs that took twice as long to the end, in the same CPU time."""

    def test_speedup_is_of_cpu_time_and_not_of_times_to_the_end(self):
        before = result(1.5, [program("a-0", 10.0, 15.0)])
        after = result(1.2, [program("a-0", 10.0, 30.0, accuracy=0.9)])
        found = figures(OS=before, FPS=after)
        self.assertAlmostEqual(found.speedup("WL", "PC", "FPS"), 1.2 / 1.5 - 1)

    def test_overhead_is_idle_time_over_cpu_time(self):
        run = result(1.0, [program("a-0", 10.0, 30.0, training_idle_seconds=1.5), program("b-0", 20.0, 30.0, accuracy=1.0)])
        self.assertAlmostEqual(figures(FPS=run).overhead("WL", "PC", "FPS"), 1.5 / 30.0)

    def test_estimates_that_are_too_high_are_as_wrong_as_those_too_low(self):
        run = result(1.0, [program("a-0", 9.0, 9.0, accuracy=1.25, accuracy_without=0.5),
                           program("b-0", 9.0, 9.0, accuracy=0.8, accuracy_without=1.0)])
        found = figures(FPS=run)
        for name, accuracy in found.accuracies("WL", "PC", "FPS").items():
            self.assertAlmostEqual(accuracy, 0.8, msg=name)
        self.assertEqual(found.accuracies("WL", "PC", "FPS", "accuracy_without"), {"a-0": 0.5, "b-0": 1.0})


class Sources(unittest.TestCase):
    """Ten quanta of a program, of which one in five was trained. It had half of its speed alone, and seems to have had 0.6."""

    def setUp(self):
        sources = dict.fromkeys((*CHANCE, *TRAINING, "none"), 0) | {"own_low": 6, "predicted": 1, "sequential": 1, "none": 2}
        slowed = dict.fromkeys(sources, 0.0) | {"predicted": 3.0, "none": 1.0}
        known = {"sources": sources, "slowed_seconds": slowed, "cpu_seconds": 10.0, "solo_cpu_seconds": 6.0}
        run = result(1.0, [program("a-0", 10.0, 30.0, accuracy=0.5 * 10 / 6, accuracy_without=0.5, **known)])
        self.found = figures(FPS=run)

    def test_quanta_are_counted_by_source(self):
        for kinds, share in ((CHANCE, 0.6), (TRAINING, 0.2)):
            self.assertAlmostEqual(self.found.shares("WL", "PC", "FPS", kinds)["a-0"], share)

    def test_a_source_contributes_what_is_lost_without_it(self):
        part = lambda *kinds: self.found.contribution("WL", "PC", "FPS", kinds)
        # Without training the work would seem to take 9 s alone and not 6.
        self.assertAlmostEqual(part(*TRAINING), (5 / 6 - 5 / 9) / (5 / 6 - 1 / 2))
        self.assertAlmostEqual(part("predicted", "none"), 1.0)
        self.assertEqual(part(*CHANCE), 0.0)


class Segments(unittest.TestCase):
    def second(self, at, **lines):
        row = {"from_seconds": at, "cpu_seconds": 1.0, "alone_seconds": 0.8}
        return [{**row, "program": name, "llc_misses": 1e6 * count} for name, count in lines.items()]

    def test_each_has_the_kinds_of_its_second(self):
        # Of 120 lines per microsecond, 4.8 are much of one program and 40 are much of all.
        rows = self.second(0.0, a=10, b=4) + self.second(1.0, a=50, b=4) + self.second(2.0, a=50, b=5)
        kinds = [segment["kinds"] for segment in segments(None, rows)]
        self.assertEqual(kinds, [["all low", "only one"], ["own low", "all low"], ["only one"], ["own low"], [], []])
        self.assertEqual({segment["speed"] for segment in segments(None, rows)}, {0.8})

    def test_a_second_with_too_little_on_a_cpu_tells_nothing(self):
        row, = self.second(0.0, a=10)
        self.assertEqual(segments(None, [row | {"cpu_seconds": 0.5}]), [])

    def test_four_programs_are_taken_from_loud_to_quiet(self):
        names = [program["command"] for program in fours("bwaves*2 milc lbm*2 gcc perl namd", 1, 1.0)]
        self.assertEqual(names, ["bwaves", "lbm", "gcc", "namd"])


if __name__ == "__main__":
    unittest.main()
