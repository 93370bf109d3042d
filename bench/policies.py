#!/usr/bin/env python3
"""policies.py: how good policies are on mixes of programs. `make bench-kernels` and `make bench-real` run it.

`--set kernels` has the mixes of kernel-mixes.toml: small programs of which each does one thing.
`--set real` has those of real-mixes.toml: programs for which no scheduling rule was made. `cosched
compare` runs every mix under all variants, interleaved. policy_verdicts.py tells what follows.

It writes SET.json (for scripts) and SET.md into --out, and the workload file of each mix into --out/SET.
bench/real/Makefile makes what these programs need in --out/real-programs. A variant or program that cannot run here
is left out, and the report says why.
"""

import os
import subprocess
import sys

import kernel_mixes
import policy_verdicts
import real_programs
from lib import rounds
from lib.options import read
from lib.report import Report, figures
from lib.runner import cpus, leave_out, plain_environment, possible, run

SCHEMA = "cosched-bench-policies/2"
VARIANTS = ["linux", "passive", "llvm", "one-thread", "fcfs", "gang", "auto", "turns", "turns-fair=turns --goal fair"]
# What programs of kernel_mixes.py need of Python.
MODULES = {"numpy-matmul.py": "numpy", "sklearn-kmeans.py": "sklearn", "sklearn-pca.py": "sklearn"}


def main():
    options = read(__doc__, lambda options: options.set, seconds=1.0, of="of work of each program, alone", cells=True, resumable=True,
                   variants={"default": ",".join(VARIANTS), "help": "the variants, separated by commas: a policy or rival of "
                             "`cosched compare`, or NAME=POLICY OPTIONS"},
                   set={"choices": ["kernels", "real"], "required": True, "help": "which mixes"},
                   half={"choices": ["both", "tuning", "held-out"], "default": "both", "help": "which of the mixes"})
    options.variants = [variant for variant in options.variants.split(",") if variant]
    plain_environment()
    # Learned settings of the user must not help.
    os.environ["XDG_DATA_HOME"] = str(options.folder / "data")
    report = Report(options, SCHEMA, policy_verdicts.sentences, policy_verdicts.markdown, policy_verdicts.judge, set=options.set, seconds=options.seconds,
                    variants=options.variants, root=os.geteuid() == 0, left_out={}, mixes=[])
    rounds.resume(report, options.earlier, "mixes")
    all_mixes, cannot_run = {
        "kernels": (kernel_mixes.all_mixes(), lacks_module),
        "real": (real_programs.all_mixes(options.out / "real-programs"),
                 real_programs.Probes().cannot_run),
    }[options.set]
    mixes = [mix for mix in all_mixes if options.half == "both" or mix.held_out == (options.half == "held-out")]
    files = written(mixes, options)
    variants, report["left_out"] = possible(options.cosched, dict(map(named, options.variants)))

    def measured(mix):
        if problem := cannot_run(mix):
            return leave_out(report["left_out"], mix.name, problem)
        fit = {variant: words for variant, words in variants.items() if variant != "one-thread" or not mix.does_less_with_one_thread()}
        document = options.cosched.compare(report, files[mix.name], fit, "--solo")
        return {"mix": mix.name, "held_out": mix.held_out, "variants": figures(document)}

    report.measure(rounds.not_yet(rounds.chosen(mixes, options), report, "mixes", "mix"), measured, "mixes", "mix")
    if not report["mixes"]:
        sys.exit("bench: no mix can run here")
    report.done()


def lacks_module(mix):
    """Why a mix of kernels cannot run here; None if it can."""
    for module in sorted({MODULES[program.kind] for program in mix.programs if program.kind in MODULES}):
        if subprocess.run(["/usr/bin/python3", "-c", f"import {module}"], stderr=subprocess.DEVNULL).returncode:
            return f"/usr/bin/python3 has no {module}"
    return None


def named(variant):
    """A variant's name, and its policy with options."""
    name, _, words = variant.partition("=")
    return name, words or name


def written(mixes, options):
    """Writes the workload files; their paths by the names of the mixes."""
    files = {mix.name: options.folder / f"{mix.name.replace(', ', '_').replace(' ', '-')}.toml" for mix in mixes}
    for mix in mixes:
        files[mix.name].write_text(mix.workload(options.seconds, cpus()))
    return files


if __name__ == "__main__":
    run(main, "what was measured before is kept, and --resume goes on")
