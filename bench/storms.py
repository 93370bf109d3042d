"""storms.py: what the barrier bench runs: threads that wait at barriers all the time, alone and with a co-runner.

A cell is one program at one setting (runtime, threads, microseconds between two barriers), its co-runner, and whether
each program has a CPU cgroup of its own. Every run lasts for a fixed time and tells how long a round took: a spinning
barrier beside a co-runner takes hundreds of times as long as alone, so that a fixed amount of work would take the
night. Last come programs that do something (a solver, a sort, a grid): of these a round is one solve, sort or sweep.
"""

import dataclasses
import re

from cells import Cell, Program

GRAINS = [2, 20, 200, 2000, 10_000]
THREADS = [2, 4, 8]
KERNELS = {"omp": "barrier-storm", "pthread": "pthread-storm"}
CO_RUNNERS = ["compute", "storm"]
CO_RUNNER_THREADS = [1, 2, 4]
# Of a storm that is co-runner, in microseconds.
CO_RUNNER_GRAIN = 100
# Programs that people have: a solver, a sort and a grid; with so many threads, as their co-runner has.
REAL = ["cg", "bucket-sort", "stencil"]
REAL_THREADS = 2

MAIN, CO_RUNNER = "main", "co-runner"
# Variants of OpenMP alone.
OPENMP = ["passive", "llvm"]
# What each variant adds to the programs of a workload file; the first one changes nothing.
VARIANTS = {"default": {}, "passive": {"env": {"OMP_WAIT_POLICY": "passive"}}, "llvm": None,
        **{barrier: {"barrier": barrier} for barrier in ["spin", "block", "spin-then-block", "yield", "donate"]}}
# Ideas about donating, for `--variants` only: the hook knows them by these names (crates/hook/src/barrier/wait_mode.rs).
IDEAS = {name: {"barrier": "donate", "env": {"COSCHED_BARRIER_MODE": name}} for name in ["donate-spread"]}


@dataclasses.dataclass
class Storm(Cell):
    runtime: str = "omp"
    # What runs beside it, if anything, and with how many threads.
    co_runner: str = None
    co_runner_threads: int = 0
    groups: bool = False

    @property
    def policy(self):
        return "linux-groups" if self.groups else "linux"

    def in_variant(self, added, names):
        """The workload file of a run of the programs with these names, which have these keys, too."""
        named = [program for program in self.programs if program.name in names]
        programs = [dataclasses.replace(program, keys={**program.keys, **added}) for program in named]
        return dataclasses.replace(self, programs=programs).workload(self.first)

    def variants(self, found):
        """Those of the variants found that mean something here."""
        return [variant for variant in found if self.runtime == "omp" or variant not in OPENMP]

    def fills(self, cpus):
        """Whether its co-runner alone could use all CPUs."""
        return self.co_runner_threads >= cpus


def all_cells(seconds):
    """The cells, with runs of so many seconds."""
    co_runners = [(None, 0), *((co_runner, threads) for co_runner in CO_RUNNERS for threads in CO_RUNNER_THREADS)]
    storms = [storm(runtime, threads, grain, co_runner, beside, groups, seconds)
              for groups in [False, True] for runtime in KERNELS for threads in THREADS for grain in GRAINS
              for co_runner, beside in co_runners]
    return storms + [real(kernel, co_runner, groups, seconds)
                     for groups in [False, True] for kernel in REAL for co_runner in [None, "compute", kernel]]


def storm(runtime, threads, grain, co_runner, beside, groups, seconds):
    programs = [Program(MAIN, command(runtime, threads, grain))]
    if co_runner == "compute":
        programs.append(Program(CO_RUNNER, timed("hog", beside)))
    elif co_runner:
        programs.append(Program(CO_RUNNER, command(runtime, beside, CO_RUNNER_GRAIN)))
    name = (f"{runtime} {grain}us x{threads} " + (f"+ {co_runner} x{beside}" if co_runner else "alone")
            + (" groups" if groups else ""))
    return Storm(name, runtime, threads, programs, seconds, runtime=runtime, co_runner=co_runner, co_runner_threads=beside,
                 groups=groups)


def real(kernel, co_runner, groups, seconds):
    """A program of OpenMP that does something, alone, beside a second of its kind, or beside one that only computes."""
    programs = [Program(MAIN, timed(kernel, REAL_THREADS))]
    if co_runner:
        programs.append(Program(CO_RUNNER, timed("hog" if co_runner == "compute" else co_runner, REAL_THREADS)))
    name = (f"{kernel} x{REAL_THREADS} " + (f"+ {co_runner} x{REAL_THREADS}" if co_runner else "alone")
            + (" groups" if groups else ""))
    return Storm(name, kernel, REAL_THREADS, programs, seconds, co_runner=co_runner,
                 co_runner_threads=REAL_THREADS if co_runner else 0, groups=groups)


def command(runtime, threads, grain):
    return [*timed(KERNELS[runtime], threads), "--grain", grain]


def timed(kernel, threads):
    return [f"./bin/{kernel}", "--threads", threads, "--for", "@AMOUNT@"]


def read(folder, names):
    """What a run tells of the programs with these names: microseconds of a round."""
    return {name: round_us((folder / f"{name}.stdout").read_text()) for name in names}


def round_us(text):
    return float(re.search(r" ok .* round_us=([0-9.e+-]+)", text)[1])
