"""What is swept: each constant by 20 %, and assumptions of which the slides say nothing by far."""

import dataclasses

from common.points import Setting, by_a_fifth, times
from programs import IMBALANCE, LINES


@dataclasses.dataclass(frozen=True)
class Point(Setting):
    """A setting; without changes, the one that results are told for."""

    MACHINE = "opteron-64.toml"

    scale: float = 1.0
    memory: float = 1.0
    lines: int = LINES
    imbalance: float = IMBALANCE


def points():
    """All of them, the unchanged one first."""
    yield Point("as assumed")
    yield from by_a_fifth(Point, lambda factor: {
        "critical sections": {"scale": factor},
        "signals": {"machine": times(factor, "signal_nanos")},
        "switches, wake-ups": {"machine": times(factor, "switch_nanos", "wake_nanos")},
    })
    for imbalance in (0.1, 0.9):
        yield Point(f"imbalance {imbalance}", "assumption", imbalance=imbalance)
    for lines in (LINES // 8, LINES * 4):
        yield Point(f"{lines} lines with a lock", "assumption", lines=lines)
