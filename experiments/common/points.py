"""Settings under which claims are checked, and changes of them that are swept."""

import dataclasses
from typing import Callable, ClassVar

from common.sim import ROOT, load

# By these each constant is multiplied, one after another.
FIFTHS = (0.8, 1.2)


@dataclasses.dataclass(frozen=True)
class Setting:
    """A setting; without changes, the one that results are told for. Experiments name their machine, and add what else they
    move."""

    MACHINE: ClassVar[str]

    name: str
    kind: str = "base"
    machine: Callable = lambda machine: None

    def on(self, **said):
        """The paper's machine with what is said of it, as this point has it."""
        machine = load(ROOT / "machines" / self.MACHINE) | said
        self.machine(machine)
        return machine


def times(factor, *keys):
    """A change of a machine: these constants are so many times as large."""

    def change(machine):
        for key in keys:
            found = machine[key]
            machine[key] = [x * factor for x in found] if isinstance(found, list) else found * factor

    return change


def by_a_fifth(Point, sweeps):
    """Points with a constant moved by 20 % down, and then up. `sweeps(factor)`: what is moved, and how a point tells it."""
    for factor in FIFTHS:
        sign = f"{100 * (factor - 1):+.0f} %"
        for what, change in sweeps(factor).items():
            yield Point(f"{what} {sign}", "constant", **change)
