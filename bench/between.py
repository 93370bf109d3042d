#!/usr/bin/env python3
"""between.py: what it costs to wait between parallel regions, by how long the runtimes' threads look on there.

crates/hook/examples/between.c computes for some 20 us with two threads in a region, and for some 50 or 500 us with
one of them before the next; alone, and beside two threads that only compute. All settings of the runtimes are tried
in turn. It prints microseconds of a round, medians of the rounds, as a table (docs/research/barrier.md has it).

    python3 bench/between.py --runs 7 --seconds 0.5 [--cosched target/release/cosched]

With --cosched the barrier at a region's end is cosched's (`--barrier donate`), else it is the runtime's own.

The machine has to be idle; `make build kernels` and gcc are needed.
"""

import argparse
import contextlib
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

from lib import runner
from lib.report import table
from lib.rounds import in_turn
from lib.runner import HOOK, kernel, llvm_runtime, plain_environment
from storms import round_us

THREADS = 2
IN_REGION, BETWEEN = 20, [50, 500]
VARIANTS = {"gcc, 300,000 looks (its own choice)": {"GOMP_SPINCOUNT": "300000"},
        **{f"gcc, {looks:,}": {"GOMP_SPINCOUNT": str(looks)} for looks in [20_000, 5000, 2000, 1000, 0]}}
LLVM_VARIANTS = {"LLVM, 200 ms (its own choice)": {}, "LLVM, 1 ms": {"KMP_BLOCKTIME": "1"}, "LLVM, 0": {"KMP_BLOCKTIME": "0"}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cosched", type=pathlib.Path, help="the executable; none: the runtimes' own barriers")
    parser.add_argument("--runs", type=int, default=7, help="rounds")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each run")
    options = parser.parse_args()
    plain_environment()
    llvm = llvm_runtime()
    variants = VARIANTS | {variant: {**env, "LD_PRELOAD": llvm} for variant, env in LLVM_VARIANTS.items() if llvm}
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "between"
        subprocess.run(["gcc", "-O2", "-fopenmp", HOOK / "examples" / "between.c", "-o", program], check=True)
        columns = {f"{between} us, {'beside' if beside else 'alone'}":
                   in_turn(options.runs, {variant: run(options, program, between, env, beside) for variant, env in variants.items()})
                   for beside in [False, True] for between in BETWEEN}
    rows = ([variant, *(f"{statistics.median(column[variant]):.0f}" for column in columns.values())] for variant in variants)
    print("\n".join(table(["", *columns], rows)))


def run(options, program, between, env, beside):
    """One run, to be made as often as needed."""
    before = [options.cosched, "exec", "--policy", "linux", "--barrier", "donate", "--"] if options.cosched else []
    words = [str(word) for word in [*before, program, IN_REGION, between, options.seconds]]
    env = {**os.environ, "OMP_NUM_THREADS": str(THREADS), **env}

    def one():
        with co_runner(options.seconds) if beside else contextlib.nullcontext():
            return round_us(subprocess.run(words, env=env, text=True, stdout=subprocess.PIPE, check=True).stdout)

    return one


@contextlib.contextmanager
def co_runner(seconds):
    """As many threads that only compute, and have begun."""
    with runner.beside(kernel("hog", "--threads", THREADS, "--for", seconds + 60)):
        time.sleep(0.05)
        yield


if __name__ == "__main__":
    main()
