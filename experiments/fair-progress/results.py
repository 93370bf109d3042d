"""All runs of one point, and how the checks look at them."""

from common.sim import in_threads
from points import SETUPS, machine
from programs import BENCHMARKS, MEMORY, WEIGHTS, WORKLOADS, program, workload

FOUR = ("PC", "SC-1", "SC-2")
LIMITED = ("unlimited", "unlimited ND", "2%", "2% ND")
# Section 1: four programs running together, and the same with two others.
FIRST = ("perl bwaves milc libquantum", "perl bwaves leslie soplex")
# The paper's quantum. No program is let run before its turn only because it waited for a second.
COMMON = ["--kernel", "cfs", "--no-solo"]
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
POLICIES = {"OS": ["--policy", "linux"]} | {
    name: ["--policy", "fair-progress", *words, *FAIR] for name, words in FAIR_PROGRESS.items()}


class Results:
    """A point's figures: runs have a workload, a set-up and a policy."""

    def __init__(self, cosched, point, threads):
        self.machines = {setup: machine(point, setup) for setup in SETUPS}
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
        pairs = [program(name, number, weight, point.misses) for name, weight in WEIGHTS.items() for number in (0, 1)]
        jobs["weights", "SC-1", "unlimited"] = (pairs, "unlimited")

        def run(key):
            programs, policy = jobs[key]
            return together(cosched, POLICIES[policy], programs, self.machines[key[2] if key[0] == "alone" else key[1]])

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

    def weighted(self, name, setup, policy):
        """The sum of equation 6: time that training left idle is charged to the program that was trained."""
        run = self.of(name, setup, policy)
        charged = lambda program, seconds: seconds + run["wasted"].get(program, 0.0)
        return sum(self.alone(program, setup) / charged(program, seconds) for program, seconds in run["times"].items())

    def speedup(self, name, setup, policy):
        """Change of EWSpeedup."""
        return self.weighted(name, setup, policy) / self.weighted(name, setup, "OS") - 1

    def overhead(self, name, setup, policy):
        """Equation 5."""
        run = self.of(name, setup, policy)
        return sum(run["wasted"].values()) / run["working"]

    def accuracies(self, name, setup, policy):
        """Of estimated speeds alone (eq. 8): of programs that ended while there were quanta."""
        run = self.of(name, setup, policy)
        ended = [program for program, seconds in run["times"].items()
                 if run["at"].get(program, 0.0) > seconds - 0.25 and run["progress"][program] > 0]
        ratios = {program: self.alone(program, setup) / run["progress"][program] for program in ended}
        return {program: min(ratio, 1 / ratio) for program, ratio in ratios.items()}

    def coverages(self, name, setup, policy):
        return self.of(name, setup, policy)["coverage"]


def together(cosched, words, programs, machine):
    """A run of programs under a policy and its options, reduced to what is looked at."""
    return cosched.watched([*COMMON, *words], programs, machine, reduced)


def reduced(result, _):
    """Of a result: each program's time, and what training there was."""
    names = [program["name"] for program in result["programs"]]
    found = {
        "total": result["total_seconds"],
        "times": {program["name"]: program["turnaround_seconds"] for program in result["programs"]},
        "working": sum(program["running_seconds"] for program in result["programs"]),
        "quanta": 0, "predicted": 0, "sequential": 0, "wasted": {}, "idle": [],
        "progress": {}, "coverage": {}, "at": {},
    }
    decisions = result["decisions"]
    for decision, then in zip(decisions, [*decisions[1:], {"at_seconds": result["total_seconds"]}]):
        reasons = decision["reasons"]
        lengths = [why["length"] / 1e9 for why in reasons if why["why"] == "quantum"]
        found["quanta"] += len(lengths)
        for why in reasons:
            name = names[why["program"]["slot"]] if "program" in why else None
            if why["why"] == "trained":
                found["sequential" if why["sequential"] else "predicted"] += 1
                found["idle"].append(why["idle"])
                seconds = min(lengths[0], then["at_seconds"] - decision["at_seconds"])
                found["wasted"][name] = found["wasted"].get(name, 0.0) + why["idle"] * seconds
            if why["why"] in ("least-progress", "more-progress"):
                found["progress"][name] = why["progress"] / 1e9
                found["at"][name] = decision["at_seconds"]
            if why["why"] == "least-progress":
                found["coverage"][name] = why["coverage"]
    return found
