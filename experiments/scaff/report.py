"""The table of results."""

from common.report import parts, sum_up, swept

HEAD = """# What is reproduced of the thesis on scaff

Written by `experiments/scaff/run`; [README.md](README.md) tells the assumptions and what the verdicts mean.
"""


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
