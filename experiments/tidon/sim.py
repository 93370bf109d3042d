"""Calls `cosched sim` and keeps what the checks need of its results."""

import json

from common import sim


class Cosched(sim.Cosched):
    """The executable, and what the checks need of it."""

    def run(self, programs, machine, kernel):
        """A run of programs together: for each of them, in order, what it came to."""
        arguments = ["--kernel", kernel, "--policy", "linux", "--json", "--no-solo"]
        return [reduced(program) for program in json.loads(self.call(arguments, programs, machine))["programs"]]


def reduced(program):
    """Of a program's result: what a run took on average, and what waiting cost per run (docs/json.md)."""
    ends = [completion["at_seconds"] for completion in program["completions"]]
    return {"seconds": ends[-1] / len(ends), "runs": len(ends), "threads": program["threads"], **program["usage"]["waits"]}
