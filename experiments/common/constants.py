"""The constants that are moved by 20 %, one after another: the same twenty for every paper.

A constant is moved where a simulation is called: in the machine's file, in the arguments, or in the
models of the programs. Where none of the three has it, nothing is moved. Constants of the memory
stay where no program has misses. Signals stay where each program has one thread.
"""

import copy
import re
import types

# What cosched's own steps take where a machine's file does not say it (docs/research/machine-file.md).
OWN = {"start_nanos": 700_000, "freeze_nanos": 50_000, "thaw_nanos": 30_000}
# Policies that pause programs, unless they are told otherwise.
PAUSING = ("gang", "greedy", "cgreedy", "minwait", "bandwidth", "fair-progress")
# The options of a policy that are moved, and their values without the option.
THRESHOLDS = {"shuffling": {"--threshold": 0.1}}
INTERVALS = {"faithful": "1s", "shuffling": "500ms"}
# Constants of policies, for --set, that are moved together; `cosched sim params` tells their values.
SETTABLE = {
    "faithful": ["faithful.range", "faithful.nothing_to_win"],
    "shuffling": ["shuffling.tie"],
    "fair-progress": [
        f"fair-progress.{name}" for name in ("similar", "own_low", "system_low", "failure_ratio")],
    **dict.fromkeys(("gang", "greedy", "cgreedy", "minwait"), [
        "gangs.switch", "gangs.latest", "gangs.reserve"]),
}
NANOS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def time(text, factor):
    """A length of time in words, so many times as long; what is no number, such as "forever", stays."""
    read = re.fullmatch(r"([\d.]+)(ns|us|ms|s)", text)
    return f"{float(read[1]) * NANOS[read[2]] * factor:.0f}ns" if read and float(read[1]) else text


def scaled(value, factor):
    """A value so many times as large: a number, a list of them, or a length of time."""
    if isinstance(value, list):
        return [x * factor for x in value]
    return time(value, factor) if isinstance(value, str) else value * factor


def within(factor, value, low, high):
    """A constant of a policy, so many times as large, in its range, as --set takes it."""
    if not isinstance(value, str):
        moved = min(max(value * factor, low), high)
        return f"{moved:.0f}" if isinstance(value, int) else f"{moved:g}"
    return time(value, factor)


def of_machine(key, counts=lambda call: True):
    def move(call, factor):
        if counts(call):
            call.machine[key] = scaled(call.machine[key], factor)

    return move


def has_misses(call):
    return any("misses_per_kilo_instruction" in table for table in call.tables())


def has_threads(call):
    return any(program.get("threads", 1) > 1 for program in call.programs)


def buses(call, factor):
    for bus in call.machine["bus"] if has_misses(call) else []:
        bus["bytes_per_nano"] *= factor


def own(*keys):
    """Steps of cosched itself."""

    def move(call, factor):
        if keys[0] == "start_nanos" or call.policy in PAUSING:
            call.machine["own"] = OWN | call.machine.get("own", {})
            call.machine["own"] |= {key: round(call.machine["own"][key] * factor) for key in keys}

    return move


def interval(call, factor):
    """A turn of policies with turns, and how often other policies measure."""
    if call.policy in INTERVALS and "--interval" not in call.arguments:
        call.arguments += ["--interval", INTERVALS[call.policy]]
    for option in {"--quantum", "--interval"} & set(call.arguments):
        place = call.arguments.index(option) + 1
        call.arguments[place] = time(call.arguments[place], factor)


def thresholds(call, factor):
    for option, value in THRESHOLDS.get(call.policy, {}).items():
        call.arguments += [option, f"{value * factor:g}"]
    for name in SETTABLE.get(call.policy, []):
        call.arguments += ["--set", f"{name}={within(factor, *call.params()[name])}"]


def of_models(*keys, most=None):
    """In the models of programs, and in their phases."""

    def move(call, factor):
        for table in call.tables():
            for key in keys:
                if table.get(key):
                    value = scaled(table[key], factor)
                    table[key] = value if most is None else min(most, value)

    return move


def of_sections(*keys, whole=False):
    """In critical sections; `whole` numbers, or any."""

    def move(call, factor):
        for section in (table["critical"] for table in call.tables() if "critical" in table):
            for key in keys:
                if key in section:
                    section[key] = round(section[key] * factor) if whole else section[key] * factor

    return move


def between_barriers(call, factor):
    """As much work, with as many critical sections, divided by fewer barriers. A phase that is not repeated stays."""
    for phase in call.tables():
        repeat = phase.get("repeat", 1)
        if phase.get("barriers") and repeat > 1 and "instructions" in phase:
            phase["repeat"] = max(1, round(repeat / factor))
            longer = repeat / phase["repeat"]
            phase["instructions"] *= longer
            if "critical" in phase:
                phase["critical"]["sections"] = max(1, round(phase["critical"]["sections"] * longer))


CONSTANTS = {
    "clock": of_machine("gigahertz"),
    "cache": of_machine("cache_mib", has_misses),
    "memory latency": of_machine("memory_nanos", has_misses),
    "buses": buses,
    "switches": of_machine("switch_nanos"),
    "wake-ups": of_machine("wake_nanos"),
    "signals": of_machine("signal_nanos", has_threads),
    "starting programs": own("start_nanos"),
    "freezing and thawing": own("freeze_nanos", "thaw_nanos"),
    "quantum or interval": interval,
    "thresholds of the policy": thresholds,
    "cycles per instruction": of_models("cycles_per_instruction"),
    "misses": of_models("misses_per_kilo_instruction", "misses_without_cache"),
    "misses in flight": of_models("misses_in_flight"),
    "footprint": of_models("footprint_mib"),
    "serial share, imbalance": of_models("serial", "imbalance", most=1.0),
    "spinning": of_models("spin", "adaptive"),
    "critical sections": of_sections("instructions", "nested"),
    "lines with a lock": of_sections("lines", whole=True),
    "work between barriers": between_barriers,
}


class Call(types.SimpleNamespace):
    """A simulation that is called: arguments, programs, machine, and what policies' constants are."""

    @property
    def parts(self):
        return self.arguments, self.programs, self.machine

    @property
    def policy(self):
        return self.arguments[self.arguments.index("--policy") + 1] if "--policy" in self.arguments else None

    def tables(self):
        """The models of all programs, and their phases."""
        for model in (program["model"] for program in self.programs):
            yield from (model, *model.get("phase", []))


def moved(moves, arguments, programs, machine, params):
    """Arguments, programs and machine of a call with some constants moved, and the names of those that the call has. `moves`: by
    name, how many times as large. `params()`: the constants of policies."""
    call = Call(arguments=list(arguments), programs=copy.deepcopy(programs), machine=copy.deepcopy(machine), params=params)
    found = set()
    for name, factor in moves.items():
        before = copy.deepcopy(call.parts)
        CONSTANTS[name](call, factor)
        found |= {name} if call.parts != before else set()
    return *call.parts, found


# Where a point takes minutes, these are moved together: what makes the same faster or slower. Those after a "/" become smaller
# by a fifth where the others become larger by one.
GROUPS = [
    "clock", "cycles per instruction", "cache + buses / memory latency",
    "switches + wake-ups + signals + starting programs + freezing and thawing",
    "quantum or interval + thresholds of the policy", "misses + footprint / misses in flight",
    "serial share, imbalance + work between barriers", "critical sections + lines with a lock / spinning",
]


def members(group, factor):
    """The constants of a group, and by what each is multiplied."""
    larger, _, smaller = group.partition(" / ")
    return {name: factor for name in larger.split(" + ")} | ({smaller: 2 - factor} if smaller else {})
