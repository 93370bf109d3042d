"""What a check of a claim finds, and how figures are put into words.

An experiment's `checks.Claims` are a point's results, with a method `claim_NN` for each claim that is checked.
"""

import statistics

from common.degrees import is_within

# A figure counts as met within this share of the paper's.
SIZE = "20 %"


def judged(figures, claims):
    """What was found of each claim, by its id; those without a check are left out."""
    checks = {claim["id"]: getattr(figures, f"claim_{claim['id'].rsplit('-', 1)[1]}", None) for claim in claims}
    return {name: check() for name, check in checks.items() if check}


class Found:
    """What was found: words, and the parts of the claim: orders (what comes before what), which hold or do not, and sizes (our
    figure and the paper's), which are kept as ratios."""

    def __init__(self, words, orders=(), sizes=()):
        self.words = words
        self.orders = list(map(bool, orders))
        self.sizes = [found / expected for found, expected in sizes]

    @property
    def parts(self):
        return self.orders, self.sizes

    @property
    def verdict(self):
        """All parts hold, some of them, or none."""
        hold = self.orders + [is_within(ratio, SIZE) for ratio in self.sizes]
        return "reproduced" if all(hold) else "partly" if any(hold) else "not"


def percent(share):
    return f"{100 * share:.1f} %"


def each(values, form=percent):
    """Named figures; `form` makes text of one."""
    return ", ".join(f"{name} {form(value)}" for name, value in values.items())


def span(values, form=percent):
    return f"{form(min(values))} to {form(max(values))}"


def mean(values):
    return statistics.fmean(values)
