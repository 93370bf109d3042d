"""What experiments/results.md tells of all claims together: how many have every order right, and how near their sizes are."""

import statistics

from common.degrees import CLASSES, DIRECTIONS, direction, score, within
from lib.report import table

HEAD = ["", "claims with orders", *DIRECTIONS[::-1], "sizes", *(f"within {name}" for name in CLASSES), "median", "score",
        "survives"]
ABOUT = """
The verdict mostly measures how many parts a claim has. Four columns stand beside it:

- *direction*: all, most (more than half), some or none of the claim's orders hold; in parentheses, at how many of the settings it is at least that.
- *magnitude*: the median of our figures over the paper's, and the shares of them that are within 20 %, 50 % and a factor of two.
- *score*: from 0 to 1, the mean of two shares: of the orders that hold, and of the sizes, of which one counts 1 within 20 %, 2/3 within 50 %, 1/3 within a factor of two, and else 0. A claim with orders or sizes alone has that share.
- *survives*: with each constant moved by 20 %, down and up, the direction becomes no worse; of a claim with sizes alone, as many stay within a factor of two.
"""


def judged(rows):
    """The claims that have orders or sizes; no inputs."""
    return [row for row in rows if row.get("score") is not None and row.get("kind", "claim") == "claim"]


def is_of(row, group):
    """Whether a claim is in a group."""
    return group["first"] <= row["id"] <= group["last"]


def together(group, rows):
    """The claims of a group as one: all their orders and sizes. None where the group has none."""
    rows = [row for row in rows if is_of(row, group)]
    if not rows:
        return None
    orders, sizes = ([part for row in rows for part in row[key]] for key in ("orders", "sizes"))
    survival = [row["survives"] for row in rows]
    return {
        "id": group["name"], "rows": len(rows), "orders": orders, "sizes": sizes, "direction": direction(orders),
        "within": within(sizes), "median": statistics.median(sizes) if sizes else None, "score": score(orders, sizes),
        "survives": None if None in survival else all(survival),
    }


def grouped(rows, groups):
    """The claims, and each group in place of its own."""
    found = judged(rows)
    alone = [row for row in found if not any(is_of(row, group) for group in groups)]
    return alone + [one for one in (together(group, found) for group in groups) if one]


def share(count, of):
    return f"{count} ({100 * count / of:.0f} %)" if of else "–"


def line(name, rows):
    """A row of the table."""
    ordered = [row["direction"] for row in rows if row["direction"]]
    sizes = [ratio for row in rows for ratio in row["sizes"]]
    near = within(sizes) or {}
    swept = [row["survives"] for row in rows if row["survives"] is not None]
    return [name, str(len(ordered)), *(str(ordered.count(each)) for each in DIRECTIONS[::-1]), str(len(sizes)),
            *(f"{100 * near[each]:.0f} %" if near else "–" for each in CLASSES),
            f"× {statistics.median(sizes):.2f}" if sizes else "–",
            f"{statistics.fmean(row['score'] for row in rows):.2f}" if rows else "–",
            f"{sum(swept)}/{len(swept)}" if swept else "–"]


def right(rows):
    """How many of the claims that have orders have every order right, and how many those are."""
    ordered = [row for row in rows if row["direction"]]
    return sum(row["direction"] == "all" for row in ordered), len(ordered)


def summary(papers, rows, groups):
    """Lines: the table of papers, a sentence, and the groups. `papers`: the rows of each, by name."""
    yield ABOUT
    counted = {name: grouped(part, groups) for name, part in papers.items()}
    everything = grouped(rows, groups)
    yield from table(HEAD, [*(line(name, part) for name, part in counted.items()), line("**all**", everything)])
    each, one = right(judged(rows)), right(everything)
    sizes = [ratio for row in judged(rows) for ratio in row["sizes"]]
    shares = ", ".join(f"{100 * x:.0f} % within {name}" for name, x in within(sizes).items()) if sizes else "none"
    reproduced = sum(row["verdict"] == "reproduced" for row in rows)
    yield (f"\n**Every order right in {each[0]} of {each[1]} claims that have orders, of {len(judged(rows))} that are judged; "
           f"of {len(sizes)} sizes, {shares}; "
           f"reproduced by the verdict: {reproduced} of {len(rows)}.** The table counts each group below as one claim: "
           f"every order right in {one[0]} of {one[1]}.\n")
    yield "Groups: claims that are the rows of one table of their paper, for one setting.\n"
    of_groups = [one for one in everything if "rows" in one]
    yield from table(["group", "rows", "orders that hold", *HEAD[6:]], (
        [one["id"], str(one["rows"]), share(sum(one["orders"]), len(one["orders"])), *line("", [one])[6:]] for one in of_groups))
