"""All runs of one point, and how the checks look at them."""

from common.sim import in_threads
from programs import CLASSES, PROGRAMS, SECONDS, micro, nested, program
from sim import Cosched

LOADS = {50: 12, 100: 24, 150: 36, 200: 48}
WATCHED = ("swaptions", "fluidanimate", "applu")
CURVE = (1, 6, 12, 18, 24, 30, 36, 48)
FERRET = (6, 12, 18, 24, 36, 48, 63)
# Nanoseconds between two sections of the microbenchmark, and its threads at 95, 150 and 200 % load.
DELAYS = (300, 3_000, 10_000, 30_000)
MICRO = (23, 36, 48)
ROUNDS = 600_000
MGRID = ((24, 12), (24, 24), (24, 36), (12, 12), (18, 18))
SEEDS = range(1, 6)
# Those of which table I was made, and slices of the range that they were run with, milliseconds.
TRAINING = ("streamcluster", "swim", "swaptions", "ferret", "apsi", "applu", "art", "bodytrack")
SLICES = (10, 30, 80, 150, 250, 400)
POLICIES = {"TS": "linux", "FF": "faithful"}


class Results:
    """A point's figures. Runs have keys of a kind, what it is about, and the policy."""

    def __init__(self, cosched: Cosched, point, threads):
        machine = point.on()
        make = lambda name, count: program(name, count, scale=point.scale, memory_scale=point.memory)
        tables = {milliseconds: cosched.one_slice(milliseconds) for milliseconds in SLICES}
        jobs = {}
        for policy in POLICIES:
            for name in PROGRAMS:
                for load, count in LOADS.items():
                    jobs["load", name, load, policy] = ([make(name, count)], policy)
            for name in WATCHED:
                for count in CURVE:
                    jobs["curve", name, count, policy] = ([make(name, count)], policy)
            for first, second in MGRID:
                jobs["two", (first, second), policy] = ([make("applu", first), make("mgrid", second)], policy)
            for count in (24, 48):
                jobs["nested", count, policy] = ([nested(count, SECONDS)], policy)
            for count in MICRO:
                for delay in DELAYS:
                    jobs["micro", count, delay, policy] = ([micro(count, delay, ROUNDS, point.scale)], policy)
            for name in WATCHED:
                for seed in SEEDS:
                    jobs["seed", name, seed, policy] = ([make(name, LOADS[150])], policy)
        for count in FERRET:
            jobs["ferret", count, "TS"] = ([make("ferret", count)], "TS")
        for name in TRAINING:
            for milliseconds in SLICES:
                jobs["slice", name, milliseconds, "FF"] = ([make(name, LOADS[200])], "FF")
        for interval in ("200ms", "500ms"):
            jobs["interval", interval, "FF"] = ([make("ammp", 24)], "FF")

        def run(key):
            programs, policy = jobs[key]
            options = {"policy": POLICIES[policy]}
            if key[0] == "micro" and policy == "FF":
                # What faithful chooses, from the first moment: it lasts less than the policy's first intervals.
                options = {"policy": "linux", "kernel": "solaris-fx"}
            if key[0] == "seed":
                options["seed"] = key[2]
            if key[0] == "slice":
                options["more"] = ["--quanta", tables[key[2]]]
            if key[0] == "interval":
                options["more"] = ["--interval", key[1]]
            return cosched.run(programs, machine, **options)

        # The longest first.
        self.runs = in_threads(threads, run, sorted(jobs, key=lambda key: key[0] != "micro"))

    def of(self, *key):
        """The only program of a run."""
        return next(iter(self.runs[key]["programs"].values()))

    def gain(self, name, load):
        """By how much faithful is faster."""
        return self.of("load", name, load, "TS")["seconds"] / self.of("load", name, load, "FF")["seconds"] - 1

    def gains(self, load):
        return {name: self.gain(name, load) for name in PROGRAMS}

    def of_class(self, kind, load):
        """The mean gain of a class."""
        found = [self.gain(name, load) for name, (of, *_) in PROGRAMS.items() if of == kind]
        return sum(found) / len(found)

    def classes(self, load):
        return {kind: self.of_class(kind, load) for kind in CLASSES}

    def throughput(self, count, delay, policy):
        """Rounds of the microbenchmark per microsecond."""
        return ROUNDS / self.of("micro", count, delay, policy)["seconds"] / 1e6


def involuntary(run):
    return run["expired"] + run["by_sibling"] + run["by_other"]


def by_siblings(run):
    """Preemptions by siblings over all involuntary switches."""
    return run["by_sibling"] / max(1, involuntary(run))


def rate(run, *keys):
    """Per second."""
    return sum(run[key] for key in keys) / run["seconds"]


def switches(run):
    """Of both kinds, per second."""
    return (involuntary(run) + run["voluntary"]) / run["seconds"]


def factor(run):
    """The scaling factor of a whole run (eq. 1)."""
    references = sum(step["llc_references"] for step in run["steps"])
    misses = sum(step["llc_misses"] for step in run["steps"])
    return 1 - max(run["lock_share"], misses / max(1, references))


def queue(run):
    """The length of the run queue at the end of each whole second after the policy has settled, and the first of those: as
    the paper's tools tell it, which look once a second."""
    return [step["run_queue"] for step in run["steps"] if step["from_seconds"] >= 4
            and step["to_seconds"] - step["from_seconds"] > 0.99]
