"""The claims as checks of a point's results."""

from common.checks import Found, each, mean, percent, span
from programs import COARSE, FINE, INTENSIVE, INTERVALS, MAINS, MEDIUM, SELDOM
from results import Results, CASES, OTHERS, TEAMS

# Counts of EP with which the load is uneven, and the one with which it is even.
UNEVEN, EVEN = (1, 2, 4, 8), 16
PASSIVE_AND_BALANCED = ("CFS-Pa", "BS-De", "BS-Pa")
# With at least this share of a figure, there is no loss.
NO_LOSS = 0.97


def most(cases):
    """Four of five."""
    return mean(cases) >= 0.8


def uneven(mains):
    """Programs beside EP while the load is uneven."""
    return [(main, "EP", count) for main in mains for count in UNEVEN]


def largest(figure, variant, other, mains, expected):
    """The case in which a figure of a variant is most times that of another one."""

    def check(fig):
        cases = [(main, *case) for main in mains for case in CASES]
        found = {case: figure(fig, *case, variant) / figure(fig, *case, other) for case in cases}
        (main, co, count), top = max(found.items(), key=lambda item: item[1])
        words = f"{top:.1f} x ({main} beside {co} with {count} threads)"
        return Found(words, [top > 1.1], [(top, expected)])

    return check


CG_AND_TWO = ("CG", "EP", 2)


def eased(fig, variant):
    """How many times as fast barrier programs are as with default waiting under CFS, uneven load: means over four counts."""
    gain = lambda case: fig.speed(*case, variant) / fig.speed(*case, "CFS-De")
    return {main: mean(map(gain, uneven([main]))) for main in INTENSIVE}


def figures(fig, case, variant):
    """Both speeds and the throughput."""
    return (*fig.speedups(*case, variant), fig.throughput(*case, variant))


def of_balanced(fig, mains, variant):
    """Tidon's throughput relative to a variant's, even load."""
    case = lambda main: (main, "EP", EVEN)
    return [fig.throughput(*case(main), "Tidon") / fig.throughput(*case(main), variant) for main in mains]


# Those that the paper names as the exceptions.
AHEAD = ("BT", "MG", "bodytrack")
TYPES = {
    1: [("EP", 1), ("EP", 2), ("IS", 1), ("IS", 4), ("IS", 8), ("IS", 16), ("CG", 1), ("CG", 2), ("CG", 4)],
    2: [("EP", 4), ("EP", 8), ("EP", 16), ("IS", 2)],
    3: [("CG", 8), ("CG", 16)],
}


def of_type(fig, kind):
    """Gains in throughput and in fairness, over the co-runners of a type and the other variants; how many
    are of that type here."""
    gains = [fig.gains(*case) for case in TYPES[kind]]
    throughput, fairness = ([x for pair in gains for x in pair[which].values()] for which in (0, 1))
    same = sum(fig.kind(*case) == kind for case in TYPES[kind])
    words = f"throughput {span(throughput)}, fairness {span(fairness)}; {same} of {len(TYPES[kind])} are of this type here"
    return words, throughput, fairness, same == len(TYPES[kind])


def latency(fig, *case, **more):
    """What a barrier of the main program takes, seconds."""
    run = fig.of(*case, **more)
    return run["latency_seconds"] / run["barriers"]


def completion(fig, *case):
    """From a barrier's first arrival to each thread's own (eqs. 4 and 6), summed over the threads of the main
    program, seconds."""
    run = fig.of(*case)
    return run["completion_seconds"] / run["barriers"]


def missing(fig, main, co, count, variant):
    """What is missing of the main program's share of the machine, as a part of it (eq. 1)."""
    run = fig.of(main, co, count, variant)
    received = run["useful_seconds"] + run["spun_seconds"]
    return run["lag_seconds"] / (received + run["lag_seconds"])


class Claims(Results):
    """A point's figures, and a check for each claim."""

    claim_01 = largest(Results.speed, "Tidon", "CFS-De", INTENSIVE, 17.9)
    claim_02 = largest(Results.speed, "Tidon", "BS-De", INTENSIVE, 2.3)
    claim_03 = largest(Results.unfairness, "CFS-De", "Tidon", MAINS, 19.8)
    claim_04 = largest(Results.unfairness, "BS-De", "Tidon", MAINS, 1.7)

    def claim_05(self):
        cases = [(main, *case) for main in SELDOM for case in CASES if (main, case[0]) != ("EP", "EP")]
        ratios = {variant: [self.speed(*case, "Tidon") / self.speed(*case, variant) for case in cases] for variant in OTHERS}
        words = "speed of freqmine and EP, mean and least: " + "; ".join(
            f"against {variant} {mean(found):.2f}, {min(found):.2f}" for variant, found in ratios.items())
        gain = max(max(found) for found in ratios.values()) > 1.02
        return Found(words, [*(min(found) >= NO_LOSS for found in ratios.values()), gain])

    def claim_06(self):
        longest = lambda names: max(INTERVALS[name] for name in names)
        shortest = lambda names: min(INTERVALS[name] for name in names)
        shown = {name: INTERVALS[name] for name in (*FINE, *MEDIUM, *COARSE)}
        orders = [longest(FINE) < shortest(MEDIUM), longest(MEDIUM) < shortest(COARSE)]
        return Found("between two barriers, ms: " + each(shown, lambda x: f"{1e3 * x:.2f}"), orders)

    def claim_07(self):
        shares = {variant: mean(self.throughput(*case, "CFS-De") > self.throughput(*case, variant) for case in uneven(MAINS))
                  for variant in PASSIVE_AND_BALANCED}
        return Found("ahead in throughput in so many of 36 cases: " + each(shares), [share > 0.5 for share in shares.values()])

    def claim_08(self):
        worst = {main: max(self.unfairness(*case, "CFS-De") for case in uneven([main])) for main in INTENSIVE}
        slower = {main: all(self.speedups(*case, "CFS-De")[0] < self.speedups(*case, "CFS-De")[1] for case in uneven([main]))
                  for main in INTENSIVE}
        words = "largest unfairness: " + each(worst, lambda x: f"{x:.1f}")
        return Found(words, [worst[main] > 3 and slower[main] for main in INTENSIVE])

    def claim_09(self):
        ahead = {variant: self.throughput(*CG_AND_TWO, "CFS-De") / self.throughput(*CG_AND_TWO, variant) - 1
                 for variant in PASSIVE_AND_BALANCED}
        return Found("against " + each(ahead), [gain > 0 for gain in ahead.values()], [(min(ahead.values()), 0.173)])

    def claim_10(self):
        lost = {variant: 1 - self.speed(*CG_AND_TWO, "CFS-De") / self.speed(*CG_AND_TWO, variant)
                for variant in PASSIVE_AND_BALANCED}
        return Found("against " + each(lost), [loss > 0.5 for loss in lost.values()], [(min(lost.values()), 0.862)])

    def claim_11(self):
        found = self.unfairness(*CG_AND_TWO, "CFS-De")
        return Found(f"{found:.1f}", [found > 10], [(found, 39.5)])

    def claim_12(self):
        found = eased(self, "CFS-Pa")
        return Found("speed against CFS-De: " + each(found, lambda x: f"{x:.1f} x"), [x > 1.1 for x in found.values()])

    def claim_13(self):
        words, orders = [], []
        for variant in ("BS-De", "BS-Pa"):
            eases = [self.unfairness(*case, variant) < self.unfairness(*case, "CFS-De") for case in uneven(INTENSIVE)]
            costs = [self.throughput(*case, variant) < self.throughput(*case, "CFS-De") for case in uneven(MAINS)]
            words.append(f"{variant} fairer in {sum(eases)} of {len(eases)}, less throughput in {sum(costs)} of {len(costs)}")
            orders += [most(eases), most(costs)]
        return Found("; ".join(words), orders)

    def claim_14(self):
        cases = [case for case in uneven(MAINS) if case[0] != "EP"]
        best = [all(self.throughput(*case, "Tidon") >= self.throughput(*case, variant) for variant in OTHERS) for case in cases]
        return Found(f"best in {sum(best)} of {len(best)} cases", [all(best), most(best)])

    def claim_15(self):
        case = ("BT", "EP", 2)
        gains = {"BT": [], "EP": [], "throughput": []}
        for variant in OTHERS:
            for name, ours, other in zip(gains, figures(self, case, "Tidon"), figures(self, case, variant)):
                gains[name].append(ours / other - 1)
        theirs = {"BT": (0.59, 1.10), "EP": (0.40, 1.63), "throughput": (0.64, 1.02)}
        sizes = [size for name, found in gains.items() for size in zip((min(found), max(found)), theirs[name])]
        return Found(each(gains, span), [min(found) > 0 for found in gains.values()], sizes)

    def claim_16(self):
        counts = (*UNEVEN, EVEN)
        against = lambda count: [self.throughput("EP", "EP", count, "Tidon") / self.throughput("EP", "EP", count, variant) - 1
                                  for variant in OTHERS]
        behind = {f"{count} threads": -min(against(count)) for count in counts}
        return Found("behind the best: " + each(behind), [max(behind.values()) <= 0.09])

    def claim_17(self):
        best = {main: max((*OTHERS, "Tidon"), key=lambda variant: self.throughput(main, "EP", EVEN, variant)) for main in MAINS}
        return Found("most throughput: " + each(best, str), [most([variant in ("BS-De", "BS-Pa") for variant in best.values()])])

    def claim_18(self):
        mains = [main for main in MAINS if main not in AHEAD]
        default, passive = (of_balanced(self, mains, variant) for variant in ("BS-De", "BS-Pa"))
        sizes = [(min(default), 0.785), (max(default), 0.96), (min(passive), 0.817), (max(passive), 0.993)]
        orders = [most([x < 1 for x in found]) for found in (default, passive)]
        return Found(f"of BS-De {span(default)}, of BS-Pa {span(passive)}", orders, sizes)

    def claim_19(self):
        default, passive = ([x - 1 for x in of_balanced(self, AHEAD, variant)] for variant in ("BS-De", "BS-Pa"))
        sizes = [(min(default), 0.062), (max(default), 0.167), (min(passive), 0.075), (max(passive), 0.18)]
        words = "; ".join(f"{main} {percent(a)}, {percent(b)}" for main, a, b in zip(AHEAD, default, passive))
        return Found(f"against BS-De, BS-Pa: {words}", [x > 0 for x in (*default, *passive)], sizes)

    def claim_20(self):
        worst = {variant: max(self.unfairness(main, "EP", EVEN, variant) for main in MAINS)
                 for variant in ("BS-De", "BS-Pa", "Tidon")}
        return Found("largest unfairness: " + each(worst, lambda x: f"{x:.2f}"), [x < 1.3 for x in worst.values()])

    def claim_21(self):
        words, throughput, fairness, same = of_type(self, 1)
        sizes = [(min(throughput), 0.10), (max(throughput), 0.97), (min(fairness), 0.01), (max(fairness), 5.10)]
        return Found(words, [same, most([x > 0 for x in throughput]), most([x > 0 for x in fairness])], sizes)

    def claim_22(self):
        words, throughput, fairness, _ = of_type(self, 2)
        sizes = [(min(throughput), 0.01), (max(throughput), 0.74)]
        return Found(words, [min(throughput) > 0, -0.10 < min(fairness) < 0], sizes)

    def claim_23(self):
        words, throughput, fairness, _ = of_type(self, 3)
        sizes = [(min(fairness), 0.04), (max(fairness), 4.59)]
        return Found(words, [min(fairness) > 0, -0.05 < min(throughput) < 0], sizes)

    def claim_24(self):
        kinds = [self.kind(*case) for case in CASES]
        count = {kind: kinds.count(kind) for kind in (1, 2, 3, 0)}
        words = f"type 1: {count[1]}, type 2: {count[2]}, type 3: {count[3]}, better in neither: {count[0]}"
        return Found(words, [count[1] > max(count[2], count[3], count[0])], [(count[1], 9), (count[2], 4), (count[3], 2)])

    def claim_25(self):
        over_cases = lambda figure, variant, cases: mean(self.mean(figure, co, count, variant) for co, count in cases)
        variants = (*OTHERS, "Tidon")
        unfair = {variant: over_cases(self.unfairness, variant, CASES) for variant in variants}
        throughput = {variant: over_cases(self.throughput, variant, [case for case in CASES if case[1] != EVEN])
                      for variant in variants}
        words = (f"unfairness: {each(unfair, lambda x: f'{x:.2f}')}; throughput with uneven load: "
                 f"{each(throughput, lambda x: f'{x:.2f}')}")
        fair = max(unfair[variant] for variant in ("BS-De", "BS-Pa"))
        much = min(throughput[variant] for variant in ("CFS-De", "Tidon"))
        orders = [unfair[variant] > fair for variant in ("CFS-De", "CFS-Pa")]
        orders += [throughput[variant] < much for variant in ("BS-De", "BS-Pa")]
        return Found(words, orders)

    def claim_28(self):
        lag = {variant: mean(missing(self, main, "EP", EVEN, variant) for main in INTENSIVE)
               for variant in ("CFS-De", "CFS-Pa", "Tidon")}
        shorter = [completion(self, *case, "Tidon") < completion(self, *case, variant)
                   for case in uneven(INTENSIVE) for variant in ("CFS-De", "CFS-Pa")]
        teams = {f"{team} threads": latency(self, "CG", "EP", EVEN, "Tidon", team=team)
                          / latency(self, "CG", "EP", EVEN, "CFS-De", team=team)
                 for team in (*TEAMS, 16)}
        words = (f"missing of the share, even load: {each(lag)}; "
                 f"completion shorter than under CFS in {sum(shorter)} of {len(shorter)} "
                 f"cases; latency of CG's against CFS-De's: {each(teams, lambda x: f'{x:.3f}')}")
        ratios = list(teams.values())
        return Found(words, [abs(lag["Tidon"]) < 0.05, all(shorter), ratios[-1] < ratios[0]])

