#!/usr/bin/env python3
"""tests.py: the statistics and documents of the benches, on made-up times. `make test` runs it."""

import json
import pathlib
import tempfile
import unittest
import unittest.mock
from xml.etree import ElementTree

import barrier_verdicts
import cells
import fairness
import fairness_overhead
import kernel_mixes
import lock
import lock_verdicts
import malleable
import mariadb
import mechanisms
import monitor
import picture
import policies
import policy_verdicts
import real_programs
import shuffling
import shuffling_verdicts
import sim_speed
import storms
from lib import report as reports
from lib import rounds, runner
from lib.verdicts import FEWEST, differs, held_against, over_best_of_others, ratio, ratios

ROUNDS = 7
STARTED = {"started_at": "2026-01-01T00:00:00Z", "rounds": ROUNDS}


def estimate(value):
    return {"value": value, "interval": None}


def in_rounds(seconds):
    """Times of variants in every round; a list tells each round."""
    return {variant.replace("_", "-"): times if isinstance(times, list) else [times] * ROUNDS for variant, times in seconds.items()}


def a_cell(name="a", failed=False, **seconds):
    """A cell of the lock bench in which each variant took so long."""
    guard = [{"left_with": "batch", "trying_seconds": 1.0, "progress": {"batch": 1.2}}] * ROUNDS
    variants = {variant: {"seconds": times, "failed": int(failed), "deviations": 0, "own_cpu_percent": 0.1, "guard": guard}
                for variant, times in in_rounds(seconds).items()}
    return {"cell": name, "kind": "lock-loop", "threads": 4, "amount": 1.0, "failed": failed, "variants": variants}


def of_locks(*made_up):
    found = STARTED | {"schema": lock.SCHEMA, "seconds": 4.0, "variants": {name: name for name in made_up[0]["variants"]},
                       "cells": list(made_up)}
    lock_verdicts.judge(found)
    return found


def a_mix(name="a", held_out=False, failed=(), unfairness=1.1, **seconds):
    variants = {variant: {"samples": {"total_seconds": times}, "failed": int(variant in failed), "unfairness": estimate(unfairness)}
                for variant, times in in_rounds(seconds).items()}
    return {"mix": name, "held_out": held_out, "variants": variants}


def a_storm(name="a", co_runner=None, filled=True, failed=False, **round_us):
    """A cell in which a round took so long in each variant; a pair is that of the main program and that of its co-runner."""
    def of_programs(times):
        main, beside = times if isinstance(times, tuple) else (times, None)
        return {"main": [main] * ROUNDS, **({"co-runner": [beside] * ROUNDS} if co_runner else {})}

    runs = {variant: of_programs(times) for variant, times in round_us.items()}
    if co_runner:
        runs |= {"solo": {"main": [1.0] * ROUNDS}, "solo-co-runner": {"co-runner": [1.0] * ROUNDS}}
    return {"cell": name, "co_runner": co_runner, "filled": filled, "failed": failed, "runs": runs}


def of_storms(*made_up):
    found = STARTED | {"seconds": 0.4, "cpus": 2, "states": True, "variants": ["default", "block", "donate"], "cells": list(made_up)}
    barrier_verdicts.judge(found)
    return found


class Tables(unittest.TestCase):
    """What all tests of documents need."""

    def rows_of(self, lines):
        """The rows of a page's only table, which have equal columns."""
        rows = [line for text in lines for line in text.splitlines() if line.startswith("|")]
        self.assertEqual(len({row.count("|") for row in rows}), 1, rows)
        return rows


class Lib(unittest.TestCase):
    def test_a_ratio_is_taken_pair_by_pair_and_has_a_verdict(self):
        theirs = [1.0, 10.0, 3.0, 7.0, 2.0, 5.0, 4.0]
        outlier = [1.01, 1.0, 1.02, 0.99, 1.01, 1.0, 1.4, 1.01]
        for ours, theirs, value, verdict in [
                ([2 * each for each in theirs], theirs, 2.0, "worse"), ([each / 2 for each in theirs], theirs, 0.5, "better"),
                (theirs, theirs, 1.0, "no-difference"), (outlier, [1.0] * 8, 1.01, "no-difference"),
                ([2.0] * (FEWEST - 1), [1.0] * (FEWEST - 1), 2.0, "too-few-rounds")]:
            found = ratio(ours, theirs)
            self.assertAlmostEqual(found["value"], value, 2)
            self.assertEqual((found["verdict"], differs(found)), (verdict, verdict in ("better", "worse")))
            self.assertEqual(found["interval"] is None, len(ours) < FEWEST)

    def test_each_variant_has_a_ratio_even_the_one_that_is_compared_with(self):
        found = ratios({"over": [2.0] * 7, "a": [4.0] * 7}, "over")
        self.assertEqual({name: (one["value"], one["verdict"]) for name, one in found.items()},
                         {"over": (1.0, "no-difference"), "a": (2.0, "worse")})

    def test_a_best_by_chance_is_not_the_best_of_other_rounds(self):
        lucky = {name: [0.5 if number == place else 1.0 for number in range(3)] for place, name in enumerate("abc")}
        self.assertLessEqual(over_best_of_others("abc", lucky | {"ours": [1.0] * 3}, "ours"), 1.0 + 1e-9)
        self.assertIsNone(over_best_of_others("a", {"a": [1.0], "ours": [1.0]}, "ours"))

    def test_each_round_begins_with_the_next_variant(self):
        order = []
        samples = rounds.in_turn(4, {name: lambda name=name: order.append(name) or len(order) for name in "abc"})
        self.assertEqual("".join(order), "abcbcacababc")
        self.assertEqual([len(times) for times in samples.values()], [4, 4, 4])

    def test_work_grows_until_it_takes_some_time_and_is_scaled(self):
        tried = []
        self.assertAlmostEqual(runner.fitted(lambda work: tried.append(work) or work / 10, 0.5, 4.0), 40.0)
        self.assertEqual(tried, [0.5, 5.0, 20.0])
        self.assertIsNone(runner.fitted(lambda work: None, 0.5, 4.0))

    def test_programs_are_written_as_toml(self):
        text = runner.program(["a b", 1, pathlib.Path("/c")], threads=2, env={"A": "x"}, progress=True)
        self.assertEqual(text, '[[program]]\ncommand = ["a b", "1", "/c"]\nthreads = 2\nenv = { A = "x" }\nprogress = true\n')

    def test_a_bench_goes_on_with_missing_and_failed_cells(self):
        judged = of_locks(a_cell(linux=2.0, faithful=2.0, batch=2.0), a_cell("b", failed=True, linux=2.0, faithful=2.0))
        mixes = {"rounds": ROUNDS, "started_at": "then", "mixes": [a_mix("a", linux=2.0)]}
        for listed, named, earlier in [("cells", "cell", judged), ("mixes", "mix", mixes)]:
            asked = {key: value for key, value in earlier.items() if key != "summary"} | {"started_at": "now", listed: []}
            found = dict(asked)
            rounds.resume(found, earlier, listed)
            self.assertEqual([one[named] for one in found[listed]], ["a"])
            self.assertEqual((found["started_at"], found.get("summary")), (earlier["started_at"], earlier.get("summary")))
            left = rounds.not_yet([kernel_mixes.Mix(name, []) for name in "abc"], found, listed, named)
            self.assertEqual([one.name for one in left], ["b", "c"])
            rounds.resume(asked, None, listed)
            self.assertEqual(asked[listed], [])
            with self.assertRaisesRegex(SystemExit, "--resume: rounds was 7 and is 3 now"):
                rounds.resume(asked | {"rounds": 3}, earlier, listed)

    def test_variants_can_be_added_to_those_always_there(self):
        chosen = lambda asked: list(rounds.chosen_variants(asked, lock.ALWAYS, lock.VARIANTS, {"idea": []}))
        self.assertEqual(chosen(""), list(lock.VARIANTS))
        self.assertEqual(chosen("idea,batch"), ["linux", "faithful", "batch", "idea"])
        with self.assertRaisesRegex(SystemExit, "--variants: btach is none; there are linux, "):
            chosen("btach")

    def test_a_larger_sample_has_the_cells_of_a_smaller_one(self):
        drawn = {many: [cell.name for cell in rounds.sample(storms.all_cells(1.0), many)] for many in [1, 40, 438]}
        self.assertEqual((drawn[40][:1], drawn[438][:40], len(set(drawn[438]))), (drawn[1], drawn[40], 438))
        for half in ["omp", "groups", "compute"]:
            self.assertTrue(8 <= sum(half in name for name in drawn[40]) <= 32, half)

    def test_a_report_is_written_as_json_and_as_a_page(self):
        with tempfile.TemporaryDirectory() as folder:
            options = unittest.mock.Mock(folder=pathlib.Path(folder, "a"), runs=3)
            report = reports.Report(options, "schema/1", markdown=lambda report: reports.table(["b"], [[report["rounds"]]]), c=1)
            self.assertEqual(list(report.each("xy", name=str)), ["x", "y"])
            report.save()
            self.assertEqual(json.loads(pathlib.Path(folder, "a.json").read_text())["c"], 1)
            self.assertEqual(pathlib.Path(folder, "a.md").read_text(), "| b |\n|---|\n| 3 |\n")


class Mixes(unittest.TestCase):
    def test_there_are_enough_mixes_and_half_of_them_are_held_out(self):
        folder = pathlib.Path("/programs")
        real = real_programs.all_mixes(folder)
        for mixes, fewest, most in [(kernel_mixes.all_mixes(), 30, 12), (real, 20, 8)]:
            self.assertGreaterEqual(len(mixes), fewest)
            self.assertLessEqual(abs(len(mixes) - 2 * sum(mix.held_out for mix in mixes)), 1)
            self.assertEqual(len({mix.name for mix in mixes}), len(mixes))
            for mix in mixes:
                text = mix.workload(0.5, 4)
                names = [line for line in text.splitlines() if line.startswith("name =")]
                self.assertTrue(2 <= text.count("[[program]]") <= most, mix.name)
                self.assertEqual(len(set(names)), len(names), mix.name)
                self.assertEqual(mix.does_less_with_one_thread(), "sleeper" in mix.name, mix.name)
        for held_out in [False, True]:
            half = [mix for mix in real if mix.held_out == held_out]
            kinds = {program.kind for mix in half for program in mix.programs}
            self.assertLessEqual(real_programs.KINDS.keys(), kinds)

    def test_real_programs_have_scripts_and_no_thread_count(self):
        words = [word for kind in real_programs.KINDS.values() for word in kind.command]
        for script in [word for word in words if word.startswith(str(real_programs.SCRIPTS))]:
            self.assertTrue(pathlib.Path(script).is_file(), script)
        table, = real_programs.RealProgram("lightgbm", folder=pathlib.Path("/programs"), work=0.5).tables(2.0, 4)
        self.assertNotIn("threads =", table)
        for part in [f'"{real_programs.KINDS["lightgbm"].a_second}"', 'cwd = "/programs"', 'name = "lightgbm"']:
            self.assertIn(part, table)

    def test_a_mix_is_left_out_with_the_reason_of_its_program(self):
        probes = real_programs.Probes()
        probes.found = {"go": None, "jvm": "java: No such file or directory"}
        for kinds, problem in [(["go", "jvm"], "jvm: java: No such file or directory"), (["go"], None)]:
            mix = kernel_mixes.Mix("a", [kernel_mixes.Program(kind) for kind in kinds])
            self.assertEqual(probes.cannot_run(mix), problem)
        program = kernel_mixes.Program("true", folder=pathlib.Path("/"))
        for command, problem in [(["sh", "-c", "echo first >&2; echo no such module >&2; exit 1"], "no such module"),
                                 (["/no/such/program"], "/no/such/program: No such file or directory"),
                                 (["sh", "-c", "sleep 100; true"], "it runs longer than 0.1 s alone")]:
            program.command = lambda seconds, command=command: command
            longest = 0.1 if "sleep" in command[-1] else real_programs.LONGEST_PROBE
            with unittest.mock.patch.object(real_programs, "LONGEST_PROBE", longest):
                self.assertEqual(real_programs.problem(program), problem)

    def test_a_variant_may_have_options_of_its_own(self):
        variants = dict(map(policies.named, ["turns", "short=turns --quantum 50ms", "fcfs"]))
        words = ["--policies", "turns,fcfs", "--variant", "short=turns --quantum 50ms"]
        self.assertEqual(runner.words_of(variants), words)


class Policies(Tables):
    def judged(self, *mixes):
        found = STARTED | {"schema": policies.SCHEMA, "machine": None, "seconds": 1.0, "root": True,
                           "left_out": {"turns": "no such policy"}, "mixes": list(mixes)}
        policy_verdicts.judge(found)
        self.assertGreater(sum(line.startswith("| ") for line in policy_verdicts.markdown(found)), len(mixes))
        return found["summary"]

    def test_variants_are_compared_with_the_better_plain_one(self):
        mixes = [a_mix("a", linux=4.0, fcfs=2.0, one_thread=1.0, turns=1.8, auto=2.2),
                 a_mix("b", True, linux=2.0, fcfs=4.0, one_thread=4.0, turns=2.0, auto=2.0)]
        summary = self.judged(*mixes)
        self.assertEqual([mix["better_plain"] for mix in mixes], ["fcfs", "linux"])
        turns, auto_ = (summary["all"]["variants"][name] for name in ["turns", "auto"])
        self.assertAlmostEqual(turns["to_plain"]["mean"]["value"], 0.9 ** 0.5)
        self.assertAlmostEqual(turns["to_one_thread"]["worst"]["value"], 1.8)
        self.assertEqual((turns["faster"], turns["slower"], auto_["slower"]), (["a"], [], ["a"]))
        self.assertEqual((auto_["to_plain"]["worst_mix"], turns["mixes"]), ("a", 2))
        self.assertAlmostEqual(summary["held_out"]["variants"]["auto"]["to_plain"]["mean"]["value"], 1.0)

    def test_the_default_is_held_against_every_bar(self):
        mix = a_mix(linux=2.0, fcfs=4.0, one_thread=2.2, turns=2.2, turns_fair=2.0, unfairness=1.4)
        variants = self.judged(mix)["all"]["variants"]
        said = list(policy_verdicts.bar_sentences(variants, policy_verdicts.Bars(1.2, 1.05, 1.0, 1.3)))
        self.assertEqual([sentence.rsplit(" ", 1)[1] for sentence in said], ["reached", "missed", "reached", "missed"])
        self.assertIn("worst over the better of linux and fcfs (a): 1.100 (at most 1.05)", said[1])
        del variants["turns-fair"]
        self.assertEqual(len(list(policy_verdicts.bar_sentences(variants, policy_verdicts.ON_A_REAL_MACHINE))), 3)

    def test_the_mean_over_mixes_has_an_interval_from_each_round(self):
        fast, slow = [0.5] * 6 + [0.6], [2.0] * 6 + [2.4]
        mean = self.judged(a_mix("a", linux=1.0, turns=fast), a_mix("b", linux=1.0, turns=slow))["all"]["variants"]["turns"][
            "to_plain"]["mean"]
        self.assertAlmostEqual(mean["interval"][0], 1.0)
        self.assertAlmostEqual(mean["interval"][1], 1.2)
        one = self.judged(a_mix("a", linux=[1.0], turns=[0.5]))["tuning"]["variants"]["turns"]["to_plain"]["mean"]
        self.assertEqual((one["value"], one["interval"]), (0.5, None))

    def test_failed_and_missing_variants_count_in_no_mean(self):
        summary = self.judged(a_mix("a", linux=1.0, turns=0.5, llvm=1.0, failed=["turns"]),
                              a_mix("b", linux=1.0, turns=2.0),
                              a_mix("c", linux=1.0, fcfs=1.0, turns=1.0, failed=["linux", "fcfs"]))
        turns, llvm = (summary["all"]["variants"][name] for name in ["turns", "llvm"])
        self.assertEqual((turns["mixes"], turns["failed"]), (1, ["a"]))
        self.assertAlmostEqual(turns["to_plain"]["mean"]["value"], 2.0)
        self.assertEqual((llvm["mixes"], llvm["to_one_thread"]), (1, None))
        self.assertIsNone(summary["held_out"])


class Fairness(Tables):
    def test_half_of_the_excess_has_to_go_for_3_percent_at_most(self):
        def variant(unfairness, seconds, failed=0):
            samples = {"unfairness": [unfairness] * ROUNDS, "mean_turnaround_seconds": [seconds] * ROUNDS}
            slowdowns = {"a": [2.0] * ROUNDS, "b": [2.0 * unfairness] * (ROUNDS - 1) + [9.0]}
            return {"unfairness": estimate(unfairness), "failed": failed, "samples": samples, "slowdowns": slowdowns,
                    "against": {"total_ratio": estimate(seconds / 6), "verdict": "no-difference"}}

        for linux, ours, seconds, failed, alone, verdict in [
                (1.4, 1.1, 6, 0, 3.0, "met"), (1.4, 1.21, 6, 0, 3.0, "not met"), (1.4, 1.1, 6.2, 0, 3.0, "not met"),
                (1.4, 1.1, 6, 1, 3.0, "programs failed"), (1.4, 1.1, 6, 0, 3.4, "not equally long alone"),
                (1.04, 1.01, 6, 0, 3.0, "nothing to gain")]:
            cell = fairness.judged({"cell": "a", "alone_seconds": {"a": 3.0, "b": alone}, "variants": {
                "linux": variant(linux, 6), "fair-progress": variant(ours, seconds, failed)}})
            self.assertEqual(cell["verdict"], verdict)
            self.assertIn(verdict, fairness.sentence(cell))
            gone = cell["variants"]["fair-progress"]["excess_gone"]
            self.assertAlmostEqual(gone, {1.1: 0.75, 1.21: 0.475, 1.01: None}[ours])

    def test_quanta_may_cost_1_percent_and_sampling_as_in_the_paper(self):
        def variant(total, own):
            return {"total_seconds": estimate(4 * total), "own_cpu_percent": estimate(own), "failed": 0,
                    "against": {"total_ratio": estimate(total), "verdict": "no-difference"}}

        variants = {"linux": variant(1.0, 0.5) | {"against": None}, "quanta": variant(1.011, 0.75),
                    "with sampling": variant(1.02, 1.0), "with training": variant(1.04, 1.0)}
        found = fairness_overhead.judged({"cell": "2 per CPU", "programs": 4, "variants": variants})
        self.assertEqual([variant["verdict"] for variant in found["variants"].values()], [None, "not met", "met", None])
        sentences = list(fairness_overhead.sentences(found))
        self.assertEqual(len(sentences), 3)
        self.assertIn("+1.10% time, at most 1.0%: not met; +0.25 % of a CPU", sentences[0])
        self.assertEqual(len(self.rows_of(fairness_overhead.markdown(found))), 6)
        variants["quanta"]["failed"] = 1
        self.assertEqual(fairness_overhead.judged(found)["variants"]["quanta"]["verdict"], "programs failed")
        self.assertEqual([len(cell.programs(3)) for cell in fairness_overhead.CELLS], [3, 6])

    def test_a_mix_has_multi_and_single_threaded_programs(self):
        cell = fairness.Cell("a", ["numpy"], ["triad", "compute"])
        text = fairness.workload(cell, {("numpy", 3): 123.4, ("triad", 1): 0.54321, ("compute", 1): 0.25}, 3)
        for part, many in [("[[program]]", 6), ("progress = true", 6), ("threads = 3", 1), ('"0.5432"', 3), ('"0.25"', 2),
                           ('"./numpy-matmul.py", "123"', 1)]:
            self.assertEqual(text.count(part), many, part)


class Shuffling(Tables):
    def test_time_shows_a_gain_and_locks_show_its_cause(self):
        def runs(took, share):
            figures = {"seconds": took, "transfers_per_second": 100.0, "across_share": share, "lock_share": 0.3, "moved": 4, "kept": 0}
            return {key: [value] * ROUNDS for key, value in figures.items()}

        for seconds, verdict in [(1.5, "faster"), (2.5, "slower")]:
            cell = {"cell": "a", "amount": 1.0, "failed": False,
                    "runs": {"linux": runs(2.0, 0.6), "unguarded": runs(seconds, 0.2), "guarded": runs(2.0, 0.0)}}
            found = STARTED | {"schema": shuffling.SCHEMA, "seconds": 4.0, "cpus": 2, "groups": "0,1", "source": "kernel",
                               "variants": dict.fromkeys(shuffling.VARIANTS, ""), "own": {"unguarded": 0.5, "guarded": 2.0},
                               "cells": [cell, {"cell": "b", "failed": True, "runs": {}}]}
            shuffling_verdicts.judge(found)
            self.assertEqual(cell["verdict"], {"unguarded": verdict, "guarded": "no significant difference"})
            self.assertAlmostEqual(cell["across_ratio"]["unguarded"]["value"], 1 / 3)
            self.assertIsNone(cell["across_ratio"]["guarded"], "a ratio of nothing")
            sentences = list(shuffling_verdicts.sentences(found))
            for part, line in [("b failed", 0), ("20 % go across instead of 60 %", 1), ("met", -2), ("missed", -1)]:
                self.assertIn(part, sentences[line])
            self.assertEqual(len(self.rows_of(shuffling_verdicts.markdown(found))), 3)

    def test_figures_of_locks_are_weighed_by_time_and_by_transfers(self):
        def line(seconds, transfers, across, waited):
            program = {"lock_transfers_per_second": transfers, "across_share": across, "lock_share": waited}
            return json.dumps({"source": "kernel", "interval_seconds": seconds, "programs": [program]})

        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "stat.jsonl")
            file.write_text("\n".join([line(1.0, 30.0, 1.0, 0.2), line(3.0, 30.0, 0.0, 0.6), line(1.0, 0.0, None, None)]))
            found = shuffling.locks(file)
        for key, value in [("transfers_per_second", 24.0), ("across_share", 0.25), ("lock_share", 0.4)]:
            self.assertAlmostEqual(found[key], value)


class Mechanisms(Tables):
    def test_each_cell_has_variants_to_hold_against_the_first(self):
        cells = mechanisms.all_cells()
        self.assertEqual(len({cell.name for cell in cells}), len(cells))
        for cell in cells:
            self.assertGreater(len(cell.variants), 1, cell.name)
            self.assertEqual(next(iter(cell.variants)), "linux")
            self.assertEqual(cell.workload().count("[[program]]"), len(cell.program))

    def test_a_page_has_a_table_for_each_cell_and_says_what_is_worse(self):
        def variant(seconds, against):
            return {"total_seconds": estimate(seconds), "mean_turnaround_seconds": estimate(1.5), "against": against, "failed": 0}

        variants = {"linux": variant(1.0, None), "slow": variant(2.0, {"total_ratio": estimate(2.0), "verdict": "worse"})}
        cell = {"cell": "a", "variants": variants, "words": {"linux": "linux", "slow": "turns --set x"}, "failed": 0}
        found = STARTED | {"schema": mechanisms.SCHEMA, "machine": None, "cells": [cell]}
        self.assertEqual(list(mechanisms.sentences(found)), ["a: worse than linux: slow."])
        rows = self.rows_of(mechanisms.markdown(found))
        self.assertEqual(rows[-1], "| slow (`turns --set x`) | 2.00 | 2.00 | worse | 1.50 |")


class Locks(Tables):
    def test_faithful_is_compared_with_the_best_fixed_actuator(self):
        # On average, slice is faster; in the middle, batch is.
        of_slice = [1.0, 0.1, 1.0, 1.0, 0.1, 1.0, 1.0]
        found = of_locks(a_cell(linux=1.2, faithful=0.99, unguarded=1.0, none=1.2, slice=of_slice, batch=0.9))["cells"][0]
        self.assertEqual(found["best_fixed"], "batch")
        self.assertAlmostEqual(found["faithful_to_best"]["value"], 1.1)
        self.assertAlmostEqual(found["variants"]["batch"]["ratio"]["value"], 0.75)
        self.assertIsNone(found["variants"]["linux"]["ratio"])

    def test_bars_are_met_at_their_limits_and_missed_beyond(self):
        for first, second, mean, worst in [(1.0999, 0.95, "met", "met"), (1.11, 0.95, "met", "missed"), (1.07, 1.0, "missed", "met")]:
            found = of_locks(a_cell(linux=2, faithful=first, none=1), a_cell("b", linux=2, faithful=second, none=1))["summary"]
            self.assertEqual(found["bars"], {"geometric_mean": mean, "worst": worst, "linux": "met"})
            self.assertAlmostEqual(found["geometric_mean"], (first * second) ** 0.5)
            self.assertEqual(found["worst"]["cell"], "a")

    def test_below_linux_means_significant_and_over_two_percent(self):
        noisy = [0.8, 1.5, 1.1, 0.9, 1.3, 1.0, 1.2]
        for linux, times, below, bar in [(1.0, 1.015, [], "met"), (1.0, 1.03, ["a"], "missed"), (1.0, noisy, [], "met"),
                                         ([1.0] * 3, [1.5] * 3, [], "undecided")]:
            found = of_locks(a_cell(linux=linux, faithful=times, none=linux))["summary"]
            self.assertEqual((found["below_linux"], found["bars"]["linux"]), (below, bar))

    def test_round_robin_is_judged_apart_as_it_needs_a_request(self):
        found = of_locks(a_cell(linux=1.0, faithful=1.0, none=1.0, round_robin=0.5))
        self.assertEqual(found["cells"][0]["best_fixed"], "none")
        self.assertEqual(found["cells"][0]["with_round_robin"]["best_fixed"], "round-robin")
        self.assertAlmostEqual(found["summary"]["geometric_mean_with_round_robin"], 2.0)
        self.assertEqual(found["summary"]["bars"]["geometric_mean"], "met")

    def test_failed_cells_count_nowhere_and_the_picture_is_svg(self):
        failed = a_cell("b <&>", True, linux=1, faithful=9, none=1)
        found = of_locks(a_cell(linux=1, faithful=9.0, unguarded=1, none=0.1), failed)
        self.assertEqual((found["summary"]["cells"], found["summary"]["worst"]["cell"]), (1, "a"))
        self.assertIn("| b <&> | failed", "\n".join(self.rows_of(lock_verdicts.markdown(found))))
        drawn = ElementTree.fromstring("".join(picture.svg(found)))
        self.assertIn("a", [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")])
        self.assertEqual(list(lock_verdicts.sentences(of_locks(failed))), ["No cell was measured."])

    def guarded(self, *reasons):
        decisions = [{"at_seconds": float(at), "reasons": [{"program": {"slot": slot}, **why}]} for at, slot, why in reasons]
        return lock_verdicts.guard({"total_seconds": 10.0, "decisions": [{"at_seconds": 0.0, "reasons": [{"why": "x"}]}, *decisions]})

    def test_a_program_keeps_the_last_kept_setting_or_its_first(self):
        tried = {"why": "tried", "actuator": "slice", "against": "none"}
        kept = {"why": "kept", "actuator": "slice", "progress": 1.2}
        next_ = {"why": "tried", "actuator": "batch", "against": "slice"}
        back = {"why": "put-back", "actuator": "batch", "progress": 0.9}
        other = {"why": "kept", "actuator": "batch", "progress": 2.0}
        found = self.guarded((1, 0, tried), (3, 0, kept), (4, 0, next_), (4.5, 1, other), (5, 0, back))
        self.assertEqual(found, {"left_with": "slice", "trying_seconds": 3.0, "progress": {"slice": 1.2, "batch": 0.9}})
        # Another slice was chosen; what is in force stays so, or does not.
        for variant in ["slice", "none"]:
            chosen = (6, 0, {"why": "given", "actuator": variant}), (6, 0, {"why": "slice", "slice": 10_000_000})
            self.assertEqual(self.guarded((1, 0, tried), (3, 0, kept), *chosen)["left_with"], variant)
        self.assertEqual(self.guarded((1, 0, tried))["trying_seconds"], 9.0)
        self.assertEqual(lock_verdicts.left_with([found, found, {"left_with": "none"}]), "slice 2, none 1")

    def test_cells_have_own_names_and_scaled_work_whole_for_counts(self):
        found = cells.all_cells(2, pathlib.Path("/data"))
        self.assertEqual(len({each.name for each in found}), len(found))
        self.assertEqual(len(found), 7 * 3 + 3 * 2 + 2 * 3 + 3)
        self.assertEqual({each.threads for each in found if each.kind == "mariadb"}, {2, 4, 8})
        last = {each.kind: each for each in found}
        for kind, times, amount in [("lock-loop", 3.33333, 1.667), ("mariadb", 2.0011, 1001), ("sysbench-threads", 1e-9, 1)]:
            self.assertEqual(last[kind].amount(times), amount)
        text = last["lock-loop"].workload(1.667)
        self.assertIn('"--work", "1.667"]', text)
        self.assertIn('"--threads", "8"', text)

    def test_the_time_of_a_program_begins_with_its_start(self):
        program = {"arrived_seconds": 0.5, "started_seconds": 0.75, "turnaround_seconds": 3.25}
        found = {each.kind: each for each in cells.all_cells(2, pathlib.Path("/data"))}
        printed = "General statistics:\n    total time:                          2.5s\n    total number of events: 5\n"
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "run.json").write_text(json.dumps({"programs": [program]}))
            (folder / "client.stdout").write_text(printed)
            self.assertEqual([found[kind].times(folder) for kind in ["lock-loop", "mariadb"]], [(3.0, 0.75), (2.5, 0.75)])
        self.assertIsNone(mariadb.seconds("FATAL: unable to connect"))


class Barriers(Tables):
    def test_donate_is_held_against_the_best_of_the_others(self):
        found = of_storms(a_storm(default=2.0, block=1.0, donate=1.05), a_storm("b", default=1.0, block=2.0, donate=1.0))
        self.assertEqual([cell["best"] for cell in found["cells"]], ["block", "default"])
        summary = found["summary"]
        self.assertAlmostEqual(summary["geometric_mean"], 1.05 ** 0.5)
        self.assertEqual((summary["worst"]["cell"], summary["worst"]["best"]), ("a", "block"))
        expected = {"geometric_mean": "met", "worst": "met", "every_fixed_variant": "met", "unfairness": "not measured",
                    "alone": "met"}
        self.assertEqual(summary["bars"], expected)

    def test_bars_are_missed_beyond_their_limits(self):
        found = of_storms(a_storm(default=1.0, block=9.0, donate=1.12),
                          a_storm("b", "compute", default=(9.0, 1.0), block=(4.0, 2.0), donate=(4.0, 2.0)))["summary"]
        self.assertEqual(found["bars"], {"geometric_mean": "missed", "worst": "missed", "every_fixed_variant": "met",
                                         "unfairness": "missed", "alone": "missed"})
        self.assertEqual(found["slowest_alone"]["cell"], "a")

    def test_unfairness_is_the_ratio_of_speeds_relative_to_alone(self):
        # Alone a round takes 1 us: three times as long with the co-runner, which takes twice as long.
        for filled, unfairest in [(True, "a"), (False, "b")]:
            found = of_storms(a_storm("a", "compute", filled, default=(9.0, 1.0), block=(3.0, 3.0), donate=(3.0, 2.0)),
                              a_storm("b", "storm", default=(1.0, 1.0), block=(2.0, 2.0), donate=(2.0, 2.0)))
            self.assertAlmostEqual(found["cells"][0]["variants"]["donate"]["unfairness"], 1.5)
            self.assertAlmostEqual(found["cells"][0]["variants"]["default"]["unfairness"], 9.0)
            self.assertEqual(found["summary"]["unfairest"]["cell"], unfairest)

    def test_a_variant_at_its_co_runners_expense_is_left_out(self):
        greedy = a_storm("a", "compute", default=(1.0, 9.0), block=(3.0, 3.0), donate=(2.9, 2.9))
        lonely = a_storm("b", "compute", default=(1.0, 9.0), block=(1.0, 8.0), donate=(2.0, 2.0))
        found = of_storms(greedy, lonely, a_storm("c", default=1.0, block=2.0, donate=1.0))
        self.assertEqual([cell["best"] for cell in found["cells"]], ["default", "default", "default"])
        self.assertEqual([cell["best_fair"] for cell in found["cells"]], ["block", None, "default"])
        self.assertAlmostEqual(found["summary"]["geometric_mean_of_fair"], (2.9 / 3.0) ** 0.5)

    def test_a_failed_cell_counts_nowhere_and_rows_stay_equal(self):
        found = of_storms(a_storm(default=1.0, block=1.0, donate=0.9), a_storm("b", failed=True))
        self.assertEqual(found["summary"]["cells"], 1)
        self.rows_of(barrier_verdicts.markdown(found))
        nothing = of_storms(a_storm("b", failed=True))
        self.assertEqual(list(barrier_verdicts.sentences(nothing)), ["No cell was measured."])

    def test_cells_have_own_names_and_all_settings(self):
        found = storms.all_cells(0.4)
        self.assertEqual(len({each.name for each in found}), len(found))
        self.assertEqual(len(found), 2 * 2 * 3 * 5 * 7 + 2 * 3 * 3)
        self.assertEqual([each.name for each in found if each.fills(4) and each.threads == 8 and not each.groups][:2],
                         ["omp 2us x8 + compute x4", "omp 2us x8 + storm x4"])
        self.assertNotIn("passive", next(each for each in found if each.runtime == "pthread").variants(storms.VARIANTS))

    def test_a_variant_has_its_keys_and_a_run_alone_no_co_runner(self):
        found = storms.all_cells(0.4)
        first, real = (next(filter(which, found)) for which in (lambda cell: cell.co_runner, lambda cell: cell.name == "cg x2 + cg x2"))
        both = ["main", "co-runner"]
        for cell, added, names, part, many in [
                (first, storms.VARIANTS["passive"], both, 'env = { OMP_WAIT_POLICY = "passive" }', 2),
                (first, storms.VARIANTS["passive"], both, '"--for", "0.4"', 2),
                (first, {"barrier": "donate"}, ["main"], "[[program]]", 1),
                (first, {"barrier": "donate"}, ["main"], 'barrier = "donate"', 1),
                (real, storms.VARIANTS["block"], both, '["./bin/cg", "--threads", "2", "--for", "0.4"]', 2)]:
            self.assertEqual(cell.in_variant(added, names).count(part), many, part)
        self.assertEqual((real.runtime, real.co_runner, real.fills(2)), ("omp", "cg", True))

    def test_the_time_of_a_round_is_what_a_kernel_tells(self):
        output = "barrier-storm ok checksum=4e54dc1dec6658d3 seconds=0.402 round_us=2.31e+00\n"
        self.assertEqual((storms.round_us(output), runner.told_seconds(output)), (2.31, 0.402))


class Pictures(unittest.TestCase):
    def test_the_speed_of_the_simulator_is_drawn_lower_where_it_is_lower(self):
        drawn = ElementTree.fromstring(sim_speed.svg({"cpus": {"24": 4.5e6, "1024": 3e5}, "programs": {"4": 4e6, "8": 4e6}}))
        courses = [path.get("d")[1:].split("L") for path in drawn.iter("{http://www.w3.org/2000/svg}path") if path.get("class") == "course"]
        heights = [[float(point.split(",")[1]) for point in course] for course in courses]
        self.assertLess(heights[0][0], heights[0][1])
        self.assertEqual(heights[1][0], heights[1][1])
        self.assertIn("300 k", [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")])


class Costs(unittest.TestCase):
    def test_a_cost_is_missed_only_where_it_is_significant(self):
        noisy, wide = [0.8, 1.5, 1.1, 0.9, 1.3, 1.0, 1.2], [0.9, 1.2, 1.0, 1.1, 0.95, 1.05, 1.0]
        for judged, ours, expected in [
                (monitor.judged, [1.005] * 7, "met"), (monitor.judged, [1.02] * 7, "missed"), (monitor.judged, noisy, "undecided"),
                (monitor.judged, [1.0] * 6, "undecided"), (malleable.judged_loss, [1.005] * 7, "met"),
                (malleable.judged_loss, [1.02] * 7, "missed"), (malleable.judged_loss, [1.005] * 6, "too few"),
                (malleable.judged_loss, wide, "undecided")]:
            found = held_against({"without": [1.0] * len(ours), "with": ours}, "without")["with"]["ratio"]
            self.assertIn(expected, judged(found))

    def test_lock_figures_have_their_cost_without_left_out_parts(self):
        times = {"unwatched": 1.0, "stat": 1.25, "stat-transfers": 1.5, "policy": 1.0, "policy-locks": 1.0}
        samples = in_rounds(times)
        one = {"program": "lock-loop", "arguments": ["--threads", 8], "variants": held_against(samples, "unwatched"),
               "costs": monitor.costs(samples)}
        sentences = list(monitor.sentences({"source": "kernel", "storm": [], "bystander": [], "locks": [one], "own": None}))
        self.assertEqual(len(sentences), 3)
        for words, line in [("lock-loop --threads 8", 1), ("stat 1.25", 1), ("takes 1.2", 2), ("apart 1.0", 2)]:
            self.assertIn(words, sentences[line])

    def regions(self, **parallel):
        """Sentences on regions that take so many nanoseconds."""
        more = {"region": 20.0, "request": 30_000.0, "longest": 9e5}
        figures = {name.replace("_", "-"): {"parallel": value, **(more if "limit_" in name else {})} for name, value in parallel.items()}
        return list(malleable.sentences({"region": [{"threads": 2, "nanoseconds": figures}]}))

    def test_fewer_threads_are_another_region_more_time_is_judged(self):
        sentences = self.regions(without=500.0, limit_1=300.0, limit_2=1600.0)
        self.assertEqual([sum(word in line for line in sentences) for word in ["missed", "another region", "30 us"]], [1, 1, 2])

    def test_what_observing_costs_is_held_against_the_same_without(self):
        sentences = self.regions(without=500.0, llvm=700.0, llvm_limited=750.0, llvm_observed=790.0)
        self.assertEqual([part for line in sentences for part in ["+50 ns", "+40 ns"] if part in line], ["+50 ns", "+40 ns"])
        self.assertTrue(sentences[1].endswith("takes 700 ns."))
        output = "cosched=1 parallel=405.1 region=15.0 request=25000.5 longest=90000.0\n"
        self.assertEqual(malleable.figures(output)["request"], 25000.5)


if __name__ == "__main__":
    unittest.main()
