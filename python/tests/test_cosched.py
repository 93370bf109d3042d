"""Tries the module with the command that is installed beside it: `make test-wheel`."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest

import cosched

PYTHON = sys.executable


def test_the_installed_command_is_found_first() -> None:
    path = Path(cosched.executable())
    assert path.name == "cosched"
    assert path.parent == Path(sys.executable).parent


def test_a_run_returns_exits_times_and_outputs() -> None:
    result = cosched.run(["sleep 0.2", ["sh", "-c", "echo 'a  b'; echo c >&2; exit 3"]], policy="linux")
    sleeper, failing = result.programs
    assert (result.policy, result.interrupted_by, result.succeeded) == ("linux", None, False)
    assert (sleeper.name, sleeper.command, sleeper.exit_status) == ("sleep", ("sleep", "0.2"), 0)
    assert (failing.exit_status, failing.stdout, failing.stderr) == (3, "a  b\n", "c\n")
    assert sleeper.turnaround_seconds is not None
    assert 0.2 <= sleeper.turnaround_seconds <= result.total_seconds < 60
    assert result.document["schema"] == "cosched-run/3"
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.policy = "gang"  # type: ignore[misc]


def test_signals_are_reported_as_by_a_shell() -> None:
    (program,) = cosched.run([["sh", "-c", "kill -KILL $$"]]).programs
    assert program.exit_status == 128 + signal.SIGKILL


def test_a_folder_keeps_the_outputs(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (program,) = cosched.run(["echo kept"], out=out, options=["--quantum", "50ms"]).programs
    assert (program.stdout, program.stderr) == (None, None)
    assert (out / "echo.stdout").read_text() == "kept\n"
    assert (out / "run.json").exists()
    with pytest.raises(cosched.CoschedError, match="out"):
        cosched.run(["echo again"], out=out)


def test_a_jobs_file_is_run(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs.toml"
    jobs.write_text('[[program]]\nname = "greeting"\ncommand = "echo hello"\n')
    (program,) = cosched.run(jobs).programs
    assert (program.name, program.stdout) == ("greeting", "hello\n")


def test_what_cosched_refuses_is_an_error() -> None:
    with pytest.raises(cosched.CoschedError, match="/nonexistent does not exist") as caught:
        cosched.run([["/nonexistent"]])
    assert caught.value.exit_code == 2
    with pytest.raises(cosched.CoschedError, match="no-such-policy"):
        cosched.compare(["true"], policies=["no-such-policy"])


def test_mistakes_are_found_before_anything_starts() -> None:
    with pytest.raises(TypeError, match="commands is 'sleep 1'; give a list of commands"):
        cosched.run("sleep 1")
    for line in ("echo a | cat", "true && true", "sleep 1 ::: sleep 2"):
        with pytest.raises(cosched.CoschedError, match=r'no shell runs it; write \["sh", "-c"'):
            cosched.run([line])


def test_wrong_values_are_named_as_arguments() -> None:
    programs: tuple[tuple[dict[str, Any], str], ...] = (
        ({"commands": []}, "commands is empty; give at least one command"),
        ({"commands": ["true", []]}, r"commands\[1\] is empty; give a command"),
        ({"commands": [" "]}, r"commands\[0\] is empty; give a command"),
        ({"goal": "fast"}, "goal is 'fast'; give one of 'balanced', 'throughput', 'fair', 'responsive'$"),
        ({"policy": ""}, "policy is empty; leave it out"),
    )
    for wrong, match in programs:
        with pytest.raises(ValueError, match=match):
            cosched.run(**cast(Any, {"commands": ["true"]} | wrong))
    comparisons: tuple[tuple[dict[str, Any], str], ...] = (
        ({"runs": 0}, "runs is 0; give a number from 1 to 1000"),
        ({"policies": []}, r"policies is \[\]; give names"),
        ({"policies": ["linux", ""]}, "give names"),
    )
    for wrong, match in comparisons:
        with pytest.raises(ValueError, match=match):
            cosched.compare(**cast(Any, {"commands": ["true"]} | wrong))
    refused: tuple[tuple[dict[str, Any], str], ...] = (
        ({"policy": "fast"}, r"^policy is 'fast'; give one of linux, [^\n]*, auto$"),
        ({"policy": "linux", "goal": "fair"}, "^cosched: goal is for policies that"),
        ({"options": ["--quantum", "5x"]}, "^--quantum is '5x'; write a time with its unit, such as 100ms or 1s$"),
        ({"options": ["--nothing"]}, "^unexpected argument '--nothing' found$"),
    )
    for wrong, match in refused:
        with pytest.raises(cosched.CoschedError, match=match):
            cosched.run(**cast(Any, {"commands": ["true"]} | wrong))
    for goal in ("balanced", "throughput", "fair", "responsive"):
        assert cosched.run(["true"], goal=goal).succeeded


def test_estimates_are_printed_with_three_digits() -> None:
    alone = cosched.Estimate(0.28787777936974740, None)
    assert (str(alone), repr(alone)) == ("0.288", "Estimate(value=0.288, interval=None)")
    several = cosched.Estimate(1234.5, (0.6, 100.04))
    assert str(several) == "1234 (0.600 to 100)"
    assert repr(several) == "Estimate(value=1234, interval=(0.600, 100))"


def test_arguments_of_a_wrong_type_are_named() -> None:
    for wrong, match in (
        ({"commands": 5}, "commands is 5; give a list of commands"),
        ({"commands": [5]}, r"commands\[0\] is 5; give a list of strings"),
        ({"commands": ["true", ["sleep", 1]]}, r"commands\[1\]\[1\] is 1; give a string or a path"),
        ({"commands": ["true"], "policies": "linux"}, "policies is 'linux'; give a list of"),
        ({"commands": ["true"], "options": "--solo"}, "options is '--solo'; give a list of"),
        ({"commands": ["true"], "options": ["--seed", 5]}, r"options\[1\] is 5; give a string"),
        ({"commands": ["true"], "out": 5}, "out is 5; give a string or a path"),
        ({"commands": ["true"], "runs": "7"}, "'str' object cannot be interpreted as an integer"),
    ):
        with pytest.raises(TypeError, match=match):
            cosched.compare(**cast(Any, wrong))
    with pytest.raises(TypeError, match="policy is 5"):
        cosched.run(["true"], policy=cast(Any, 5))
    with pytest.raises(TypeError, match="integer"):
        cosched.progress(cast(Any, 1.5))


def test_paths_are_words_and_words_are_not_split(tmp_path: Path) -> None:
    script = tmp_path / "print it"
    script.write_text("#!/bin/sh\nprintf '<%s>' \"$@\"\n")
    script.chmod(0o755)
    result = cosched.run([script, [script, tmp_path, "a  b", "|", "it's"]])
    assert [program.stdout for program in result.programs] == ["<>", f"<{tmp_path}><a  b><|><it's>"]


def test_a_comparison_returns_each_variant() -> None:
    result = cosched.compare(["sleep 0.05", "sleep 0.05"], policies=["linux", "fcfs"], runs=2)
    linux, fcfs = result.variants
    assert (result.rounds, linux.name, fcfs.name, fcfs.failed) == (2, "linux", "fcfs", 0)
    assert linux.verdict is None and linux.total_ratio is None
    assert fcfs.verdict == "too-few-rounds"
    assert fcfs.total_seconds is not None and fcfs.total_seconds.value >= 0.1
    assert fcfs.total_ratio is not None and fcfs.total_ratio.interval is None
    assert result.document["schema"] == "cosched-compare/4"


def test_ctrl_c_ends_the_programs() -> None:
    # In a process group of its own, all of which gets Ctrl-C, as in a terminal.
    code = "import cosched; cosched.run(['sleep 1000'], options=['--grace', '1s'])"
    with subprocess.Popen([PYTHON, "-c", code], stderr=subprocess.PIPE, start_new_session=True) as process:
        watchdog = threading.Timer(60, process.kill)
        watchdog.start()
        while "sleep" not in _descendants(process.pid).values():
            time.sleep(0.05)
        started = _descendants(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        _, stderr = process.communicate()
        watchdog.cancel()
    assert b"KeyboardInterrupt" in stderr
    assert not any(Path(f"/proc/{pid}").exists() for pid in started)


def test_progress_does_nothing_without_cosched() -> None:
    cosched.progress()
    cosched.progress(0)
    with pytest.raises(ValueError, match="-1"):
        cosched.progress(-1)


WORK = """
import sys, time
import cosched
end = time.monotonic() + 0.7
while time.monotonic() < end:
    sum(range(1000))
    if sys.argv[1] == "ticks":
        cosched.progress(2)
"""


def test_progress_reaches_cosched(tmp_path: Path) -> None:
    work = tmp_path / "work.py"
    work.write_text(WORK)
    jobs = tmp_path / "jobs.toml"
    tables = (
        f'[[program]]\nname = "{name}"\ncommand = ["{PYTHON}", "{work}", "{name}"]\nthreads = 1\nprogress = true\n'
        for name in ("ticks", "quiet")
    )
    jobs.write_text("".join(tables))
    result = cosched.run(jobs, policy="fair-progress")
    assert result.succeeded, [program.stderr for program in result.programs]
    ticks, quiet = result.document["programs"]
    # Where the machine counts instructions, they show how far the other program came.
    assert "instead_of_progress" not in ticks
    assert quiet.get("instead_of_progress") in ("cpu-time", None)


def _descendants(pid: int) -> dict[int, str]:
    """The processes below one, with their names."""
    found = {}
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found[child] = Path(f"/proc/{child}/comm").read_text().strip()
            found |= _descendants(child)
    return found
