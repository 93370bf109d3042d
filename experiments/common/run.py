"""How an experiment is run from the command line: every claim at every point, and what is written of it."""

import argparse
import json
import os
import pathlib
import sys

from common import report
from common.sim import ROOT, load


def run(experiment, doc, cosched, points, results, checks, tell):
    """Checks the claims of an experiment's folder.

    `points` gives the settings, the unchanged one first; `results` what there is to look at in a point; `tell` makes of
    the rows, the settings, the results of the first and the number of threads what goes into results.json and results.md.
    """
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cosched", default=target / "release" / "cosched", help="the executable")
    parser.add_argument("--out", default=target / experiment.name, help="for the figures, and for what is kept")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="how many simulations at once")
    parser.add_argument("--quick", action="store_true", help="without the sweeps; results.md stays as it is")
    args = parser.parse_args()
    out = pathlib.Path(args.out)
    executable = cosched(args.cosched, out / "kept")
    claims = load(experiment / "claims.toml")["claim"]
    settings = list(points())[: 1 if args.quick else None]
    first, judged = None, {}
    for number, point in enumerate(settings, 1):
        print(f"[{number}/{len(settings)}] {point.name}", file=sys.stderr, flush=True)
        figures = results(executable, point, args.threads)
        first = first or figures
        judged[point.name] = {name: check(figures) for name, check in checks.items()}
    rows = report.rows(claims, settings, judged)
    document, text = tell(rows, settings, first, args.threads)
    (out / "results.json").write_text(json.dumps(document, indent=1) + "\n")
    if not args.quick:
        (experiment / "results.md").write_text(text)
    print(text)
    print(report.sum_up(rows))
