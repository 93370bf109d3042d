"""The mixes by which policies are judged in the simulator: two to twelve modelled programs each.

Half of them are held out: rules and constants of a policy are chosen by the others alone. These are [drawn](drawn.py) by lot.
"""

import dataclasses

from drawn import drawn
from programs import (ALL, GNU, HALF, LLVM, ONE, QUARTER, THREE_QUARTERS, barriers, alternating, cached, compute, loading,
                      locks, numpy, phases, pipeline, serial, sleeper, stream)

# How long threads spin at barriers before they sleep: in their own code, or in a runtime.
FOREVER, NEVER = "forever", "0s"


@dataclasses.dataclass(frozen=True)
class Mix:
    name: str
    programs: list
    held_out: bool = False

    def tables(self, machine, seconds):
        """The workload, as Python values."""
        return [table for program in self.programs for table in program.tables(machine, seconds)]


def all_mixes():
    """In the order in which they stand here."""
    programs = {
        "spin 1ms x4": [barriers(1000, FOREVER, copies=4)],
        "spin 200us x3": [barriers(200, FOREVER, copies=3, work=0.5)],
        "spin 10ms x2": [barriers(10_000, FOREVER, copies=2)],
        "spin 1ms half x4": [barriers(1000, FOREVER, threads=HALF, copies=4)],
        "spin 1ms quarter x12": [barriers(1000, FOREVER, threads=QUARTER, copies=12)],
        "spin 1ms three quarters x3": [barriers(1000, FOREVER, threads=THREE_QUARTERS, copies=3)],
        "block 1ms x3": [barriers(1000, NEVER, copies=3)],
        "block 300us half x4": [barriers(300, NEVER, threads=HALF, copies=4, work=0.5)],
        "gnu 500us x3": [barriers(500, GNU, copies=3, work=0.5)],
        "gnu 5ms x4": [barriers(5000, GNU, copies=4)],
        "llvm 2ms x4": [barriers(2000, LLVM, copies=4)],
        "donate 1ms half x3": [barriers(1000, NEVER, waiting="donate", threads=HALF, copies=3, work=0.25)],
        "compute x4": [compute(copies=4)],
        "compute three quarters x3": [compute(threads=THREE_QUARTERS, copies=3)],
        "compute x2, single x8": [compute(copies=2), compute(threads=ONE, copies=8)],
        "compute, spin 1ms": [compute(), barriers(1000, FOREVER)],
        "single x11, spin 1ms": [compute(threads=ONE, copies=11), barriers(1000, FOREVER)],
        "numpy x4": [numpy(copies=4)],
        "numpy malleable x4": [numpy(copies=4, malleable=True)],
        "numpy x2, spin 1ms x2": [numpy(copies=2), barriers(1000, FOREVER, copies=2)],
        "serial llvm x3": [serial(0.05, 10, LLVM, copies=3)],
        "serial block x6": [serial(0.1, 10, NEVER, copies=6, work=0.5)],
        "locks block x3": [locks(10, 0.7, copies=3)],
        "locks full x2, compute": [locks(20, 1.5, copies=2, work=0.5), compute()],
        "locks adaptive half x4": [locks(10, 0.5, adaptive="10us", threads=HALF, copies=4)],
        "locks x2, spin 1ms": [locks(20, 0.8, copies=2), barriers(1000, FOREVER)],
        "stream x2": [stream(copies=2)],
        "stream x2, compute x2": [stream(copies=2), compute(copies=2)],
        "stream 0.6 half x4": [stream(0.6, threads=HALF, copies=4)],
        "cached x3": [cached(copies=3)],
        "sleeper x6, compute": [sleeper(copies=6), compute()],
        "sleeper x4, spin 1ms x2": [sleeper(copies=4), barriers(1000, FOREVER, copies=2)],
        "alternating x3": [alternating(copies=3)],
        "alternating x2, gnu 1ms x2": [alternating(copies=2), barriers(1000, GNU, copies=2)],
        "long spin, short x3": [barriers(1000, FOREVER, work=2), barriers(1000, FOREVER, work=0.25, copies=3)],
        "long compute, short x5": [compute(work=2), compute(work=0.2, copies=5)],
        "late spin x3": [barriers(1000, FOREVER, start=start) for start in (0.0, 0.5, 1.0)],
        "late mixture": [barriers(1000, FOREVER), compute(start=0.3), compute(threads=ONE, start=0.5, copies=2),
                         barriers(1000, NEVER, start=0.8)],
        "widths": [barriers(1000, FOREVER, threads=width) for width in (ALL, THREE_QUARTERS, HALF, HALF, QUARTER, QUARTER)],
        "pipelines x3": [pipeline(2, copies=3)],
        "phases x3": [phases(1000, copies=3)],
        "loading x4": [loading(1000, copies=4)],
        "ten kinds": [barriers(1000, FOREVER, work=0.5), barriers(1000, NEVER, threads=HALF, work=0.5), compute(work=0.5),
                      compute(threads=ONE, copies=2), numpy(work=0.5), locks(10, 0.5, threads=HALF, work=0.5),
                      stream(threads=HALF, work=0.5), sleeper(), phases(1000, work=0.5)],
    }
    chosen = [Mix(name, members) for name, members in programs.items()]
    return chosen + [Mix(name, members, held_out=True) for name, members in drawn(len(chosen)).items()]
