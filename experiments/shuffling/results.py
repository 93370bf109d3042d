"""All runs of one point, and how the checks look at them."""

from common.checks import mean
from common.sim import in_threads
from programs import PROGRAMS, SERVERS, program

# What the slides call them, and the policies that stand for them. The policy of the slides sorts by lock times only,
# and does not look whether that helps.
POLICIES = {
    "Solaris": ["linux"],
    "shuffling": ["shuffling", "--no-guard", "--sort-by", "lock-time"],
    "DINO": ["shuffling", "--no-guard", "--sort-by", "misses"],
    "PSets": ["shuffling", "--no-guard", "--sort-by", "birth"],
}
# Beyond the slides: groups are tried out first. That takes seconds, as long as some programs; these are given more to do.
GUARDED = ["shuffling", "--sort-by", "lock-time"]
LONG, TIMES_AS_LONG = ("bodytrack", "swaptions", "canneal"), 10
INTERVALS = ("50ms", "100ms", "200ms", "500ms", "1s", "2s", "4s")
# What is looked at of a run: these sums, and what the guard did.
SUMS = ("lock_seconds", "transfers_inside", "transfers_across", "llc_misses", "llc_references")
TRIALS = ("groups-tried", "groups-kept", "groups-put-back")


class Results:
    """A point's figures. Runs have keys of a kind, the program, and what decided."""

    def __init__(self, cosched, point, threads):
        machine = point.on()
        jobs = {}
        for name in PROGRAMS | SERVERS:
            for policy, words in POLICIES.items():
                jobs["load", name, policy] = (name, words, "solaris-ts")
            if point.kind == "base":
                jobs["load", name, "guarded"] = (name, GUARDED, "solaris-ts")
                for policy, words in self.guarded_and_not().items():
                    jobs["eevdf", name, policy] = (name, words, "eevdf")
        for name in LONG if point.kind == "base" else ():
            for policy, words in self.guarded_and_not().items():
                jobs["long", name, policy] = (name, words, "solaris-ts")
        for interval in INTERVALS:
            words = [*POLICIES["shuffling"], "--interval", interval]
            jobs["interval", "bodytrack", interval] = ("bodytrack", words, "solaris-ts")

        def run(key):
            name, words, kernel = jobs[key]
            length = TIMES_AS_LONG if key[0] == "long" else 1
            model = program(name, point.scale, point.memory, point.lines, point.imbalance, length)
            arguments = ["--kernel", kernel, "--policy", *words, "--seed", "1", "--no-solo"]
            return cosched.watched(arguments, [model], machine, reduced)

        self.runs = in_threads(threads, run, jobs)

    @staticmethod
    def guarded_and_not():
        """The kernel alone, shuffling as in the slides, and guarded."""
        return {policy: POLICIES[policy] for policy in ("Solaris", "shuffling")} | {"guarded": GUARDED}

    def of(self, name, policy="shuffling", kind="load"):
        """A run."""
        return self.runs[kind, name, policy]

    def gain(self, name, policy="shuffling", kind="load"):
        """By how much a policy is faster than the kernel alone."""
        return self.of(name, "Solaris", kind)["seconds"] / self.of(name, policy, kind)["seconds"] - 1

    def gains(self, policy="shuffling", kind="load"):
        """Of each of the 23 programs."""
        return {name: self.gain(name, policy, kind) for name in PROGRAMS}

    def mean_gain(self, policy="shuffling", kind="load"):
        """Over the 23 programs."""
        return mean(self.gains(policy, kind).values())


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
    ranges = [row["arrival_range_seconds"] for row in rows if row["arrival_range_seconds"] is not None]
    arrivals = mean(ranges) if ranges else None
    return {"seconds": seconds, "lock": lock, "arrivals": arrivals, "shufflings": shufflings, "trials": trials, **sums}


def inside(run):
    """The share of lock transfers that stay inside a package."""
    return run["transfers_inside"] / max(1, run["transfers_inside"] + run["transfers_across"])


def misses(run, other):
    """Last-level misses of the same work, one variant over the other."""
    return run["llc_misses"] / max(1, other["llc_misses"])


def trials(run):
    """What came of each trial of groups: when it began and ended, whether they were kept, and progress with over without."""
    found, began = [], None
    for trial in run["trials"]:
        if trial["why"] == "groups-tried":
            began = trial["at"]
        else:
            found.append((began, trial["at"], trial["why"] == "groups-kept", trial["progress"]))
    return found


def trying(run):
    """The share of its time that a program was in trials; one that it ended in is a part of it."""
    ends = [(began, ended) for began, ended, _, _ in trials(run)]
    if run["trials"] and run["trials"][-1]["why"] == "groups-tried":
        ends.append((run["trials"][-1]["at"], run["seconds"]))
    return sum(ended - began for began, ended in ends) / run["seconds"]
