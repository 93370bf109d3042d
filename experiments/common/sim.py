"""Calls `cosched sim`, and keeps what came of it."""

import copy
import functools
import hashlib
import inspect
import json
import pathlib
import re
import subprocess
import tomllib
from concurrent.futures import ThreadPoolExecutor

from common import ROOT
from common.constants import moved
from lib.runner import toml


def load(path):
    """A TOML file as Python values."""
    return tomllib.loads(pathlib.Path(path).read_text())


def table(x):
    """A table's lines, without a heading; every key on its own."""
    return "".join(f"{key} = {toml(item)}\n" for key, item in x.items())


def in_threads(threads, run, jobs):
    """What comes of each job, so many at once, in this order."""
    with ThreadPoolExecutor(threads) as pool:
        return dict(zip(jobs, pool.map(run, jobs)))


class Cosched:
    """The executable. Results are kept by what they were made from, so that an interrupted check goes on."""

    def __init__(self, executable, kept):
        self.executable = pathlib.Path(executable).resolve()
        self.kept = pathlib.Path(kept)
        self.kept.mkdir(parents=True, exist_ok=True)
        self.version = hashlib.sha256(self.executable.read_bytes()).hexdigest()
        self.moves, self.moved = {}, set()

    def under(self, moves):
        """The executable with constants moved in every call; `moved` are those of them that some call has."""
        found = copy.copy(self)
        found.moves, found.moved = moves, set()
        return found

    def call(self, arguments, programs, machine, watched=None):
        """What `cosched sim ARGUMENTS` prints for these programs on this machine. With a function `watched`, what that
        makes of it and of the rows that --watch writes: they are many, and only that is kept."""
        if self.moves:
            arguments, programs, machine, names = moved(
                self.moves, arguments, programs, machine, lambda: params(self.executable))
            self.moved |= names
        text = "".join("[[program]]\n" + table(program) for program in programs)
        # Where another figure is looked at, what was kept lacks it.
        looks = inspect.getsource(watched) if watched else None
        key = json.dumps([self.version, arguments, text, machine, looks], sort_keys=True)
        name = hashlib.sha256(key.encode()).hexdigest()[:32]
        kept = self.kept / f"{name}.out"
        if not kept.exists():
            workload, described, rows = (self.kept / f"{name}.{end}" for end in ("toml", "machine.toml", "jsonl"))
            workload.write_text(text)
            described.write_text(table(machine))
            command = [self.executable, "sim", *arguments, workload, "--machine", described]
            command += ["--watch", rows] if watched else []
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr}")
            partial = kept.with_suffix(".part")
            partial.write_text(json.dumps(watched(*read(done.stdout, rows))) if watched else done.stdout)
            partial.rename(kept)
            for file in (workload, described, rows):
                file.unlink(missing_ok=True)
        return kept.read_text()

    def json(self, arguments, programs, machine):
        """The result, as Python values."""
        return json.loads(self.call([*arguments, "--json"], programs, machine))

    def watched(self, arguments, programs, machine, reduced):
        """What `reduced` makes of a result and of what was watched."""
        return json.loads(self.call([*arguments, "--json"], programs, machine, watched=reduced))


@functools.cache
def params(executable):
    """The constants of policies by their names: value, lowest and highest."""
    printed = subprocess.run([executable, "sim", "params"], capture_output=True, text=True, check=True).stdout
    lines = re.findall(r"^(\S+)=(\S+) \((\S+) to (\S+);", printed, re.MULTILINE)
    return {name: tuple(map(number, values)) for name, *values in lines}


def number(text):
    """A value that is printed; a length of time stays in words."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def read(printed, rows):
    """A result and the rows of --watch, as Python values."""
    return json.loads(printed), [json.loads(row) for row in rows.read_text().splitlines()]
