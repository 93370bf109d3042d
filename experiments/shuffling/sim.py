"""Calls `cosched sim --watch` and keeps what the checks need of its results."""

from common import sim

SUMS = ("lock_seconds", "transfers_inside", "transfers_across", "llc_misses", "llc_references")
TRIALS = ("groups-tried", "groups-kept", "groups-put-back")


class Cosched(sim.Cosched):
    """The executable, and what the checks need of it."""

    def run(self, program, machine, policy, kernel="solaris-ts", seed=1):
        """A run of one program under a policy with its options, reduced to what is looked at."""
        arguments = ["--kernel", kernel, "--policy", *policy, "--seed", str(seed), "--no-solo"]
        return self.watched(arguments, [program], machine, reduced)


def reduced(result, rows):
    """Of a result: the time of the program, its sums, every shuffling, and what the guard did."""
    seconds = result["programs"][0]["turnaround_seconds"]
    sums = {key: sum(row[key] for row in rows) for key in SUMS}
    reasons = [
        {"at": decision["at_seconds"], **why} for decision in result["decisions"] for why in decision["reasons"]
    ]
    shufflings = [reason for reason in reasons if reason["why"] == "shuffled"]
    trials = [reason for reason in reasons if reason["why"] in TRIALS]
    lock = sums["lock_seconds"] / (seconds * rows[0]["threads"])
    return {"seconds": seconds, "lock": lock, "shufflings": shufflings, "trials": trials, **sums}
