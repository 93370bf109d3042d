"""cells.py: what the lock bench runs: a program at one setting, with more or less work to do. (storms.py has what the
barrier bench runs.)

Each cell is a workload file for cosched, with a placeholder for the amount of work: seconds for the kernels of workloads/,
locks or events for sysbench. The amount is fixed for all variants of a cell, so that time measures speed.
"""

import dataclasses
import json
import pathlib

import mariadb
from lib import runner

# Nanoseconds with the lock and without.
HOLDS_AND_GAPS = [(100, 100), (100, 1000), (100, 3000), (1000, 1000), (1000, 10_000), (10_000, 10_000),
                  (10_000, 100_000)]
ACCOUNTS = [2, 8, 64]
THREADS_PER_CPU = [1, 2, 4]


@dataclasses.dataclass
class Program:
    """A program of a cell; its command has the placeholder @AMOUNT@ where it takes one."""
    name: str
    command: list
    folder: pathlib.Path = runner.WORKLOADS
    # Further keys of the workload file.
    keys: dict = dataclasses.field(default_factory=dict)

    def table(self, amount):
        command = [str(word).replace("@AMOUNT@", str(amount)) for word in self.command]
        return runner.program(command, name=self.name, cwd=self.folder, **self.keys)


@dataclasses.dataclass
class Cell:
    name: str
    kind: str
    threads: int
    programs: list
    # Of work, for a first short run; whole numbers stay whole.
    first: float
    # The time that counts is what sysbench tells in this program's output; else it is that of the only program.
    timed_by: str = None

    def workload(self, amount):
        """The workload file."""
        return "\n".join(program.table(amount) for program in self.programs)

    def amount(self, of_first):
        """So many times the work of the first run."""
        amount = self.first * of_first
        return max(1, round(amount)) if isinstance(self.first, int) else float(f"{amount:.4g}")

    def times(self, folder):
        """How long a run took from the program's start on, and how long that was in coming, by what cosched left in
        its folder."""
        program = json.loads((folder / "run.json").read_text())["programs"][0]
        start = program["started_seconds"]
        if self.timed_by:
            return mariadb.seconds((folder / f"{self.timed_by}.stdout").read_text()), start
        return program["arrived_seconds"] + program["turnaround_seconds"] - start, start


def kernel(name, kind, threads, *options):
    command = [f"./bin/{kind}", "--threads", threads, *options, "--work", "@AMOUNT@"]
    return Cell(name, kind, threads, [Program(kind, command)], 0.5)


def sysbench(kind, threads, *options, first):
    command = ["sysbench", kind, f"--threads={threads}", *options, "run"]
    return Cell(f"sysbench {kind} x{threads}", f"sysbench-{kind}", threads, [Program("sysbench", command)], first)


def database(data, threads):
    programs = [Program("server", mariadb.server(data), data),
                Program("client", mariadb.client(threads, "@AMOUNT@"), data)]
    return Cell(f"mariadb x{threads}", "mariadb", threads, programs, 500, "client")


def all_cells(cpus, data):
    """The cells on a machine with so many CPUs; `data` is the folder for the server's."""
    crowds = [cpus * per_cpu for per_cpu in THREADS_PER_CPU]
    cells = [kernel(f"lock-loop {hold}/{gap} x{threads}", "lock-loop", threads, "--hold", hold, "--gap", gap)
             for hold, gap in HOLDS_AND_GAPS for threads in crowds]
    cells += [kernel(f"nested-locks {accounts} x{threads}", "nested-locks", threads, "--accounts", accounts)
              for accounts in ACCOUNTS for threads in crowds[1:]]
    for threads in crowds:
        cells.append(sysbench("threads", threads, "--time=0", "--events=@AMOUNT@", first=500))
        cells.append(sysbench("mutex", threads, "--mutex-locks=@AMOUNT@", first=20_000))
    return cells + [database(data, threads) for threads in crowds]
