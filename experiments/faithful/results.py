"""All runs of one point, and how the checks look at them."""

from common.checks import mean
from common.sim import in_threads
from programs import CLASSES, LOAD_CONTROL, PROGRAMS, SECONDS, micro, nested, program

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
# The paper's policy looks no more once it has chosen.
POLICIES = {"TS": ["--kernel", "solaris-ts", "--policy", "linux"],
            "FF": ["--kernel", "solaris-ts", "--policy", "faithful", "--no-guard"]}
# The microbenchmark lasts less than the policy's first intervals: what faithful chooses, from the first moment.
ON_MICRO = POLICIES | {"FF": ["--kernel", "solaris-fx", "--policy", "linux"]}
# What is looked at of a run: these sums of each program, and these figures of each interval.
SUMS = ("cpu_seconds", "run_delay_seconds", "lock_seconds", "voluntary", "for_locks", "holder_queued", "expired",
        "by_sibling", "by_other", "holders", "turns", "priority_expired", "priority_slept", "priority_ran",
        "priority_waited", "priority_preempted")
STEP = ("from_seconds", "to_seconds", "run_delay_seconds", "lock_seconds", "expired", "by_sibling", "by_other",
        "llc_references", "llc_misses", "run_queue", "threads")
ONE_ROW = 'schema = "cosched-quanta/1"\n[[row]]\nup_to = 1.0\nslice_milliseconds = {}\n'


class Results:
    """A point's figures. Runs have keys of a kind, what it is about, and the policy."""

    def __init__(self, cosched, point, threads):
        machine = point.on()
        make = lambda name, count: program(name, count, scale=point.scale, memory_scale=point.memory)
        jobs = {}
        for policy, words in POLICIES.items():
            for name in PROGRAMS:
                for load, count in LOADS.items():
                    jobs["load", name, load, policy] = ([make(name, count)], words)
            for name in WATCHED:
                for count in CURVE:
                    jobs["curve", name, count, policy] = ([make(name, count)], words)
                for seed in SEEDS:
                    jobs["seed", name, seed, policy] = ([make(name, LOADS[150])], words, seed)
            for first, second in MGRID:
                jobs["two", (first, second), policy] = ([make("applu", first), make("mgrid", second)], words)
            for count in (24, 48):
                jobs["nested", count, policy] = ([nested(count, SECONDS)], words)
            for count in MICRO:
                for delay in DELAYS:
                    jobs["micro", count, delay, policy] = ([micro(count, delay, ROUNDS, point.scale)], ON_MICRO[policy])
        # The paper's rival, under time sharing, where the paper names it or takes its microbenchmark.
        for load, count in LOADS.items():
            rival = program("TATP", count, scale=point.scale, memory_scale=point.memory, waits=LOAD_CONTROL)
            jobs["load", "TATP", load, "LC"] = ([rival], POLICIES["TS"])
        for count in MICRO:
            for delay in DELAYS:
                rival = micro(count, delay, ROUNDS, point.scale, LOAD_CONTROL)
                jobs["micro", count, delay, "LC"] = ([rival], POLICIES["TS"])
        for count in FERRET:
            jobs["ferret", count, "TS"] = ([make("ferret", count)], POLICIES["TS"])
        for milliseconds in SLICES:
            # A table (docs/research/quanta.md) by which faithful gives this slice to all.
            table = cosched.kept / f"slice-{milliseconds}.toml"
            table.write_text(ONE_ROW.format(milliseconds))
            for name in TRAINING:
                words = [*POLICIES["FF"], "--quanta", str(table)]
                jobs["slice", name, milliseconds, "FF"] = ([make(name, LOADS[200])], words)
        for interval in ("200ms", "500ms"):
            jobs["interval", interval, "FF"] = ([make("ammp", 24)], [*POLICIES["FF"], "--interval", interval])

        def run(key):
            programs, words, *seed = jobs[key]
            arguments = [*words, "--seed", *map(str, seed or [1]), "--no-solo"]
            return cosched.watched(arguments, programs, machine, reduced)

        # The longest first.
        self.runs = in_threads(threads, run, sorted(jobs, key=lambda key: key[0] != "micro"))

    def of(self, *key):
        """The only program of a run."""
        return next(iter(self.runs[key]["programs"].values()))

    def gain(self, name, load, policy="FF"):
        """By how much faithful, or its rival, is faster than time sharing."""
        return self.of("load", name, load, "TS")["seconds"] / self.of("load", name, load, policy)["seconds"] - 1

    def gains(self, load):
        return {name: self.gain(name, load) for name in PROGRAMS}

    def classes(self, load):
        """The mean gain of each class."""
        gains = self.gains(load)
        return {kind: mean(gains[name] for name, (of, *_) in PROGRAMS.items() if of == kind) for kind in CLASSES}

    def throughput(self, count, delay, policy):
        """Rounds of the microbenchmark per microsecond."""
        return ROUNDS / self.of("micro", count, delay, policy)["seconds"] / 1e6


def reduced(result, rows):
    """Of a result: for each program its time, its sums, and each interval; and the slices that were chosen."""
    programs = {}
    for program in result["programs"]:
        own = [row for row in rows if row["program"] == program["name"]]
        sums = {key: sum(row[key] for row in own) for key in SUMS}
        seconds = program["turnaround_seconds"]
        share = sums["lock_seconds"] / (seconds * own[0]["threads"]) if own else 0.0
        steps = [{key: row[key] for key in STEP} for row in own]
        programs[program["name"]] = {"seconds": seconds, "lock_share": share, "steps": steps, **sums}
    slices = [{"at": decision["at_seconds"], "ms": why["slice"] / 1e6, "lock": why["lock_contention"], "miss": why["miss_ratio"]}
              for decision in result["decisions"] for why in decision["reasons"] if why["why"] == "slice"]
    return {"total": result["total_seconds"], "programs": programs, "slices": slices}


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
