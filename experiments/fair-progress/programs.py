"""SPEC CPU2006 as models, made of what programs.toml says of each benchmark."""

import pathlib

from common.sim import load

MODELS = load(pathlib.Path(__file__).resolve().with_suffix(".toml"))
KINDS, PHASES, BENCHMARKS, WORKLOADS = (
    MODELS[key] for key in ("kinds", "phases", "benchmarks", "workloads"))
GIGAHERTZ, MEMORY_NANOS = 2.33, 110
# Nanoseconds per line of a front-side bus and of the memory bus.
BUSES = (12.5, 8.333)
# Each benchmark, alone.
SECONDS = 10.0
# Section 7.5.
INTENSIVE = "libquantum*2 leslie*2 bwaves*2 GemsFDTD*2 milc*2"
MEMORY = {"WL-M": INTENSIVE} | {f"WL-M+{name}": f"{INTENSIVE} {name}" for name in ("lbm", "mcf", "astar", "gamess")}
# Section 7.6: four benchmarks from nearly 0 to 46 % of the peak, two of each, with their weights. The paper names three of
# them and says that the first two weigh the same.
WEIGHTS = {"gamess": 1, "cactusADM": 1, "bwaves": 2, "soplex": 4}


def members(text):
    """The benchmarks of a workload, each as often as it is there."""
    for word in text.split():
        name, _, count = word.partition("*")
        yield from [name] * int(count or 1)


def latency(lines):
    """Of a miss alone, where so many lines per nanosecond are sent: a queue of random arrivals at each bus."""
    waits = (service / 2 * lines * service / (1 - lines * service) for service in BUSES)
    return MEMORY_NANOS + sum(waits)


def phase(kind, lines, milliseconds, scale):
    """A phase that lasts so long alone and sends so many lines per microsecond, before `scale` changes its misses."""
    each = lines / 1e3
    # misses / (nanoseconds per instruction without them + misses * latency / in flight) = lines per nanosecond
    busy = each * latency(each) / kind["in_flight"]
    misses = each * kind["cycles"] / GIGAHERTZ / (1 - busy)
    nanos = kind["cycles"] / GIGAHERTZ + misses * latency(each) / kind["in_flight"]
    return {
        "instructions": milliseconds * 1e6 / nanos,
        "cycles_per_instruction": kind["cycles"],
        "misses_per_kilo_instruction": 1e3 * misses * scale,
        "misses_without_cache": (1e3 * misses * kind["times"] + kind["more"]) * scale,
        "footprint_mib": kind["footprint"],
        "misses_in_flight": float(kind["in_flight"]),
    }


def program(name, number=0, weight=1, scale=1.0, **keys):
    """A program of a workload: 10 s alone, or nearly that; `keys`: what else a jobs file says of it."""
    lines, kind, phases = BENCHMARKS[name]
    loop = PHASES[phases]
    length = sum(milliseconds for milliseconds, _ in loop)
    mean = sum(milliseconds * factor for milliseconds, factor in loop) / length
    written = [phase(KINDS[kind], lines * factor / mean, milliseconds, scale) for milliseconds, factor in loop]
    model = {"repeat": round(SECONDS * 1e3 / length), "phase": written}
    return {"name": f"{name}-{number}", "command": name, "threads": 1, "weight": weight, **keys, "model": model}


def weighted(scale=1.0, again=False):
    """The programs of section 7.6; `again`: each is run again until all have ended once, so that the load stays."""
    keys = {"repeat": "until-all-finish"} if again else {}
    return [program(name, number, weight, scale, **keys) for name, weight in WEIGHTS.items() for number in (0, 1)]


def workload(text, twice=False, scale=1.0):
    """All programs of a workload."""
    found = []
    for name in members(" ".join([text] * (2 if twice else 1))):
        found.append(program(name, sum(other["command"] == name for other in found), scale=scale))
    return found
