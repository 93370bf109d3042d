"""The policy `bandwidth` beside those of the thesis, on a machine with a bus and on one without.

Its table of slowdowns is that of the modelled machine, made with the same placement; the traffic of every
program is what it has alone there. Both are measurements of solo runs and of STREAM, never of the workload.
"""

from concurrent.futures import ThreadPoolExecutor

from common.sim import ROOT, load
from points import MEMORY_BOUND
from sim import with_alone

LINE = 64
POLICIES = ["greedy", "cgreedy", "minwait", "bandwidth"]


def traffic(program, seconds):
    """GB/s of a program that takes so long alone."""
    phase, passes = program["model"]["phase"][0], program["model"]["repeat"]
    misses = phase["instructions"] * phase["repeat"] * passes * phase["misses_per_kilo_instruction"] / 1000
    return misses * LINE / seconds / 1e9


def rivals(cosched, figures, threads):
    """Rows: machine, workload, placement, and for each policy the total, the sum of speeds and F."""
    machines = {"dunnington-24": figures.machine, "opteron-64": load(ROOT / "machines" / "opteron-64.toml")}
    rows = []
    with ThreadPoolExecutor(threads) as pool:
        for machine, described in machines.items():
            for placement in ("spread", "packed"):
                alone = lambda programs: {
                    name: cosched.alone(program, program["threads"], described, placement)
                    for name, program in programs.items()
                }
                known = {
                    kind: {
                        name: {**programs[name], "memory_gigabytes_per_second": traffic(programs[name], seconds)}
                        for name, seconds in alone(programs).items()
                    }
                    for kind, programs in (("streams", figures.streams), ("programs", figures.programs))
                }
                table = cosched.kept / f"slowdowns-{machine}-{placement}.toml"
                table.write_text(cosched.slowdowns(list(known["streams"].values()), described, placement))
                programs = known["programs"]
                seconds = alone(figures.programs)
                workloads = {
                    "whole": list(programs.values()),
                    "memory-bound": [programs[name] for name in MEMORY_BOUND for _ in range(3)],
                }
                for workload, listed in workloads.items():
                    runs = {
                        policy: pool.submit(
                            cosched.run, listed, described, policy, placement, figures.point.quantum,
                            ["--slowdowns", str(table)] if policy == "bandwidth" else [],
                        )
                        for policy in POLICIES
                    }
                    results = {policy: with_alone(run.result(), seconds) for policy, run in runs.items()}
                    found = {
                        policy: {key: run[key] for key in ("total", "weighted", "fairness")}
                        for policy, run in results.items()
                    }
                    rows.append({"machine": machine, "placement": placement, "workload": workload, "policies": found})
    return rows
