"""What is swept: the settings under which every claim is checked again, each constant moved by 20 %."""

from common.points import Setting, switching, times

USUAL = Setting("r905-24.toml", scale=1.0, memory=1.0)


def points():
    """All of them, the unchanged one first."""
    yield USUAL
    yield from USUAL.by_a_fifth(lambda factor: {
        "critical sections": {"scale": factor},
        "misses": {"memory": factor},
        "switches, wake-ups, signals": switching(factor),
        "memory latency and buses": {"machine": slower(factor)},
    })


def slower(factor):
    """A change of a machine: its memory takes so many times as long, and its buses carry as much less."""

    def change(machine):
        times(factor, "memory_nanos")["machine"](machine)
        for bus in machine["bus"]:
            bus["bytes_per_nano"] /= factor

    return change
