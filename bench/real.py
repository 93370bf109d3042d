#!/usr/bin/env python3
"""real.py: how good policies are on real programs, for which no scheduling rule was made. `make bench-real` runs it.

`cosched compare` runs every mix of real_mixes.py under all variants, interleaved. real_verdicts.py tells what follows.

It writes real.json (for scripts) and real.md into --out, and the workload file of each mix into --out/real. bench/real/Makefile
makes what the programs need in --out/real-programs. A variant or program that cannot run here is left out, and the report
says why.
"""

import os
import sys
import time

import command_line
import mix_rounds
import real_mixes
import real_verdicts
from gang import elapsed, plain_environment, possible, say
from real_programs import Trials

SCHEMA = "cosched-bench-real/1"
VARIANTS = ["linux", "passive", "llvm", "one-thread", "fcfs", "gang", "auto", "turns"]


def main():
    options = arguments()
    began = time.time()
    plain_environment()
    # Learned settings of the user must not help.
    os.environ["XDG_DATA_HOME"] = str(options.folder / "data")
    report = {"schema": SCHEMA, "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
              "rounds": options.runs, "seconds": options.seconds, "ways": options.ways, "root": os.geteuid() == 0,
              "left_out": {}, "mixes": []}
    report = command_line.resumed(report, options.earlier, "mixes")
    mixes = mix_rounds.of_half(real_mixes.all_mixes(options.out / "real-programs"), options.half)
    files = written(mixes, options)
    asked = {name_of(way): words(way) for way in options.ways}
    ways, report["left_out"] = possible(options.cosched, asked)
    asked = {way: asked[way] for way in ways}
    left = command_line.not_yet(command_line.chosen(mixes, options), report, "mixes", "mix")
    for _, mix in mix_rounds.possible_mixes(left, report, Trials().cannot_run, began):
        report["mixes"].append(mix_rounds.compared(options, mix, files[mix.name], asked, report))
        real_verdicts.judge(report)
        mix_rounds.save(options.out / "real", report, real_verdicts.markdown)
    if not report["mixes"]:
        sys.exit("bench: no mix can run here")
    say(f"done in {elapsed(began)}: {options.out}/real.json and real.md")
    print("".join(real_verdicts.sentences(report)), end="")


def arguments():
    parser = command_line.common(__doc__.splitlines()[0], 1.0, "of work of each program, alone", resumable=True)
    parser.add_argument("--ways", default=",".join(VARIANTS), help="the variants, separated by commas: a policy or rival of "
                        "`cosched compare`, or NAME=POLICY OPTIONS")
    mix_rounds.add_half(parser)
    options = command_line.parsed(parser, "real", ["json", "md"])
    options.ways = [way for way in options.ways.split(",") if way]
    return options


def name_of(way):
    return way.split("=")[0]


def words(way):
    """What asks for a variant on the command line of `cosched compare`."""
    return ["--way", way] if "=" in way else ["--policies", way]


def written(mixes, options):
    """Writes the workload files; their paths by the names of the mixes."""
    cpus = len(os.sched_getaffinity(0))
    files = {mix.name: options.folder / f"{mix.name.replace(', ', '_').replace(' ', '-')}.toml" for mix in mixes}
    for mix in mixes:
        files[mix.name].write_text(mix.workload(options.seconds, cpus))
    return files


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("bench: interrupted; what was measured before is in real.json")
