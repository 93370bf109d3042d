"""The claims as checks of a point's results.

A check gives what we find in words, and parts: orders (what comes before what) and sizes (a figure of the slides).
`fig` is a point's results, see `results.py`.
"""

import statistics

from common.checks import Checks, Found
from programs import PROGRAMS
from results import INTERVALS, inside, misses

CHECKS = Checks("shuf")
check = CHECKS.of


# What differs by less than this part is the same.
SAME = 0.01


def falls(before, after):
    """Whether a figure has become less by more than what counts as the same."""
    return after < (1 - SAME) * before


def percent(x):
    return f"{100 * x:.1f} %"


def pair(fig, name="bodytrack"):
    """A program under Solaris and shuffled."""
    return fig.of(name, "Solaris"), fig.of(name)


@check(1)
def _(fig):
    shares = {name: fig.of(name, "Solaris")["lock"] for name in PROGRAMS}
    hot = [name for name, share in shares.items() if share > 0.10]
    most = max(shares, key=shares.get)
    words = (f"{len(hot)} of {len(shares)} programs wait for more than 10 % of their threads' time; most {most}, "
             f"{percent(shares[most])}; median {percent(statistics.median(shares.values()))}")
    return Found(words, [3 * len(hot) >= len(shares), shares[most] > 0.5])


@check(2)
def _(fig):
    found = inside(fig.of("bodytrack", "Solaris"))
    return Found(f"{percent(found)} inside", [found < 0.5], [(found, 0.31)])


@check(3)
def _(fig):
    before, after = map(inside, pair(fig))
    return Found(f"{percent(after)} inside, {percent(before)} under Solaris", [falls(after, before)], [(after, 0.46)])


@check(4)
def _(fig):
    before, after = pair(fig)
    found = misses(after, before)
    return Found(f"{found:.2f} times the misses for the same work", [falls(1, found)], [(found, 1.9 / 3.3)])


@check(5)
def _(fig):
    before, after = (run["lock"] for run in pair(fig))
    sizes = [(before, 0.86), (before - after, 0.86 - 0.72)]
    return Found(f"{percent(before)} to {percent(after)}", [falls(before, after)], sizes)


@check(6)
def _(fig):
    shufflings = fig.of("bodytrack")["shufflings"]
    if not shufflings:
        return Found("its threads were never shuffled", [False])
    first = shufflings[0]
    words = (f"threads of a package differ by {percent(first['before'])} of their time at locks in the mean; sorted, it "
             f"would be {percent(first['after'])}")
    return Found(words, [first["before"] > 2 * first["after"]])


@check(7)
def _(fig):
    shufflings = fig.of("bodytrack", kind="again")["shufflings"]
    if len(shufflings) < 2:
        return Found("its threads were not shuffled twice", [False])
    first, later = shufflings[0]["before"], statistics.mean(s["before"] for s in shufflings[1:])
    words = f"before the first shuffling {percent(first)} of their time, an interval after each later one {percent(later)}"
    return Found(words, [falls(first, later)])


@check(8)
def _(fig):
    runs = {interval: fig.of("bodytrack", interval, "interval") for interval in INTERVALS}
    across = {interval: 1 - inside(run) for interval, run in runs.items()}
    few = min(run["llc_misses"] for run in runs.values())
    words = "; ".join(f"{interval}: {percent(across[interval])} across, {runs[interval]['llc_misses'] / few:.2f} misses"
                      for interval in INTERVALS)
    varies = max(across.values()) - min(across.values()) > 0.01
    return Found(words, [varies, runs["500ms"]["llc_misses"] < 1.05 * few])


@check(10)
def _(fig):
    pairs = {name: pair(fig, name) for name in PROGRAMS}
    less_lock = sum(falls(before["lock"], after["lock"]) for before, after in pairs.values())
    fewer = sum(falls(1, misses(after, before)) for before, after in pairs.values())
    words = f"less time at locks in {less_lock} of {len(pairs)} programs, fewer misses in {fewer}"
    return Found(words, [2 * less_lock > len(pairs), 2 * fewer > len(pairs)])


@check(11)
def _(fig):
    gains = fig.gains()
    best, worst = max(gains, key=gains.get), min(gains, key=gains.get)
    words = f"{best} {percent(gains[best])}; the least {worst}, {percent(gains[worst])}"
    return Found(words, [gains[best] > 0.10], [(gains[best], 0.54)])


@check(12)
def _(fig):
    mean = fig.mean_gain()
    return Found(percent(mean), [mean > 0.01], [(mean, 0.13)])


def server(fig, name, theirs):
    gain = fig.gain(name)
    return Found(percent(gain), [gain > 0.01], [(gain, theirs)])


@check(13)
def _(fig):
    return server(fig, "memcached", 0.17)


@check(14)
def _(fig):
    return server(fig, "TATP", 0.28)


@check(15)
def _(fig):
    means = {policy: fig.mean_gain(policy) for policy in ("shuffling", "DINO", "PSets")}
    words = "mean gains: " + ", ".join(f"{policy} {percent(mean)}" for policy, mean in means.items())
    return Found(words, [means["shuffling"] > means["DINO"], means["shuffling"] > means["PSets"]])


@check(16)
def _(fig):
    worse, better = pair(fig)
    words = (f"as Solaris has spread them against sorted: {percent(1 - inside(worse))} of transfers across against "
             f"{percent(1 - inside(better))}, {percent(worse['lock'])} at locks against {percent(better['lock'])}, "
             f"{misses(worse, better):.2f} times the misses")
    orders = [falls(inside(better), inside(worse)), falls(worse["lock"], better["lock"]), falls(misses(worse, better), 1)]
    return Found(words, orders)
