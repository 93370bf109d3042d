"""guarded.py: what the guard of `faithful` did in a run, by the reasons in its run.json."""

import collections


def summary(run):
    """Of the first program: the actuator that it was left with, how long others were tried, and the progress that each was
    found to make of what it was held against (the last one counts)."""
    left_with, against, since, trying, progress = "none", "none", None, 0.0, {}
    end = run["total_seconds"]
    for decision in run["decisions"]:
        for reason in decision["reasons"]:
            if (reason.get("program") or {}).get("slot") != 0:
                continue
            if reason["why"] in ("kept", "put-back", "given") and since is not None:
                trying, since = trying + decision["at_seconds"] - since, None
            if reason["why"] in ("given", "recalled"):
                left_with = reason["actuator"]
            elif reason["why"] == "tried":
                against, since = reason["against"], decision["at_seconds"]
            elif reason["why"] in ("kept", "put-back"):
                left_with = reason["actuator"] if reason["why"] == "kept" else against
                progress[reason["actuator"]] = reason["progress"]
    if since is not None:
        trying += end - since
    return {"left_with": left_with, "trying_seconds": trying, "progress": progress}


def shown(rounds):
    """In how many rounds the program was left with what."""
    counts = collections.Counter(one["left_with"] for one in rounds)
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())
