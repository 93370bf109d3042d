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
import command_line
import fairness
import fairness_overhead
import guarded
import kernel_mixes
import lock
import malleable
import mariadb
import monitor
import picture
import policies
import policy_verdicts
import ratio
import real_mixes
import real_programs
import shuffling
import shuffling_verdicts
import storms
import verdicts

ROUNDS = 7


def cell(name="a", failed=False, **seconds):
    """A cell in which each variant took so long in every round; a list tells each round."""
    rounds = {variant.replace("_", "-"): times if isinstance(times, list) else [times] * ROUNDS
              for variant, times in seconds.items()}
    guard = [{"left_with": "batch", "trying_seconds": 1.0, "progress": {"batch": 1.2}}] * ROUNDS
    variants = {variant: {"seconds": times, "failed": int(failed), "deviations": 0, "own_cpu_percent": 0.1, "guard": guard}
            for variant, times in rounds.items()}
    return {"cell": name, "kind": "lock-loop", "threads": 4, "amount": 1.0, "failed": failed, "variants": variants}


def report(*made_up):
    found = {"schema": lock.SCHEMA, "rounds": ROUNDS, "seconds": 4.0, "started_at": "2026-01-01T00:00:00Z",
             "variants": {variant: variant for variant in made_up[0]["variants"]}, "cells": list(made_up)}
    verdicts.judge(found, lock.ACTUATORS)
    return found


def variant(unfairness, seconds, failed=0):
    estimate = lambda value: {"value": value, "interval": None}
    samples = {"unfairness": [unfairness] * ROUNDS, "mean_turnaround_seconds": [seconds] * ROUNDS}
    rounds = {"a": [2.0] * ROUNDS, "b": [2.0 * unfairness] * (ROUNDS - 1) + [9.0]}
    return {"unfairness": estimate(unfairness), "failed": failed, "samples": samples, "slowdowns": rounds,
            "against": {"total_ratio": estimate(seconds / 6), "verdict": "no-difference"}}


class CommandLine(unittest.TestCase):
    def test_a_bench_goes_on_with_missing_and_failed_cells(self):
        earlier = report(cell(linux=2.0, faithful=2.0, batch=2.0), cell("b", failed=True, linux=2.0, faithful=2.0))
        asked = {key: earlier[key] for key in ["schema", "rounds", "seconds", "variants"]} | {"started_at": "now", "cells": []}
        found = command_line.resumed(asked, earlier)
        self.assertEqual([one["cell"] for one in found["cells"]], ["a"])
        self.assertEqual((found["started_at"], found["summary"]), (earlier["started_at"], earlier["summary"]))
        all_cells = [cells.kernel(name, "lock-loop", 4) for name in "abc"]
        self.assertEqual([one.name for one in command_line.not_yet(all_cells, found)], ["b", "c"])
        self.assertEqual(command_line.resumed(asked, None), asked)

    def test_mixes_are_resumed_like_cells(self):
        earlier = {"rounds": 7, "started_at": "then", "mixes": [a_mix("a", linux=2.0)]}
        found = command_line.resumed({"rounds": 7, "started_at": "now", "mixes": []}, earlier, "mixes")
        self.assertEqual((found["started_at"], [mix["mix"] for mix in found["mixes"]]), ("then", ["a"]))
        left = command_line.not_yet([kernel_mixes.Mix(name, []) for name in "ab"], found, "mixes", "mix")
        self.assertEqual([mix.name for mix in left], ["b"])

    def test_variants_can_be_added_to_those_always_there(self):
        chosen = lambda asked: list(command_line.chosen_variants(asked, lock.ALWAYS, lock.VARIANTS, {"idea": []}))
        self.assertEqual(chosen(""), list(lock.VARIANTS))
        self.assertEqual(chosen("idea,batch"), ["linux", "faithful", "batch", "idea"])
        with self.assertRaisesRegex(SystemExit, "--variants: btach is none; there are linux, "):
            chosen("btach")

    def test_a_larger_sample_has_the_cells_of_a_smaller_one(self):
        drawn = {many: [cell.name for cell in command_line.sample(storms.all_cells(1.0), many)] for many in [1, 40, 438]}
        self.assertEqual(drawn[40][:1], drawn[1])
        self.assertEqual(drawn[438][:40], drawn[40])
        self.assertEqual(len(set(drawn[438])), 438)
        for half in ["omp", "groups", "compute"]:
            self.assertTrue(8 <= sum(half in name for name in drawn[40]) <= 32, half)

    def test_what_was_asked_for_otherwise_is_not_resumed(self):
        earlier = report(cell(linux=2.0, faithful=2.0, batch=2.0))
        with self.assertRaisesRegex(SystemExit, "--resume: rounds was 7 and is 3 now"):
            command_line.resumed(earlier | {"rounds": 3}, earlier)


def a_mix(name="a", held_out=False, failed=(), unfairness=1.1, **seconds):
    estimate = {"value": unfairness, "interval": None}
    rounds = {variant.replace("_", "-"): times if isinstance(times, list) else [times] * ROUNDS
              for variant, times in seconds.items()}
    variants = {variant: {"samples": {"total_seconds": times}, "failed": int(variant in failed), "unfairness": estimate}
            for variant, times in rounds.items()}
    return {"mix": name, "held_out": held_out, "variants": variants}


class KernelMixes(unittest.TestCase):
    def test_there_are_enough_mixes_and_half_of_them_are_held_out(self):
        mixes = kernel_mixes.all_mixes()
        held = sum(mix.held_out for mix in mixes)
        self.assertGreaterEqual(len(mixes), 30)
        self.assertLessEqual(abs(len(mixes) - 2 * held), 1)
        self.assertEqual(len({mix.name for mix in mixes}), len(mixes))
        for mix in mixes:
            self.assertTrue(2 <= mix.workload(0.5, 4).count("[[program]]") <= 12, mix.name)
            self.assertEqual(mix.does_less_with_one_thread(), "sleeper" in mix.name, mix.name)


class Policies(unittest.TestCase):
    FOLDER = pathlib.Path("/programs")

    def judged(self, *mixes):
        found = {"schema": policies.SCHEMA, "machine": None, "rounds": ROUNDS, "seconds": 1.0, "root": True,
                 "started_at": "2026-01-01T00:00:00Z", "left_out": {"turns": "no such policy"}, "mixes": list(mixes)}
        policy_verdicts.judge(found)
        table = [line.count("|") for line in policy_verdicts.markdown(found) if line.startswith("| ")]
        self.assertGreater(len(table), len(mixes))
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
        fast, slow = [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.6], [2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.4]
        mean = self.judged(a_mix("a", linux=1.0, turns=fast), a_mix("b", linux=1.0, turns=slow))["all"]["variants"]["turns"][
            "to_plain"]["mean"]
        self.assertAlmostEqual(mean["interval"][0], 1.0)
        self.assertAlmostEqual(mean["interval"][1], 1.2)
        one = self.judged(a_mix("a", linux=[1.0], turns=[0.5]))["tuning"]["variants"]["turns"]["to_plain"]["mean"]
        self.assertEqual(one, {"value": 0.5, "interval": None})

    def test_failed_and_missing_variants_count_in_no_mean(self):
        summary = self.judged(a_mix("a", linux=1.0, turns=0.5, llvm=1.0, failed=["turns"]),
                              a_mix("b", linux=1.0, turns=2.0),
                              a_mix("c", linux=1.0, fcfs=1.0, turns=1.0, failed=["linux", "fcfs"]))
        turns, llvm = (summary["all"]["variants"][name] for name in ["turns", "llvm"])
        self.assertEqual((turns["mixes"], turns["failed"]), (1, ["a"]))
        self.assertAlmostEqual(turns["to_plain"]["mean"]["value"], 2.0)
        self.assertEqual((llvm["mixes"], llvm["to_one_thread"]), (1, None))
        self.assertIsNone(summary["held_out"])

    def test_half_of_the_mixes_are_held_out_and_have_every_kind(self):
        mixes = real_mixes.all_mixes(self.FOLDER)
        self.assertTrue(20 <= len(mixes) <= 26)
        self.assertEqual(2 * sum(mix.held_out for mix in mixes), len(mixes))
        self.assertEqual(len({mix.name for mix in mixes}), len(mixes))
        for held_out in [False, True]:
            kinds = {program.kind for mix in mixes if mix.held_out == held_out for program in mix.programs}
            self.assertLessEqual(real_programs.KINDS.keys(), kinds)
        for mix in mixes:
            text = mix.workload(1.0, 4)
            self.assertTrue(2 <= text.count("[[program]]") <= 8, mix.name)
            names = [line for line in text.splitlines() if line.startswith("name =")]
            self.assertEqual(len(set(names)), len(names), mix.name)
            self.assertFalse(mix.does_less_with_one_thread(), mix.name)

    def test_scripts_of_all_programs_exist(self):
        for kind in real_programs.KINDS.values():
            for script in [word for word in kind.command if word.startswith(str(real_programs.SCRIPTS))]:
                self.assertTrue(pathlib.Path(script).is_file(), script)

    def test_real_programs_get_no_thread_count(self):
        program = real_programs.RealProgram("lightgbm", folder=self.FOLDER, work=0.5)
        table, = program.tables(2.0, 4)
        self.assertNotIn("threads =", table)
        self.assertIn(f'"{real_programs.KINDS["lightgbm"].a_second}"', table)
        self.assertIn('cwd = "/programs"', table)

    def test_a_mix_is_left_out_with_the_reason_of_its_program(self):
        program = kernel_mixes.Program("true", folder=pathlib.Path("/"))
        program.command = lambda seconds: ["sh", "-c", "echo first >&2; echo no such module >&2; exit 1"]
        probes = real_programs.Probes()
        probes.found = {"go": None, "jvm": "java: No such file or directory"}
        mix = lambda *kinds: kernel_mixes.Mix("a", [kernel_mixes.Program(kind) for kind in kinds])
        self.assertEqual(probes.cannot_run(mix("go", "jvm")), "jvm: java: No such file or directory")
        self.assertIsNone(probes.cannot_run(mix("go")))
        self.assertEqual(real_programs.problem(program), "no such module")
        program.command = lambda seconds: ["/no/such/program"]
        self.assertEqual(real_programs.problem(program), "/no/such/program: No such file or directory")
        program.command = lambda seconds: ["sh", "-c", "sleep 100; true"]
        with unittest.mock.patch.object(real_programs, "LONGEST_PROBE", 0.1):
            self.assertEqual(real_programs.problem(program), "it runs longer than 0.1 s alone")

    def test_a_variant_may_have_options_of_its_own(self):
        self.assertEqual(policies.words("turns"), ["--policies", "turns"])
        self.assertEqual(policies.words("short=turns --quantum 50ms"), ["--variant", "short=turns --quantum 50ms"])
        self.assertEqual(policies.name_of("short=turns --quantum 50ms"), "short")


class Fairness(unittest.TestCase):
    def test_amounts_are_written_as_programs_take_them(self):
        self.assertEqual([fairness.written_amount("numpy", work) for work in (924.861, 1234567.8)], ["925", "1234568"])
        self.assertEqual(fairness.written_amount("triad", 1.23456), "1.235")

    def verdict(self, linux, ours, seconds=6, failed=0, alone=3.0):
        cell = fairness.judged({"cell": "a", "alone_seconds": {"a": 3.0, "b": alone},
                                "variants": {"linux": variant(linux, 6), "fair-progress": variant(ours, seconds, failed)}})
        self.assertIn(cell["verdict"], fairness.sentence(cell))
        return cell["verdict"], cell["variants"]["fair-progress"]["excess_gone"]

    def test_half_of_the_excess_has_to_go_for_3_percent_at_most(self):
        verdict, gone = self.verdict(1.4, 1.1)
        self.assertEqual(verdict, "met")
        self.assertAlmostEqual(gone, 0.75)
        self.assertEqual(self.verdict(1.4, 1.21)[0], "not met")
        self.assertEqual(self.verdict(1.4, 1.1, seconds=6.2)[0], "not met")
        self.assertEqual(self.verdict(1.4, 1.1, failed=1)[0], "programs failed")
        self.assertEqual(self.verdict(1.4, 1.1, alone=3.4)[0], "not equally long alone")

    def test_quanta_may_cost_1_percent_and_sampling_as_in_the_paper(self):
        def variant(total, own, failed=0):
            estimate = lambda value: {"value": value, "interval": None}
            against = {"total_ratio": estimate(total), "verdict": "no-difference"}
            return {"total_seconds": estimate(4 * total), "own_cpu_percent": estimate(own), "failed": failed,
                    "against": against}

        variants = {"linux": variant(1.0, 0.5) | {"against": None}, "quanta": variant(1.011, 0.75), "with sampling": variant(1.02, 1.0),
                "with training": variant(1.04, 1.0)}
        found = fairness_overhead.judged({"cell": "2 per CPU", "programs": 4, "variants": variants})
        self.assertEqual([variant["verdict"] for variant in found["variants"].values()], [None, "not met", "met", None])
        sentences = list(fairness_overhead.sentences(found))
        self.assertEqual(len(sentences), 3)
        self.assertIn("+1.10% time, at most 1.0%: not met; +0.25 % of a CPU", sentences[0])
        table = [line for line in fairness_overhead.markdown(found) if line.startswith("|")]
        self.assertEqual((len(table), len({line.count("|") for line in table})), (6, 1))
        variants["quanta"]["failed"] = 1
        self.assertEqual(fairness_overhead.judged(found)["variants"]["quanta"]["verdict"], "programs failed")

    def test_equal_programs_are_as_many_as_cpus_and_twice_as_many(self):
        self.assertEqual([len(cell.programs(3)) for cell in fairness_overhead.CELLS], [3, 6])

    def test_where_plain_linux_is_fair_there_is_nothing_to_gain(self):
        self.assertEqual(self.verdict(1.04, 1.01), ("nothing to gain", None))

    def test_a_mix_has_multi_and_single_threaded_programs(self):
        cell = fairness.Cell("a", ["numpy"], ["triad", "compute"])
        text = fairness.workload(cell, {("numpy", 3): 123.4, ("triad", 1): 0.5, ("compute", 1): 0.25}, 3)
        self.assertEqual(text.count("[[program]]"), 6)
        self.assertEqual(text.count("progress = true"), 6)
        self.assertEqual((text.count("threads = 3"), text.count('"0.5"'), text.count('"0.25"')), (1, 3, 2))
        self.assertIn('"./numpy-matmul.py", "123"', text)


class Shuffling(unittest.TestCase):
    def report(self, seconds, across=0.2):
        def runs(took, share):
            return {"seconds": [took] * ROUNDS, "transfers_per_second": [100.0] * ROUNDS, "across_share": [share] * ROUNDS,
                    "lock_share": [0.3] * ROUNDS, "moved": [4] * ROUNDS, "kept": [0] * ROUNDS}

        cell = {"cell": "a", "amount": 1.0, "failed": False,
                "runs": {"linux": runs(2.0, 0.6), "unguarded": runs(seconds, across), "guarded": runs(2.0, 0.0)}}
        found = {"schema": shuffling.SCHEMA, "rounds": ROUNDS, "seconds": 4.0, "started_at": "2026-01-01T00:00:00Z", "cpus": 2,
                 "groups": "0,1", "variants": {"linux": "", "unguarded": "", "guarded": ""}, "source": "kernel",
                 "own": {"unguarded": 0.5, "guarded": 2.0}, "cells": [cell, {"cell": "b", "failed": True, "runs": {}}]}
        shuffling_verdicts.judge(found)
        return found

    def test_time_shows_a_gain_and_locks_show_its_cause(self):
        for seconds, verdict in [(1.5, "faster"), (2.5, "slower")]:
            found = self.report(seconds)
            self.assertEqual(found["cells"][0]["verdict"]["unguarded"], verdict)
            self.assertEqual(found["cells"][0]["verdict"]["guarded"], "no significant difference")
            sentences = list(shuffling_verdicts.sentences(found))
            self.assertIn("b failed", sentences[0])
            self.assertIn("20 % go across instead of 60 %", sentences[1])
            self.assertIn("met", sentences[-2])
            self.assertIn("missed", sentences[-1])
        self.assertAlmostEqual(found["cells"][0]["across_ratio"]["unguarded"]["value"], 1 / 3)
        self.assertIsNone(found["cells"][0]["across_ratio"]["guarded"], "a ratio of nothing")
        table = [line for line in shuffling_verdicts.markdown(found) if line.startswith("|")]
        self.assertEqual(len({line.count("|") for line in table}), 1)

    def test_figures_of_locks_are_weighed_by_time_and_by_transfers(self):
        def line(seconds, transfers, across, waited):
            program = {"lock_transfers_per_second": transfers, "across_share": across, "lock_share": waited}
            return json.dumps({"source": "kernel", "interval_seconds": seconds, "programs": [program]})

        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "stat.jsonl")
            file.write_text("\n".join([line(1.0, 30.0, 1.0, 0.2), line(3.0, 30.0, 0.0, 0.6), line(1.0, 0.0, None, None)]))
            found = shuffling.locks(file)
        self.assertAlmostEqual(found["transfers_per_second"], 24.0)
        self.assertAlmostEqual(found["across_share"], 0.25)
        self.assertAlmostEqual(found["lock_share"], 0.4)


class Ratios(unittest.TestCase):
    def test_intervals_match_the_signed_rank_test_of_cosched(self):
        for pairs, expected in [(5, 0), (6, 0), (7, 1), (10, 6), (20, 44)]:
            self.assertEqual(ratio.rejected(pairs), expected, f"{pairs} pairs")

    def test_a_ratio_is_taken_pair_by_pair(self):
        theirs = [1.0, 10.0, 3.0, 7.0, 2.0, 5.0, 4.0]
        found = ratio.ratio([2 * each for each in theirs], theirs)
        self.assertAlmostEqual(found["value"], 2.0)
        self.assertAlmostEqual(found["interval"][0], 2.0)
        self.assertTrue(ratio.differs(found))

    def test_one_pair_out_of_line_hardly_moves_it(self):
        found = ratio.ratio([1.01, 1.0, 1.02, 0.99, 1.01, 1.0, 1.4, 1.01], [1.0] * 8)
        self.assertTrue(1.0 < found["value"] < 1.02, found)
        self.assertFalse(ratio.differs(found))

    def test_too_few_rounds_tell_nothing_apart(self):
        few = ratio.FEWEST - 1
        self.assertIsNotNone(ratio.ratio([2.0] * ratio.FEWEST, [1.0] * ratio.FEWEST)["interval"])
        found = ratio.ratio([2.0] * few, [1.0] * few)
        self.assertIsNone(found["interval"])
        self.assertFalse(ratio.differs(found))


class Verdicts(unittest.TestCase):
    def test_faithful_is_compared_with_the_best_fixed_actuator(self):
        # On average, slice is faster; in the middle, batch is.
        of_slice = [1.0, 0.1, 1.0, 1.0, 0.1, 1.0, 1.0]
        found = report(cell(linux=1.2, faithful=0.99, unguarded=1.0, none=1.2, slice=of_slice, batch=0.9))["cells"][0]
        self.assertEqual(found["best_fixed"], "batch")
        self.assertAlmostEqual(found["faithful_to_best"]["value"], 1.1)
        self.assertAlmostEqual(found["variants"]["batch"]["ratio"]["value"], 0.75)
        self.assertIsNone(found["variants"]["linux"]["ratio"])

    def test_bars_are_met_at_their_limits_and_missed_beyond(self):
        for worst, expected in [(1.0999, "met"), (1.11, "missed")]:
            bars = report(cell(linux=2, faithful=worst, none=1), cell("b", linux=2, faithful=0.95, none=1))["summary"]["bars"]
            self.assertEqual(bars, {"geometric_mean": "met", "worst": expected, "linux": "met"})
        found = report(cell(linux=2, faithful=1.07, none=1), cell("b", linux=2, faithful=1.0, none=1))["summary"]
        self.assertAlmostEqual(found["geometric_mean"], 1.07 ** 0.5)
        self.assertEqual(found["bars"]["geometric_mean"], "missed")
        self.assertEqual(found["worst"]["cell"], "a")

    def test_below_linux_means_significant_and_over_two_percent(self):
        noisy = [0.8, 1.5, 1.1, 0.9, 1.3, 1.0, 1.2]
        for times, expected in [(1.015, []), (1.03, ["a"]), (noisy, [])]:
            found = report(cell(linux=1.0, faithful=times, none=1.0))["summary"]
            self.assertEqual(found["below_linux"], expected, times)
            self.assertEqual(found["bars"]["linux"], "missed" if expected else "met")

    def test_few_rounds_leave_undecided_whether_it_is_below_linux(self):
        found = report(cell(linux=[1.0] * 3, faithful=[1.5] * 3, none=[1.0] * 3))["summary"]
        self.assertEqual((found["below_linux"], found["bars"]["linux"]), ([], "undecided"))

    def test_round_robin_is_judged_apart_as_it_needs_a_request(self):
        found = report(cell(linux=1.0, faithful=1.0, none=1.0, round_robin=0.5))
        self.assertEqual(found["cells"][0]["best_fixed"], "none")
        self.assertEqual(found["cells"][0]["with_round_robin"]["best_fixed"], "round-robin")
        self.assertAlmostEqual(found["summary"]["geometric_mean_with_round_robin"], 2.0)
        self.assertEqual(found["summary"]["bars"]["geometric_mean"], "met")

    def test_a_best_by_chance_is_not_the_best_of_other_rounds(self):
        # None of them is better; in each round another one happens to be fast.
        lucky = [[0.5 if i == round_ else 1.0 for round_ in range(3)] for i in range(3)]
        found = report(cell(linux=[1.0] * 3, faithful=[1.0] * 3, none=lucky[0], slice=lucky[1], batch=lucky[2]))
        self.assertLessEqual(found["cells"][0]["faithful_to_best_of_other_rounds"], 1.0 + 1e-9)

    def test_a_cell_of_failed_programs_counts_nowhere(self):
        found = report(cell(linux=1, faithful=1, none=1), cell("b", True, linux=1, faithful=9, none=1))
        self.assertEqual((found["summary"]["cells"], found["summary"]["worst"]["cell"]), (1, "a"))
        self.assertIn("| b | failed", "\n".join(verdicts.markdown(found)))
        nothing = report(cell("b", True, linux=1, faithful=9, none=1))
        self.assertIsNone(nothing["summary"])
        self.assertEqual(list(verdicts.sentences(nothing)), ["No cell was measured."])

    def test_rows_have_equal_columns_and_the_picture_is_svg(self):
        found = report(cell(linux=1, faithful=9.0, unguarded=1, none=0.1), cell("b <&>", True, linux=1, faithful=9, none=1))
        rows = [line for line in verdicts.markdown(found) if line.startswith("|")]
        rows = [line for text in rows for line in text.splitlines()]
        self.assertEqual(len({row.count("|") for row in rows}), 1, rows)
        drawn = ElementTree.fromstring(picture.svg(found))
        self.assertIn("a", [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")])


class Guard(unittest.TestCase):
    def run_of(self, *reasons):
        decisions = [{"at_seconds": float(at), "reasons": [{"program": {"slot": slot}, **why}]} for at, slot, why in reasons]
        return guarded.summary({"total_seconds": 10.0, "decisions": [{"at_seconds": 0.0, "reasons": [{"why": "x"}]}, *decisions]})

    def test_a_program_keeps_the_last_kept_setting_or_its_first(self):
        tried = {"why": "tried", "actuator": "slice", "against": "none"}
        kept = {"why": "kept", "actuator": "slice", "progress": 1.2}
        next_ = {"why": "tried", "actuator": "batch", "against": "slice"}
        back = {"why": "put-back", "actuator": "batch", "progress": 0.9}
        other = {"why": "kept", "actuator": "batch", "progress": 2.0}
        found = self.run_of((1, 0, tried), (3, 0, kept), (4, 0, next_), (4.5, 1, other), (5, 0, back))
        self.assertEqual(found, {"left_with": "slice", "trying_seconds": 3.0, "progress": {"slice": 1.2, "batch": 0.9}})
        # Another slice was chosen; what is in force stays so, or does not.
        for variant in ["slice", "none"]:
            chosen = (6, 0, {"why": "given", "actuator": variant}), (6, 0, {"why": "slice", "slice": 10_000_000})
            self.assertEqual(self.run_of((1, 0, tried), (3, 0, kept), *chosen)["left_with"], variant)
        self.assertEqual(self.run_of((1, 0, tried))["trying_seconds"], 9.0)
        self.assertEqual(guarded.shown([found, found, {"left_with": "none"}]), "slice 2, none 1")


class Cells(unittest.TestCase):
    def test_cells_have_names_of_their_own_and_all_thread_counts(self):
        found = cells.all_cells(2, pathlib.Path("/data"))
        self.assertEqual(len({each.name for each in found}), len(found))
        self.assertEqual(len(found), 7 * 3 + 3 * 2 + 2 * 3 + 3)
        self.assertEqual({each.threads for each in found if each.kind == "mariadb"}, {2, 4, 8})

    def test_the_amount_of_work_is_scaled_and_whole_for_counts(self):
        found = {each.kind: each for each in cells.all_cells(2, pathlib.Path("/data"))}
        self.assertEqual(found["lock-loop"].amount(3.33333), 1.667)
        self.assertEqual(found["mariadb"].amount(2.0011), 1001)
        self.assertEqual(found["sysbench-threads"].amount(1e-9), 1)
        text = found["lock-loop"].workload(1.667)
        self.assertIn('"--work", "1.667"]', text)
        self.assertIn('"--threads", "8"', text)

    def test_the_time_of_a_program_begins_with_its_start(self):
        program = {"arrived_seconds": 0.5, "started_seconds": 0.75, "turnaround_seconds": 3.25}
        found = {each.kind: each for each in cells.all_cells(2, pathlib.Path("/data"))}
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "run.json").write_text(json.dumps({"programs": [program]}))
            self.assertEqual(found["lock-loop"].times(folder), (3.0, 0.75))
            (folder / "client.stdout").write_text("    total time:                          2.5s\n")
            self.assertEqual(found["mariadb"].times(folder), (2.5, 0.75))

    def test_the_time_of_a_database_is_what_sysbench_tells(self):
        printed = "General statistics:\n    total time:                          3.0417s\n    total number of events: 5\n"
        self.assertEqual(mariadb.seconds(printed), 3.0417)
        self.assertIsNone(mariadb.seconds("FATAL: unable to connect"))


def storm(name="a", co_runner=None, filled=True, failed=False, solo=1.0, **round_us):
    """A cell in which a round took so long in each variant; a pair is that of the main program and that of its co-runner."""
    def rounds(times):
        main, beside = times if isinstance(times, tuple) else (times, None)
        return {"main": [main] * ROUNDS, **({"co-runner": [beside] * ROUNDS} if co_runner else {})}

    runs = {variant.replace("_", "-"): rounds(times) for variant, times in round_us.items()}
    if co_runner:
        runs |= {"solo": {"main": [solo] * ROUNDS}, "solo-co-runner": {"co-runner": [1.0] * ROUNDS}}
    return {"cell": name, "co_runner": co_runner, "filled": filled, "failed": failed, "runs": runs}


def of_storms(*made_up):
    found = {"rounds": ROUNDS, "seconds": 0.4, "cpus": 2, "states": True, "started_at": "2026-01-01T00:00:00Z",
             "variants": ["default", "block", "donate"], "cells": list(made_up)}
    barrier_verdicts.judge(found)
    return found


class Barriers(unittest.TestCase):
    def test_donate_is_held_against_the_best_of_the_others(self):
        found = of_storms(storm(default=2.0, block=1.0, donate=1.05), storm("b", default=1.0, block=2.0, donate=1.0))
        self.assertEqual([cell["best"] for cell in found["cells"]], ["block", "default"])
        summary = found["summary"]
        self.assertAlmostEqual(summary["geometric_mean"], 1.05 ** 0.5)
        self.assertEqual((summary["worst"]["cell"], summary["worst"]["best"]), ("a", "block"))
        expected = {"geometric_mean": "met", "worst": "met", "every_fixed_variant": "met", "unfairness": "not measured",
                  "alone": "met"}
        self.assertEqual(summary["bars"], expected)

    def test_bars_are_missed_beyond_their_limits(self):
        cells_ = [storm(default=1.0, block=9.0, donate=1.12),
                  storm("b", "compute", default=(9.0, 1.0), block=(4.0, 2.0), donate=(4.0, 2.0))]
        found = of_storms(*cells_)["summary"]
        self.assertEqual(found["bars"], {"geometric_mean": "missed", "worst": "missed", "every_fixed_variant": "met",
                                         "unfairness": "missed", "alone": "missed"})
        self.assertEqual(found["slowest_alone"]["cell"], "a")

    def test_unfairness_is_the_ratio_of_speeds_relative_to_alone(self):
        # Alone a round takes 1 us: three times as long with the co-runner, which takes twice as long.
        fair = storm("b", "storm", default=(1.0, 1.0), block=(2.0, 2.0), donate=(2.0, 2.0))
        found = of_storms(storm("a", "compute", default=(9.0, 1.0), block=(3.0, 3.0), donate=(3.0, 2.0)), fair)
        self.assertAlmostEqual(found["cells"][0]["variants"]["donate"]["unfairness"], 1.5)
        self.assertAlmostEqual(found["cells"][0]["variants"]["default"]["unfairness"], 9.0)
        self.assertEqual(found["summary"]["unfairest"]["cell"], "a")
        found = of_storms(storm("a", "compute", False, default=(9.0, 1.0), block=(3.0, 3.0), donate=(3.0, 2.0)), fair)
        self.assertEqual(found["summary"]["unfairest"]["cell"], "b")

    def test_a_variant_at_its_co_runners_expense_is_left_out(self):
        greedy = storm("a", "compute", default=(1.0, 9.0), block=(3.0, 3.0), donate=(2.9, 2.9))
        lonely = storm("b", "compute", default=(1.0, 9.0), block=(1.0, 8.0), donate=(2.0, 2.0))
        found = of_storms(greedy, lonely, storm("c", default=1.0, block=2.0, donate=1.0))
        self.assertEqual([cell["best"] for cell in found["cells"]], ["default", "default", "default"])
        self.assertEqual([cell["best_fair"] for cell in found["cells"]], ["block", None, "default"])
        self.assertAlmostEqual(found["summary"]["geometric_mean_of_fair"], (2.9 / 3.0) ** 0.5)

    def test_a_failed_cell_counts_nowhere_and_rows_stay_equal(self):
        found = of_storms(storm(default=1.0, block=1.0, donate=0.9), storm("b", failed=True))
        self.assertEqual(found["summary"]["cells"], 1)
        rows = [line for text in barrier_verdicts.markdown(found) for line in text.splitlines() if line.startswith("|")]
        self.assertEqual(len({row.count("|") for row in rows}), 1, rows)
        nothing = of_storms(storm("b", failed=True))
        self.assertEqual(list(barrier_verdicts.sentences(nothing)), ["No cell was measured."])

    def test_cells_have_own_names_and_all_settings(self):
        found = storms.all_cells(0.4)
        self.assertEqual(len({each.name for each in found}), len(found))
        self.assertEqual(len(found), 2 * 2 * 3 * 5 * 7 + 2 * 3 * 3)
        self.assertEqual([each.name for each in found if each.fills(4) and each.threads == 8 and not each.groups][:2],
                         ["omp 2us x8 + compute x4", "omp 2us x8 + storm x4"])
        self.assertNotIn("passive", next(each for each in found if each.runtime == "pthread").variants(storms.VARIANTS))

    def test_a_real_program_runs_with_a_second_of_its_kind(self):
        cell = next(each for each in storms.all_cells(0.4) if each.name == "cg x2 + cg x2")
        text = cell.in_variant(storms.VARIANTS["block"], ["main", "co-runner"])
        self.assertEqual(text.count('["./bin/cg", "--threads", "2", "--for", "0.4"]'), 2)
        self.assertEqual((cell.runtime, cell.co_runner, cell.fills(2)), ("omp", "cg", True))

    def test_a_variant_has_its_keys_and_a_run_alone_no_co_runner(self):
        cell = next(each for each in storms.all_cells(0.4) if each.co_runner)
        text = cell.in_variant(storms.VARIANTS["passive"], ["main", "co-runner"])
        self.assertEqual(text.count('env = { OMP_WAIT_POLICY = "passive" }'), 2)
        self.assertEqual(text.count('"--for", "0.4"'), 2)
        alone = cell.in_variant({"barrier": "donate"}, ["main"])
        self.assertEqual((alone.count("[[program]]"), alone.count('barrier = "donate"')), (1, 1))

    def test_the_time_of_a_round_is_what_a_kernel_tells(self):
        output = "barrier-storm ok checksum=4e54dc1dec6658d3 seconds=0.402 round_us=2.31e+00\n"
        self.assertEqual(storms.round_us(output), 2.31)


class Monitor(unittest.TestCase):
    def test_each_round_begins_with_the_next_variant(self):
        order = []
        variants = {name: lambda name=name: order.append(name) or len(order) for name in "abc"}
        samples = monitor.in_turn(4, variants)
        self.assertEqual("".join(order), "abcbcacababc")
        self.assertEqual([len(times) for times in samples.values()], [4, 4, 4])

    def test_a_cost_is_missed_only_where_it_is_significant(self):
        for ours, expected in [([1.005] * 7, "met"), ([1.02] * 7, "missed"),
                             ([0.8, 1.5, 1.1, 0.9, 1.3, 1.0, 1.2], "undecided"), ([1.0] * 6, "undecided")]:
            found = monitor.held_against({"unwatched": [1.0] * len(ours), "1s": ours}, "unwatched")["1s"]["ratio"]
            self.assertEqual(monitor.judged(found), expected)

    def test_lock_figures_have_their_cost_without_left_out_parts(self):
        samples = {name: [time] * 7 for name, time in [("unwatched", 1.0), ("stat", 1.25), ("stat-transfers", 1.5)]}
        costs = {"transfers": monitor.ratio(samples["stat-transfers"], samples["stat"]),
                 "locks-apart": monitor.ratio(samples["stat"], samples["stat"])}
        one = {"program": "lock-loop", "arguments": ["--threads", 8],
               "variants": monitor.held_against(samples, "unwatched"), "costs": costs}
        sentences = list(monitor.sentences({"source": "kernel", "storm": [], "bystander": [], "locks": [one], "own": None}))
        self.assertEqual(len(sentences), 3)
        for words, line in [("lock-loop --threads 8", 1), ("stat 1.25", 1), ("takes 1.2", 2), ("apart 1.0", 2)]:
            self.assertIn(words, sentences[line])


class Malleable(unittest.TestCase):
    def test_a_loss_is_decided_by_the_whole_interval(self):
        for ours, expected in [([1.005] * 7, "met"), ([1.02] * 7, "missed"), ([1.005] * 6, "too few"),
                             ([0.9, 1.2, 1.0, 1.1, 0.95, 1.05, 1.0], "undecided")]:
            found = monitor.held_against({"plain": [1.0] * len(ours), "malleable": ours}, "plain")["malleable"]["ratio"]
            self.assertIn(expected, malleable.judged_loss(found))

    def test_fewer_threads_are_another_region_more_time_is_judged(self):
        def figures(parallel):
            return {"parallel": parallel, "region": 20.0, "request": 30_000.0, "longest": 9e5}

        variants = {"without": {"parallel": 500.0}, "limit-1": figures(300.0), "limit-2": figures(1600.0)}
        sentences = list(malleable.sentences({"region": [{"threads": 2, "nanoseconds": variants}]}))
        self.assertEqual([sum(word in line for line in sentences) for word in ["missed", "another region", "30 us"]], [1, 1, 2])

    def test_what_observing_costs_is_held_against_the_same_without(self):
        nanoseconds = {"without": 500.0, "llvm": 700.0, "llvm-limited": 750.0, "llvm-observed": 790.0}
        figures = {variant: {"parallel": value} for variant, value in nanoseconds.items()}
        sentences = list(malleable.sentences({"region": [{"threads": 2, "nanoseconds": figures}]}))
        self.assertEqual([part for line in sentences for part in ["+50 ns", "+40 ns"] if part in line], ["+50 ns", "+40 ns"])
        self.assertTrue(sentences[1].endswith("takes 700 ns."))

    def test_what_cost_prints_is_read(self):
        output = "cosched=1 parallel=405.1 region=15.0 request=25000.5 longest=90000.0\n"
        self.assertEqual(malleable.figures(output)["request"], 25000.5)


if __name__ == "__main__":
    unittest.main()
