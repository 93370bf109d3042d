"""Settings under which claims are checked, and changes of them that are swept."""

import types

from common.constants import CONSTANTS, members
from common.sim import ROOT, load

# By these each constant is multiplied, one after another.
FIFTHS = (0.8, 1.2)


class Setting(types.SimpleNamespace):
    """A setting: the file of the paper's machine, the constants that are moved in calls, and what else an experiment moves.
    Results are told for the first one, which changes nothing."""

    def __init__(self, described, name="as assumed", kind="base", moves=types.MappingProxyType({}), own=(), **moved):
        super().__init__(described=described, name=name, kind=kind, moves=moves, own=own, **moved)

    def but(self, name, kind="assumption", **changes):
        return Setting(**(vars(self) | {"name": name, "kind": kind} | changes))

    def on(self, **said):
        """The paper's machine with what is said of it."""
        return load(ROOT / "machines" / self.described) | said

    def by_a_fifth(self, own=types.MappingProxyType({}), groups=tuple(CONSTANTS)):
        """Settings with each of the constants, or groups of them, moved by 20 % down, and then up. `own`: the constants that
        an experiment moves itself, as its programs are made of them: what a factor changes in a setting."""
        assert own.keys() <= CONSTANTS.keys(), own.keys() - CONSTANTS.keys()
        for factor in FIFTHS:
            for group in groups:
                moves = members(group, factor)
                changes = {key: value for name in own.keys() & moves.keys() for key, value in own[name](moves[name]).items()}
                calls = {name: by for name, by in moves.items() if name not in own}
                yield self.but(f"{group} {100 * (factor - 1):+.0f} %", "constant", moves=calls,
                               own=[name for name in moves if name in own], **changes)
