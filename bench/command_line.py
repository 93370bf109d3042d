"""command_line.py: what the benches of cells have on their command lines, where their results go, and how one that was
interrupted is resumed."""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import sys

import ratio
from gang import Cosched, say


def common(about, seconds, of, resumable=False):
    """A parser; each program or run takes so many seconds."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--cosched", type=pathlib.Path, required=True, help="the executable")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("target/bench"))
    parser.add_argument("--runs", type=int, default=7, help="rounds of each cell; below 7 no difference is significant")
    parser.add_argument("--seconds", type=float, default=seconds, help=of)
    parser.add_argument("--cells", default="", help="only those with one of these in their names, separated by commas")
    parser.add_argument("--sample", type=int, help="only so many of these, drawn by lot: always the same ones, and a larger "
                        "sample has all those of a smaller one")
    parser.set_defaults(resume=False)
    if resumable:
        parser.add_argument("--resume", action="store_true", help="go on where an earlier one, with the same options, ended")
    return parser


def parsed(parser, name, endings):
    """What was asked for, and an empty folder of this name. No result of an earlier run is left to pass for this one's, unless
    it is to be resumed."""
    options = parser.parse_args()
    if not os.access(options.cosched, os.X_OK):
        parser.error(f"--cosched {options.cosched}: no executable file; make build makes one")
    if options.sample is not None and options.sample < 1:
        parser.error(f"--sample {options.sample}: at least 1")
    if options.runs < ratio.FEWEST:
        say(f"{options.runs} rounds show no difference with certainty: that takes {ratio.FEWEST}")
    options.cosched = Cosched(options.cosched.resolve())
    options.out = options.out.resolve()
    options.folder = options.out / name
    earlier = options.out / f"{name}.json"
    try:
        options.earlier = json.loads(earlier.read_text()) if options.resume and earlier.exists() else None
        if not options.earlier:
            shutil.rmtree(options.folder, ignore_errors=True)
            for ending in endings:
                (options.out / f"{name}.{ending}").unlink(missing_ok=True)
        options.folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        parser.error(f"--out: {earlier}: {error}")
    return options


def resumed(report, earlier, listed="cells"):
    """The report, with the cells that the earlier one has, failed ones aside. Both have to have been asked for alike."""
    if not earlier:
        return report
    for key in report.keys() - {"started_at", "left_out", listed}:
        if earlier.get(key) != report[key]:
            sys.exit(f"bench: --resume: {key} was {earlier.get(key)} and is {report[key]} now: use the options of before, or begin anew "
                     "without --resume")
    done = [cell for cell in earlier[listed] if not cell.get("failed")]
    say(f"{len(done)} {listed} were measured before")
    return earlier | report | {"started_at": earlier["started_at"], listed: done}


def not_yet(cells, report, listed="cells", named="cell"):
    """Those that the report has nothing of."""
    done = {cell[named] for cell in report[listed]}
    return [cell for cell in cells if cell.name not in done]


def chosen(cells, options):
    """Those of the cells that were asked for."""
    parts = options.cells.split(",")
    found = [cell for cell in cells if any(part in cell.name for part in parts)]
    if not found:
        sys.exit("bench: --cells: no cell is called like that")
    return sample(found, options.sample) if options.sample else found


def sample(cells, many):
    """So many of the cells, drawn by lot. The lots are their names' hashes, so that what else there is changes nothing."""
    return sorted(cells, key=lambda cell: hashlib.sha256(cell.name.encode()).digest())[:many]


def chosen_variants(asked, always, usual, further=()):
    """What each of the variants adds that were asked for, beside those that are always there; all usual ones where none was."""
    if not asked:
        return dict(usual)
    known, requested = usual | dict(further), [*always, *asked.split(",")]
    for variant in requested:
        if variant not in known:
            sys.exit(f"bench: --variants: {variant} is none; there are {', '.join(known)}")
    return {variant: added for variant, added in known.items() if variant in requested}
