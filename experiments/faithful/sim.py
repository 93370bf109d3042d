"""Calls `cosched sim --watch` and keeps what the checks need of its results."""

from common import sim

SUMS = ("cpu_seconds", "run_delay_seconds", "lock_seconds", "voluntary", "for_locks", "holder_queued", "expired",
        "by_sibling", "by_other", "holders", "turns", "priority_expired", "priority_slept", "priority_ran",
        "priority_waited", "priority_preempted")
ONE_ROW = 'schema = "cosched-quanta/1"\n[[row]]\nup_to = 1.0\nslice_milliseconds = {}\n'


class Cosched(sim.Cosched):
    """The executable, and what the checks need of it."""

    def one_slice(self, milliseconds):
        """A table (docs/research/quanta.md) by which faithful gives this slice to all; its file."""
        file = self.kept / f"slice-{milliseconds}.toml"
        file.write_text(ONE_ROW.format(milliseconds))
        return str(file)

    def run(self, programs, machine, policy, kernel="solaris-ts", seed=1, more=()):
        """A run of programs, reduced to what is looked at."""
        # The paper's policy looks no more once it has chosen.
        pure = ["--no-guard"] if policy == "faithful" else []
        arguments = ["--kernel", kernel, "--policy", policy, *pure, "--seed", str(seed), "--no-solo", *more]
        return self.watched(arguments, programs, machine, reduced)


def reduced(result, rows):
    """Of a result: for each program its time, its sums, and each interval; and the slices that were chosen."""
    programs = {}
    for program in result["programs"]:
        own = [row for row in rows if row["program"] == program["name"]]
        sums = {key: sum(row[key] for row in own) for key in SUMS}
        seconds = program["turnaround_seconds"]
        share = sums["lock_seconds"] / (seconds * own[0]["threads"]) if own else 0.0
        steps = [
            {key: row[key] for key in ("from_seconds", "to_seconds", "run_delay_seconds", "lock_seconds", "expired",
                                       "by_sibling", "by_other", "llc_references", "llc_misses", "run_queue", "threads")}
            for row in own
        ]
        programs[program["name"]] = {"seconds": seconds, "lock_share": share, "steps": steps, **sums}
    slices = [
        {"at": decision["at_seconds"], "ms": why["slice"] / 1e6, "lock": why["lock_contention"], "miss": why["miss_ratio"]}
        for decision in result["decisions"]
        for why in decision["reasons"]
        if why["why"] == "slice"
    ]
    return {"total": result["total_seconds"], "programs": programs, "slices": slices}
