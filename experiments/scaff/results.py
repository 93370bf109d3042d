"""All runs of one point, and how the checks look at them."""

import pathlib
import tomllib

from common.sim import in_threads, load
from points import CPU_INTENSIVE, MEMORY_BOUND, NAS
from sim import alone, gangs, run, slowdowns, with_alone

POLICIES = ("gang", "greedy", "cgreedy", "minwait")
PLACED = [(policy, placement) for policy in POLICIES for placement in ("spread", "packed")]


def placed(workload):
    """The policies and placements of a workload."""
    if workload == "cpu":
        return [run for run in PLACED if run[0] in ("gang", "greedy")]
    return [*PLACED, ("linux", "spread")]


STREAMS = [20, 40, 60, 80, 100]


class Results:
    """A point's figures. Programs are those of table 5.2, in its order, on the machine of the thesis."""

    def __init__(self, cosched, point, threads):
        self.point = point
        self.programs, self.streams = (models(point, f"{kind}-models.toml") for kind in ("solo", "stream"))
        self.cosched, self.machine = cosched, point.on()
        workloads = {
            "whole": list(self.programs.values()),
            "cpu": [short(self.programs[name]) for name in CPU_INTENSIVE for _ in range(3)],
            "memory": [self.programs[name] for name in MEMORY_BOUND for _ in range(3)],
        }
        jobs = {}
        for workload, programs in workloads.items():
            for policy, placement in placed(workload):
                jobs["runs", (workload, policy, placement)] = (programs, self.machine, policy, placement)
        for count in (4, 8):
            for policy in ("linux", "gang"):
                jobs["part", (count, policy)] = (workloads["whole"][:count], self.machine, policy, "spread")
        for policy in ("greedy", "minwait"):
            for placement in ("spread", "packed"):
                jobs["numa", (policy, placement)] = (workloads["whole"], numa(self.machine), policy, placement)
        six = {**self.machine, "topology": "package:1 core:6 pu:1"}
        four = [{**self.programs["FT"], "threads": threads} for threads in (4, 3, 2, 5)]
        for policy in ("gang", "greedy"):
            jobs["six", policy] = (four, six, policy, "spread")
        lone = {(name, count): (self.programs[name], count, self.machine) for name in NAS for count in (1, 8, 16, 24)}
        lone |= {(name, count): (stream, count, self.machine) for name, stream in self.streams.items() for count in (1, 2, 4, 8, 16, 24)}
        lone |= {("packed", count): (self.streams["stream-100"], count, self.machine, "packed") for count in (1, 2, 6, 7, 8)}
        for placement in ("spread", "packed"):
            for described, where in ((self.machine, placement), (numa(self.machine), "numa " + placement)):
                for name, program in self.programs.items():
                    lone[where, name] = (program, program["threads"], described, placement)
        # The longest first: what is left at the end is short.
        order = sorted(jobs, key=lambda key: (key[0] != "runs", "linux" not in key[1], "cpu" not in key[1]))
        done = in_threads(threads, lambda key: run(cosched, *jobs[key], point.quantum), order)
        seconds = in_threads(threads, lambda key: alone(cosched, *lone[key]), lone)
        self.table = tomllib.loads(slowdowns(cosched, list(self.streams.values()), self.machine))
        part = lambda kind: {key[1]: result for key, result in done.items() if key[0] == kind}
        curve = lambda name: {count: found for (program, count), found in seconds.items() if program == name}
        self.runs = {key: with_alone(run, curve(key[2])) for key, run in part("runs").items()}
        self.numa = {key: with_alone(run, curve("numa " + key[1])) for key, run in part("numa").items()}
        self.nas = {name: curve(name) for name in NAS}
        self.stream = {name: curve(name) for name in self.streams}
        self.packed_stream = curve("packed")
        self.six = {policy: len(set(gangs(run, self.seconds(), 12))) for policy, run in part("six").items()}
        parts = part("part") | {(12, policy): self.runs["whole", policy, "spread"] for policy in ("linux", "gang")}
        # What the programs take alone, spread, over what they took together.
        solo = {name: p["alone"] for name, p in self.of("whole", "gang").items()}
        self.rate = {key: sum(solo[name] for name in run["programs"]) / run["total"] for key, run in parts.items()}

    def seconds(self):
        """The quantum."""
        return float(self.point.quantum.removesuffix("ms")) / 1000

    def total(self, workload, policy, placement="spread"):
        return self.runs[workload, policy, placement]["total"]

    def of(self, workload, policy, placement="spread"):
        """The programs of a run."""
        return self.runs[workload, policy, placement]["programs"]

    def field(self, workload, policy, field, placement="spread"):
        return {name: program[field] for name, program in self.of(workload, policy, placement).items()}

    def against(self, policy, other, field):
        """A field under a policy, relative to another one, on the whole workload."""
        ours, theirs = self.field("whole", policy, field), self.field("whole", other, field)
        return {name: ours[name] / theirs[name] for name in ours}

    def ratio(self, policy, field):
        """Packed relative to spread, on the whole workload."""
        spread, packed = (self.field("whole", policy, field, p) for p in ("spread", "packed"))
        return {name: packed[name] / spread[name] for name in spread}

    def isolation(self, policy):
        """How many programs keep more of their speed alone when packed."""
        spread, packed = (self.field("whole", policy, "speed", p) for p in ("spread", "packed"))
        return sum(packed[name] > spread[name] for name in spread)

    def gangs(self, policy):
        return gangs(self.runs["whole", policy, "spread"], self.seconds())

    def beside(self, own, *others):
        """The slowdown of a STREAM variant beside one or two others."""
        own, *others = (STREAMS.index(share) for share in (own, *others))
        row = self.table["pairs" if len(others) == 1 else "triples"][own]
        return row[others[0]] if len(others) == 1 else row[others[0]][others[1]]


def models(point, file):
    """The programs of a file of models, as a point has them."""
    found = load(pathlib.Path(__file__).resolve().parent / file)["program"]
    for program in found:
        model = program["model"]
        model["repeat"] = point.passes(program["command"])
        point.model(model, model["phase"][0])
    return {program["command"]: program for program in found}


def short(program):
    """Once through: the CPU-intensive programs take long to simulate, and only their placements are compared."""
    return {**program, "model": {**program["model"], "repeat": 1}}


def numa(machine):
    """The same machine, with all of the memory's bandwidth behind every package and nothing shared between them."""
    whole = next(bus["bytes_per_nano"] for bus in machine["bus"] if bus["of"] == "machine")
    return {**machine, "bus": [{"of": "package", "bytes_per_nano": whole}]}
