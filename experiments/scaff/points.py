"""What is swept: the settings under which every claim is checked again.

The thesis gives neither run times nor the quantum; the first kind of points varies those and the other
assumptions by factors. The second kind moves one constant of the machine or of the programs by 20 %.
"""

from common.points import Setting

CPU_INTENSIVE = ["syr2k", "jacobi-2d-imper", "LU", "cholesky"]
MEMORY_BOUND = ["IS", "mvt", "atax", "gemver"]
NAS = ["BT", "LU", "CG", "FT", "IS"]
# Of 0.3 s each.
PASSES = 2
USUAL = Setting("dunnington-24.toml", quantum="100ms", model=lambda model, phase: None, passes=lambda name: PASSES)


def points():
    """All of them, the unchanged one first."""
    yield USUAL
    yield USUAL.but("quantum 50 ms", quantum="50ms")
    yield USUAL.but("quantum 200 ms", quantum="200ms")
    yield USUAL.but("NAS four times as long", passes=lambda name: 4 if name in NAS else 1)
    yield USUAL.but("PolyBench four times as long", passes=lambda name: 1 if name in NAS else 4)
    yield USUAL.but("lengths 1, 2, 3, 4 in turn", passes=in_turn)
    yield USUAL.but("waiting threads spin 3 ms", model=lambda model, phase: model.update(spin="3ms"))
    yield USUAL.but("barriers x 1/3", model=lambda model, phase: looped(phase, 1 / 3))
    yield USUAL.but("barriers x 3", model=lambda model, phase: looped(phase, 3))
    # What the checks look at depends on the quantum, too.
    yield from USUAL.by_a_fifth({"quantum or interval": lambda factor: {"quantum": f"{100 * factor:.0f}ms"}})


def in_turn(name):
    """Lengths without a pattern: by the letters of the name."""
    return 1 + sum(map(ord, name)) % 4


def looped(phase, factor):
    """The same work, with so many times as many parallel loops."""
    repeat = max(1, round(phase["repeat"] * factor))
    phase["instructions"] *= phase["repeat"] / repeat
    phase["repeat"] = repeat
