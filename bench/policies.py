#!/usr/bin/env python3
"""policies.py: how good policies are on mixes of programs. `make bench-kernels` and `make bench-real` run it.

`--set kernels` has the mixes of kernel_mixes.py: small programs of which each does one thing. `--set real` has those of
real_mixes.py: programs for which no scheduling rule was made. `cosched compare` runs every mix under all variants,
interleaved. policy_verdicts.py tells what follows.

It writes SET.json (for scripts) and SET.md into --out, and the workload file of each mix into --out/SET.
bench/real/Makefile makes what these programs need in --out/real-programs. A variant or program that cannot run here
is left out, and the report says why.
"""

import os
import subprocess
import sys
import time

import command_line
import kernel_mixes
import mix_rounds
import policy_verdicts
import real_mixes
from gang import elapsed, plain_environment, possible, say
from real_programs import Probes

SCHEMA = "cosched-bench-policies/2"
VARIANTS = ["linux", "passive", "llvm", "one-thread", "fcfs", "gang", "auto", "turns", "turns-fair=turns --goal fair"]
# What programs of kernel_mixes.py need of Python.
MODULES = {"numpy-matmul.py": "numpy", "sklearn-kmeans.py": "sklearn", "sklearn-pca.py": "sklearn"}


def main():
    options = arguments()
    began = time.time()
    plain_environment()
    # Learned settings of the user must not help.
    os.environ["XDG_DATA_HOME"] = str(options.folder / "data")
    report = {"schema": SCHEMA, "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
              "set": options.set, "rounds": options.runs, "seconds": options.seconds, "variants": options.variants,
              "root": os.geteuid() == 0, "left_out": {}, "mixes": []}
    report = command_line.resumed(report, options.earlier, "mixes")
    all_mixes, cannot_run = {
        "kernels": (kernel_mixes.all_mixes(), lacks_module),
        "real": (real_mixes.all_mixes(options.out / "real-programs"), Probes().cannot_run),
    }[options.set]
    mixes = mix_rounds.of_half(all_mixes, options.half)
    files = written(mixes, options)
    asked = {name_of(variant): words(variant) for variant in options.variants}
    variants, report["left_out"] = possible(options.cosched, asked)
    asked = {variant: asked[variant] for variant in variants}
    left = command_line.not_yet(command_line.chosen(mixes, options), report, "mixes", "mix")
    for _, mix in mix_rounds.possible_mixes(left, report, cannot_run, began):
        fit = {variant: words for variant, words in asked.items() if variant != "one-thread" or not mix.does_less_with_one_thread()}
        report["mixes"].append(mix_rounds.compared(options, mix, files[mix.name], fit, report))
        policy_verdicts.judge(report)
        mix_rounds.save(options.out / options.set, report, policy_verdicts.markdown)
    if not report["mixes"]:
        sys.exit("bench: no mix can run here")
    say(f"done in {elapsed(began)}: {options.out}/{options.set}.json and {options.set}.md")
    print("".join(policy_verdicts.sentences(report)), end="")


def arguments():
    parser = command_line.common(__doc__.splitlines()[0], 1.0, "of work of each program, alone", resumable=True)
    parser.add_argument("--variants", default=",".join(VARIANTS), help="the variants, separated by commas: a policy or rival of "
                        "`cosched compare`, or NAME=POLICY OPTIONS")
    parser.add_argument("--set", choices=["kernels", "real"], required=True, help="which mixes")
    mix_rounds.add_half(parser)
    options = command_line.parsed(parser, parser.parse_args().set, ["json", "md"])
    options.variants = [variant for variant in options.variants.split(",") if variant]
    return options


def name_of(variant):
    return variant.split("=")[0]


def lacks_module(mix):
    """Why a mix of kernels cannot run here; None if it can."""
    for module in sorted({MODULES[program.kind] for program in mix.programs if program.kind in MODULES}):
        if subprocess.run(["/usr/bin/python3", "-c", f"import {module}"], stderr=subprocess.DEVNULL).returncode:
            return f"/usr/bin/python3 has no {module}"
    return None


def words(variant):
    """The options of a variant on the command line of `cosched compare`."""
    return ["--variant", variant] if "=" in variant else ["--policies", variant]


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
        sys.exit("bench: interrupted; what was measured before is kept, and --resume goes on")
