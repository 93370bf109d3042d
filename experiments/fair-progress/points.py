"""The four set-ups of table 2, and what is swept: constants that are moved by 20 %."""

from common.constants import GROUPS
from common.points import Setting

# Of the paper's machine only the CPUs that are used, with the caches and buses that these share.
SETUPS = {
    # 0, 1, 4, 5: two in each package, each with a cache of its own.
    "PC": "package:2 l3:2 core:1 pu:1",
    # 0, 1, 2, 3: two in each package, which share a cache.
    "SC-1": "package:2 l3:1 core:2 pu:1",
    # 0, 2, 4, 6: all in one package, so that its bus is the limit.
    "SC-2": "package:1 l3:2 core:2 pu:1",
    "8core": "package:2 l3:2 core:2 pu:1",
}
# One of them, on which two programs are never beside each other.
ONE_CORE = "1core"
USUAL = Setting("e5410-8.toml", misses=1.0)


def machine(point, setup):
    """The paper's machine in a set-up."""
    topology = "package:1 l3:1 core:1 pu:1" if setup == ONE_CORE else SETUPS[setup]
    return point.on(topology=topology, packages_alternate=False)


def points():
    """All of them, the unchanged one first."""
    yield USUAL
    yield from USUAL.by_a_fifth({"misses": lambda factor: {"misses": factor}}, GROUPS)
