"""Mixes that are drawn by lot from all modelled programs: they were not chosen, and nothing is chosen by them."""

import random

from programs import ALL, GNU, HALF, LLVM, ONE, QUARTER, THREE_QUARTERS, program

# Another number draws other mixes: so the half that is held out is made new once constants have been chosen by what it showed.
LOT = 20261127
GRAINS = [100, 200, 500, 1000, 2000, 5000, 10_000]
# How long threads spin before they sleep; gcc's and LLVM's runtime each have a fourth.
SPINS = {"spin": "forever", "block": "0s", "gnu": GNU, "llvm": LLVM}
WIDTHS = {"": ALL, " three quarters": THREE_QUARTERS, " half": HALF, " quarter": QUARTER}
MOST = 12


def drawn(many):
    """So many mixes of two to twelve programs of one to four kinds: by name, what they consist of."""
    lot = random.Random(LOT)
    mixes = {}
    while len(mixes) < many:
        kinds = [kind(lot) for _ in range(lot.randint(1, 4))]
        if 2 <= sum(program.copies for _, program in kinds) <= MOST:
            mixes[", ".join(name for name, _ in kinds)] = [program for _, program in kinds]
    return mixes


def kind(lot):
    """A program that comes once to four times, and what it is called."""
    width, spin, grain = lot.choice(list(WIDTHS)), lot.choice(list(SPINS)), lot.choice(GRAINS)
    copies, work = lot.choice([1, 1, 2, 3, 4]), lot.choice([0.25, 0.5, 1, 1, 2])
    usual = {"threads": WIDTHS[width], "copies": copies, "work": work}
    plain = {"copies": copies, "work": work}
    pausing = ("barriers", {"grain": grain, "spin": SPINS[spin], **usual})
    computing = ("compute", usual)
    one_first = {"share": 0.1, "step": grain / 1000, "spin": SPINS[spin], **usual}
    name, (model, keys) = lot.choice([
        (f"{spin} {grain}us{width}", pausing),
        (f"{spin} {grain}us{width}", pausing),
        (f"{spin} {grain}us{width}", pausing),
        (f"compute{width}", computing),
        (f"compute{width}", computing),
        ("single", ("compute", {"threads": ONE, **plain})),
        (f"serial {spin} {grain}us{width}", ("serial", one_first)),
        (f"locks{width}", ("locks", {"hold": 10, "load": 0.7, **usual})),
        (f"stream{width}", ("stream", usual)),
        (f"numpy{width}", ("numpy", usual)),
        (f"phases {grain}us{width}", ("phases", {"grain": grain, **usual})),
        (f"loading {grain}us{width}", ("loading", {"grain": grain, **usual})),
        ("cached", ("cached", plain)),
        ("alternating", ("alternating", plain)),
        ("sleeper", ("sleeper", {"threads": ONE, **plain})),
        ("pipeline", ("pipeline", {"step": 2, **plain})),
    ])
    return f"{name} {work:g}" + (f" x{copies}" if copies > 1 else ""), program(model, **keys)
