"""real_programs.py: the programs and mixes of the bench of real programs; which of them run here.

They come from PyPI, Debian and workloads/. No scheduling rule of cosched was made for those of PyPI and Debian.
"""

import dataclasses
import os
import pathlib
import signal
import subprocess

from kernel_mixes import ALL, Program, read

SCRIPTS = pathlib.Path(__file__).resolve().parent / "real"
# How many seconds of work a solo probe has, and after how many seconds it ends.
PROBE_WORK, LONGEST_PROBE = 0.25, 120


@dataclasses.dataclass(frozen=True)
class Kind:
    """A program without its last argument, the amount of work. `a_second` is the amount that takes about a second alone,
    without the start of the program, on the two CPUs that the bench was written on."""
    command: tuple
    a_second: int


def pypi(program, a_second, *options):
    return Kind(("venv/bin/python", str(SCRIPTS / "pypi.py"), program, *options), a_second)


def debian(script, a_second):
    return Kind((str(SCRIPTS / script),), a_second)


KINDS = {
    "lightgbm": pypi("lightgbm", 340),
    "xgboost": pypi("xgboost", 400),
    "onnx": pypi("onnx", 300),
    "hist": pypi("hist", 270),
    "kmeans": pypi("kmeans", 8),
    "pca": pypi("pca", 6),
    "small-products": pypi("products", 10_000, "150"),
    "large-products": pypi("products", 30, "1200"),
    # PyPI has PyTorch only with libraries for GPUs, some gigabytes; Debian has it for the CPU.
    "torch": Kind(("/usr/bin/python3", str(SCRIPTS / "torch-train.py")), 80),
    "gromacs": debian("gromacs.sh", 900),
    "encode": debian("encode.sh", 300),
    "compress": debian("compress.sh", 21),
    "jvm": Kind(("java", "-XX:+UseParallelGC", "-Xmx128m", "-cp", ".", "Collect"), 2150),
    "go": Kind(("./sieve",), 790),
    "build": debian("build.sh", 17),
    "mpi": debian("mpi.sh", 610),
}


@dataclasses.dataclass
class RealProgram(Program):
    """A program of KINDS. It is told no thread count, unless it is to have one thread."""

    def command(self, seconds):
        kind = KINDS[self.kind]
        return [*kind.command, str(max(1, round(kind.a_second * self.work * seconds)))]

    def thread_keys(self, cpus):
        return {} if self.threads == ALL else super().thread_keys(cpus)

    def names(self):
        names = [self.kind] if self.copies == 1 else [f"{self.kind}-{number}" for number in range(1, self.copies + 1)]
        return [{"name": name} for name in names]


def all_mixes(folder):
    """The mixes of real-mixes.toml; `folder` has what bench/real/Makefile makes."""
    def program(kind, **keys):
        return RealProgram(kind, folder=folder, **keys) if kind in KINDS else Program(kind, **keys)

    return read("real-mixes.toml", program)


class Probes:
    """Runs each program once alone, with little work, and keeps why it failed."""

    def __init__(self):
        self.found = {}

    def cannot_run(self, mix):
        """Why a mix cannot run here; None if it can."""
        for program in mix.programs:
            if program.kind not in self.found:
                self.found[program.kind] = problem(dataclasses.replace(program, work=1.0))
            if self.found[program.kind]:
                return f"{program.kind}: {self.found[program.kind]}"
        return None


def problem(program):
    """Why a program fails alone; None if it does not."""
    try:
        probe = subprocess.Popen(program.command(PROBE_WORK), cwd=program.folder, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
                                 start_new_session=True)
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    with probe:
        try:
            _, said = probe.communicate(timeout=LONGEST_PROBE)
        except subprocess.TimeoutExpired:
            # Not SIGKILL: mpirun has to end its ranks, which are in groups of their own.
            os.killpg(probe.pid, signal.SIGTERM)
            return f"it runs longer than {LONGEST_PROBE} s alone"
    if probe.returncode == 0:
        return None
    return next(reversed(said.strip().splitlines()), f"it ends with status {probe.returncode}")
