#!/usr/bin/env python3
"""tests.py: how claims are judged, which constants are moved, and the picture. `make test` runs it."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest
import xml.etree.ElementTree as xml

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from common import report
from common.checks import Found
from common.constants import CONSTANTS, GROUPS, PAUSING, SETTABLE, members, moved
from common.degrees import direction, is_within, score, tell_direction, tell_magnitude, within
from common.picture import COLOURS, svg
from common.points import Setting
from common.sim import Cosched
from common.summary import grouped, line, right, summary

MACHINE = {"gigahertz": 2.0, "cache_mib": 6, "memory_nanos": 100, "switch_nanos": 3000, "wake_nanos": 5000,
           "signal_nanos": [20, 60, 150], "bus": [{"of": "llc", "bytes_per_nano": 8.0}]}
PARAMS = {"faithful.range": (0.1, 0.0, 1.0), "faithful.nothing_to_win": (0.9, 0.0, 1.0)}


def program(threads=4, **phase):
    model = {"spin": "10us", "imbalance": 0.9, "phase": [{"repeat": 6, "barriers": 1, "instructions": 60.0, **phase}]}
    return {"command": "a", "threads": threads, "model": model}


def judged(*found):
    """A row of one claim: what was found as assumed, and then with constants moved."""
    settings = [Setting("m.toml")] + [Setting("m.toml", f"{i} +20 %", "constant") for i in range(len(found) - 1)]
    claim = {"id": "a-01", "says": "a is faster", "where": "1"}
    return report.rows([claim], settings, {point.name: {"a-01": one} for point, one in zip(settings, found)})[0]


def row(name, orders, sizes=(), **more):
    """A row of a claim that was judged."""
    found = judged(Found("", orders, [(size, 1) for size in sizes]))
    return {**found, "id": name, "says": f"{name} is <faster>", **more}


class Degrees(unittest.TestCase):
    def test_a_direction_is_most_only_above_one_half(self):
        found = [direction([True] * held + [False] * (4 - held)) for held in range(5)]
        self.assertEqual(found, ["none", "some", "some", "most", "all"])
        self.assertIsNone(direction([]))

    def test_classes_have_their_ends(self):
        self.assertEqual([is_within(ratio, "20 %") for ratio in (0.79, 0.81, 1.19, 1.21)], [False, True, True, False])
        self.assertEqual([is_within(ratio, "50 %") for ratio in (0.49, 0.51, 1.49, 1.51)], [False, True, True, False])
        self.assertEqual([is_within(ratio, "a factor of two") for ratio in (0.49, 0.5, 2, 2.01)], [False, True, True, False])
        self.assertEqual(within([1, 1.4, 1.9, -1]), {"20 %": 0.25, "50 %": 0.5, "a factor of two": 0.75})

    def test_a_score_is_the_mean_of_orders_and_sizes(self):
        self.assertAlmostEqual(score([True, False], [1.1, 1.4, 1.9, 9]), (1 / 2 + (1 + 2 / 3 + 1 / 3) / 4) / 2)
        self.assertEqual(score([True, False], []), 0.5)
        self.assertAlmostEqual(score([], [1.9]), 1 / 3)
        self.assertIsNone(score([], []))

    def test_sizes_keep_ratios_and_the_verdict_counts_them(self):
        found = Found("", [True], [(1.2, 2.0), (-1, 2)])
        self.assertEqual(found.sizes, [0.6, -0.5])
        self.assertEqual(found.verdict, "partly")
        self.assertEqual(Found("", [True], [(1.2, 1.0)]).verdict, "reproduced")
        self.assertEqual(Found("", [False], [(0.6, 1.0)]).verdict, "not")

    def test_a_claim_survives_while_its_direction_does(self):
        worse = judged(Found("", [True, True]), Found("", [True, True]), Found("", [True, False]))
        self.assertEqual((worse["survives"], worse["falls"], worse["verdict"]), (False, ["1 +20 %"], "partly"))
        self.assertEqual(tell_direction(worse), "all (2/3)")
        # A size that is no longer met demotes the verdict, and not the direction.
        size = judged(Found("", [True], [(1, 1)]), Found("", [True], [(2, 1)]))
        self.assertEqual((size["survives"], size["verdict"]), (True, "partly"))
        better = judged(Found("", [True, False]), Found("", [True, True]))
        self.assertEqual((better["survives"], tell_direction(better)), (True, "some (2/2)"))

    def test_sizes_alone_survive_within_a_factor_of_two(self):
        self.assertTrue(judged(Found("", [], [(1, 1)]), Found("", [], [(1.9, 1)]))["survives"])
        self.assertFalse(judged(Found("", [], [(1, 1)]), Found("", [], [(2.1, 1)]))["survives"])
        self.assertIsNone(judged(Found("", [], [(1, 1)]))["survives"])

    def test_a_magnitude_tells_its_median_and_shares(self):
        self.assertEqual(tell_magnitude(judged(Found("", [], [(1, 1), (3, 2), (9, 1)]))), "× 1.50; 33 %, 67 %, 67 %")
        self.assertEqual(tell_magnitude(judged(Found("", [True]))), "–")


class Constants(unittest.TestCase):
    def moved(self, name, factor, *programs, arguments=("--policy", "faithful")):
        return moved({name: factor}, list(arguments), list(programs) or [program()], MACHINE, lambda: PARAMS)

    def test_there_are_twenty_and_groups_have_each_once(self):
        self.assertEqual(len(CONSTANTS), 20)
        self.assertEqual(sorted(name for group in GROUPS for name in members(group, 1)), sorted(CONSTANTS))
        self.assertEqual(members("a + b / c", 0.8), {"a": 0.8, "b": 0.8, "c": 1.2})

    def test_what_a_call_has_not_is_not_moved(self):
        for name in ("freezing and thawing", "cycles per instruction", "lines with a lock", "cache", "buses"):
            *_, names = self.moved(name, 1.2)
            self.assertEqual(names, set(), name)
        *_, machine, names = self.moved("cache", 1.2, program(misses_per_kilo_instruction=2.0))
        self.assertEqual((machine["cache_mib"], names), (6 * 1.2, {"cache"}))
        self.assertEqual(self.moved("signals", 1.2, program(threads=1))[3], set())
        self.assertEqual(MACHINE["cache_mib"], 6)

    def test_policies_are_told_their_constants(self):
        arguments, *_ = self.moved("thresholds of the policy", 1.2)
        self.assertEqual(arguments[2:], ["--set", "faithful.range=0.12", "--set", "faithful.nothing_to_win=1"])
        arguments, *_ = self.moved("quantum or interval", 0.8)
        self.assertEqual(arguments[2:], ["--interval", "800000000ns"])
        arguments, *_ = self.moved("quantum or interval", 0.8, arguments=["--policy", "gang", "--quantum", "100ms"])
        self.assertEqual(arguments[2:], ["--quantum", "80000000ns"])
        self.assertEqual(self.moved("quantum or interval", 0.8, arguments=["--policy", "linux"])[3], set())

    def test_models_keep_their_work_between_fewer_barriers(self):
        _, (found,), *_ = self.moved("work between barriers", 1.2, program(critical={"sections": 10, "instructions": 2.0}))
        phase, = found["model"]["phase"]
        self.assertEqual((phase["repeat"], phase["repeat"] * phase["instructions"]), (5, 360.0))
        self.assertEqual(phase["critical"], {"sections": 12, "instructions": 2.0})
        _, (found,), *_ = self.moved("serial share, imbalance", 1.2)
        self.assertEqual(found["model"]["imbalance"], 1.0)
        _, (found,), *_ = self.moved("spinning", 0.8)
        self.assertEqual(found["model"]["spin"], "8000ns")

    def test_an_experiment_moves_what_its_programs_are_made_of(self):
        settings = list(Setting("m.toml", scale=1.0).by_a_fifth({"misses": lambda factor: {"scale": factor}}))
        self.assertEqual(len(settings), 40)
        self.assertEqual([point.scale for point in settings if point.own], [0.8, 1.2])
        self.assertEqual(len(list(Setting("m.toml").by_a_fifth(groups=GROUPS))), 2 * len(GROUPS))


@unittest.skipUnless("COSCHED" in os.environ, "COSCHED names no executable")
class Simulated(unittest.TestCase):
    def test_each_policy_takes_each_constant(self):
        small = {**program(instructions=3e6, misses_per_kilo_instruction=1.0, critical={"sections": 2, "instructions": 9.0}),
                 "threads": 2, "misses_per_kilo_instruction": 1.0}
        machine = {"name": "small", "topology": "package:2 core:2 pu:1", **MACHINE}
        with tempfile.TemporaryDirectory() as kept:
            cosched = Cosched(os.environ["COSCHED"], kept)
            for policy in ("linux", *SETTABLE):
                arguments = ["--policy", policy, "--no-solo", *(["--quantum", "100ms"] if policy in PAUSING else [])]
                plain = cosched.json(arguments, [small, small], machine)
                for name in CONSTANTS:
                    cosched.under({name: 1.2}).json(arguments, [small, small], machine)
                    # What stands here as usual is what the simulator takes without it.
                    same = cosched.under({name: 1.0}).json(arguments, [small, small], machine)
                    self.assertEqual(same["total_seconds"], plain["total_seconds"], f"{policy}, {name}")


class Summary(unittest.TestCase):
    ROWS = [row("a-01", [True, True]), row("a-02", [True, False], [1.0]), row("a-03", [True]), row("a-04", [], [2.5]),
            row("a-05", [True], kind="input")]
    GROUPS = [{"name": "table 1", "first": "a-01", "last": "a-02"}]

    def test_a_group_counts_as_one_claim(self):
        found = grouped(self.ROWS, self.GROUPS)
        self.assertEqual([one["id"] for one in found], ["a-03", "a-04", "table 1"])
        self.assertEqual((found[2]["direction"], found[2]["rows"], found[2]["sizes"]), ("most", 2, [1.0]))
        self.assertEqual(right(self.ROWS), (3, 4))
        self.assertEqual(right(found), (1, 2))
        self.assertEqual(line("a", found)[:6], ["a", "2", "1", "1", "0", "0"])

    def test_the_sentence_counts_each_claim_and_no_input(self):
        text = "\n".join(summary({"a": self.ROWS}, self.ROWS, self.GROUPS))
        self.assertIn("Every order right in 2 of 3 claims that have orders, of 4 that are judged; of 2 sizes, 50 % within 20 %", text)
        self.assertIn("every order right in 1 of 2", text)
        self.assertIn("| table 1 | 2 | 3 (75 %) | 1 | 100 % |", text)
        self.assertIn("| group | rows | orders that hold | sizes | within 20 % |", text)


class Picture(unittest.TestCase):
    def test_each_claim_has_a_mark_for_each_part(self):
        rows = [row("a-01", [True, False], [1.1, 0.3, 99, 0, -1]), row("a-02", [True])]
        drawn = xml.fromstring(svg("a & b", rows))
        kinds = [path.get("class") for path in drawn.iter("{http://www.w3.org/2000/svg}path")]
        # Each form is in the legend once.
        self.assertEqual([kinds.count(kind) for kind in ("holds", "fails", "met", "missed", "sign")], [3, 2, 2, 5, 2])
        words = ["".join(element.itertext()) for element in drawn.iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn("a-01  a-01 is <faster>", words)

    def test_a_long_name_does_not_reach_the_orders(self):
        drawn = svg("a", [row("a-01", [True], says="many words " * 9)])
        self.assertIn(">a-01  many words many words many words many …<", drawn)

    def test_text_and_marks_stand_out_by_day_and_at_night(self):
        for which in (0, 1):
            get = lambda name: COLOURS[name][which]
            for back in ("paper", "near", "double"):
                self.assertGreaterEqual(contrast(get("ink"), get(back)), 4.5, back)
                for shape in ("accent", "other"):
                    self.assertGreaterEqual(contrast(get(shape), get(back)), 2.5, f"{shape} on {back}")


class Page(unittest.TestCase):
    def test_the_page_and_a_picture_for_each_paper_are_written(self):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            shutil.copytree(HERE.parent, root / "experiments", symlinks=True, ignore=shutil.ignore_patterns("*.svg", "results.md"))
            (root / "bench").symlink_to(HERE.parent.parent / "bench")
            folders = [file.parent for file in root.glob("experiments/*/claims.toml")]
            for folder in folders:
                claims = tomllib.loads((folder / "claims.toml").read_text())["claim"]
                found = [row(claim["id"], [True], [1.1], kind=claim.get("kind", "claim")) for claim in claims[:2]]
                out = root / "out" / folder.name
                out.mkdir(parents=True)
                (out / "results.json").write_text(json.dumps({"claims": found}))
            command = [sys.executable, "-B", root / "experiments" / "reproduction", "--keep", "--out", root / "out"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            page = (root / "experiments" / "results.md").read_text()
            self.assertIn("| all (1/1) | × 1.10; 100 %, 100 %, 100 % | 1.00 | – |", page)
            self.assertEqual(len(folders), 5)
            for folder in folders:
                self.assertIn("ours beside theirs", (folder / "picture.svg").read_text())


def contrast(a, b):
    """As the Web Content Accessibility Guidelines define it."""
    channel = lambda value: value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
    luminance = lambda colour: sum(share * channel(int(colour[at:at + 2], 16) / 255)
                                   for share, at in ((0.2126, 1), (0.7152, 3), (0.0722, 5)))
    low, high = sorted(luminance(colour) + 0.05 for colour in (a, b))
    return high / low


if __name__ == "__main__":
    unittest.main()
