"""Settings under which claims are checked, and changes of them that are swept."""

import dataclasses
from typing import Callable, ClassVar

from common.sim import ROOT, load


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
