"""options.py: what the benches have on their command lines, and where their results go."""

import argparse
import json
import os
import pathlib
import shutil

from lib.runner import Cosched, say
from lib.verdicts import FEWEST


def read(about, name, runs=7, seconds=None, of="of each run", cells=False, resumable=False, parts=(), out="target/bench", **more):
    """What was asked for, and an empty folder of the bench's name, which may follow from the options. Each program or run takes so
    many seconds; --parts chooses from `parts`; `more` are options of this bench. No result of an earlier run is left to pass for
    this one's, unless it is to be resumed."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--cosched", type=pathlib.Path, required=True, help="the executable")
    add("--out", type=pathlib.Path, default=pathlib.Path(out))
    add("--runs", type=int, default=runs, help=f"rounds; below {FEWEST} no difference is significant")
    if seconds:
        add("--seconds", type=float, default=seconds, help=of)
    parser.set_defaults(resume=False, sample=None, error=parser.error)
    if cells:
        add("--cells", default="", help="only those with one of these in their names, separated by commas")
        add("--sample", type=int, help="only so many of these, drawn by lot: always the same ones, and a larger "
            "sample has all those of a smaller one")
    if resumable:
        add("--resume", action="store_true", help="go on where an earlier one, with the same options, ended")
    for option, keywords in more.items():
        add(f"--{option}", **keywords)
    if parts:
        add("--parts", type=lambda text: named(text, parts), default=",".join(parts), help="only these, separated by commas")
    options = parser.parse_args()
    if not os.access(options.cosched, os.X_OK):
        parser.error(f"--cosched {options.cosched}: no executable file; make build makes one")
    if options.sample is not None and options.sample < 1:
        parser.error(f"--sample {options.sample}: at least 1")
    if options.runs < FEWEST:
        say(f"{options.runs} rounds show no difference with certainty: that takes {FEWEST}")
    options.cosched = Cosched(options.cosched.resolve())
    options.out = options.out.resolve()
    options.folder = options.out / (name(options) if callable(name) else name)
    earlier = options.folder.with_suffix(".json")
    try:
        options.earlier = json.loads(earlier.read_text()) if options.resume and earlier.exists() else None
        if not options.earlier:
            shutil.rmtree(options.folder, ignore_errors=True)
            for ending in ("json", "md", "svg"):
                options.folder.with_suffix(f".{ending}").unlink(missing_ok=True)
        options.folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        parser.error(f"--out: {earlier}: {error}")
    return options


def named(text, parts):
    """Some of the parts, as an option names them."""
    if unknown := set(text.split(",")) - set(parts):
        raise argparse.ArgumentTypeError(f"there is no {', '.join(sorted(unknown))}; choose from {', '.join(parts)}")
    return text.split(",")
