"""kernel_mixes.py: the mixes of small programs of kernel-mixes.toml."""

import dataclasses
import pathlib
import tomllib

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


def read(file, program):
    """The mixes of a file of this folder; `program` makes a program of its keys."""
    halves = tomllib.loads((runner.BENCH / file).read_text())
    return [Mix(name, [program(**keys) for keys in programs], held_out=half == "held-out")
            for half, mixes in halves.items() for name, programs in mixes.items()]


def all_mixes():
    """Those to choose constants by, and those that are held out."""
    return read("kernel-mixes.toml", Program)
