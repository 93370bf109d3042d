#!/usr/bin/env python3
"""tests.py: the mixes, and the verdicts of made-up results. `make test` runs it."""

import pathlib
import subprocess
import sys
import tomllib
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent / "bench")]

import policy_verdicts
import report
from common.sim import table
from mixes import all_mixes
from programs import Machine, Size, stream
from results import SOLO, VARIANTS, figures
from rules import suites


def result(seconds, alone=None):
    """A simulated run of two programs."""
    programs = [{"turnaround_seconds": time, "solo_seconds": alone} for time in (seconds, seconds / 2)]
    return {"total_seconds": seconds, "metrics": {"mean_turnaround_seconds": seconds * 3 / 4}, "programs": programs}


class Mixes(unittest.TestCase):
    def test_there_are_enough_and_half_are_held_out(self):
        mixes = all_mixes()
        self.assertGreaterEqual(len(mixes), 30)
        self.assertEqual(len({mix.name for mix in mixes}), len(mixes))
        self.assertEqual(sum(mix.held_out for mix in mixes), len(mixes) // 2)
        self.assertEqual([mix.held_out for mix in mixes], [mix.held_out for mix in all_mixes()])

    def test_each_is_a_workload_of_two_to_twelve_programs_that_fit(self):
        for machine in map(Machine.named, ["dunnington-24", "opteron-64", "chiplets-128"]):
            for mix in all_mixes():
                programs = mix.tables(machine, 1.0)
                self.assertTrue(2 <= len(programs) <= 12, mix.name)
                for program in programs:
                    self.assertTrue(1 <= program["threads"] <= machine.cpus, mix.name)
                    self.assertEqual(tomllib.loads(table(program)), program, mix.name)

    def test_a_machine_is_read_from_its_file(self):
        small, large = map(Machine.named, ["dunnington-24", "chiplets-128"])
        self.assertEqual((small.cpus, small.caches, small.gigabytes_per_second), (24, 4, 10.2))
        self.assertEqual((large.cpus, large.caches, large.gigabytes_per_second), (128, 16, 300.0))

    def test_what_streams_has_as_much_to_bring_as_the_buses_carry(self):
        phase, = stream(Size(Machine.named("dunnington-24"), 24, 2.0))["phase"]
        gigabytes = phase["instructions"] / 1000 * phase["misses_per_kilo_instruction"] * 64 / 1e9
        self.assertAlmostEqual(gigabytes, 2 * 10.2)


class Rules(unittest.TestCase):
    def test_each_is_switched_off_once_on_mixes_that_fit(self):
        for suite in suites(every=3, many=2):
            for what in ([rule.name for rule in suite.rules], [rule.words for rule in suite.rules]):
                self.assertEqual(len(set(what)), len(what), suite.name)
            for part in suite.parts:
                self.assertGreaterEqual(len(part.mixes), 2)
                for mix in part.mixes:
                    for program in mix.tables(Machine.named(part.machine), 1.0):
                        self.assertEqual(tomllib.loads(table(program)), program, mix.name)


class Verdicts(unittest.TestCase):
    def judged(self, **seconds):
        results = {variant: [result(seconds.get(variant.replace("-", "_"), 4.0))] for variant in VARIANTS}
        results[SOLO] = [result(seconds.get("linux", 4.0), alone=1.0)]
        mix = {"mix": "a", "held_out": False, **figures(results)}
        part = {"machine": {"model": "made-up", "cpus": 2, "kernel": "eevdf"}, "mixes": [mix]}
        policy_verdicts.judge(part)
        return {"seconds": 1.0, "seeds": 1, "machines": [part]}

    def test_what_misses_a_bar_is_reported(self):
        document = self.judged(linux=2.0, turns=2.04)
        text = report.markdown(document)
        self.assertIn("| made-up | all (1) | mean over the better of linux and fcfs | 1.020 | 0.97 | missed |", text)
        self.assertIn("| worst over the better of linux and fcfs (a) | 1.020 | 1.1 | reached |", text)
        self.assertIn("| made-up | tuning (1) | unfairness under the goal fair (a) | 2.000 | 1.3 | missed |", text)
        self.assertIn("| a |  | 2.00 | 4.00 |", text)
        self.assertIn("made-up, all: mean over the better of linux and fcfs 1.020", report.last_line(document))


class Rules(unittest.TestCase):
    def test_the_patch_that_switches_rules_off_applies(self):
        check = ["git", "apply", "--check", str(HERE / "rules.patch")]
        tried = subprocess.run(check, cwd=HERE.parent.parent, capture_output=True, text=True)
        self.assertEqual(tried.returncode, 0, tried.stderr)


if __name__ == "__main__":
    unittest.main()
