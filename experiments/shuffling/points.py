"""What is swept: each constant by 20 %, and assumptions of which the slides say nothing by far."""

from common.constants import GROUPS
from common.points import Setting
from programs import IMBALANCE, LINES

USUAL = Setting("opteron-64.toml", scale=1.0, memory=1.0, lines=LINES, imbalance=IMBALANCE)


def points():
    """All of them, the unchanged one first."""
    yield USUAL
    # How much time is spent in critical sections, not how long one takes.
    yield from USUAL.by_a_fifth({"critical sections": lambda factor: {"scale": factor}}, GROUPS)
    for imbalance in (0.1, 0.9):
        yield USUAL.but(f"imbalance {imbalance}", imbalance=imbalance)
    for lines in (LINES // 8, LINES * 4):
        yield USUAL.but(f"{lines} lines with a lock", lines=lines)
