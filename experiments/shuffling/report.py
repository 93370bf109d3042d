"""The page of results, and the picture of the interval."""

import pathlib

from common.checks import percent
from common.report import SWEEPS, page
from lib.report import table
from programs import PROGRAMS, SERVERS
from results import INTERVALS, LONG, POLICIES, TIMES_AS_LONG, inside, trials, trying

HERE = pathlib.Path(__file__).resolve().parent


def tell(rows, settings, first, _):
    """The claims, and the page; the picture where all settings were looked at."""
    if len(settings) > 1:
        (HERE / "interval.svg").write_text(picture(first))
    checked = sum("found" in row for row in rows)
    text = page("shuffling", "slides on thread shuffling", rows, ("constant", "assumption"), source="the slides", figure="their figure",
                rest=f"not checked here: {len(rows) - checked}", of_sweeps=SWEEPS | {"assumption": "under other assumptions"})
    parts = [*of_programs(first), *guarded(first), *of_intervals(first)]
    return {"claims": [row for row in rows if row["verdict"] != "open"]}, text + "\n".join(parts) + "\n"


def of_programs(fig):
    """What becomes of each program."""
    rivals = [policy for policy in POLICIES if policy != "Solaris"]
    yield "\n## Each program\n"
    yield ("Gains over the kernel alone; lock time and transfers inside a package of Solaris and of shuffling; gain on Linux' kernel "
           "(`eevdf`).\n")
    rows = []
    for name in PROGRAMS | SERVERS:
        runs = [fig.of(name, "Solaris"), fig.of(name)]
        rows.append([name, *(percent(fig.gain(name, policy)) for policy in rivals), *(percent(run["lock"]) for run in runs),
                     *(percent(inside(run)) if run["transfers_across"] else "–" for run in runs),
                     percent(fig.gain(name, kind="eevdf"))])
    yield from table(["program", *rivals, "at locks", "shuffled", "inside", "shuffled", "on eevdf"], rows)


def of_intervals(fig):
    yield "\n## The interval\n"
    yield "bodytrack, shuffled at each interval.\n\n![misses and transfers by interval](interval.svg)\n"
    runs = [(interval, fig.of("bodytrack", interval, "interval")) for interval in INTERVALS]
    yield from table(["interval", "seconds", "across packages", "last-level misses, million", "shufflings"], (
        [interval, f"{run['seconds']:.2f}", percent(1 - inside(run)), f"{run['llc_misses'] / 1e6:.2f}", len(run["shufflings"])]
        for interval, run in runs))


def guarded(fig):
    """What the guard makes of groups: a part beyond the slides."""
    yield "\n## With the guard\n"
    yield ("Beyond the slides, and no claim of theirs: groups are tried out against the places where threads were, and only what is "
           "shown to be faster is kept ([policies](../../docs/research/policies.md#shuffling)). Gains over the kernel alone; trials, how "
           "many of them kept groups, what progress they found (with groups over without; instructions), and their share of the "
           "time.\n")
    head = ["program", "shuffling", "guarded", "trials", "kept", "progress", "trying", "on eevdf, shuffling", "guarded"]
    yield from table(head, (guarded_row(fig, name) for name in PROGRAMS | SERVERS))
    yield (f"\nThe same with {TIMES_AS_LONG} times the work, of a program with a hot lock, one with hardly any, and one that much memory "
           "makes slower in groups:\n")
    rows = []
    for name in LONG:
        gains = [percent(fig.gain(name, policy, "long")) for policy in ("shuffling", "guarded")]
        seconds = f"{fig.of(name, 'Solaris', 'long')['seconds']:.0f}"
        rows.append([name, seconds, *gains, *tried(fig.of(name, "guarded", "long"))])
    yield from table(["program", "seconds", "shuffling", "guarded", "trials", "kept", "progress", "trying"], rows)


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
