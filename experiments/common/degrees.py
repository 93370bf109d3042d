"""How far a claim holds, beside its verdict: the direction by its orders, the magnitude by its
sizes, and a score of both. A size is a ratio: our figure over the paper's."""

import statistics

# From worse to better, by the share of the orders that hold.
DIRECTIONS = ("none", "some", "most", "all")
# How far from 1 a ratio is at most, and what a size in that class counts in a score. A size counts
# in the narrowest class that it is in.
CLASSES = {"20 %": 1.0, "50 %": 2 / 3, "a factor of two": 1 / 3}
SURVIVES = {True: "yes", False: "no", None: "–"}


def is_within(ratio, name):
    """Whether a size is in a class."""
    if name == "a factor of two":
        return 0.5 <= ratio <= 2
    return abs(ratio - 1) <= float(name.removesuffix(" %")) / 100


def direction(orders):
    """How many of the orders hold: all, most (more than half), some or none; None without orders."""
    if not orders:
        return None
    if all(orders):
        return "all"
    return "most" if 2 * sum(orders) > len(orders) else "some" if any(orders) else "none"


def within(ratios):
    """For each class, the share of the sizes that are in it; None without sizes."""
    share = lambda name: sum(is_within(ratio, name) for ratio in ratios) / len(ratios)
    return {name: share(name) for name in CLASSES} if ratios else None


def size_score(ratio):
    return next((counts for name, counts in CLASSES.items() if is_within(ratio, name)), 0.0)


def score(orders, ratios):
    """From 0 to 1: the mean of two shares, or the only one that there is: of the orders that hold,
    and of the sizes, each by its class."""
    shares = [statistics.fmean(part) for part in (orders, [*map(size_score, ratios)]) if part]
    return statistics.fmean(shares) if shares else None


def level(orders, ratios):
    """What must not become less when a constant is moved: the direction, or, of a claim that has
    sizes alone, how many of them are within a factor of two."""
    if orders:
        return DIRECTIONS.index(direction(orders))
    return sum(is_within(ratio, "a factor of two") for ratio in ratios)


def degrees(settings, found):
    """What a row of results.json has of this. `found`: of each setting, by its name, what was found;
    the first setting changes nothing."""
    base = found[settings[0].name]
    levels = {point.name: level(*found[point.name].parts) for point in settings}
    constants = [point.name for point in settings if point.kind == "constant"]
    falls = [name for name in constants if levels[name] < levels[settings[0].name]]
    directions = [direction(found[point.name].orders) for point in settings]
    return {
        "orders": base.orders, "sizes": base.sizes,
        "direction": direction(base.orders),
        "directions": {name: directions.count(name) for name in DIRECTIONS} if base.orders else {},
        "median": statistics.median(base.sizes) if base.sizes else None,
        "within": within(base.sizes), "score": score(*base.parts),
        "survives": not falls if constants else None, "falls": falls,
    }


def tell_direction(row):
    """In a table: the direction, and at how many of all settings it is so or better."""
    if row.get("direction") is None:
        return "–"
    better = DIRECTIONS[DIRECTIONS.index(row["direction"]):]
    count = row["directions"]
    return f"{row['direction']} ({sum(count[name] for name in better)}/{sum(count.values())})"


def tell_magnitude(row):
    """In a table: the median ratio, and the shares of each class."""
    if row.get("median") is None:
        return "–"
    return f"× {row['median']:.2f}; " + ", ".join(f"{100 * x:.0f} %" for x in row["within"].values())


def tell_score(row):
    return "–" if row.get("score") is None else f"{row['score']:.2f}"


def tell_survival(row):
    return SURVIVES[row.get("survives")]


# The columns of tables of claims.
COLUMNS = {"direction": tell_direction, "magnitude": tell_magnitude, "score": tell_score,
           "survives": tell_survival}
