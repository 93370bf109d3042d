"""All runs of one point, and how the checks look at them."""

import statistics
from concurrent.futures import ThreadPoolExecutor

from programs import CO_RUNNERS, COUNTS, MAINS, OURS, THREADS, WAYS, program

CASES = [(co, count) for co in CO_RUNNERS for count in COUNTS]
OTHERS = tuple(way for way in WAYS if way not in ("Tidon", OURS))
# CG with fewer threads beside as many of EP as there are CPUs.
TEAMS = (2, 4, 8)


class Results:
    """A point's figures. A run has a key of the main program and its threads, the co-runner and its threads, and the way."""

    def __init__(self, cosched, point, threads):
        machine = point.on()
        # What is not the paper's is looked at only once.
        ways = [way for way in WAYS if way != OURS or point.kind == "base"]
        keys = [(main, THREADS, co, count, way) for main in MAINS for co, count in CASES for way in ways]
        keys += [("CG", team, "EP", 16, way) for team in TEAMS for way in ("CFS-De", "Tidon")]

        def run(key):
            main, team, co, count, way = key
            programs = [program(main, team, way, point), program(co, count, way, point)]
            return cosched.run(programs, machine, WAYS[way][0])

        def alone(key):
            name, count = key
            once = {**program(name, count, "CFS-De", point), "repeat": 1}
            return cosched.run([once], machine, "cfs")[0]["seconds"]

        names = {(main, team) for main, team, *_ in keys} | set(CASES)
        with ThreadPoolExecutor(threads) as pool:
            # Sorted, so that interrupted checks go on where they were.
            names, keys = sorted(names), sorted(keys)
            self.alone = dict(zip(names, pool.map(alone, names)))
            self.runs = dict(zip(keys, pool.map(run, keys)))

    def of(self, main, co, count, way, team=THREADS):
        """What the main program came to."""
        return self.runs[main, team, co, count, way][0]

    def speedups(self, main, co, count, way):
        """Of the main program and its co-runner, against alone with default waiting under CFS."""
        first, second = self.runs[main, THREADS, co, count, way]
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

    def mean(self, figure, co, count, way):
        """A figure's mean over the main programs."""
        return statistics.mean(figure(main, co, count, way) for main in MAINS)

    def gains(self, co, count):
        """What Tidon gains beside a co-runner against each of the other ways: mean throughput, and mean fairness."""
        mean = lambda figure, way: self.mean(figure, co, count, way)
        throughput = {way: mean(self.throughput, "Tidon") / mean(self.throughput, way) - 1 for way in OTHERS}
        fairness = {way: mean(self.unfairness, way) / mean(self.unfairness, "Tidon") - 1 for way in OTHERS}
        return throughput, fairness

    def kind(self, co, count):
        """Which of the paper's three types a co-runner is: 1: better in both against all; 2: in throughput; 3: in fairness; 0: in
        neither."""
        throughput, fairness = (min(gains.values()) > 0 for gains in self.gains(co, count))
        return {(True, True): 1, (True, False): 2, (False, True): 3, (False, False): 0}[throughput, fairness]
