#!/usr/bin/env python3
"""aa.py: whether comparisons cry wolf. `make test-aa` runs it.

First A/A: short comparisons of a policy with itself (`linux` with `linux-2`, and `gang` with `gang-2`). Whatever
difference is claimed is none; the test behind a verdict allows one in fifty. Then the same comparison, `linux` with
`gang` on workloads/mixed.toml with less work, several times: its verdict must be the same each time.

It writes aa.json into --out. It fails if there are more claims than chance explains, or if verdicts differ. The first
part may run on a busy machine. The second needs an idle one: beside builds it took many times as long, and could not
tell what it tells on a quiet machine.
"""

import argparse
import json
import math
import pathlib
import re
import subprocess
import sys
import time

from gang import WORKLOADS, Cosched, elapsed, filled_in, interval, say

SCHEMA = "cosched-bench-aa/2"
# Of all comparisons of equal things, the most that may claim a difference.
LEVEL = 0.02
# How rarely chance alone may fail this test.
RARE = 0.025
PAIRS = ["linux,linux-2", "gang,gang-2"]
# Two programs on all CPUs, one of which waits now and then: short, and not of the kind that takes plain Linux for ever.
SHORT = """
[[program]]
command = ["./bin/barrier-storm", "--grain", "1000", "--work", "0.05"]
cwd = "@WORKLOADS@"
threads = @CPUS@

[[program]]
command = ["./bin/compute", "--work", "0.1"]
cwd = "@WORKLOADS@"
threads = @CPUS@
"""


def main():
    options = arguments()
    began = time.time()
    report = {"schema": SCHEMA, "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
              "rounds": options.runs, "aa": [], "mixed": {"share_of_work": options.share, "verdicts": []}}
    file = options.out / "short.toml"
    file.write_text(SHORT)
    file.write_text(filled_in(file))
    for number in range(options.comparisons):
        against = compare(options, file, PAIRS[number % len(PAIRS)], report)
        report["aa"].append(against)
        save(options.out, report)
        say(f"A/A {number + 1} of {options.comparisons}, {shown(against)}; {elapsed(began)} so far")
    file = options.out / "mixed.toml"
    file.write_text(with_share_of_work((WORKLOADS / "mixed.toml").read_text(), options.share))
    for number in range(options.invocations):
        against = compare(options, file, "linux,gang", report)
        report["mixed"]["verdicts"].append(against)
        save(options.out, report)
        say(f"mixed {number + 1} of {options.invocations}, {shown(against)}; {elapsed(began)} so far")
    sys.exit(judged(report))


def save(out, report):
    (out / "aa.json").write_text(json.dumps(report, indent=1) + "\n")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cosched", type=pathlib.Path, required=True, help="the executable")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("target/aa"))
    parser.add_argument("--runs", type=int, default=10, help="rounds of each comparison")
    parser.add_argument("--comparisons", type=int, default=20, help="of a policy with itself")
    parser.add_argument("--invocations", type=int, default=5, help="of the comparison on mixed.toml")
    parser.add_argument("--share", type=float, default=0.01, help="of the work of mixed.toml")
    options = parser.parse_args()
    options.cosched = Cosched(options.cosched.resolve())
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    return options


def with_share_of_work(text, share):
    """The workload with less work, to be read from another folder."""
    less = re.sub(r'"--work", "([0-9.]+)"', lambda m: f'"--work", "{float(m[1]) * share:.4g}"', text)
    return less.replace("[[program]]", f'[[program]]\ncwd = "{WORKLOADS}"')


def compare(options, file, variants, report):
    """How the second variant does against the first."""
    done = options.cosched("compare", file, "--policies", variants, "--runs", options.runs, "--json",
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if options.cosched.interrupted:
        raise KeyboardInterrupt
    if done.returncode != 0:
        sys.exit(f"bench: cosched compare failed on {file}:\n{done.stderr}")
    document = json.loads(done.stdout)
    report["machine"] = document["machine"]
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
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("bench: interrupted; what was measured before is in aa.json")
