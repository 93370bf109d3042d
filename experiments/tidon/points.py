"""What is swept: the settings under which every claim is checked again."""

from common.points import Setting

# `grain`: a factor on the intervals between barriers.
USUAL = Setting("e5-2670-16.toml", grain=1.0, imbalance=0.02)


def points():
    """All of them, the unchanged one first."""
    yield USUAL
    yield USUAL.but("intervals x 3", grain=3.0)
    yield USUAL.but("even shares of work", imbalance=0.0)
    yield from USUAL.by_a_fifth({"work between barriers": lambda factor: {"grain": factor}})
