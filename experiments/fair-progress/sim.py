"""Calls `cosched sim` and keeps what the checks need of its results."""

from common import sim

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


class Cosched(sim.Cosched):
    """The executable, and what the checks need of it."""

    def together(self, programs, machine, policy):
        """A run of programs, reduced to what is looked at."""
        return self.by(POLICIES[policy], programs, machine)

    def by(self, words, programs, machine):
        """The same, with the words of a policy."""
        return self.watched([*COMMON, *words], programs, machine, reduced)


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
