"""Calls `cosched sim --watch` and keeps what the checks need of its results."""

import importlib.util
import json
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SPEC = importlib.util.spec_from_file_location("scaff_sim", ROOT / "experiments" / "scaff" / "sim.py")
SCAFF = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(SCAFF)
load = SCAFF.load
SUMS = ("cpu_seconds", "run_delay_seconds", "lock_seconds", "voluntary", "for_locks", "holder_queued", "expired",
        "by_sibling", "by_other", "holders", "turns", "priority_expired", "priority_slept", "priority_ran",
        "priority_waited", "priority_preempted")


class Cosched(SCAFF.Cosched):
    """The executable. Results are kept by what they were made from."""

    def watched(self, programs, machine, policy, kernel="solaris-ts", seed=1, more=()):
        """A run of programs, reduced to what is looked at."""
        # The paper's policy looks no more once it has chosen.
        pure = ["--no-guard"] if policy == "faithful" else []
        arguments = ["--kernel", kernel, "--policy", policy, *pure, "--seed", str(seed), "--json", "--no-solo", *more]
        text = "".join("[[program]]\n" + SCAFF.table(program) for program in programs)
        key = json.dumps([self.version, arguments, text, machine], sort_keys=True)
        name = SCAFF.hashlib.sha256(key.encode()).hexdigest()[:32]
        kept = self.kept / f"{name}.json"
        if not kept.exists():
            files = [self.kept / f"{name}.{end}" for end in ("toml", "machine.toml", "jsonl")]
            files[0].write_text(text)
            files[1].write_text(SCAFF.table(machine))
            command = [self.executable, "sim", *arguments, files[0], "--machine", files[1], "--watch", files[2]]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr}")
            rows = [json.loads(line) for line in files[2].read_text().splitlines()]
            partial = kept.with_suffix(".part")
            partial.write_text(json.dumps(reduced(json.loads(done.stdout), rows)))
            partial.rename(kept)
            for file in files:
                file.unlink()
        return json.loads(kept.read_text())


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
                                       "by_sibling", "by_other", "llc_references", "llc_misses", "threads")}
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
