#!/usr/bin/env python3
"""aa.py: whether comparisons cry wolf. `make test-aa` runs it.

First A/A: short comparisons of a policy with itself. Whatever difference is claimed is none; the
test behind a verdict allows one in fifty. Then the same comparison on workloads/mixed.toml with
less work, several times: its verdict must be the same each time, on an idle machine.

It writes aa.json into --out. It fails if there are more claims than chance explains, or if verdicts
differ.
"""

import math
import re
import subprocess
import sys

from lib.options import read
from lib.report import Report, interval
from lib.runner import WORKLOADS, cpus, kernel, program, run, say

SCHEMA = "cosched-bench-aa/2"
# Of all comparisons of equal things, the most that may claim a difference.
LEVEL = 0.02
# How rarely chance alone may fail this test.
RARE = 0.025
PAIRS = [("linux", "linux-2"), ("gang", "gang-2")]


def main():
    options = read(__doc__, "aa", runs=10, out="target/aa",
                   comparisons={"type": int, "default": 20, "help": "of a policy with itself"},
                   invocations={"type": int, "default": 5, "help": "of the comparison on mixed.toml"},
                   share={"type": float, "default": 0.01, "help": "of the work of mixed.toml"})
    report = Report(options, SCHEMA, aa=[], mixed={"share_of_work": options.share, "verdicts": []})
    short, mixed = (options.out / f"{name}.toml" for name in ["short", "mixed"])
    # Two programs on all CPUs, one of which waits now and then: short, and not of the kind that takes plain Linux for ever.
    short.write_text(program(kernel("barrier-storm", "--grain", 1000, "--work", 0.05), threads=cpus())
                     + program(kernel("compute", "--work", 0.1), threads=cpus()))
    mixed.write_text(with_share_of_work((WORKLOADS / "mixed.toml").read_text(), options.share))
    parts = [("A/A", short, [PAIRS[number % len(PAIRS)] for number in range(options.comparisons)], report["aa"]),
             ("mixed", mixed, [("linux", "gang")] * options.invocations, report["mixed"]["verdicts"])]
    for what, file, pairs, found in parts:
        for number, variants in enumerate(pairs, 1):
            found.append(compare(options, file, variants, report))
            report.save()
            say(f"{what} {number} of {len(pairs)}, {shown(found[-1])}; {report.elapsed()}")
    sys.exit(judged(report))


def with_share_of_work(text, share):
    """The workload with less work, to be read from another folder."""
    less = re.sub(r'"--work", "([0-9.]+)"', lambda m: f'"--work", "{float(m[1]) * share:.4g}"', text)
    return less.replace("[[program]]", f'[[program]]\ncwd = "{WORKLOADS}"')


def compare(options, file, variants, report):
    """How the second variant does against the first."""
    document = options.cosched.compare(report, file, dict(zip(variants, variants)), strict=True, stderr=subprocess.PIPE)
    variant = document["variants"][1]
    against = dict(variant["against"])
    return {"variant": variant["variant"], "against": against.pop("variant")} | against


def shown(against):
    return f"{against['variant']} / {against['against']}: {interval(against['total_ratio'])} {against['verdict']}"


def judged(report):
    """Prints what came of it; returns why it is a failure, or None."""
    complaints = []
    if count := len(report["aa"]):
        claims = sum(against["verdict"] in ("better", "worse") for against in report["aa"])
        most = explained(count)
        print(f"A/A: {claims} of {count} comparisons claim a difference ({LEVEL:.0%} would be {count * LEVEL:g}; "
              f"chance explains up to {most})")
        if claims > most:
            complaints.append(f"{claims} claims of {count} are more than chance explains")
    if verdicts := [against["verdict"] for against in report["mixed"]["verdicts"]]:
        print(f"mixed.toml, gang against linux: {', '.join(verdicts)}")
        if len(set(verdicts)) > 1:
            complaints.append("verdicts on mixed.toml differ")
    return f"bench: {'; '.join(complaints)}" if complaints else None


def explained(count):
    """The most claims that come by chance in more than a RARE share of all cases."""
    share = [math.comb(count, k) * LEVEL**k * (1 - LEVEL)**(count - k) for k in range(count + 1)]
    return max(k for k in range(count + 1) if sum(share[k:]) > RARE)


if __name__ == "__main__":
    run(main, "what was measured before is in aa.json")
