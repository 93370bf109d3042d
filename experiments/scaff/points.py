"""What is swept: the settings under which every claim is checked again.

The thesis gives neither run times nor the quantum; the first kind of points varies those and the other
assumptions by factors. The second kind moves one constant of the machine or of the programs by 20 %.
"""

import dataclasses
from typing import Callable

from common.points import Setting, times
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
    for factor in (0.8, 1.2):
        yield from by_a_fifth(factor)


def in_turn(name):
    """Lengths without a pattern: by the letters of the name."""
    return 1 + sum(map(ord, name)) % 4


def looped(phase, factor):
    """The same work, with so many times as many parallel loops."""
    repeat = max(1, round(phase["repeat"] * factor))
    phase["instructions"] *= phase["repeat"] / repeat
    phase["repeat"] = repeat


def by_a_fifth(factor):
    """Every constant of the machine and of the models, one after another."""

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

    sign = f"{100 * (factor - 1):+.0f} %"
    yield Point(f"buses {sign}", "constant", machine=buses)
    yield Point(f"memory latency {sign}", "constant", machine=times(factor, "memory_nanos"))
    yield Point(f"cache {sign}", "constant", machine=times(factor, "cache_mib"))
    costs = times(factor, "switch_nanos", "wake_nanos", "signal_nanos")
    yield Point(f"switching and signals {sign}", "constant", machine=costs)
    yield Point(f"clock {sign}", "constant", machine=times(factor, "gigahertz"))
    yield Point(f"cycles per instruction {sign}", "constant", model=of_model("cycles_per_instruction"))
    misses = of_model("misses_per_kilo_instruction", "misses_without_cache")
    yield Point(f"misses {sign}", "constant", model=misses)
    yield Point(f"misses in flight {sign}", "constant", model=of_model("misses_in_flight"))
    yield Point(f"serial share, imbalance {sign}", "constant", model=of_model("serial", "imbalance"))
    yield Point(f"footprint {sign}", "constant", model=of_model("footprint_mib"))
