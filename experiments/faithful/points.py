"""What is swept: the settings under which every claim is checked again, each constant moved by 20 %."""

import dataclasses

from common.points import Setting, by_a_fifth, times


@dataclasses.dataclass(frozen=True)
class Point(Setting):
    """A setting; without changes, the one that results are told for."""

    MACHINE = "r905-24.toml"

    scale: float = 1.0
    memory: float = 1.0


def points():
    """All of them, the unchanged one first."""
    yield Point("as assumed")
    yield from by_a_fifth(Point, lambda factor: {
        "critical sections": {"scale": factor},
        "misses": {"memory": factor},
        "switches, wake-ups, signals": {"machine": times(factor, "switch_nanos", "wake_nanos", "signal_nanos")},
        "memory latency and buses": {"machine": slower(factor)},
    })


def slower(factor):
    """A change of a machine: its memory takes so many times as long, and its buses carry as much less."""
    latency = times(factor, "memory_nanos")

    def change(machine):
        latency(machine)
        for bus in machine["bus"]:
            bus["bytes_per_nano"] /= factor

    return change
