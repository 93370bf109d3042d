"""What is swept: the settings under which every claim is checked again."""

import dataclasses
from typing import Callable

from common.points import times
from common.sim import ROOT, load
from programs import SPIN


@dataclasses.dataclass(frozen=True)
class Point:
    """A setting; without changes, the one that results are told for. `grain`: a factor on the intervals between barriers."""

    name: str
    kind: str = "base"
    grain: float = 1.0
    spin: str = SPIN
    imbalance: float = 0.02
    machine: Callable = lambda machine: None

    def on(self):
        """The paper's machine, as this point has it."""
        machine = load(ROOT / "machines" / "e5-2670-16.toml")
        self.machine(machine)
        return machine


def points():
    """All of them, the unchanged one first."""
    yield Point("as assumed")
    yield Point("intervals x 3", "assumption", grain=3.0)
    yield Point("even shares of work", "assumption", imbalance=0.0)
    for factor in (0.8, 1.2):
        sign = f"{100 * (factor - 1):+.0f} %"
        costs = times(factor, "switch_nanos", "wake_nanos", "signal_nanos")
        yield Point(f"switches, wake-ups, signals {sign}", "constant", machine=costs)
        yield Point(f"intervals {sign}", "constant", grain=factor)
        yield Point(f"spinning {sign}", "constant", spin=f"{3000 * factor:.0f}us")
