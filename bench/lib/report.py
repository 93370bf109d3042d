"""report.py: what a bench has found so far, its files, and the cells of their tables."""

import json
import sys
import time

from lib.runner import say


class Report(dict):
    """A bench under way. `judge` adds what follows, `sentences` tell that, and `markdown` and `picture` make the lines of a page and of
    an SVG, if there are to be any."""

    def __init__(self, options, schema, sentences=lambda report: (), markdown=None, judge=lambda report: None, picture=None, **head):
        super().__init__({"schema": schema, "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                          "rounds": options.runs, **head})
        self.base, self.began = options.folder, time.time()
        self.sentences, self.judge = sentences, judge
        self.pages = {ending: lines for ending, lines in [(".md", markdown), (".svg", picture)] if lines}

    @property
    def files(self):
        made = [self.base.with_suffix(ending) for ending in (".json", *self.pages)]
        return ", ".join(str(file) for file in made if file.exists())

    def save(self):
        self.base.with_suffix(".json").write_text(json.dumps(self, indent=1) + "\n")
        for ending, lines in self.pages.items():
            self.base.with_suffix(ending).write_text("\n".join(lines(self)) + "\n")

    def elapsed(self):
        return f"{(time.time() - self.began) / 60:.0f} min so far"

    def each(self, things, what="cell", name=lambda thing: thing.name):
        """One after another, with a line for each that tells how far the bench is, and a file of what was found before."""
        for number, thing in enumerate(things):
            left = (time.time() - self.began) / max(1, number) * (len(things) - number) / 60
            more = f", about {left:.0f} min left" if number else ""
            say(f"{what} {number + 1} of {len(things)}: {name(thing)}; {self.elapsed()}{more}")
            yield thing

    def measure(self, things, measured, listed="cells", what="cell"):
        """Measures and judges one after another; what cannot be measured is left out."""
        for thing in self.each(things, what):
            if found := measured(thing):
                self[listed].append(found)
                self.judge(self)
                self.save()

    def done(self, failed=()):
        """The end, with an error where programs failed in some cells."""
        say(f"done in {self.elapsed().removesuffix(' so far')}: {self.files}")
        for sentence in self.sentences(self):
            print(sentence)
        if failed := list(failed):
            sys.exit(f"bench: programs failed in {', '.join(failed)}: their figures count nowhere")


def table(head, rows):
    """The lines of a table; short rows end with empty cells."""
    yield "| " + " | ".join(head) + " |"
    yield "|---" * len(head) + "|"
    for row in rows:
        yield "| " + " | ".join([*map(str, row), *[""] * (len(head) - len(row))]) + " |"


def page(head, sentences, columns, rows):
    """The lines of a page: what was measured where, what follows, and a table."""
    yield head + ".\n"
    yield from (f"- {sentence}" for sentence in sentences)
    yield ""
    yield from table(columns, rows)


def machine_line(report, *more):
    """What was measured where."""
    machine = report.get("machine") or {}
    about = [f"{machine.get('model')}, {machine.get('cpus')} CPUs, Linux {machine.get('kernel')}; {report['rounds']} rounds", *more]
    return ", ".join(about)


def interval(estimate, digits=3):
    if estimate is None:
        return "–"
    if estimate["interval"] is None:
        return f"{estimate['value']:.{digits}f}"
    low, high = estimate["interval"]
    return f"{estimate['value']:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def with_verdict(against):
    """A variant against the first one, as `cosched compare` tells it; None: it is the first one."""
    return f"{interval(against['total_ratio'])} {against['verdict'].replace('-', ' ')}" if against else "1"


# What is taken over from `cosched compare --json`, by our names.
FIGURES = {name: name for name in ["ratio_to_solo_sum", "total_seconds", "mean_turnaround_seconds", "unfairness",
                                   "own_cpu_percent", "failed", "against", "samples"]}
FIGURES["responsiveness_max_seconds"] = "responsiveness_longest_gap_seconds"


def figures(document):
    """Of each variant that `cosched compare` has compared."""
    return {variant["variant"]: {ours: variant[theirs] for ours, theirs in FIGURES.items()} for variant in document["variants"]}
