"""The table of results."""

from common.report import parts, sum_up, swept

HEAD = """# What is reproduced of the paper on fair-progress scheduling

Written by `experiments/fair-progress/run`; [README.md](README.md) tells the assumptions and what the verdicts mean.
"""


def markdown(found):
    counted = {kind: sum(row["kind"] == kind for row in found) for kind in ("claim", "input")}
    checked = sum("found" in row for row in found)
    lines = [HEAD, f"**{sum_up(found)}**, of {len(found)} rows; {counted['input']} describe a setting; not checked here: "
             f"{counted['claim'] - checked}.\n"]
    lines += ["| claim | the paper | its figure | here | verdict | parts | why | holds under ±20 % |", "|---|---|---|---|---|---|---|---|"]
    for row in found:
        says = f"{row['says']} ({row['where']})"
        theirs = row.get("theirs") or ("only in a picture" if row.get("picture") else "–")
        if "found" not in row:
            what = "an input" if row["kind"] == "input" else "open"
            lines.append(f"| {row['id']} | {says} | {theirs} | – | {what} | – | {row.get('why', '–')} | – |")
            continue
        cells = [row["id"], says, theirs, row["found"], row["verdict"], parts(row), row.get("why", "–")]
        lines.append("| " + " | ".join([*cells, swept(row, "constant")]) + " |")
    return "\n".join(lines) + "\n"
