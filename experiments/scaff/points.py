"""What is swept: the settings under which every claim is checked again.

The thesis gives neither run times nor the quantum; the first kind of points varies those and the other
assumptions by factors. The second kind moves one constant of the machine or of the programs by 20 %.
"""

import dataclasses
from typing import Callable

from common.points import Setting, by_a_fifth, times
from common.sim import load
from sim import HERE, changed

CPU_INTENSIVE = ["syr2k", "jacobi-2d-imper", "LU", "cholesky"]
MEMORY_BOUND = ["IS", "mvt", "atax", "gemver"]
NAS = ["BT", "LU", "CG", "FT", "IS"]
# Of 0.3 s each.
PASSES = 2


@dataclasses.dataclass(frozen=True)
class Point(Setting):
    """A setting; without changes, the one that results are told for."""

    MACHINE = "dunnington-24.toml"

    quantum: str = "100ms"
    model: Callable = lambda model, phase: None
    passes: Callable = lambda name: PASSES

    def programs(self, file):
        """The programs of a file of models, as this point has them."""
        found = load(HERE / file)["program"]
        for program in found:
            program["model"]["repeat"] = self.passes(program["command"])
        return {program["command"]: changed(program, self.model) for program in found}


def points():
    """All of them, the unchanged one first."""
    yield Point("as assumed")
    assumption = {"kind": "assumption"}
    yield Point("quantum 50 ms", quantum="50ms", **assumption)
    yield Point("quantum 200 ms", quantum="200ms", **assumption)
    yield Point("NAS four times as long", passes=lambda name: 4 if name in NAS else 1, **assumption)
    yield Point("PolyBench four times as long", passes=lambda name: 1 if name in NAS else 4, **assumption)
    yield Point("lengths 1, 2, 3, 4 in turn", passes=in_turn, **assumption)
    yield Point("waiting threads spin 3 ms", model=lambda model, phase: model.update(spin="3ms"), **assumption)
    yield Point("barriers x 1/3", model=lambda model, phase: looped(phase, 1 / 3), **assumption)
    yield Point("barriers x 3", model=lambda model, phase: looped(phase, 3), **assumption)
    yield from by_a_fifth(Point, constants)


def in_turn(name):
    """Lengths without a pattern: by the letters of the name."""
    return 1 + sum(map(ord, name)) % 4


def looped(phase, factor):
    """The same work, with so many times as many parallel loops."""
    repeat = max(1, round(phase["repeat"] * factor))
    phase["instructions"] *= phase["repeat"] / repeat
    phase["repeat"] = repeat


def constants(factor):
    """Every constant of the machine and of the models, and how a point has it so many times as large."""

    def of_model(*keys):
        def change(model, phase):
            for key in keys:
                place = model if key in model else phase
                place[key] *= factor
            model["imbalance"] = min(1.0, model["imbalance"])

        return change

    def buses(machine):
        for bus in machine["bus"]:
            bus["bytes_per_nano"] *= factor

    return {
        "buses": {"machine": buses},
        "memory latency": {"machine": times(factor, "memory_nanos")},
        "cache": {"machine": times(factor, "cache_mib")},
        "switching and signals": {"machine": times(factor, "switch_nanos", "wake_nanos", "signal_nanos")},
        "clock": {"machine": times(factor, "gigahertz")},
        "cycles per instruction": {"model": of_model("cycles_per_instruction")},
        "misses": {"model": of_model("misses_per_kilo_instruction", "misses_without_cache")},
        "misses in flight": {"model": of_model("misses_in_flight")},
        "serial share, imbalance": {"model": of_model("serial", "imbalance")},
        "footprint": {"model": of_model("footprint_mib")},
    }
