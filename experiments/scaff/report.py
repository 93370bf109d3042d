"""The table of results."""

RANK = {"not": 0, "partly": 1, "reproduced": 2}
HEAD = """# What is reproduced of the thesis on scaff

Written by `experiments/scaff/run`; [README.md](README.md) tells the assumptions and what the verdicts mean.
"""


def rows(claims, settings, judged):
    """For each claim: its verdict under the assumptions, and what the sweeps say of it."""
    first = settings[0].name
    found = []
    for claim in claims:
        row = {**claim, "kind": claim.get("kind", "claim")}
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


def markdown(found, settings, compared):
    lines = [HEAD, f"**{sum_up(found)}**, of {len(found)} rows; the others are inputs or pictures.\n"]
    lines += ["| claim | the thesis | here | verdict | parts | why | holds under other assumptions | holds under ±20 % |",
              "|---|---|---|---|---|---|---|---|"]
    for row in found:
        says = f"{row['says']} ({row['where']})"
        if "found" not in row:
            what = "an input" if row["kind"] == "input" else "only in pictures: not judged"
            lines.append(f"| {row['id']} | {says} | – | {what} | – | {row.get('why', '–')} | – | – |")
            continue
        verdict = row["verdict"] if row["kind"] == "claim" else "an input"
        cells = [row["id"], says, row["found"], verdict, parts(row), row.get("why", "–")]
        cells += [swept(row, "assumption"), swept(row, "constant")]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "Other assumptions: " + "; ".join(p.name for p in settings if p.kind == "assumption") + ".", ""]
    lines += ["## The policy `bandwidth`", "",
              "Seconds until every program has ended once / sum of the programs' speeds relative to alone / F. "
              "The best of each row is bold.", ""]
    names = list(compared[0]["policies"])
    lines += ["| machine, workload, placement | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    best = {"total": min, "weighted": max, "fairness": min}
    for row in compared:
        cells = []
        for name in names:
            figure = lambda key, form: mark(row["policies"], name, key, best[key], form)
            figures = [figure("total", "{:.2f}"), figure("weighted", "{:.2f}"), figure("fairness", "{:.4f}")]
            cells.append(" / ".join(figures))
        lines.append(f"| {row['machine']}, {row['workload']}, {row['placement']} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def mark(policies, name, key, best, form):
    """A figure, bold if no other policy has a better one."""
    shown = {other: form.format(found[key]) for other, found in policies.items()}
    return f"**{shown[name]}**" if shown[name] == best(shown.values(), key=float) else shown[name]
