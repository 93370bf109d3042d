"""The policy `bandwidth` beside those of the thesis, on a machine with a bus and on one without.

Its table of slowdowns is that of the modelled machine, made with the same placement; the traffic of every
program is what it has alone there. Both are measurements of solo runs and of STREAM, never of the workload.
"""

from common.sim import ROOT, in_threads, load
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
    return [row for machine, described in machines.items() for placement in ("spread", "packed")
            for row in on_machine(cosched, figures, threads, machine, described, placement)]


def on_machine(cosched, figures, threads, machine, described, placement):
    def alone(programs):
        return {name: cosched.alone(program, program["threads"], described, placement)
                for name, program in programs.items()}

    def known(programs, seconds):
        return {name: {**program, "memory_gigabytes_per_second": traffic(program, seconds[name])}
                for name, program in programs.items()}

    seconds = alone(figures.programs)
    programs = known(figures.programs, seconds)
    streams = known(figures.streams, alone(figures.streams))
    table = cosched.kept / f"slowdowns-{machine}-{placement}.toml"
    table.write_text(cosched.slowdowns(list(streams.values()), described, placement))
    workloads = {"whole": list(programs.values()),
                 "memory-bound": [programs[name] for name in MEMORY_BOUND for _ in range(3)]}

    def run(job):
        workload, policy = job
        more = ["--slowdowns", str(table)] if policy == "bandwidth" else []
        quantum = figures.point.quantum
        result = cosched.run(workloads[workload], described, policy, placement, quantum, more)
        found = with_alone(result, seconds)
        return {key: found[key] for key in ("total", "weighted", "fairness")}

    found = in_threads(threads, run, [(name, policy) for name in workloads for policy in POLICIES])
    for name in workloads:
        policies = {policy: found[name, policy] for policy in POLICIES}
        yield {"machine": machine, "placement": placement, "workload": name, "policies": policies}
