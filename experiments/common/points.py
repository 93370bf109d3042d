"""Settings under which claims are checked, and changes of them that are swept."""

import types

from common.sim import ROOT, load

# By these each constant is multiplied, one after another.
FIFTHS = (0.8, 1.2)


class Setting(types.SimpleNamespace):
    """A setting: the file of the paper's machine, how that is changed, and what else an experiment moves. Results are told for
    the first one, which changes nothing."""

    def __init__(self, described, name="as assumed", kind="base", machine=None, **moved):
        super().__init__(described=described, name=name, kind=kind, machine=machine, **moved)

    def but(self, name, kind="assumption", **changes):
        return Setting(**(vars(self) | {"name": name, "kind": kind} | changes))

    def on(self, **said):
        """The paper's machine with what is said of it, as this setting has it."""
        machine = load(ROOT / "machines" / self.described) | said
        if self.machine:
            self.machine(machine)
        return machine

    def by_a_fifth(self, sweeps):
        """Settings with a constant moved by 20 % down, and then up. `sweeps(factor)`: what is moved, and the change."""
        for factor in FIFTHS:
            for what, change in sweeps(factor).items():
                yield self.but(f"{what} {100 * (factor - 1):+.0f} %", "constant", **change)


def times(factor, *keys):
    """A change of a machine: these constants are so many times as large."""

    def change(machine):
        for key in keys:
            found = machine[key]
            machine[key] = [x * factor for x in found] if isinstance(found, list) else found * factor

    return {"machine": change}


def switching(factor):
    """Switches, wake-ups and signals take so many times as long."""
    return times(factor, "switch_nanos", "wake_nanos", "signal_nanos")
