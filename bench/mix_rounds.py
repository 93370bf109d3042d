"""mix_rounds.py: runs mixes by `cosched compare`, for the benches that judge policies by mixes of programs."""

import json
import subprocess
import sys

from gang import FIGURES, elapsed, say


def add_half(parser):
    parser.add_argument("--half", choices=["both", "tuning", "held-out"], default="both", help="which of the mixes")


def of_half(mixes, half):
    return [mix for mix in mixes if half == "both" or mix.held_out == (half == "held-out")]


def possible_mixes(mixes, report, cannot_run, began):
    """The mixes that can run here, numbered. The report says why a mix cannot."""
    for number, mix in enumerate(mixes, 1):
        if problem := cannot_run(mix):
            report["left_out"][mix.name] = problem
            say(f"{mix.name} is left out: {problem}")
            continue
        say(f"mix {number} of {len(mixes)}: {mix.name}; {elapsed(began)} so far")
        yield number, mix


def compared(options, mix, file, asked, report):
    """The figures of all variants. `asked` has the words for each, either `--policies NAME` or `--variant NAME=OPTIONS`."""
    policies = [words[1] for words in asked.values() if words[0] == "--policies"]
    named = [word for words in asked.values() if words[0] != "--policies" for word in words]
    done = options.cosched("compare", file, "--policies", ",".join(policies), *named, "--runs", options.runs, "--solo",
                           "--json", stdout=subprocess.PIPE)
    if options.cosched.interrupted:
        raise KeyboardInterrupt
    if not done.stdout:
        sys.exit(f"bench: cosched compare failed on {mix.name}")
    document = json.loads(done.stdout)
    report["machine"] = document["machine"]
    found = {variant["variant"]: {ours: variant[theirs] for ours, theirs in FIGURES.items()} for variant in document["variants"]}
    return {"mix": mix.name, "held_out": mix.held_out, "variants": found}


def save(base, report, markdown):
    """Writes the report as base.json and base.md."""
    base.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    base.with_suffix(".md").write_text("\n".join(markdown(report)) + "\n")
