"""All runs of one point, and how the checks look at them."""

from common.sim import in_threads
from points import ONE_CORE, SETUPS, machine
from programs import BENCHMARKS, MEMORY, WORKLOADS, members, program, weighted, workload

FOUR = ("PC", "SC-1", "SC-2")
LIMITED = ("unlimited", "unlimited ND", "2%", "2% ND")
# Section 1: four programs running together, and the same with two others.
FIRST = ("perl bwaves milc libquantum", "perl bwaves leslie soplex")
# Section 4.1: the realistic peak in lines per microsecond, and the parts of it below which a program's traffic, or that of
# all, is low.
PEAK, SELF_LOW, SYSTEM_LOW = 120, 0.04, 1 / 3
# The three kinds of segments that suffer little, by what criterion.
KINDS = ("own low", "all low", "only one")
# Where a speed alone is from (figure 9).
CHANCE = ("own_low", "system_low", "only_one")
TRAINING = ("predicted", "sequential")
# The paper's quantum. No program is let run before its turn only because it waited for a second.
COMMON = ["--kernel", "cfs"]
FAIR = ["--quantum", "100ms", "--max-frozen", "10s"]
FAIR_PROGRESS = {
    "unlimited": ["--training-limit", "unlimited"],
    "2%": ["--training-limit", "2"],
    "none": ["--training-limit", "0"],
    "unlimited ND": ["--training-limit", "unlimited", "--no-distribution"],
    "2% ND": ["--training-limit", "2", "--no-distribution"],
    "no sequences": ["--training-limit", "unlimited", "--no-sequences"],
    "optimal": ["--optimal"],
}
POLICIES = {"OS": ["--policy", "linux"], "OS with weights": ["--policy", "linux-weights"]} | {
    name: ["--policy", "fair-progress", *words, *FAIR] for name, words in FAIR_PROGRESS.items()}
# Metrics by CPU time are looked at under these: the simulator measures what each program takes alone, too.
WITH_SOLO = ("OS", "unlimited", "2%", "no sequences", "optimal")


class Results:
    """A point's figures: runs have a workload, a set-up and a policy."""

    def __init__(self, cosched, point, threads):
        self.machines = {setup: machine(point, setup) for setup in (*SETUPS, ONE_CORE)}
        jobs = {}
        for setup in SETUPS:
            twice = setup == "8core"
            for name in BENCHMARKS:
                jobs["alone", name, setup] = ([program(name, scale=point.misses)], "OS")
            for name, text in WORKLOADS.items():
                policies = ["OS", "unlimited", "optimal"]
                policies += ["none", "2%"] if twice else ["no sequences"] if setup == "SC-2" else []
                for policy in policies:
                    jobs[name, setup, policy] = (workload(text, twice, point.misses), policy)
            for name, text in MEMORY.items():
                for policy in ("OS", *LIMITED):
                    jobs[name, setup, policy] = (workload(text, scale=point.misses), policy)
        jobs["WL-M", "SC-2", "none"] = (workload(MEMORY["WL-M"], scale=point.misses), "none")
        for mix in FIRST:
            jobs[mix, "PC", "OS"] = (workload(mix, scale=point.misses), "OS")
        jobs["weights", "SC-1", "unlimited"] = (weighted(point.misses), "unlimited")
        for policy in ("OS with weights", "unlimited"):
            jobs["weights, again and again", "SC-1", policy] = (weighted(point.misses, True), policy)
        for name in BENCHMARKS:
            # On one core each quantum is one of a program alone.
            jobs["in turn", name, ONE_CORE] = (workload(f"{name}*2", scale=point.misses), "none")
        for name, text in WORKLOADS.items():
            for first in (0, 1):
                for setup in ("PC", "SC-1"):
                    jobs["four", setup, name, first] = (fours(text, first, point.misses), "OS")

        def run(key):
            programs, policy = jobs[key]
            if key[0] == "four":
                return cosched.watched([*COMMON, *POLICIES[policy], "--no-solo"], programs, self.machines[key[1]], segments)
            solo = key[0] in {*WORKLOADS, *MEMORY} and policy in WITH_SOLO
            where = key[2] if key[0] in ("alone", "in turn") else key[1]
            return together(cosched, POLICIES[policy], programs, self.machines[where], solo)

        self.runs = in_threads(threads, run, jobs)

    def of(self, name, setup, policy):
        return self.runs[name, setup, policy]

    def alone(self, name, setup):
        """Seconds of a program of a run alone."""
        return self.runs["alone", name.rsplit("-", 1)[0], setup]["total"]

    def slowdowns(self, name, setup, policy):
        """Of each program (eq. 1)."""
        times = self.of(name, setup, policy)["times"]
        return {program: seconds / self.alone(program, setup) for program, seconds in times.items()}

    def unfairness(self, name, setup, policy):
        """Equation 2."""
        found = self.slowdowns(name, setup, policy).values()
        return max(found) / min(found)

    def eliminated(self, name, setup, policy):
        """The share of the unfairness under the OS that is gone; negative where there is more."""
        before, after = (self.unfairness(name, setup, which) for which in ("OS", policy))
        return (before - after) / (before - 1)

    def turnaround(self, name, setup, policy):
        """Change of speed, of the whole workload: below 0 is slower."""
        return self.of(name, setup, "OS")["total"] / self.of(name, setup, policy)["total"] - 1

    def speedup(self, name, setup, policy):
        """Change of EWSpeedup (eq. 6)."""
        return self.of(name, setup, policy)["weighted"] / self.of(name, setup, "OS")["weighted"] - 1

    def overhead(self, name, setup, policy):
        """Equation 5: CPU time that training left idle, over CPU time that was used."""
        run = self.of(name, setup, policy)
        return sum(estimates["training_idle_seconds"] for estimates in run["estimates"].values()) / sum(run["cpu"].values())

    def accuracies(self, name, setup, policy, key="accuracy"):
        """Of estimated speeds alone (eq. 8); `accuracy_without`: of speeds in the run in their place (eq. 9)."""
        ratios = {program: estimates[key] for program, estimates in self.of(name, setup, policy)["estimates"].items()}
        return {program: min(ratio, 1 / ratio) for program, ratio in ratios.items()}

    def coverages(self, name, setup, policy):
        return self.of(name, setup, policy)["coverage"]

    def shares(self, name, setup, policy, kinds):
        """Of each program, the share of its quanta with a speed alone from these sources."""
        of = {program: estimates["sources"] for program, estimates in self.of(name, setup, policy)["estimates"].items()}
        return {program: sum(sources[kind] for kind in kinds) / sum(sources.values()) for program, sources in of.items()}

    def contribution(self, name, setup, policy, kinds, only=""):
        """The part of these sources in what estimates gain over speeds in the run (section 7.3): what is lost if quanta have
        their own speed in the place of that from these sources. Of all programs together, as one that gains nothing has no
        part; `only`: of this program."""
        gained, lost = 0.0, 0.0
        for program, of in self.of(name, setup, policy)["estimates"].items():
            if program.startswith(only):
                slowed = sum(of["slowed_seconds"][kind] for kind in kinds)
                gained += of["accuracy"] - of["accuracy_without"]
                lost += of["accuracy"] * (1 - of["solo_cpu_seconds"] / (of["solo_cpu_seconds"] + slowed))
        return lost / gained

    def segments(self, setup):
        """The speeds of segments relative to alone: of those of each kind, of those of none ("rest"), and of all."""
        every = [segment for key, run in self.runs.items() if key[:2] == ("four", setup) for segment in run]
        speeds = lambda holds: [segment["speed"] for segment in every if holds(segment["kinds"])]
        return {kind: speeds(lambda kinds, kind=kind: kind in kinds) for kind in KINDS} | {
            "rest": speeds(lambda kinds: not kinds), "all": speeds(lambda kinds: True)}

    def slowed(self, name, setup, policy):
        """How many times as many cycles each program needs as alone."""
        run = self.of(name, setup, policy)
        return {program: seconds / run["solo"][program] for program, seconds in run["cpu"].items()}


def together(cosched, words, programs, machine, solo=False):
    """A run of programs under a policy and its options, reduced to what is looked at; `solo`: they run alone, too."""
    return cosched.watched([*COMMON, *words, *([] if solo else ["--no-solo"])], programs, machine, reduced)


def fours(text, first, scale):
    """Four programs of a workload, from the loudest to the quietest, each with a core of its own."""
    named = list(members(text))
    chosen = [named[first + place * len(named) // 4] for place in range(4)]
    return workload(" ".join(chosen), scale=scale)


def segments(_, rows):
    """What each program did in each second that it ran through: its speed relative to alone, and which criteria hold."""
    found = []
    for second in sorted({row["from_seconds"] for row in rows}):
        beside = [row for row in rows if row["from_seconds"] == second]
        lines = [row["llc_misses"] / 1e6 / PEAK for row in beside]
        loud = sum(share >= SELF_LOW for share in lines)
        for row, own in zip(beside, lines):
            holds = (own < SELF_LOW, sum(lines) < SYSTEM_LOW, own >= SELF_LOW and loud == 1)
            if row["cpu_seconds"] > 0.9:
                kinds = [kind for kind, does in zip(KINDS, holds) if does]
                found.append({"speed": row["alone_seconds"] / row["cpu_seconds"], "kinds": kinds})
    return found


def reduced(result, _):
    """Of a result: each program's time, and what training there was."""
    names = [program["name"] for program in result["programs"]]
    found = {
        "total": result["total_seconds"],
        "times": {program["name"]: program["turnaround_seconds"] for program in result["programs"]},
        "cpu": {program["name"]: program["usage"]["user_seconds"] + program["usage"]["system_seconds"]
                for program in result["programs"]},
        "solo": {program["name"]: program.get("solo_cpu_seconds") for program in result["programs"]},
        "weighted": result["metrics"]["extended_weighted_speedup"],
        "estimates": {program["name"]: program["estimates"] for program in result["programs"] if program.get("estimates")},
        "quanta": 0, "predicted": 0, "sequential": 0, "sequences": [], "idle": [], "coverage": {},
    }
    for decision in result["decisions"]:
        for why in decision["reasons"]:
            if why["why"] == "quantum":
                found["quanta"] += 1
            name = names[why["program"]["slot"]] if "program" in why else None
            if why["why"] == "trained":
                found["sequential" if why["sequential"] else "predicted"] += 1
                found["idle"].append(why["idle"])
            if why["why"] == "trained" and why["sequential"] and name not in found["sequences"]:
                found["sequences"].append(name)
            if why["why"] == "least-progress":
                found["coverage"][name] = why["coverage"]
    return found
