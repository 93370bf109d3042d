"""picture.py: the cells of the lock bench as a plot: a row for each cell, a mark for each variant, time over plain Linux."""

import math
from xml.sax.saxutils import escape

LEFT, WIDTH, ROW, TOP = 230, 620, 22, 64
# Ratios beyond these ends are drawn at the ends.
LEAST, MOST = 0.25, 4.0
TICKS = [0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4]
# Distinguishable by form as well as by colour: drawn around the origin, 4 units in each direction.
DISC = "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z"
MARKS = {"faithful": ("#c2410c", DISC), "unguarded": ("#7c3aed", "M0,-5L5,0L0,5L-5,0z"),
         "none": ("#6b7280", "M-4,0L4,0M0,-4L0,4"), "slice": ("#0369a1", "M0,-4L4,4L-4,4z"),
         "batch": ("#15803d", "M-3.5,-3.5L3.5,-3.5L3.5,3.5L-3.5,3.5z"), "batch-slice": ("#a16207", "M0,4L4,-4L-4,-4z"),
         "round-robin": ("#be185d", "M-4,-4L4,4M-4,4L4,-4")}


def svg(report):
    """The plot's lines; cells with failed programs are left out."""
    cells = [cell for cell in report["cells"] if not cell["failed"]]
    height = TOP + ROW * len(cells) + 40
    parts = list(axis(height)) + list(legend(report))
    for number, cell in enumerate(cells):
        parts += row(cell, TOP + ROW * number + ROW / 2)
    return [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 30} {height}" font-family="sans-serif" '
            f'font-size="12"><title>Time over plain Linux, by cell and variant</title>'
            f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>']


def x(value):
    share = math.log(min(max(value, LEAST), MOST) / LEAST) / math.log(MOST / LEAST)
    return round(LEFT + WIDTH * share, 1)


def axis(height):
    for tick in TICKS:
        line = "#111" if tick == 1 else "#ddd"
        yield f'<path d="M{x(tick)},{TOP - 6}V{height - 36}" stroke="{line}"/>'
        yield f'<text x="{x(tick)}" y="{height - 20}" text-anchor="middle">{tick:g}</text>'
    yield f'<text x="{LEFT + WIDTH / 2}" y="{height - 4}" text-anchor="middle">time / plain Linux (left is faster)</text>'


def legend(report):
    names = [variant for variant in report["variants"] if variant in MARKS]
    for number, name in enumerate(names):
        at = LEFT + number * WIDTH / len(names)
        yield mark(name, at, 20) + f'<text x="{at + 9}" y="24">{name}</text>'
    yield f'<text x="{LEFT}" y="46" fill="#555">bars: the 98 % interval of faithful</text>'


def row(cell, y):
    yield f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{escape(cell["cell"])}</text>'
    if ends := cell["variants"]["faithful"]["ratio"]["interval"]:
        yield f'<path d="M{x(ends[0])},{y}H{x(ends[1])}" stroke="{MARKS["faithful"][0]}" stroke-width="2"/>'
    # What is drawn last lies on top.
    for name in reversed([name for name in MARKS if name in cell["variants"]]):
        found = cell["variants"][name]["ratio"]["value"]
        yield mark(name, x(found), y, f"{name}: {found:.3f}")


def mark(name, at, y, title=""):
    colour, form = MARKS[name]
    return (f'<path transform="translate({at},{y})" d="{form}" fill="{colour}" fill-opacity=".8" stroke="{colour}" '
            f'stroke-width="1.5"><title>{escape(title or name)}</title></path>')
