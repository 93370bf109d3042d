"""The mixes by which policies are judged in the simulator: two to twelve modelled programs each.

Half of them are held out: rules and constants of a policy are chosen by those of mixes.toml alone.
The others are [drawn](drawn.py) by lot.
"""

import dataclasses
import pathlib

from common.sim import load
from drawn import drawn
from programs import program

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass(frozen=True)
class Mix:
    name: str
    programs: list
    held_out: bool = False

    def tables(self, machine, seconds):
        """The workload, as Python values."""
        return [table for program in self.programs for table in program.tables(machine, seconds)]


def all_mixes():
    """Those of mixes.toml in their order, and as many that are drawn."""
    chosen = [Mix(name, [program(**keys) for keys in members])
              for name, members in load(HERE / "mixes.toml").items()]
    return chosen + [Mix(name, members, held_out=True)
                     for name, members in drawn(len(chosen)).items()]
