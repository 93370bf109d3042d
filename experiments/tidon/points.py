"""What is swept: the settings under which every claim is checked again."""

import dataclasses

from common.points import Setting, by_a_fifth, times
from programs import SPIN


@dataclasses.dataclass(frozen=True)
class Point(Setting):
    """A setting; without changes, the one that results are told for. `grain`: a factor on the intervals between barriers."""

    MACHINE = "e5-2670-16.toml"

    grain: float = 1.0
    spin: str = SPIN
    imbalance: float = 0.02


def points():
    """All of them, the unchanged one first."""
    yield Point("as assumed")
    yield Point("intervals x 3", "assumption", grain=3.0)
    yield Point("even shares of work", "assumption", imbalance=0.0)
    yield from by_a_fifth(Point, lambda factor: {
        "switches, wake-ups, signals": {"machine": times(factor, "switch_nanos", "wake_nanos", "signal_nanos")},
        "intervals": {"grain": factor},
        "spinning": {"spin": f"{3000 * factor:.0f}us"},
    })
