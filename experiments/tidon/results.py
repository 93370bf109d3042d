"""All runs of one point, and how the checks look at them."""

from common.checks import mean
from common.sim import in_threads
from programs import CO_RUNNERS, COUNTS, MAINS, OURS, THREADS, VARIANTS, program

CASES = [(co, count) for co in CO_RUNNERS for count in COUNTS]
OTHERS = tuple(variant for variant in VARIANTS if variant not in ("Tidon", OURS))
# CG with fewer threads beside as many of EP as there are CPUs.
TEAMS = (2, 4, 8)


class Results:
    """A point's figures. A run has a key of the main program and its threads, the co-runner and its threads, and the variant."""

    def __init__(self, cosched, point, threads):
        machine = point.on()
        # What is not the paper's is looked at only once.
        variants = [variant for variant in VARIANTS if variant != OURS or point.kind == "base"]
        keys = [(main, THREADS, co, count, variant) for main in MAINS for co, count in CASES for variant in variants]
        keys += [("CG", team, "EP", 16, variant) for team in TEAMS for variant in ("CFS-De", "Tidon")]

        def run(key):
            main, team, co, count, variant = key
            programs = [program(main, team, variant, point), program(co, count, variant, point)]
            return together(cosched, programs, machine, VARIANTS[variant][0])

        def alone(key):
            name, count = key
            once = {**program(name, count, "CFS-De", point), "repeat": 1}
            return together(cosched, [once], machine, "cfs")[0]["seconds"]

        names = {(main, team) for main, team, *_ in keys} | set(CASES)
        # Sorted, so that interrupted checks go on where they were.
        self.alone = in_threads(threads, alone, sorted(names))
        self.runs = in_threads(threads, run, sorted(keys))

    def of(self, main, co, count, variant, team=THREADS):
        """What the main program came to."""
        return self.runs[main, team, co, count, variant][0]

    def speedups(self, main, co, count, variant):
        """Of the main program and its co-runner, against alone with default waiting under CFS."""
        first, second = self.runs[main, THREADS, co, count, variant]
        return self.alone[main, THREADS] / first["seconds"], self.alone[co, count] / second["seconds"]

    def speed(self, *case):
        """The main program's."""
        return self.speedups(*case)[0]

    def throughput(self, *case):
        """The weighted speedup."""
        return sum(self.speedups(*case))

    def unfairness(self, *case):
        found = self.speedups(*case)
        return max(found) / min(found)

    def mean(self, figure, co, count, variant):
        """A figure's mean over the main programs."""
        return mean(figure(main, co, count, variant) for main in MAINS)

    def gains(self, co, count):
        """What Tidon gains beside a co-runner against each of the other variants: mean throughput, and mean fairness."""
        over_mains = lambda figure, variant: self.mean(figure, co, count, variant)
        throughput = {variant: over_mains(self.throughput, "Tidon") / over_mains(self.throughput, variant) - 1 for variant in OTHERS}
        fairness = {variant: over_mains(self.unfairness, variant) / over_mains(self.unfairness, "Tidon") - 1 for variant in OTHERS}
        return throughput, fairness

    def kind(self, co, count):
        """Which of the paper's three types a co-runner is: 1: better in both against all; 2: in throughput; 3: in fairness; 0: in
        neither."""
        throughput, fairness = (min(gains.values()) > 0 for gains in self.gains(co, count))
        return {(True, True): 1, (True, False): 2, (False, True): 3, (False, False): 0}[throughput, fairness]


def together(cosched, programs, machine, kernel):
    """What each of some programs that run together comes to, in order."""
    arguments = ["--kernel", kernel, "--policy", "linux", "--no-solo"]
    return [reduced(program) for program in cosched.json(arguments, programs, machine)["programs"]]


def reduced(program):
    """Of a program's result: what a run took on average, and what waiting cost per run (docs/json.md)."""
    ends = [completion["at_seconds"] for completion in program["completions"]]
    return {"seconds": ends[-1] / len(ends), "runs": len(ends), "threads": program["threads"], **program["usage"]["waits"]}
