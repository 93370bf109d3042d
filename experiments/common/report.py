"""What comes of claims that were checked at several points: verdicts, and the page of results."""

from common.checks import SIZE
from common.constants import CONSTANTS, GROUPS, members
from common.degrees import COLUMNS, degrees, is_within
from lib.report import table

RANK = {"not": 0, "partly": 1, "reproduced": 2}
HEAD = """# What is reproduced of the {title}

Written by `experiments/{folder}/run`; [README.md](README.md) tells the assumptions and what the verdicts mean, and
[results.md](../results.md) what direction, magnitude and score are.

![ours beside theirs](picture.svg)
"""
# Headings of the columns that tell what is left of a verdict, by what was changed.
SWEEPS = {"assumption": "holds under other assumptions", "constant": "holds under ±20 %"}


def rows(claims, settings, judged):
    """For each claim: its verdict under the assumptions, how far it holds, and what the sweeps say of it. Without a check it
    is what claims.toml says, where it was found on a real machine, else "open"."""
    first = settings[0].name
    found = []
    for claim in claims:
        row = {"verdict": "open", **claim, "kind": claim.get("kind", "claim")}
        if claim["id"] in judged[first]:
            by_point = {point.name: judged[point.name][claim["id"]].verdict for point in settings}
            base = judged[first][claim["id"]]
            differs = {
                kind: [p.name for p in settings if p.kind == kind and by_point[p.name] != base.verdict]
                for kind in ("assumption", "constant")
            }
            verdict = base.verdict
            # What does not survive 20 % on a constant is not reproduced.
            worse = [name for name in differs["constant"] if RANK[by_point[name]] < RANK[verdict]]
            if worse and verdict == "reproduced":
                verdict = "partly"
            at_points = {name: claims_of[claim["id"]] for name, claims_of in judged.items()}
            row |= {
                "found": base.words, "verdict": verdict, "as_assumed": base.verdict, "differs": differs, "by_point": by_point,
                "count": {kind: sum(p.kind == kind for p in settings) for kind in differs},
                **degrees(settings, at_points),
            }
        found.append(row)
    return found


def parts(row):
    """Orders and sizes apart."""
    tell = lambda name, held: f"{name} {sum(held)}/{len(held)}" if held else ""
    met = [is_within(ratio, SIZE) for ratio in row["sizes"]]
    return ", ".join(filter(None, (tell("orders", row["orders"]), tell("sizes", met))))


def swept(row, kind):
    """In how many points the verdict is another."""
    if not row["count"][kind]:
        return "–"
    differs = row["differs"][kind]
    held = f"{row['count'][kind] - len(differs)}/{row['count'][kind]}"
    by_point = [f"{name}: {row['by_point'][name]}" for name in differs]
    return held + (f" ({'; '.join(by_point)})" if by_point else "")


def tell_constants(settings, moved):
    """Which constants were moved, and which are none here."""
    none = [name for name in CONSTANTS if name not in moved]
    points = sum(point.kind == "constant" for point in settings)
    grouped = any(len(point.moves) + len(point.own) > 1 for point in settings)
    how = "in groups, since a point takes long" if grouped else "one after another"
    groups = "; ".join(group for group in GROUPS if set(members(group, 1)) & set(moved))
    yield "\n## Constants\n"
    yield f"Moved by 20 %, {how}, down and up ({points} settings): {groups if grouped else '; '.join(moved)}.\n"
    yield f"The machine, the policies and the programs here have no such constant: {'; '.join(none) or 'none'}."


def sum_up(found):
    judged = [row["verdict"] for row in found if row["kind"] == "claim"]
    count = {verdict: judged.count(verdict) for verdict in RANK}
    return f"claims: {count['reproduced']} reproduced, {count['partly']} partly, {count['not']} not"


def page(folder, title, found, sweeps=("constant",), source="the paper", figure="its figure", rest=None, unchecked=None,
         of_sweeps=SWEEPS):
    """A page with a row for each claim.

    `sweeps`: the kinds of points that have a column, with headings `of_sweeps`. `source` and `figure`: what the columns of the
    paper's words and of its figures are called; None: figures have no column. `rest`: what is said of claims without a check,
    and `unchecked`: their verdict; the usual words by default.
    """
    counted = {kind: sum(row["kind"] == kind for row in found) for kind in ("claim", "input")}
    checked = sum("found" in row for row in found)
    rest = rest or f"{counted['input']} describe a setting; not checked here: {counted['claim'] - checked}"
    head = ["claim", source, *([figure] if figure else []), "here", "verdict", "parts", *COLUMNS, "why",
            *(of_sweeps[kind] for kind in sweeps)]
    lines = [HEAD.format(title=title, folder=folder), f"**{sum_up(found)}**, of {len(found)} rows; {rest}.\n"]
    cells = (of_claim(row, sweeps, figure, unchecked) for row in found)
    return "\n".join([*lines, *table(head, cells)]) + "\n"


def of_claim(row, sweeps, figure, unchecked):
    theirs = ", ".join(filter(None, [row.get("theirs"), "only in a picture" if row.get("picture") else None])) or "–"
    first = [row["id"], f"{row['says']} ({row['where']})", *([theirs] if figure else []), row.get("found", "–")]
    is_input, why = row["kind"] == "input", row.get("why", "–")
    degree = [column(row) for column in COLUMNS.values()]
    if "by_point" not in row:
        return [*first, "an input" if is_input else unchecked or row["verdict"], "–", *degree, why, *("–" for _ in sweeps)]
    return [*first, "an input" if is_input else row["verdict"], parts(row), *degree, why, *(swept(row, kind) for kind in sweeps)]


def tell(folder, title, found):
    """The claims that are judged or are inputs, and the page of all: where an experiment has no
    report of its own."""
    known = [row for row in found if row["kind"] == "input" or row["verdict"] != "open"]
    return {"claims": known}, page(folder, title, found)
