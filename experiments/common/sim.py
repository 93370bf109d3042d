"""Calls `cosched sim`, and keeps what came of it."""

import hashlib
import json
import pathlib
import subprocess
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def load(path):
    """A TOML file as Python values."""
    return tomllib.loads(pathlib.Path(path).read_text())


def value(x):
    """A value as TOML writes it."""
    if isinstance(x, bool):
        return str(x).lower()
    if isinstance(x, dict):
        return "{" + ", ".join(f"{key} = {value(item)}" for key, item in x.items()) + "}"
    if isinstance(x, list):
        return "[" + ", ".join(map(value, x)) + "]"
    return json.dumps(x) if isinstance(x, str) else repr(x)


def table(x):
    """A table's lines, without a heading; every key on its own."""
    return "".join(f"{key} = {value(item)}\n" for key, item in x.items())


class Cosched:
    """The executable. Results are kept by what they were made from, so that an interrupted check goes on."""

    def __init__(self, executable, kept):
        self.executable = pathlib.Path(executable).resolve()
        self.kept = pathlib.Path(kept)
        self.kept.mkdir(parents=True, exist_ok=True)
        self.version = hashlib.sha256(self.executable.read_bytes()).hexdigest()

    def call(self, arguments, programs, machine, watched=None):
        """What `cosched sim ARGUMENTS` prints for these programs on this machine. With a function `watched`, what that
        makes of it and of the rows that --watch writes: they are many, and only that is kept."""
        text = "".join("[[program]]\n" + table(program) for program in programs)
        key = json.dumps([self.version, arguments, text, machine], sort_keys=True)
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
            partial.write_text(watched(done.stdout, rows.read_text().splitlines()) if watched else done.stdout)
            partial.rename(kept)
            for file in (workload, described, rows):
                file.unlink(missing_ok=True)
        return kept.read_text()
