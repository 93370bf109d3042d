"""All runs of one point, and how the checks look at them."""

from common.sim import in_threads
from points import SETUPS, machine
from programs import BENCHMARKS, MEMORY, WEIGHTS, WORKLOADS, program, workload

FOUR = ("PC", "SC-1", "SC-2")
LIMITED = ("unlimited", "unlimited ND", "2%", "2% ND")
# Section 1: four programs running together, and the same with two others.
FIRST = ("perl bwaves milc libquantum", "perl bwaves leslie soplex")
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
POLICIES = {"OS": ["--policy", "linux"]} | {
    name: ["--policy", "fair-progress", *words, *FAIR] for name, words in FAIR_PROGRESS.items()}
# Metrics by CPU time are looked at under these: the simulator measures what each program takes alone, too.
WITH_SOLO = ("OS", "unlimited", "2%", "no sequences", "optimal")


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
            solo = key[0] in {*WORKLOADS, *MEMORY} and policy in WITH_SOLO
            return together(cosched, POLICIES[policy], programs, self.machines[key[2] if key[0] == "alone" else key[1]], solo)

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


def together(cosched, words, programs, machine, solo=False):
    """A run of programs under a policy and its options, reduced to what is looked at; `solo`: they run alone, too."""
    return cosched.watched([*COMMON, *words, *([] if solo else ["--no-solo"])], programs, machine, reduced)


def reduced(result, _):
    """Of a result: each program's time, and what training there was."""
    names = [program["name"] for program in result["programs"]]
    found = {
        "total": result["total_seconds"],
        "times": {program["name"]: program["turnaround_seconds"] for program in result["programs"]},
        "cpu": {program["name"]: program["usage"]["user_seconds"] + program["usage"]["system_seconds"]
                for program in result["programs"]},
        "weighted": result["metrics"]["extended_weighted_speedup"],
        "estimates": {program["name"]: program["estimates"] for program in result["programs"] if program.get("estimates")},
        "quanta": 0, "predicted": 0, "sequential": 0, "idle": [], "coverage": {},
    }
    for decision in result["decisions"]:
        for why in decision["reasons"]:
            if why["why"] == "quantum":
                found["quanta"] += 1
            if why["why"] == "trained":
                found["sequential" if why["sequential"] else "predicted"] += 1
                found["idle"].append(why["idle"])
            if why["why"] == "least-progress":
                found["coverage"][names[why["program"]["slot"]]] = why["coverage"]
    return found
