"""The page of results, with the policy `bandwidth` beside those of the thesis, on a machine with a bus and on one without.

Its table of slowdowns is that of the modelled machine, made with the same placement; the traffic of every
program is what it has alone there. Both are measurements of solo runs and of STREAM, never of the workload.
"""

from common.report import page
from common.sim import ROOT, in_threads, load
from lib.report import table
from points import MEMORY_BOUND
from sim import alone, run, slowdowns, with_alone

LINE = 64
POLICIES = ["greedy", "cgreedy", "minwait", "bandwidth"]
# Of each figure: which is best, and how it is told.
BEST = {"total": (min, "{:.2f}"), "weighted": (max, "{:.2f}"), "fairness": (min, "{:.4f}")}


def tell(rows, settings, first, threads):
    """The claims, and the policy `bandwidth` beside those of the thesis."""
    compared = rivals(first.cosched, first, threads)
    text = page("scaff", "thesis on scaff", rows, ("assumption", "constant"), source="the thesis", figure=None,
                rest="the others are inputs or pictures", unchecked="only in pictures: not judged")
    return {"claims": rows, "rivals": compared}, text + "\n".join(more(settings, compared)) + "\n"


def more(settings, compared):
    yield "\nOther assumptions: " + "; ".join(p.name for p in settings if p.kind == "assumption") + ".\n"
    yield "## The policy `bandwidth`\n"
    yield ("Seconds until every program has ended once / sum of the programs' speeds relative to alone / F. "
           "The best of each row is bold.\n")
    names = list(compared[0]["policies"])
    yield from table(["machine, workload, placement", *names], (
        [f"{row['machine']}, {row['workload']}, {row['placement']}",
         *(" / ".join(mark(row["policies"], name, key) for key in BEST) for name in names)] for row in compared))


def mark(policies, name, key):
    """A figure, bold if no other policy has a better one."""
    best, form = BEST[key]
    shown = {other: form.format(found[key]) for other, found in policies.items()}
    return f"**{shown[name]}**" if shown[name] == best(shown.values(), key=float) else shown[name]


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
    def all_alone(programs):
        return {name: alone(cosched, program, program["threads"], described, placement)
                for name, program in programs.items()}

    def known(programs, seconds):
        return {name: {**program, "memory_gigabytes_per_second": traffic(program, seconds[name])}
                for name, program in programs.items()}

    seconds = all_alone(figures.programs)
    programs = known(figures.programs, seconds)
    streams = known(figures.streams, all_alone(figures.streams))
    table = cosched.kept / f"slowdowns-{machine}-{placement}.toml"
    table.write_text(slowdowns(cosched, list(streams.values()), described, placement))
    workloads = {"whole": list(programs.values()),
                 "memory-bound": [programs[name] for name in MEMORY_BOUND for _ in range(3)]}

    def compared(job):
        workload, policy = job
        more = ["--slowdowns", str(table)] if policy == "bandwidth" else []
        quantum = figures.point.quantum
        result = run(cosched, workloads[workload], described, policy, placement, quantum, more)
        found = with_alone(result, seconds)
        return {key: found[key] for key in ("total", "weighted", "fairness")}

    found = in_threads(threads, compared, [(name, policy) for name in workloads for policy in POLICIES])
    for name in workloads:
        policies = {policy: found[name, policy] for policy in POLICIES}
        yield {"machine": machine, "placement": placement, "workload": name, "policies": policies}
