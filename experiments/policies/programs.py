"""Modelled programs, each told by how much it works, and by how its threads wait for each other.

A program is made for a machine when it is known: so many threads for each of its CPUs, and so many instructions that alone it
takes about as many seconds as it is to work.
"""

import dataclasses
import math
from typing import Callable

from common.sim import ROOT, load

# Threads of a program for each CPU of the machine; the last is one thread whatever the machine.
ALL, THREE_QUARTERS, HALF, QUARTER, ONE = 1.0, 0.75, 0.5, 0.25, 0.0
# Of one miss of the last-level cache.
LINE_BYTES = 64
# By how much the busiest thread has more to do between two barriers than the average.
IMBALANCE = 0.02
# How long threads spin in a runtime before they sleep: libgomp by default, and LLVM's.
GNU, LLVM = "1ms", "200ms"
# Of a program that streams from memory: per 1,000 instructions, and at once.
MISSES, IN_FLIGHT = 100.0, 10.0


@dataclasses.dataclass(frozen=True)
class Machine:
    """One of machines/."""

    name: str
    described: dict

    @staticmethod
    def named(name):
        return Machine(name, load(ROOT / "machines" / f"{name}.toml"))

    @property
    def levels(self):
        """How many of each there are in one of the level before, from wide to narrow."""
        words = (word.split(":") for word in self.described["topology"].split())
        return {level: int(count) for level, count in words}

    @property
    def cpus(self):
        return math.prod(self.levels.values())

    @property
    def caches(self):
        """Last-level caches."""
        return self.levels["package"] * self.levels["l3"]

    @property
    def gigabytes_per_second(self):
        """What all buses carry together."""
        count = {"machine": 1, "package": self.levels["package"], "llc": self.caches}
        return min(bus["bytes_per_nano"] * count[bus["of"]] for bus in self.described["bus"])


@dataclasses.dataclass(frozen=True)
class Size:
    """How large a program is to be."""

    machine: Machine
    threads: int
    seconds: float

    def cycles(self, seconds):
        """Of one thread, in so many seconds."""
        return seconds * 1e9 * self.machine.described["gigahertz"]

    @property
    def work(self):
        """Instructions of all threads together, a cycle each."""
        return self.threads * self.cycles(self.seconds)

    def times(self, seconds):
        """How often something is done that takes so long."""
        return max(1, round(self.seconds / seconds))


@dataclasses.dataclass(frozen=True)
class Program:
    """A program of a mix, which comes so often."""

    name: str
    model: Callable
    threads: float = ALL
    # Seconds of work alone, and after which it comes; both times those that a run of all mixes is made for.
    work: float = 1.0
    start: float = 0.0
    copies: int = 1
    malleable: bool = False

    def tables(self, machine, seconds):
        """Its tables in a workload, as Python values."""
        threads = max(1, int(self.threads * machine.cpus))
        model = self.model(Size(machine, threads, self.work * seconds))
        misses = max(phase.get("misses_per_kilo_instruction", 0.0) for phase in model["phase"])
        table = {"command": self.name, "threads": threads, "misses_per_kilo_instruction": misses}
        if self.start:
            table["start"] = f"{1000 * self.start * seconds:.0f}ms"
        if self.malleable:
            table["malleable"] = True
        return [table | {"model": model}] * self.copies


def program(model, **keys):
    """A program by the name of its model, a function below. The model gets the keys that a Program
    has not."""
    own = {key: keys.pop(key) for key in keys.keys() - Program.__dataclass_fields__.keys()}
    function = globals()[model]
    return Program(model, lambda size: function(size, **own), **keys)


def compute(size):
    """Threads that never wait for each other."""
    return {"phase": [{"instructions": size.work, "barriers": 1}]}


def barriers(size, grain, spin="0s", wait=None):
    """A barrier each so many microseconds, at which threads spin so long before they sleep, or wait
    in a mode of cosched's barrier."""
    phase = between_barriers(size, size.seconds, grain)
    mode = {"barrier": wait} if wait else {}
    return {"spin": spin, "imbalance": IMBALANCE, "phase": [phase], **mode}


def between_barriers(size, seconds, grain):
    return {"instructions": size.threads * size.cycles(seconds),
            "barriers": max(1, round(1e6 * seconds / grain))}


def phases(size, grain):
    """By turns without waiting, and spinning at barriers."""
    each = size.seconds / 4
    working = {"instructions": size.threads * size.cycles(each), "barriers": 1}
    return {"spin": "forever", "imbalance": IMBALANCE, "repeat": 2,
            "phase": [working, between_barriers(size, each, grain)]}


def loading(size, grain):
    """The first thread alone for a third of the time, then spinning at barriers."""
    alone = size.cycles(size.seconds / 3)
    return {"spin": "forever", "imbalance": IMBALANCE, "startup_instructions": alone,
            "phase": [between_barriers(size, size.seconds * 2 / 3, grain)]}


def serial(size, share, step, spin):
    """Steps of so many milliseconds alone, with a share of the instructions for the first thread,
    while the others wait."""
    of_one = step / 1000 / (share + (1 - share) / size.threads)
    return {"spin": spin, "phase": [{
        "repeat": size.times(step / 1000), "instructions": size.cycles(of_one), "serial": share,
        "barriers": 1}]}


def numpy(size):
    """Like the numpy scripts of docs/research/simulator.md: much of each step is the first thread's."""
    return serial(size, share=0.274, step=3, spin="100us")


def locks(size, hold, load, **waiting):
    """Critical sections of so many microseconds under one lock, which is held for such a share of
    the time."""
    sections = max(1, round(1e6 * size.seconds * load / (hold * size.threads)))
    critical = {"sections": sections, "instructions": size.cycles(hold / 1e6)}
    return waiting | {"phase": [{"instructions": size.work, "critical": critical}]}


def stream(size, share=1.0):
    """From memory, with such a share of what all buses carry; a barrier each 10 ms."""
    rate = share * size.machine.gigabytes_per_second / (MISSES / 1000 * LINE_BYTES)
    described = size.machine.described
    gigahertz = described["gigahertz"]
    waiting = MISSES / 1000 * described["memory_nanos"] * gigahertz / IN_FLIGHT
    cycles = 1.0 if share == 1.0 else max(1.0, size.threads * gigahertz / rate - waiting)
    return {"spin": GNU, "phase": [{
        "instructions": 1e9 * rate * size.seconds, "barriers": size.times(0.01),
        "cycles_per_instruction": cycles, "misses_per_kilo_instruction": MISSES,
        "misses_in_flight": IN_FLIGHT}]}


def cached(size):
    """Lives in most of the last-level caches; a barrier each 10 ms."""
    footprint = 0.8 * size.machine.described["cache_mib"] * size.machine.caches
    return {"spin": GNU, "phase": [{
        "instructions": size.work, "barriers": size.times(0.01), "footprint_mib": footprint,
        "misses_per_kilo_instruction": 0.5, "misses_without_cache": 15.0, "misses_in_flight": 4.0}]}


def sleeper(size):
    """One thread that works for 4 ms and sleeps for 20."""
    return {"phase": [{
        "repeat": size.times(0.024), "instructions": size.cycles(0.004), "sleep": "20ms"}]}


def alternating(size):
    """All threads work for 40 ms, and sleep for 40."""
    return {"phase": [{
        "repeat": size.times(0.08), "instructions": size.threads * size.cycles(0.04), "barriers": 1,
        "sleep": "40ms"}]}


def pipeline(size, step):
    """Items that one thread makes, and each of the others works on for so many milliseconds."""
    workers = size.threads - 1
    second = size.cycles(step / 1000)
    stages = [{"threads": 1, "instructions": second / workers / 2},
              {"threads": workers, "instructions": second}]
    items = size.times(step / 1000) * workers
    return {"phase": [{"pipeline": {"items": items, "capacity": 4, "stages": stages}}]}
