"""options.py: what the benches have on their command lines, and where their results go."""

import argparse
import json
import os
import pathlib
import shutil

from lib.runner import Cosched, say
from lib.verdicts import FEWEST


def parser(about, runs=7, seconds=None, of="of each run", cells=False, resumable=False):
    """A parser with the options of all benches; each program or run takes so many seconds."""
    found = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--cosched", type=pathlib.Path, required=True, help="the executable")
    found.add_argument("--out", type=pathlib.Path, default=pathlib.Path("target/bench"))
    found.add_argument("--runs", type=int, default=runs, help=f"rounds; below {FEWEST} no difference is significant")
    if seconds:
        found.add_argument("--seconds", type=float, default=seconds, help=of)
    found.set_defaults(resume=False, sample=None)
    if cells:
        found.add_argument("--cells", default="", help="only those with one of these in their names, separated by commas")
        found.add_argument("--sample", type=int, help="only so many of these, drawn by lot: always the same ones, and a larger "
                           "sample has all those of a smaller one")
    if resumable:
        found.add_argument("--resume", action="store_true", help="go on where an earlier one, with the same options, ended")
    return found


def add_parts(found, parts):
    """An option that names some of the parts of a bench."""
    def read(text):
        if unknown := set(text.split(",")) - set(parts):
            raise argparse.ArgumentTypeError(f"there is no {', '.join(sorted(unknown))}; choose from {', '.join(parts)}")
        return text.split(",")

    found.add_argument("--parts", type=read, default=",".join(parts), help="only these, separated by commas")


def parsed(found, name, endings=("json",)):
    """What was asked for, and an empty folder of this name. No result of an earlier run is left to pass for this one's, unless
    it is to be resumed."""
    options = found.parse_args()
    if not os.access(options.cosched, os.X_OK):
        found.error(f"--cosched {options.cosched}: no executable file; make build makes one")
    if options.sample is not None and options.sample < 1:
        found.error(f"--sample {options.sample}: at least 1")
    if options.runs < FEWEST:
        say(f"{options.runs} rounds show no difference with certainty: that takes {FEWEST}")
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
        found.error(f"--out: {earlier}: {error}")
    return options
