#!/usr/bin/env python3
"""sim_speed.py: how fast the simulator is as CPUs, threads and programs grow, as a picture.

Reads what the example `events_per_second` prints (`make bench-sim`) from standard input, and writes an SVG to standard output:
a panel for each kind of growth, all with one axis of events per second.
"""

import json
import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "experiments"))

from common.picture import COLOURS, FORMS, text  # noqa: E402

# Pixels: a panel, the room left of the first one, and the room above all.
WIDTH, HEIGHT, LEFT, TOP = 220, 200, 60, 60
GAP = 30
TITLES = {"cpus": "CPUs", "threads_per_cpu": "threads for each CPU", "programs": "programs"}
STYLE = ("text{{font:13px sans-serif}}.ink{{fill:{ink}}}.head{{font-weight:bold}}.soft{{fill:{soft}}}.paper{{fill:{paper}}}"
         ".line{{stroke:{line}}}.dot{{fill:{accent}}}.course{{fill:none;stroke:{accent};stroke-width:2}}")


def svg(series):
    """The picture of series by name, each with events per second by size."""
    # Decades, so that equal factors are equal lengths.
    least = 10 ** math.floor(math.log10(min(min(one.values()) for one in series.values())))
    most = 10 ** math.ceil(math.log10(max(max(one.values()) for one in series.values())))
    size = (LEFT + len(series) * (WIDTH + GAP), TOP + HEIGHT + 50)
    day, night = (STYLE.format(**{name: pair[which] for name, pair in COLOURS.items()}) for which in (0, 1))
    title = "The simulator's events per second"
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" width="{size[0]}" height="{size[1]}" '
             f'role="img" aria-label="{title}"><title>{title}</title>',
             f"<style>{day}@media(prefers-color-scheme:dark){{{night}}}</style>",
             '<rect class="paper" width="100%" height="100%"/>', text(12, 24, title, kind="ink head")]

    def y(events):
        return round(TOP + HEIGHT * (1 - math.log(events / least) / math.log(most / least)), 1)

    decade = least
    while decade <= most:
        parts.append(f'<path class="line" d="M{LEFT - 6},{y(decade)}H{size[0] - GAP}"/>')
        parts.append(text(LEFT - 10, y(decade) + 4.5, words(decade), "end", "soft"))
        decade *= 10
    for number, (name, one) in enumerate(series.items()):
        parts += panel(LEFT + number * (WIDTH + GAP), name, one, y)
    return "\n".join([*parts, "</svg>\n"])


def panel(left, name, one, y):
    """The course of one series: sizes lie at equal distances."""
    places = [left + 20 + (WIDTH - 40) * at / (len(one) - 1) for at in range(len(one))]
    points = list(zip(places, one.items()))
    yield '<path class="course" d="M' + "L".join(f"{x:.1f},{y(events)}" for x, (_, events) in points) + '"/>'
    for x, (size, events) in points:
        yield f'<path class="dot" transform="translate({x:.1f},{y(events)})" d="{FORMS["holds"]}"/>'
        yield text(round(x, 1), y(events) - 10, words(events), "middle") + text(round(x, 1), TOP + HEIGHT + 18, size, "middle", "soft")
    yield text(left + WIDTH / 2, TOP + HEIGHT + 38, TITLES[name], "middle")


def words(events):
    """With two digits."""
    rounded = float(f"{events:.2g}")
    return f"{rounded / 1e6:g} M" if rounded >= 1e6 else f"{rounded / 1e3:g} k"


if __name__ == "__main__":
    sys.stdout.write(svg(json.load(sys.stdin)["events_per_second"]))
