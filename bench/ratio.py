"""ratio.py: how much of B it takes for A, from pairs, as `cosched compare` tells it.

The same as crates/results/src/statistics.rs, which says why it is done like this: Hodges' and Lehmann's estimate with
Wilcoxon's interval of 98 %, on the logarithms of the pairs' ratios. It is here for what cosched does not compare itself:
two variants of which neither is the first, and times that a program tells.
"""

import itertools
import math
import statistics

# What the interval may miss on each side, as a share of all cases.
TAIL = 0.01
# With fewer pairs than this there is no such interval.
FEWEST = 7


def ratio(ours, theirs):
    """An estimate as in compare's JSON; without an interval where there are fewer than FEWEST pairs."""
    logs = [math.log(a / b) for a, b in zip(ours, theirs, strict=True)]
    averages = sorted((a + b) / 2 for a, b in itertools.combinations_with_replacement(logs, 2))
    value = math.exp(statistics.median(averages))
    outside = rejected(len(logs))
    ends = [math.exp(averages[outside - 1]), math.exp(averages[-outside])] if outside else None
    return {"value": value, "interval": ends}


def rejected(pairs):
    """How many averages lie outside the interval on each side, its end included; 0: there is none."""
    # In which share of all cases the positive ranks' sum is 0, 1, 2, ...: each rank is in it in half of them.
    share = [1.0]
    for rank in range(1, pairs + 1):
        longer = share + [0.0] * rank
        share = [(longer[i] + (longer[i - rank] if i >= rank else 0.0)) / 2 for i in range(len(longer))]
    return sum(below <= TAIL for below in itertools.accumulate(share))


def geometric_mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def differs(estimate):
    """Whether it differs significantly from 1."""
    return estimate["interval"] is not None and not estimate["interval"][0] <= 1 <= estimate["interval"][1]
