"""What is swept: the settings under which every claim is checked again."""

from common.points import Setting, switching
from programs import SPIN

# `grain`: a factor on the intervals between barriers.
USUAL = Setting("e5-2670-16.toml", grain=1.0, spin=SPIN, imbalance=0.02)


def points():
    """All of them, the unchanged one first."""
    yield USUAL
    yield USUAL.but("intervals x 3", grain=3.0)
    yield USUAL.but("even shares of work", imbalance=0.0)
    yield from USUAL.by_a_fifth(lambda factor: {
        "switches, wake-ups, signals": switching(factor),
        "intervals": {"grain": factor},
        "spinning": {"spin": f"{3000 * factor:.0f}us"},
    })
