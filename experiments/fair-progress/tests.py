#!/usr/bin/env python3
"""tests.py: the paper's figures of made-up runs. `make test` runs it."""

import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from results import Results, reduced


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


if __name__ == "__main__":
    unittest.main()
