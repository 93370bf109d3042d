"""What is swept: the settings under which every claim is checked again, each constant moved by 20 %."""

from common.constants import GROUPS
from common.points import Setting

USUAL = Setting("r905-24.toml", scale=1.0, memory=1.0)


def points():
    """All of them, the unchanged one first."""
    yield USUAL
    yield from USUAL.by_a_fifth({
        "critical sections": lambda factor: {"scale": factor},
        "misses": lambda factor: {"memory": factor},
    }, GROUPS)
