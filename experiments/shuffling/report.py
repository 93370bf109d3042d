"""The tables of results, and the picture of the interval."""

from common.report import parts, sum_up, swept
from programs import PROGRAMS, SERVERS
from results import INTERVALS, LONG, POLICIES, TIMES_AS_LONG, inside, trials, trying

HEAD = """# What is reproduced of the slides on thread shuffling

Written by `experiments/shuffling/run`; [README.md](README.md) tells the assumptions and what the verdicts mean.
"""


def percent(x):
    return f"{100 * x:.1f} %"


def table(head, rows):
    """A table in Markdown."""
    yield "| " + " | ".join(head) + " |"
    yield "|---" * len(head) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def claim(row):
    """A row of the first table."""
    says = f"{row['says']} ({row['where']})"
    theirs = ", ".join(filter(None, [row.get("theirs"), "only in a picture" if row.get("picture") else None])) or "–"
    if "found" not in row:
        return [row["id"], says, theirs, "–", "open", "–", row.get("why", "–"), "–", "–"]
    if "by_point" not in row:
        return [row["id"], says, theirs, row["found"], row["verdict"], "–", row.get("why", "–"), "–", "–"]
    return [row["id"], says, theirs, row["found"], row["verdict"], parts(row), row.get("why", "–"),
            swept(row, "constant"), swept(row, "assumption")]


def markdown(found, fig):
    """The page."""
    checked = sum("found" in row for row in found)
    head = ["claim", "the slides", "their figure", "here", "verdict", "parts", "why", "holds under ±20 %", "under other assumptions"]
    lines = [HEAD, f"**{sum_up(found)}**, of {len(found)} rows; not checked here: {len(found) - checked}.\n"]
    lines += table(head, map(claim, found))
    rivals = [policy for policy in POLICIES if policy != "Solaris"]
    lines += ["", "## Each program", "", "Gains over the kernel alone; lock time and transfers inside a package of Solaris and of "
              "shuffling; gain on Linux' kernel (`eevdf`).", ""]
    head = ["program", *rivals, "at locks", "shuffled", "inside", "shuffled", "on eevdf"]
    rows = []
    for name in PROGRAMS | SERVERS:
        runs = [fig.of(name, "Solaris"), fig.of(name)]
        rows.append([name, *(percent(fig.gain(name, policy)) for policy in rivals), *(percent(run["lock"]) for run in runs),
                     *(percent(inside(run)) if run["transfers_across"] else "–" for run in runs),
                     percent(fig.gain(name, kind="eevdf"))])
    lines += table(head, rows)
    lines += ["", *guarded(fig)]
    lines += ["", "## The interval", "", "bodytrack, shuffled at each interval.", "", "![misses and transfers by interval](interval.svg)", ""]
    head = ["interval", "seconds", "across packages", "last-level misses, million", "shufflings"]
    runs = [(interval, fig.of("bodytrack", interval, "interval")) for interval in INTERVALS]
    lines += table(head, ([interval, f"{run['seconds']:.2f}", percent(1 - inside(run)), f"{run['llc_misses'] / 1e6:.2f}",
                           str(len(run["shufflings"]))] for interval, run in runs))
    return "\n".join(lines) + "\n"


def guarded(fig):
    """What the guard makes of groups: a part beyond the slides."""
    yield "## With the guard"
    yield ""
    yield "Beyond the slides, and no claim of theirs: groups are tried out against the places where threads were, and only what is " \
          "shown to be faster is kept ([policies](../../docs/research/policies.md#shuffling)). Gains over the kernel alone; trials, how many " \
          "of them kept groups, what progress they found (with groups over without; instructions), and their share of the time."
    yield ""
    head = ["program", "shuffling", "guarded", "trials", "kept", "progress", "trying", "on eevdf, shuffling", "guarded"]
    yield from table(head, (guarded_row(fig, name) for name in PROGRAMS | SERVERS))
    yield ""
    yield f"The same with {TIMES_AS_LONG} times the work, of a program with a hot lock, one with hardly any, and one that much memory " \
          "makes slower in groups:"
    yield ""
    head = ["program", "seconds", "shuffling", "guarded", "trials", "kept", "progress", "trying"]
    rows = []
    for name in LONG:
        gains = [percent(fig.gain(name, policy, "long")) for policy in ("shuffling", "guarded")]
        seconds = f"{fig.of(name, 'Solaris', 'long')['seconds']:.0f}"
        rows.append([name, seconds, *gains, *tried(fig.of(name, "guarded", "long"))])
    yield from table(head, rows)


def guarded_row(fig, name):
    gains = [percent(fig.gain(name, policy, kind)) for kind in ("load", "eevdf") for policy in ("shuffling", "guarded")]
    return [name, *gains[:2], *tried(fig.of(name, "guarded")), *gains[2:]]


def tried(run):
    """How many trials came to an end, how many kept groups, what they found, and their share of the time."""
    found = trials(run)
    progress = ", ".join(f"{one[3]:.3f}" for one in found) or "–"
    return [str(len(found)), str(sum(one[2] for one in found)), progress, percent(trying(run))]


def picture(fig):
    """Misses and transfers across packages by interval, each in parts of its largest value."""
    runs = [fig.of("bodytrack", interval, "interval") for interval in INTERVALS]
    curves = [("misses", "#0072b2", [run["llc_misses"] for run in runs]),
              ("transfers across packages", "#d55e00", [1 - inside(run) for run in runs])]
    width, height, left, top = 60, 160, 60, 30
    x = lambda i: left + width * i
    y = lambda part: top + height * (1 - part)
    shapes = [f'<line x1="{left}" y1="{y(part)}" x2="{x(len(runs) - 1)}" y2="{y(part)}" stroke="#ccc"/>'
              f'<text x="{left - 8}" y="{y(part) + 4}" text-anchor="end">{part:.1f}</text>' for part in (0.0, 0.5, 1.0)]
    shapes += [f'<text x="{x(i)}" y="{top + height + 18}" text-anchor="middle">{name}</text>' for i, name in enumerate(INTERVALS)]
    for row, (name, colour, values) in enumerate(curves):
        most = max(values) or 1
        line = " ".join(f"{x(i)},{y(value / most):.1f}" for i, value in enumerate(values))
        shapes.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        shapes.append(f'<text x="{left + 200 * row}" y="16" fill="{colour}">{name}</text>')
    size = f'width="{x(len(runs) - 1) + 30}" height="{top + height + 30}"'
    style = 'font-family="sans-serif" font-size="12"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n' + "\n".join(shapes) + "\n</svg>\n"
