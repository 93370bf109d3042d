"""How an experiment is run from the command line: every claim at every point, and what is written of it."""

import argparse
import importlib
import json
import os
import pathlib
import sys

from common import report
from common.checks import judged as judge
from common.constants import CONSTANTS
from common.sim import ROOT, Cosched, load


def parser(folder, doc):
    """A parser of what experiments have on their command lines; results go into such a folder."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    found = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--cosched", default=target / "release" / "cosched", help="the executable")
    found.add_argument("--out", type=pathlib.Path, default=target / folder, help="for the figures, and for what is kept")
    found.add_argument("--threads", type=int, default=os.cpu_count(), help="how many simulations at once")
    return found


def run(experiment, doc):
    """Checks the claims of an experiment's folder, by its modules.

    `points.points()` gives the settings, the unchanged one first; `checks.Claims` is what there is to look at in a point;
    `report.tell` makes of the rows, the settings, the results of the first and the number of threads what goes
    into results.json and results.md. Without a module `report`, `checks.TITLE` is the page's title.
    """
    options = parser(experiment.name, doc)
    options.add_argument("--quick", action="store_true", help="without the sweeps; results.md stays as it is")
    args = options.parse_args()
    points, checks = map(importlib.import_module, ("points", "checks"))
    executable = Cosched(args.cosched, args.out / "kept")
    claims = load(experiment / "claims.toml")["claim"]
    settings = list(points.points())[: 1 if args.quick else None]
    first, judged, constants = None, {}, []
    for number, point in enumerate(settings, 1):
        print(f"[{number}/{len(settings)}] {point.name}", file=sys.stderr, flush=True)
        moving = executable.under(point.moves)
        figures = checks.Claims(moving, point, args.threads)
        first = first or figures
        here = [*point.own, *(name for name in point.moves if name in moving.moved)]
        constants += here
        # What changes nothing is no setting.
        if here or point.kind != "constant":
            judged[point.name] = judge(figures, claims)
    settings = [point for point in settings if point.name in judged]
    rows = report.rows(claims, settings, judged)
    if (experiment / "report.py").exists():
        document, text = importlib.import_module("report").tell(rows, settings, first, args.threads)
    else:
        document, text = report.tell(experiment.name, checks.TITLE, rows)
    document["constants"] = [name for name in CONSTANTS if name in constants]
    (args.out / "results.json").write_text(json.dumps(document, indent=1) + "\n")
    if not args.quick:
        text += "\n".join(report.tell_constants(settings, document["constants"])) + "\n"
        (experiment / "results.md").write_text(text)
    print(text)
    print(report.sum_up(rows))
