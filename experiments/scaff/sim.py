"""Calls `cosched sim` and keeps what the checks need of its results."""

import statistics


def run(cosched, programs, machine, policy, placement="spread", quantum="100ms", more=()):
    """A run of programs, reduced to what is looked at."""
    arguments = ["--kernel", "cfs", "--policy", policy, "--no-solo", *more]
    if policy != "linux":
        # The quanta of the thesis do not shrink with the number of gangs.
        arguments += ["--placement", placement, "--quantum", quantum, "--max-frozen", "1h"]
    return reduced(cosched.json(arguments, programs, machine))


def alone(cosched, program, threads, machine, placement="spread"):
    """Seconds that a program takes alone with so many threads."""
    program = {**program, "threads": threads, "repeat": 1}
    return run(cosched, [program], machine, "gang", placement)["total"]


def slowdowns(cosched, programs, machine, placement="spread"):
    """The text of the table of pairs and triples."""
    return cosched.call(["slowdowns", "--kernel", "cfs", "--placement", placement], programs, machine)


def reduced(result):
    """Of a result: its totals, and for each program its times, its mean wait, and when it ran."""
    programs = {}
    for program in result["programs"]:
        spans = [(begin, end) for begin, end, *_ in program["timeline"]]
        end = program["arrived_seconds"] + program["turnaround_seconds"]
        gaps = [b[0] - a[1] for a, b in zip(spans, spans[1:]) if b[0] < end]
        programs[program["name"]] = {
            "command": program["command"][0],
            "total": program["turnaround_seconds"],
            "running": program["running_seconds"],
            "wait": sum(gaps) / len(gaps) if gaps else 0.0,
            "spans": spans,
        }
    return {
        "total": result["total_seconds"],
        "programs": programs,
        "use": result["metrics"]["cpu_utilisation"],
        "wait": result["metrics"]["responsiveness_max_seconds"],
    }


def with_alone(result, alone):
    """A result, with what its programs take alone (seconds, by command), and what follows from that."""
    for name, program in result["programs"].items():
        program["alone"] = alone[program["command"]]
        program["speed"] = program["alone"] / program["total"]
    speeds = [program["speed"] for program in result["programs"].values()]
    return {**result, "fairness": statistics.pstdev(speeds), "weighted": sum(speeds)}


def gangs(result, quantum=0.1, quanta=6):
    """Which programs run in the middle of each of the first quanta."""
    middles = [(number + 0.5) * quantum for number in range(quanta)]
    runs = lambda program, middle: any(begin <= middle < end for begin, end in program["spans"])
    return [frozenset(name for name, program in result["programs"].items() if runs(program, middle)) for middle in middles]
