"""What is swept: the settings under which every claim is checked again.

The thesis gives neither run times nor the quantum; the first kind of points varies those and the other
assumptions by factors. The second kind moves one constant of the machine or of the programs by 20 %.
"""

from common.points import Setting, switching, times

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
    yield from USUAL.by_a_fifth(constants)


def in_turn(name):
    """Lengths without a pattern: by the letters of the name."""
    return 1 + sum(map(ord, name)) % 4


def looped(phase, factor):
    """The same work, with so many times as many parallel loops."""
    repeat = max(1, round(phase["repeat"] * factor))
    phase["instructions"] *= phase["repeat"] / repeat
    phase["repeat"] = repeat


def constants(factor):
    """Every constant of the machine and of the models, and how a point has it so many times as large."""

    def of_model(*keys):
        def change(model, phase):
            for key in keys:
                place = model if key in model else phase
                place[key] *= factor
            model["imbalance"] = min(1.0, model["imbalance"])

        return {"model": change}

    def buses(machine):
        for bus in machine["bus"]:
            bus["bytes_per_nano"] *= factor

    return {
        "buses": {"machine": buses},
        "memory latency": times(factor, "memory_nanos"),
        "cache": times(factor, "cache_mib"),
        "switching and signals": switching(factor),
        "clock": times(factor, "gigahertz"),
        "cycles per instruction": of_model("cycles_per_instruction"),
        "misses": of_model("misses_per_kilo_instruction", "misses_without_cache"),
        "misses in flight": of_model("misses_in_flight"),
        "serial share, imbalance": of_model("serial", "imbalance"),
        "footprint": of_model("footprint_mib"),
    }
