"""The claims as checks of a point's results.

A check gives what we find in words, and parts: orders (what comes before what) and sizes (a figure of the paper).
`fig` is a point's results, see `results.py`.
"""

import statistics

from common.checks import Checks, Found
from programs import COARSE, FINE, INTENSIVE, INTERVALS, MAINS, MEDIUM, SELDOM
from results import CASES, OTHERS, TEAMS

CHECKS = Checks("tidon")
check = CHECKS.of
# Counts of EP with which the load is uneven, and the one with which it is even.
UNEVEN, EVEN = (1, 2, 4, 8), 16
PASSIVE_AND_BALANCED = ("CFS-Pa", "BS-De", "BS-Pa")
# With at least this share of a figure, there is no loss.
NO_LOSS = 0.97


def percent(x):
    return f"{100 * x:.1f} %"


def each(values, form=percent):
    return ", ".join(f"{name} {form(value)}" for name, value in values.items())


def span(values, form=percent):
    return f"{form(min(values))} to {form(max(values))}"


def most(cases):
    """Four of five."""
    return statistics.mean(cases) >= 0.8


def uneven(mains):
    """Programs beside EP while the load is uneven."""
    return [(main, "EP", count) for main in mains for count in UNEVEN]


def largest(ratio, mains, expected):
    """The case in which a ratio is largest."""
    found = {(main, *case): ratio(main, *case) for main in mains for case in CASES}
    (main, co, count), top = max(found.items(), key=lambda item: item[1])
    return Found(f"{top:.1f} x ({main} beside {co} with {count} threads)", [top > 1.1], [(top, expected)])


@check(1)
def _(fig):
    return largest(lambda *case: fig.speed(*case, "Tidon") / fig.speed(*case, "CFS-De"), INTENSIVE, 17.9)


@check(2)
def _(fig):
    return largest(lambda *case: fig.speed(*case, "Tidon") / fig.speed(*case, "BS-De"), INTENSIVE, 2.3)


@check(3)
def _(fig):
    return largest(lambda *case: fig.unfairness(*case, "CFS-De") / fig.unfairness(*case, "Tidon"), MAINS, 19.8)


@check(4)
def _(fig):
    return largest(lambda *case: fig.unfairness(*case, "BS-De") / fig.unfairness(*case, "Tidon"), MAINS, 1.7)


@check(5)
def _(fig):
    cases = [(main, *case) for main in SELDOM for case in CASES if (main, case[0]) != ("EP", "EP")]
    ratios = {variant: [fig.speed(*case, "Tidon") / fig.speed(*case, variant) for case in cases] for variant in OTHERS}
    words = "speed of freqmine and EP, mean and least: " + "; ".join(
        f"against {variant} {statistics.mean(found):.2f}, {min(found):.2f}" for variant, found in ratios.items())
    gain = max(max(found) for found in ratios.values()) > 1.02
    return Found(words, [*(min(found) >= NO_LOSS for found in ratios.values()), gain])


@check(6)
def _(fig):
    longest = lambda names: max(INTERVALS[name] for name in names)
    shortest = lambda names: min(INTERVALS[name] for name in names)
    shown = {name: INTERVALS[name] for name in (*FINE, *MEDIUM, *COARSE)}
    orders = [longest(FINE) < shortest(MEDIUM), longest(MEDIUM) < shortest(COARSE)]
    return Found("between two barriers, ms: " + each(shown, lambda x: f"{1e3 * x:.2f}"), orders)


@check(7)
def _(fig):
    shares = {variant: statistics.mean(fig.throughput(*case, "CFS-De") > fig.throughput(*case, variant) for case in uneven(MAINS))
              for variant in PASSIVE_AND_BALANCED}
    return Found("ahead in throughput in so many of 36 cases: " + each(shares), [share > 0.5 for share in shares.values()])


@check(8)
def _(fig):
    worst = {main: max(fig.unfairness(*case, "CFS-De") for case in uneven([main])) for main in INTENSIVE}
    slower = {main: all(fig.speedups(*case, "CFS-De")[0] < fig.speedups(*case, "CFS-De")[1] for case in uneven([main]))
              for main in INTENSIVE}
    words = "largest unfairness: " + each(worst, lambda x: f"{x:.1f}")
    return Found(words, [worst[main] > 3 and slower[main] for main in INTENSIVE])


CG_AND_TWO = ("CG", "EP", 2)


@check(9)
def _(fig):
    ahead = {variant: fig.throughput(*CG_AND_TWO, "CFS-De") / fig.throughput(*CG_AND_TWO, variant) - 1 for variant in PASSIVE_AND_BALANCED}
    return Found("against " + each(ahead), [gain > 0 for gain in ahead.values()], [(min(ahead.values()), 0.173)])


@check(10)
def _(fig):
    lost = {variant: 1 - fig.speed(*CG_AND_TWO, "CFS-De") / fig.speed(*CG_AND_TWO, variant) for variant in PASSIVE_AND_BALANCED}
    return Found("against " + each(lost), [loss > 0.5 for loss in lost.values()], [(min(lost.values()), 0.862)])


@check(11)
def _(fig):
    found = fig.unfairness(*CG_AND_TWO, "CFS-De")
    return Found(f"{found:.1f}", [found > 10], [(found, 39.5)])


def eased(fig, variant):
    """How many times as fast barrier programs are as with default waiting under CFS, uneven load: means over four counts."""
    gain = lambda case: fig.speed(*case, variant) / fig.speed(*case, "CFS-De")
    return {main: statistics.mean(map(gain, uneven([main]))) for main in INTENSIVE}


@check(12)
def _(fig):
    found = eased(fig, "CFS-Pa")
    return Found("speed against CFS-De: " + each(found, lambda x: f"{x:.1f} x"), [x > 1.1 for x in found.values()])


@check(13)
def _(fig):
    words, orders = [], []
    for variant in ("BS-De", "BS-Pa"):
        eases = [fig.unfairness(*case, variant) < fig.unfairness(*case, "CFS-De") for case in uneven(INTENSIVE)]
        costs = [fig.throughput(*case, variant) < fig.throughput(*case, "CFS-De") for case in uneven(MAINS)]
        words.append(f"{variant} fairer in {sum(eases)} of {len(eases)}, less throughput in {sum(costs)} of {len(costs)}")
        orders += [most(eases), most(costs)]
    return Found("; ".join(words), orders)


@check(14)
def _(fig):
    cases = [case for case in uneven(MAINS) if case[0] != "EP"]
    best = [all(fig.throughput(*case, "Tidon") >= fig.throughput(*case, variant) for variant in OTHERS) for case in cases]
    return Found(f"best in {sum(best)} of {len(best)} cases", [all(best), most(best)])


@check(15)
def _(fig):
    case = ("BT", "EP", 2)
    gains = {"BT": [], "EP": [], "throughput": []}
    for variant in OTHERS:
        for name, ours, other in zip(gains, figures(fig, case, "Tidon"), figures(fig, case, variant)):
            gains[name].append(ours / other - 1)
    theirs = {"BT": (0.59, 1.10), "EP": (0.40, 1.63), "throughput": (0.64, 1.02)}
    sizes = [size for name, found in gains.items() for size in zip((min(found), max(found)), theirs[name])]
    return Found(each(gains, span), [min(found) > 0 for found in gains.values()], sizes)


def figures(fig, case, variant):
    """Both speeds and the throughput."""
    return (*fig.speedups(*case, variant), fig.throughput(*case, variant))


@check(16)
def _(fig):
    counts = (*UNEVEN, EVEN)
    against = lambda count: [fig.throughput("EP", "EP", count, "Tidon") / fig.throughput("EP", "EP", count, variant) - 1 for variant in OTHERS]
    behind = {f"{count} threads": -min(against(count)) for count in counts}
    return Found("behind the best: " + each(behind), [max(behind.values()) <= 0.09])


@check(17)
def _(fig):
    best = {main: max((*OTHERS, "Tidon"), key=lambda variant: fig.throughput(main, "EP", EVEN, variant)) for main in MAINS}
    return Found("most throughput: " + each(best, str), [most([variant in ("BS-De", "BS-Pa") for variant in best.values()])])


def of_balanced(fig, mains, variant):
    """Tidon's throughput relative to a variant's, even load."""
    case = lambda main: (main, "EP", EVEN)
    return [fig.throughput(*case(main), "Tidon") / fig.throughput(*case(main), variant) for main in mains]


# Those that the paper names as the exceptions.
AHEAD = ("BT", "MG", "bodytrack")


@check(18)
def _(fig):
    mains = [main for main in MAINS if main not in AHEAD]
    default, passive = (of_balanced(fig, mains, variant) for variant in ("BS-De", "BS-Pa"))
    sizes = [(min(default), 0.785), (max(default), 0.96), (min(passive), 0.817), (max(passive), 0.993)]
    orders = [most([x < 1 for x in found]) for found in (default, passive)]
    return Found(f"of BS-De {span(default)}, of BS-Pa {span(passive)}", orders, sizes)


@check(19)
def _(fig):
    default, passive = ([x - 1 for x in of_balanced(fig, AHEAD, variant)] for variant in ("BS-De", "BS-Pa"))
    sizes = [(min(default), 0.062), (max(default), 0.167), (min(passive), 0.075), (max(passive), 0.18)]
    words = "; ".join(f"{main} {percent(a)}, {percent(b)}" for main, a, b in zip(AHEAD, default, passive))
    return Found(f"against BS-De, BS-Pa: {words}", [x > 0 for x in (*default, *passive)], sizes)


@check(20)
def _(fig):
    worst = {variant: max(fig.unfairness(main, "EP", EVEN, variant) for main in MAINS) for variant in ("BS-De", "BS-Pa", "Tidon")}
    return Found("largest unfairness: " + each(worst, lambda x: f"{x:.2f}"), [x < 1.3 for x in worst.values()])


TYPES = {
    1: [("EP", 1), ("EP", 2), ("IS", 1), ("IS", 4), ("IS", 8), ("IS", 16), ("CG", 1), ("CG", 2), ("CG", 4)],
    2: [("EP", 4), ("EP", 8), ("EP", 16), ("IS", 2)],
    3: [("CG", 8), ("CG", 16)],
}


def of_type(fig, kind):
    """Gains in throughput and in fairness, over the co-runners of a type and the other variants; how many are of that type here."""
    gains = [fig.gains(*case) for case in TYPES[kind]]
    throughput, fairness = ([x for pair in gains for x in pair[which].values()] for which in (0, 1))
    same = sum(fig.kind(*case) == kind for case in TYPES[kind])
    words = f"throughput {span(throughput)}, fairness {span(fairness)}; {same} of {len(TYPES[kind])} are of this type here"
    return words, throughput, fairness, same == len(TYPES[kind])


@check(21)
def _(fig):
    words, throughput, fairness, same = of_type(fig, 1)
    sizes = [(min(throughput), 0.10), (max(throughput), 0.97), (min(fairness), 0.01), (max(fairness), 5.10)]
    return Found(words, [same, most([x > 0 for x in throughput]), most([x > 0 for x in fairness])], sizes)


@check(22)
def _(fig):
    words, throughput, fairness, _ = of_type(fig, 2)
    sizes = [(min(throughput), 0.01), (max(throughput), 0.74)]
    return Found(words, [min(throughput) > 0, -0.10 < min(fairness) < 0], sizes)


@check(23)
def _(fig):
    words, throughput, fairness, _ = of_type(fig, 3)
    sizes = [(min(fairness), 0.04), (max(fairness), 4.59)]
    return Found(words, [min(fairness) > 0, -0.05 < min(throughput) < 0], sizes)


@check(24)
def _(fig):
    kinds = [fig.kind(*case) for case in CASES]
    count = {kind: kinds.count(kind) for kind in (1, 2, 3, 0)}
    words = f"type 1: {count[1]}, type 2: {count[2]}, type 3: {count[3]}, better in neither: {count[0]}"
    return Found(words, [count[1] > max(count[2], count[3], count[0])], [(count[1], 9), (count[2], 4), (count[3], 2)])


@check(25)
def _(fig):
    mean = lambda figure, variant, cases: statistics.mean(fig.mean(figure, co, count, variant) for co, count in cases)
    variants = (*OTHERS, "Tidon")
    unfair = {variant: mean(fig.unfairness, variant, CASES) for variant in variants}
    throughput = {variant: mean(fig.throughput, variant, [case for case in CASES if case[1] != EVEN]) for variant in variants}
    words = (f"unfairness: {each(unfair, lambda x: f'{x:.2f}')}; throughput with uneven load: "
             f"{each(throughput, lambda x: f'{x:.2f}')}")
    fair = max(unfair[variant] for variant in ("BS-De", "BS-Pa"))
    much = min(throughput[variant] for variant in ("CFS-De", "Tidon"))
    orders = [unfair[variant] > fair for variant in ("CFS-De", "CFS-Pa")] + [throughput[variant] < much for variant in ("BS-De", "BS-Pa")]
    return Found(words, orders)


def latency(fig, *case, **more):
    """What a barrier of the main program takes, seconds."""
    run = fig.of(*case, **more)
    return run["latency_seconds"] / run["barriers"]


def missing(fig, main, co, count, variant):
    """What is missing of the main program's share of the machine, as a part of it (eq. 1)."""
    run = fig.of(main, co, count, variant)
    received = run["useful_seconds"] + run["spun_seconds"]
    return run["lag_seconds"] / (received + run["lag_seconds"])


@check(28)
def _(fig):
    lag = {variant: statistics.mean(missing(fig, main, "EP", EVEN, variant) for main in INTENSIVE) for variant in ("CFS-De", "CFS-Pa", "Tidon")}
    shorter = [latency(fig, *case, "Tidon") < latency(fig, *case, variant)
               for case in uneven(INTENSIVE) for variant in ("CFS-De", "CFS-Pa")]
    teams = {f"{team} threads": latency(fig, "CG", "EP", EVEN, "Tidon", team=team) / latency(fig, "CG", "EP", EVEN, "CFS-De", team=team)
             for team in (*TEAMS, 16)}
    words = (f"missing of the share, even load: {each(lag)}; barriers shorter than under CFS in {sum(shorter)} of {len(shorter)} "
             f"cases; latency of CG's against CFS-De's: {each(teams, lambda x: f'{x:.3f}')}")
    ratios = list(teams.values())
    return Found(words, [abs(lag["Tidon"]) < 0.05, all(shorter), ratios[-1] < ratios[0]])
