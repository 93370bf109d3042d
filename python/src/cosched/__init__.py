"""Run programs together under cosched, a user-space co-scheduler for Linux.

    import cosched

    result = cosched.run(["python3 a.py", ["./solver", "--size", "400"]])
    print(result.total_seconds, [program.exit_status for program in result.programs])

`run` and `compare` start the command `cosched` that was installed with this module. `progress` is for programs that
cosched runs.
"""

from __future__ import annotations

import ctypes
import json
import operator
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional, Union

__all__ = [
    "CompareResult",
    "CoschedError",
    "Estimate",
    "Program",
    "RunResult",
    "Variant",
    "compare",
    "executable",
    "progress",
    "run",
]

_GOALS = ("balanced", "throughput", "fair", "responsive")
_MOST_ROUNDS = 1000

Word = Union[str, "os.PathLike[str]"]
"""A string or a path."""

Command = Union[Word, Sequence[Word]]
"""A program: its words, or one string that is split as a shell splits it.

No shell runs: a string with an unquoted sign such as `|` is refused. `["sh", "-c", "a | b"]` uses a
shell."""

Commands = Union[Sequence[Command], "os.PathLike[str]"]
"""Several programs, or the path of a jobs file (a `pathlib.Path`, not a string)."""


class CoschedError(RuntimeError):
    """cosched refused its input (exit code 2), or could not go on. The text is what it wrote on standard error; where
    that is about arguments, it names those of this module."""

    def __init__(self, exit_code: int, stderr: str) -> None:
        text = _of_arguments(stderr) if exit_code == 2 else stderr
        super().__init__(text.strip() or f"cosched ended with exit code {exit_code}")
        self.exit_code = exit_code
        """The exit code of cosched; negative: ended by that signal."""
        self.stderr = stderr
        """All that cosched wrote on standard error."""


@dataclass(frozen=True)
class Program:
    """How one program of a run went. Times are in seconds, from `programs` in run.json."""

    name: str
    """Unique in the run; made of the command."""
    command: tuple[str, ...]
    """The command with its arguments."""
    exit_status: Optional[int]
    """As a shell reports it: 128 + n if signal n ended the program; `None` if it never ended."""
    turnaround_seconds: Optional[float]
    """From its arrival until it was done; `None` if it never was."""
    running_seconds: float
    """How long it was allowed to run."""
    waiting_seconds: float
    """How long it waited for its start, and was frozen."""
    cpu_seconds: float
    """CPU time of its complete runs, in user mode and in the kernel."""
    slowdown: Optional[float]
    """Turnaround divided by its solo time; `None` if cosched has not measured that (`cosched profile`)."""
    stdout: Optional[str] = field(repr=False)
    """What it printed; `None` if a folder was given with `out`, which has it in the file NAME.stdout."""
    stderr: Optional[str] = field(repr=False)
    """What it printed on standard error; `None` if a folder was given with `out`."""


@dataclass(frozen=True)
class RunResult:
    """What came of a run: the main figures of run.json, and all of it in `document`."""

    policy: str
    """The policy that decided what ran when."""
    total_seconds: float
    """From the start of the run until every program was done, or until the interruption."""
    interrupted_by: Optional[str]
    """The signal that ended the run before its end, such as `"SIGTERM"`; else `None`."""
    programs: tuple[Program, ...]
    """The programs, in the order of the commands."""
    messages: str = field(repr=False)
    """What cosched wrote on standard error: warnings, and deviations."""
    document: dict[str, Any] = field(repr=False)
    """All of run.json; its schema is `cosched-run/3`."""

    @property
    def succeeded(self) -> bool:
        """Whether every program ended with 0."""
        return all(program.exit_status == 0 for program in self.programs)


@dataclass(frozen=True, repr=False)
class Estimate:
    """A figure from several rounds. Printed, it has three digits; `value` has all."""

    value: float
    """The median over the rounds; of a ratio, the estimate of Hodges and Lehmann."""
    interval: Optional[tuple[float, float]]
    """The confidence interval of `value`, 95 % (ratios 98 %); `None` with too few rounds (6, ratios 7)."""

    def __str__(self) -> str:
        if self.interval is None:
            return _digits(self.value)
        low, high = self.interval
        return f"{_digits(self.value)} ({_digits(low)} to {_digits(high)})"

    def __repr__(self) -> str:
        interval = None if self.interval is None else "({}, {})".format(*map(_digits, self.interval))
        return f"Estimate(value={_digits(self.value)}, interval={interval})"


@dataclass(frozen=True)
class Variant:
    """The figures of one variant of a comparison, from `variants` of the document of `cosched compare --json`."""

    name: str
    """The policy, or the name that `--variant` gave it."""
    total_seconds: Optional[Estimate]
    """Seconds until every program was done."""
    mean_turnaround_seconds: Optional[Estimate]
    """Seconds from arrival until done, on average over the programs."""
    failed: int
    """How many programs failed, in all rounds."""
    total_ratio: Optional[Estimate]
    """Total time divided by that of the first variant, below 1 is faster; `None` for the first variant."""
    verdict: Optional[str]
    """Of the total time against the first variant: `"better"`, `"worse"`, `"no-difference"` (none is clear), or
    `"too-few-rounds"` (below 7); `None` for the first variant."""


@dataclass(frozen=True)
class CompareResult:
    """What came of a comparison: the main figures, and the whole document of `cosched compare --json`."""

    rounds: int
    """How many rounds are complete; each runs every variant once."""
    variants: tuple[Variant, ...]
    """One for each policy, in the order in which they were given."""
    messages: str = field(repr=False)
    """What cosched wrote on standard error."""
    document: dict[str, Any] = field(repr=False)
    """The whole document; its schema is `cosched-compare/4`."""


def run(
    commands: Commands,
    *,
    policy: Optional[str] = None,
    goal: Optional[str] = None,
    out: Optional[Union[str, "os.PathLike[str]"]] = None,
    options: Sequence[Word] = (),
) -> RunResult:
    """Runs programs together, as `cosched run`, and returns when all have ended.

    policy: the policy, such as `"gang"`; `None`: that of `cosched run`.
    goal: `"balanced"`, `"throughput"`, `"fair"` or `"responsive"`.
    out: a folder to keep run.json and the programs' outputs in; it is made if it does not exist. Without it the outputs
        are in the result, and no file stays.
    options: more options of `cosched run`, such as `["--quantum", "50ms"]`.

    A program that fails raises nothing: its `exit_status` tells. `TypeError` and `ValueError` are raised for wrong
    arguments, and `CoschedError` if cosched refuses them; then no program was started. Ctrl-C ends the programs, and
    raises `KeyboardInterrupt`.
    """
    arguments = [*_option("--policy", policy), *_option("--goal", goal), *_options(options)]
    if goal is not None and goal not in _GOALS:
        raise ValueError(f"goal is {goal!r}; give one of {', '.join(map(repr, _GOALS))}")
    with tempfile.TemporaryDirectory(prefix="cosched-") as temporary:
        folder = Path(temporary, "out") if out is None else Path(out)
        finished = _cosched(["run", *arguments, "--out", os.fspath(folder)], commands)
        # Nothing was started, so a run.json that is there is of an earlier run.
        if finished.returncode == 2:
            raise CoschedError(2, finished.stderr)
        try:
            document = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise CoschedError(finished.returncode, finished.stderr) from None
        outputs = folder if out is None else None
        programs = tuple(_program(program, outputs) for program in document["programs"])
    return RunResult(
        policy=document["policy"],
        total_seconds=document["total_seconds"],
        interrupted_by=document["interrupted_by"],
        programs=programs,
        messages=finished.stderr,
        document=document,
    )


def compare(
    commands: Commands,
    *,
    policies: Optional[Sequence[str]] = None,
    runs: Optional[int] = None,
    out: Optional[Union[str, "os.PathLike[str]"]] = None,
    options: Sequence[Word] = (),
) -> CompareResult:
    """Runs the same programs in several variants, as `cosched compare`, and returns when all rounds are complete.

    policies: the variants, such as `["linux", "turns"]`; all are compared with the first one. `None`: those of
        `cosched compare`.
    runs: how many rounds; each runs every variant once. 6 give intervals, 7 give verdicts. `None`: 10.
    out: a folder to keep the results and outputs of every run in.
    options: more options of `cosched compare`, such as `["--solo"]`.

    `TypeError` and `ValueError` are raised for wrong arguments; `CoschedError` if cosched refuses its input, or ends
    before one round is complete.
    """
    example = '["linux", "turns"]'
    names = None if policies is None else _strings("policies", policies, example)
    if names is not None and not all(names or [""]):
        raise ValueError(f"policies is {policies!r}; give names, such as {example}")
    named = None if names is None else ",".join(names)
    rounds = None if runs is None else str(operator.index(runs))
    if runs is not None and not 1 <= operator.index(runs) <= _MOST_ROUNDS:
        raise ValueError(f"runs is {runs}; give a number from 1 to {_MOST_ROUNDS}")
    arguments = [*_option("--policies", named), *_option("--runs", rounds)]
    arguments += [*_option("--out", out), *_options(options)]
    finished = _cosched(["compare", "--json", *arguments], commands)
    try:
        document = json.loads(finished.stdout)
    except ValueError:
        raise CoschedError(finished.returncode, finished.stderr) from None
    variants = tuple(map(_variant, document["variants"]))
    return CompareResult(document["rounds"], variants, finished.stderr, document)


def progress(n: int = 1) -> None:
    """Reports that this program has done `n` more units of its work, such as iterations.

    cosched counts them in programs with `progress = true` in the jobs file, under the policy `fair-progress` and the
    goal `fair`. In every other program this does nothing. A unit should stand for the same work each time, and come a
    hundred times a second or more; a call takes less than a microsecond.
    """
    n = operator.index(n)
    if n < 0:
        raise ValueError(f"progress cannot go back: n is {n}")
    if _report is not None:
        _report(n)


def executable() -> str:
    """The path of the command `cosched` that `run` and `compare` start: the one installed with this module, else the
    first in PATH. `FileNotFoundError` is raised if there is none."""
    user = sysconfig.get_path("scripts", f"{os.name}_user")
    # With `pip install --target`, scripts are beside the packages.
    target = Path(__file__).resolve().parents[1] / "bin"
    for folder in (sysconfig.get_path("scripts"), Path(sys.executable).parent, user, target):
        path = Path(folder, "cosched")
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    found = shutil.which("cosched")
    if found is None:
        raise FileNotFoundError("there is no command 'cosched'; install the wheel of cosched again")
    return found


def _report_function() -> Any:
    """The function of the library that cosched has preloaded into this process; `None` if there is none.

    It keeps the interpreter's lock, since releasing that would take longer than the call."""
    try:
        function = ctypes.PyDLL(None).cosched_progress
    except (AttributeError, OSError):
        return None
    function.argtypes, function.restype = [ctypes.c_uint64], None
    return function


_report = _report_function()


def _option(name: str, value: Optional[Word]) -> list[str]:
    if value is None:
        return []
    text = _string(name.lstrip("-"), value)
    if not text:
        raise ValueError(f"{name.lstrip('-')} is empty; leave it out, or give a value")
    return [name, text]


def _options(options: Sequence[Word]) -> list[str]:
    return _strings("options", options, '["--quantum", "50ms"]')


def _string(name: str, value: Any) -> str:
    """An argument that is a string or a path."""
    value = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}; give a string or a path")
    return value


def _strings(name: str, values: Any, example: str) -> list[str]:
    """An argument that is a list of strings and paths."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} is {values!r}; give a list of strings, such as {example}")
    return [_string(f"{name}[{i}]", value) for i, value in enumerate(values)]


def _programs(commands: Commands) -> list[str]:
    """The arguments that name the programs: the jobs file, or an option for each command."""
    if isinstance(commands, os.PathLike):
        return [_string("commands", commands)]
    if isinstance(commands, (str, bytes)) or not isinstance(commands, Iterable):
        remedy = "give a list of commands, or a pathlib.Path of a jobs file"
        raise TypeError(f"commands is {commands!r}; {remedy}")
    lines = [_line(f"commands[{i}]", command) for i, command in enumerate(commands)]
    if not lines:
        raise ValueError("commands is empty; give at least one command")
    return [f"--prog={line}" for line in lines]


def _line(name: str, command: Command) -> str:
    """A command as one string that a shell would split into its words."""
    words = [command] if isinstance(command, os.PathLike) else command
    example = '["./solver", "--size", "400"]'
    line = command if isinstance(command, str) else shlex.join(_strings(name, words, example))
    if not line.strip():
        raise ValueError(f"{name} is empty; give a command, such as {example}")
    return line


def _cosched(arguments: list[str], commands: Commands) -> "subprocess.CompletedProcess[str]":
    """Runs cosched until it has ended. It gets Ctrl-C itself, and restores all before it ends."""
    command = [executable(), *arguments, *_programs(commands)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, encoding="utf-8", errors="replace"
    )
    try:
        stdout, stderr = process.communicate()
    except BaseException as error:
        if not isinstance(error, KeyboardInterrupt):
            process.terminate()
        try:
            process.communicate()
        except KeyboardInterrupt:
            process.terminate()
            process.communicate()
        raise
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def _of_arguments(stderr: str) -> str:
    """A refusal of the command line, in words of this module's arguments."""
    refused = r"error: invalid value '(.*?)' for '(--[a-z-]+) <.*?>'(?:: (.*)|\n +\[possible values: (.*)\])?"
    found = re.match(refused, stderr)
    if found:
        value, option, remedy, choices = found.groups()
        stderr = f"{option} is {value!r}; {remedy or f'give one of {choices}'}"
    else:
        stderr = re.sub(r"^error: ", "", re.sub(r"\n\n(Usage:|For more information)(.|\n)*", "", stderr))
    return re.sub(r"(?<![\w-])--(policy|policies|goal|runs|out)\b(?!-)", r"\1", stderr)


def _digits(figure: float) -> str:
    """A figure with three digits, or more before the point."""
    return f"{figure:.0f}" if abs(figure) >= 999.5 else f"{figure:#.3g}".rstrip(".")


def _program(program: dict[str, Any], outputs: Optional[Path]) -> Program:
    usage = program["usage"]
    return Program(
        name=program["name"],
        command=tuple(program["command"]),
        exit_status=program["exit_status"],
        turnaround_seconds=program["turnaround_seconds"],
        running_seconds=program["running_seconds"],
        waiting_seconds=program["waiting_seconds"],
        cpu_seconds=usage["user_seconds"] + usage["system_seconds"],
        slowdown=program["slowdown"],
        stdout=_text(outputs, f"{program['name']}.stdout"),
        stderr=_text(outputs, f"{program['name']}.stderr"),
    )


def _text(folder: Optional[Path], name: str) -> Optional[str]:
    """The text of an output; empty where the jobs file names another file for it."""
    if folder is None:
        return None
    file = folder / name
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def _variant(variant: dict[str, Any]) -> Variant:
    against = variant["against"] or {}
    return Variant(
        name=variant["variant"],
        total_seconds=_estimate(variant["total_seconds"]),
        mean_turnaround_seconds=_estimate(variant["mean_turnaround_seconds"]),
        failed=variant["failed"],
        total_ratio=_estimate(against.get("total_ratio")),
        verdict=against.get("verdict"),
    )


def _estimate(estimate: Optional[dict[str, Any]]) -> Optional[Estimate]:
    if estimate is None:
        return None
    interval = estimate["interval"]
    return Estimate(estimate["value"], None if interval is None else (interval[0], interval[1]))
