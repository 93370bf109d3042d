"""command_line.py: what the benches of cells have on their command lines, and where their results go."""

import argparse
import os
import pathlib
import shutil
import sys

import ratio
from gang import Cosched, say


def common(about, seconds, of):
    """A parser; each program or run takes so many seconds."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--cosched", type=pathlib.Path, required=True, help="the executable")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("target/bench"))
    parser.add_argument("--runs", type=int, default=7, help="rounds of each cell; below 7 nothing can be told apart")
    parser.add_argument("--seconds", type=float, default=seconds, help=of)
    parser.add_argument("--cells", default="", help="only those whose names contain one of these, separated by commas")
    return parser


def parsed(parser, name, endings):
    """What was asked for, and an empty folder of this name. No result of an earlier run is left to pass for this one's."""
    options = parser.parse_args()
    if not os.access(options.cosched, os.X_OK):
        parser.error(f"--cosched {options.cosched}: no executable file; make build makes one")
    if options.runs < ratio.FEWEST:
        say(f"{options.runs} rounds show no difference with certainty: that takes {ratio.FEWEST}")
    options.cosched = Cosched(options.cosched.resolve())
    options.out = options.out.resolve()
    options.folder = options.out / name
    try:
        shutil.rmtree(options.folder, ignore_errors=True)
        options.folder.mkdir(parents=True)
        for ending in endings:
            (options.out / f"{name}.{ending}").unlink(missing_ok=True)
    except OSError as error:
        parser.error(f"--out: {error}")
    return options


def chosen(cells, options):
    """Those of the cells that were asked for."""
    parts = options.cells.split(",")
    found = [cell for cell in cells if any(part in cell.name for part in parts)]
    if not found:
        sys.exit("bench: --cells: no cell is called like that")
    return found
