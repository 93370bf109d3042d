"""rounds.py: which cells and variants are measured, in which order, and what is left to do of an interrupted bench."""

import hashlib
import sys

from lib.runner import say


def in_turn(rounds, variants):
    """What each of the variants came to in each round; each round begins with the next one."""
    samples = {name: [] for name in variants}
    for number in range(rounds):
        for name in turned(list(variants), number):
            samples[name].append(variants[name]())
    return samples


def turned(names, number):
    """In the order of a round, so that none always follows the same one."""
    first = number % len(names)
    return names[first:] + names[:first]


def by_figure(samples):
    """What each variant came to, figure by figure instead of round by round."""
    return {variant: {key: [one[key] for one in rounds] for key in rounds[0]} for variant, rounds in samples.items()}


def resume(report, earlier, listed="cells"):
    """Gives the report the cells that an earlier one has, failed ones aside. Both have to have been asked for alike."""
    if not earlier:
        return
    for key in report.keys() - {"started_at", "left_out", listed}:
        if earlier.get(key) != report[key]:
            sys.exit(f"bench: --resume: {key} was {earlier.get(key)} and is {report[key]} now: use the options of before, or begin anew "
                     "without --resume")
    done = [cell for cell in earlier[listed] if not cell.get("failed")]
    say(f"{len(done)} {listed} were measured before")
    report.update(earlier | report | {"started_at": earlier["started_at"], listed: done})


def not_yet(cells, report, listed="cells", named="cell"):
    """Those that the report has nothing of."""
    done = {cell[named] for cell in report[listed]}
    return [cell for cell in cells if cell.name not in done]


def chosen(cells, options):
    """Those of the cells that were asked for."""
    parts = options.cells.split(",")
    found = [cell for cell in cells if any(part in cell.name for part in parts)]
    if not found:
        sys.exit("bench: --cells: no cell is called like that")
    return sample(found, options.sample) if options.sample else found


def sample(cells, many):
    """So many of the cells, drawn by lot. The lots are their names' hashes, so that what else there is changes nothing."""
    return sorted(cells, key=lambda cell: hashlib.sha256(cell.name.encode()).digest())[:many]


def chosen_variants(asked, always, usual, further=()):
    """What each of the variants adds that were asked for, beside those that are always there; all usual ones where none was."""
    if not asked:
        return dict(usual)
    known, requested = usual | dict(further), [*always, *asked.split(",")]
    for variant in requested:
        if variant not in known:
            sys.exit(f"bench: --variants: {variant} is none; there are {', '.join(known)}")
    return {variant: added for variant, added in known.items() if variant in requested}
