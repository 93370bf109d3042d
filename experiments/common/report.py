"""What comes of claims that were checked at several points: verdicts, and the cells of the tables of results."""

RANK = {"not": 0, "partly": 1, "reproduced": 2}


def rows(claims, settings, judged):
    """For each claim: its verdict under the assumptions, and what the sweeps say of it. Without a check it is what claims.toml
    says, where it was found on a real machine, else "open"."""
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
            row |= {
                "found": base.words, "verdict": verdict, "as_assumed": base.verdict, "orders": base.orders,
                "sizes": base.sizes, "differs": differs, "by_point": by_point,
                "count": {kind: sum(p.kind == kind for p in settings) for kind in differs},
            }
        found.append(row)
    return found


def parts(row):
    """Orders and sizes apart."""
    tell = lambda name, held: f"{name} {sum(held)}/{len(held)}" if held else ""
    return ", ".join(filter(None, (tell("orders", row["orders"]), tell("sizes", row["sizes"]))))


def swept(row, kind):
    """In how many points the verdict is another."""
    if not row["count"][kind]:
        return "–"
    differs = row["differs"][kind]
    held = f"{row['count'][kind] - len(differs)}/{row['count'][kind]}"
    by_point = [f"{name}: {row['by_point'][name]}" for name in differs]
    return held + (f" ({'; '.join(by_point)})" if by_point else "")


def sum_up(found):
    judged = [row["verdict"] for row in found if row["kind"] == "claim"]
    count = {verdict: judged.count(verdict) for verdict in RANK}
    return f"claims: {count['reproduced']} reproduced, {count['partly']} partly, {count['not']} not"


def page(head, found, sweeps):
    """A page with a row for each claim. `sweeps`: the kinds of points, with the heading of a column that tells what they change."""
    counted = {kind: sum(row["kind"] == kind for row in found) for kind in ("claim", "input")}
    checked = sum("found" in row for row in found)
    lines = [head, f"**{sum_up(found)}**, of {len(found)} rows; {counted['input']} describe a setting; not checked here: "
             f"{counted['claim'] - checked}.\n"]
    heads = ["claim", "the paper", "its figure", "here", "verdict", "parts", "why", *sweeps.values()]
    lines += ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for row in found:
        says = f"{row['says']} ({row['where']})"
        theirs = row.get("theirs") or ("only in a picture" if row.get("picture") else "–")
        if "by_point" not in row:
            what = "an input" if row["kind"] == "input" else row["verdict"]
            cells = [row["id"], says, theirs, row.get("found", "–"), what, "–", row.get("why", "–"), *("–" for _ in sweeps)]
        else:
            cells = [row["id"], says, theirs, row["found"], row["verdict"], parts(row), row.get("why", "–")]
            cells += [swept(row, kind) for kind in sweeps]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
