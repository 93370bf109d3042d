"""A picture of a paper's claims: ours beside theirs. A row for each claim, with a dot for each of its orders, and a mark for
each of its sizes on an axis of ratios."""

import math
from xml.sax.saxutils import escape

from common.degrees import is_within

# Lengths in pixels: names, orders, ratios and scores lie beside each other.
NAMES, SCORES, WIDTH, ROW, TOP = 350, 56, 400, 22, 92
DOT, GAP = 13, 22
# How many letters of a name fit, whichever they are.
FITS = 46
# Ratios beyond these ends are arrows there, and those below zero are crosses beside the left one.
LEAST, MOST = 1 / 8, 8
TICKS = {1 / 8: "1/8", 1 / 4: "1/4", 1 / 2: "1/2", 1: "1", 2: "2", 4: "4", 8: "8"}
# Colours by name, by day and at night: those of reports (crates/report/src/colours.rs), and two shades for the bands.
COLOURS = {
    "paper": ("#ffffff", "#14171c"), "ink": ("#1b1f24", "#e8ebef"), "soft": ("#57606a", "#a3adb8"),
    "line": ("#d8dee4", "#343b45"), "accent": ("#0a5cad", "#6cb6ff"), "other": ("#cc6f0f", "#c9a23c"),
    "near": ("#cfe3f7", "#24435f"), "double": ("#eaf2fb", "#1b2b3a"),
}
STYLE = ("text{{font:13px sans-serif}}.ink{{fill:{ink}}}.head{{font-weight:bold}}.soft{{fill:{soft}}}.paper{{fill:{paper}}}.line{{stroke:{line}}}"
         ".one{{stroke:{ink};stroke-width:1.5}}.near{{fill:{near}}}.double{{fill:{double}}}"
         ".holds{{fill:{accent};stroke:{accent};stroke-width:1.5}}.fails{{fill:{paper};stroke:{other};stroke-width:2}}"
         ".met{{fill:{accent};stroke:{paper}}}.missed{{fill:{other};stroke:{paper}}}"
         ".sign{{fill:none;stroke:{other};stroke-width:2.5}}")
# Distinguishable by form as well as by colour, drawn around the origin.
FORMS = {
    "holds": "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z", "fails": "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z",
    "met": "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0z", "missed": "M0,-6L6,0L0,6L-6,0z",
    "above": "M-5,-5L6,0L-5,5z", "below": "M5,-5L-6,0L5,5z", "sign": "M-4,-4L4,4M-4,4L4,-4",
}
CLASSES = {"above": "missed", "below": "missed"}


def svg(name, rows):
    """The picture of the claims of a paper that have orders or sizes."""
    # At least as wide as the heading of the column.
    dots = max([60, *(DOT * len(row["orders"]) for row in rows)])
    left = NAMES + dots + GAP
    size = (left + WIDTH + SCORES + 16, TOP + ROW * len(rows) + 48)
    parts = [*bands(left, size[1] - 42), *legend(left)]
    for number, row in enumerate(rows):
        parts += claim(row, TOP + ROW * number + ROW / 2, left)
    title = f"{name}: ours beside theirs"
    box = f'viewBox="0 0 {size[0]} {size[1]}" width="{size[0]}" height="{size[1]}"'
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img" aria-label="{escape(title)}">',
            f"<title>{escape(title)}</title><style>{style()}</style>",
            '<rect class="paper" width="100%" height="100%"/>', text(12, 24, title, kind="ink head")]
    return "\n".join([*head, *parts, "</svg>\n"])


def style():
    """By day, and at night where the page's reader has a dark screen."""
    day, night = (STYLE.format(**{name: pair[which] for name, pair in COLOURS.items()}) for which in (0, 1))
    return f"{day}@media(prefers-color-scheme:dark){{{night}}}"


def x(ratio, left):
    share = math.log(min(max(ratio, LEAST), MOST) / LEAST) / math.log(MOST / LEAST)
    return round(left + WIDTH * share, 1)


def text(at, y, words, anchor="start", kind="ink"):
    return f'<text class="{kind}" x="{at:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'


def mark(form, at, y, says):
    return (f'<path class="{CLASSES.get(form, form)}" transform="translate({at:g},{y:g})" d="{FORMS[form]}">'
            f"<title>{escape(says)}</title></path>")


def bands(left, bottom):
    for kind, low, high in (("double", 0.5, 2), ("near", 0.8, 1.2)):
        at = x(low, left)
        yield f'<rect class="{kind}" x="{at}" y="{TOP - 6}" width="{x(high, left) - at:.1f}" height="{bottom - TOP + 6}"/>'
    for tick, words in TICKS.items():
        at = x(tick, left)
        kind = "one" if tick == 1 else "line"
        yield f'<path class="{kind}" d="M{at},{TOP - 6}V{bottom}"/>' + text(at, bottom + 16, words, "middle")
    yield text(left + WIDTH / 2, bottom + 32, "ours / theirs; dark band: within 20 %, light: a factor of two", "middle", "soft")
    yield text(NAMES, TOP - 14, "orders") + text(left + WIDTH + 14, TOP - 14, "score")


def legend(left):
    says = {"holds": "an order that holds", "fails": "one that does not", "met": "a size within 20 %", "missed": "another size",
            "above": "beyond the axis", "sign": "with the other sign"}
    at = 12
    for form, words in says.items():
        yield mark(form, at + 6, 46, words) + text(at + 18, 50, words)
        at += 28 + 7 * len(words)


def claim(row, y, left):
    """A row: what it says, its orders, its sizes, its score."""
    words = f"{row['id']}  {row['says']}"
    shown = words if len(words) <= FITS else words[: FITS - 1].rsplit(" ", 1)[0] + " …"
    yield f"<g><title>{escape(words)}</title>" + text(12, y + 4.5, shown) + "</g>"
    yield f'<path class="line" d="M12,{y + ROW / 2:g}H{left + WIDTH + SCORES}"/>'
    for number, holds in enumerate(row["orders"]):
        form = "holds" if holds else "fails"
        yield mark(form, NAMES + 6 + DOT * number, y, f"{row['id']}: an order that {form.replace('fails', 'does not hold')}")
    for ratio in sorted(row["sizes"], key=lambda ratio: -abs(ratio - 1)):
        yield mark(*placed(ratio, left), y, f"{row['id']}: ours / theirs is {ratio:.3g}")
    yield text(left + WIDTH + 14, y + 4.5, f"{row['score']:.2f}")


def placed(ratio, left):
    """The form of a size, and where it is."""
    if ratio < 0:
        return "sign", left - GAP / 2
    if LEAST <= ratio <= MOST:
        return "met" if is_within(ratio, "20 %") else "missed", x(ratio, left)
    return "above" if ratio > MOST else "below", x(ratio, left)
