"""The claims as checks of a point's results."""

import statistics

from common.checks import Found, percent
from programs import PROGRAMS
from results import Results, INTERVALS, inside, misses


# What differs by less than this part is the same.
SAME = 0.01
# The windows in which arrivals at locks are noted, seconds, and which part of one is a wide interval.
WINDOW = 0.1
WIDE = 0.5


def milliseconds(seconds):
    """A short time in words."""
    return f"{1000 * seconds:.3g} ms"


def falls(before, after):
    """Whether a figure has become less by more than what counts as the same."""
    return after < (1 - SAME) * before


def pair(fig, name="bodytrack"):
    """A program under Solaris and shuffled."""
    return fig.of(name, "Solaris"), fig.of(name)


def gained(gain, theirs):
    """A gain of which the slides tell the figure."""

    def check(fig):
        found = gain(fig)
        return Found(percent(found), [found > 0.01], [(found, theirs)])

    return check


class Claims(Results):
    """A point's figures, and a check for each claim."""

    def claim_01(self):
        shares = {name: self.of(name, "Solaris")["lock"] for name in PROGRAMS}
        hot = [name for name, share in shares.items() if share > 0.10]
        most = max(shares, key=shares.get)
        words = (f"{len(hot)} of {len(shares)} programs wait for more than 10 % of their threads' time; most {most}, "
                 f"{percent(shares[most])}; median {percent(statistics.median(shares.values()))}")
        return Found(words, [3 * len(hot) >= len(shares), shares[most] > 0.5])

    def claim_02(self):
        found = inside(self.of("bodytrack", "Solaris"))
        return Found(f"{percent(found)} inside", [found < 0.5], [(found, 0.31)])

    def claim_03(self):
        before, after = map(inside, pair(self))
        return Found(f"{percent(after)} inside, {percent(before)} under Solaris", [falls(after, before)], [(after, 0.46)])

    def claim_04(self):
        before, after = pair(self)
        found = misses(after, before)
        return Found(f"{found:.2f} times the misses for the same work", [falls(1, found)], [(found, 1.9 / 3.3)])

    def claim_05(self):
        before, after = (run["lock"] for run in pair(self))
        sizes = [(before, 0.86), (before - after, 0.86 - 0.72)]
        return Found(f"{percent(before)} to {percent(after)}", [falls(before, after)], sizes)

    def claim_06(self):
        found = self.of("bodytrack", "Solaris")["arrivals"]
        if found is None:
            return Found("its threads never waited for a lock", [False])
        words = f"the threads of a package come to locks within {milliseconds(found)} of each {milliseconds(WINDOW)}"
        return Found(words, [found > WIDE * WINDOW])

    def claim_07(self):
        before, after = (run["arrivals"] for run in pair(self))
        if None in (before, after):
            return Found("its threads never waited for a lock", [False])
        words = f"within {milliseconds(before)} of each {milliseconds(WINDOW)}; shuffled, {milliseconds(after)}"
        return Found(words, [falls(before, after)])

    def claim_08(self):
        runs = {interval: self.of("bodytrack", interval, "interval") for interval in INTERVALS}
        across = {interval: 1 - inside(run) for interval, run in runs.items()}
        few = min(run["llc_misses"] for run in runs.values())
        words = "; ".join(f"{interval}: {percent(across[interval])} across, {runs[interval]['llc_misses'] / few:.2f} misses"
                          for interval in INTERVALS)
        varies = max(across.values()) - min(across.values()) > 0.01
        return Found(words, [varies, runs["500ms"]["llc_misses"] < 1.05 * few])

    def claim_10(self):
        pairs = {name: pair(self, name) for name in PROGRAMS}
        less_lock = sum(falls(before["lock"], after["lock"]) for before, after in pairs.values())
        fewer = sum(falls(1, misses(after, before)) for before, after in pairs.values())
        words = f"less time at locks in {less_lock} of {len(pairs)} programs, fewer misses in {fewer}"
        return Found(words, [2 * less_lock > len(pairs), 2 * fewer > len(pairs)])

    def claim_11(self):
        gains = self.gains()
        best, worst = max(gains, key=gains.get), min(gains, key=gains.get)
        words = f"{best} {percent(gains[best])}; the least {worst}, {percent(gains[worst])}"
        return Found(words, [gains[best] > 0.10], [(gains[best], 0.54)])

    claim_12 = gained(lambda fig: fig.mean_gain(), 0.13)
    claim_13 = gained(lambda fig: fig.gain("memcached"), 0.17)
    claim_14 = gained(lambda fig: fig.gain("TATP"), 0.28)

    def claim_15(self):
        means = {policy: self.mean_gain(policy) for policy in ("shuffling", "DINO", "PSets")}
        words = "mean gains: " + ", ".join(f"{policy} {percent(gain)}" for policy, gain in means.items())
        return Found(words, [means["shuffling"] > means["DINO"], means["shuffling"] > means["PSets"]])

    def claim_16(self):
        worse, better = pair(self)
        words = (f"as Solaris has spread them against sorted: {percent(1 - inside(worse))} of transfers across against "
                 f"{percent(1 - inside(better))}, {percent(worse['lock'])} at locks against {percent(better['lock'])}, "
                 f"{misses(worse, better):.2f} times the misses")
        orders = [falls(inside(better), inside(worse)), falls(worse["lock"], better["lock"]), falls(misses(worse, better), 1)]
        return Found(words, orders)

