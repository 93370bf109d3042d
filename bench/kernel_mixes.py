"""kernel_mixes.py: mixes of small programs of which each does one thing.

Each has two to twelve programs of the kernels of workloads/, numpy and scikit-learn. Half of the mixes are held out: rules
and constants of a policy are chosen by the others alone. Mixes of one kind are in both halves, with other programs, counts
or grains.
"""

import dataclasses
import pathlib

from lib import runner

# Threads of a program, told by the CPUs of the machine.
ALL, HALF, ONE = "all", "half", "one"
# Programs that do less work with fewer threads.
EACH_THREAD = {"sleeper"}
# How often the scripts repeat their work in a second, about, on the machine that they were written on.
A_SECOND = {"numpy-matmul.py": 450, "sklearn-kmeans.py": 14, "sklearn-pca.py": 8}


@dataclasses.dataclass
class Program:
    """So many seconds of work alone, times those of the bench."""
    kind: str
    options: tuple = ()
    threads: str = ALL
    work: float = 1.0
    copies: int = 1
    # Seconds after which it comes, times those of the bench.
    start: float = 0.0
    folder: pathlib.Path = runner.WORKLOADS

    def command(self, seconds):
        if self.kind in A_SECOND:
            return [f"./{self.kind}", str(max(1, round(A_SECOND[self.kind] * self.work * seconds)))]
        return [f"./bin/{self.kind}", *map(str, self.options), "--work", f"{self.work * seconds:.3g}"]

    def thread_keys(self, cpus):
        return {"threads": {ALL: cpus, HALF: max(1, cpus // 2), ONE: 1}[self.threads]}

    def names(self):
        """The keys that distinguish the copies: none, so that they are called like the program."""
        return [{}] * self.copies

    def tables(self, seconds, cpus):
        start = {"start": f"{1000 * self.start * seconds:.0f}ms"} if self.start else {}
        keys = {"cwd": self.folder, **self.thread_keys(cpus), **start}
        return [runner.program(self.command(seconds), **keys, **name) for name in self.names()]


@dataclasses.dataclass
class Mix:
    name: str
    programs: list
    held_out: bool = False

    def workload(self, seconds, cpus):
        """The workload file."""
        tables = [program.tables(seconds, cpus) for program in self.programs]
        return "\n".join(table for program in tables for table in program)

    def does_less_with_one_thread(self):
        return any(program.kind in EACH_THREAD for program in self.programs)


def storm(grain, **keys):
    return Program("barrier-storm", ("--grain", grain), **keys)


def all_mixes():
    """Those to choose constants by, and those that are held out."""
    P = Program
    tuning = {
        "barriers-100us x3": [storm(100, copies=3)],
        "barriers-2us x4": [storm(2, copies=4)],
        "compute x4": [P("compute", copies=4)],
        "single x5": [P("compute", threads=ONE, copies=5)],
        "numpy x4": [P("numpy-matmul.py", copies=4)],
        "kmeans x2, pca": [P("sklearn-kmeans.py", copies=2), P("sklearn-pca.py")],
        "triad x2, compute x2": [P("triad", copies=2), P("compute", copies=2)],
        "sleeper x4": [P("sleeper", copies=4)],
        "sleeper x2, barriers-100us x2": [P("sleeper", copies=2), storm(100, copies=2)],
        "locks x3": [P("lock-loop", ("--hold", 100, "--gap", 1000), copies=3)],
        "stencil x3": [P("stencil", copies=3)],
        "long compute, short x3": [P("compute", work=3), P("compute", work=0.3, copies=3)],
        "cg, sort, compute": [P("cg"), P("bucket-sort"), P("compute")],
        "late barriers": [storm(100), storm(100, start=0.5), storm(100, start=1.0)],
        "half barriers x4": [storm(100, threads=HALF, copies=4)],
        "phases x3": [P("phases", copies=3)],
    }
    held_out = {
        "barriers-300us x2": [storm(300, copies=2)],
        "barriers-20us x6": [storm(20, copies=6, work=0.5)],
        "compute x2, single x2": [P("compute", copies=2), P("compute", threads=ONE, copies=2)],
        "single x12": [P("compute", threads=ONE, copies=12, work=0.4)],
        "numpy x2, compute x2": [P("numpy-matmul.py", copies=2), P("compute", copies=2)],
        "pca x3": [P("sklearn-pca.py", copies=3)],
        "triad x4": [P("triad", copies=4)],
        "sleeper, compute x2": [P("sleeper"), P("compute", copies=2)],
        "system calls x3": [P("system-calls", copies=3)],
        "nested locks x3": [P("nested-locks", copies=3)],
        "stencil x2, triad": [P("stencil", copies=2), P("triad")],
        "long barriers, short x3": [storm(100, work=3), storm(100, work=0.3, copies=3)],
        "cg x2, sort x2": [P("cg", copies=2), P("bucket-sort", copies=2)],
        "late compute and barriers": [storm(20), P("compute", start=0.4), storm(100, start=0.8)],
        "half barriers x2, single x2": [storm(100, threads=HALF, copies=2), P("compute", threads=ONE, copies=2)],
        "eight kernels": [P(kind, work=0.5) for kind in ["cg", "stencil", "bucket-sort", "barrier-storm", "triad",
                                                        "phases", "compute", "nested-locks"]],
        "pthread barriers x3": [P("pthread-storm", ("--grain", 100), copies=3)],
    }
    return [Mix(name, programs, held) for held, mixes in [(False, tuning), (True, held_out)]
            for name, programs in mixes.items()]
