"""runner.py: starts cosched and the programs beside it, finds out which variants there are, and how much work takes how long."""

import contextlib
import glob
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from lib import verdicts

BENCH = pathlib.Path(__file__).resolve().parent.parent
WORKLOADS = BENCH.parent / "workloads"
HOOK = BENCH.parent / "crates" / "hook"
# A first run takes at least this share of the time that is wanted, before its work is scaled.
ENOUGH = 0.2
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def run(main, kept):
    """Runs a bench. If it is interrupted, it says what is kept."""
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(f"bench: interrupted; {kept}")


def cpus():
    return len(os.sched_getaffinity(0))


def plain_environment():
    """What a shell has set for OpenMP would turn plain Linux into another variant."""
    for name in [name for name in os.environ if name.startswith(("OMP_", "GOMP_", "OPENBLAS_", "MKL_"))]:
        say(f"{name} is set in this shell; the programs run without it")
        del os.environ[name]


def cell_folder(folder, name):
    """An empty folder for the runs of a cell."""
    found = folder / "".join(letter if letter.isalnum() else "-" for letter in name)
    shutil.rmtree(found, ignore_errors=True)
    found.mkdir()
    return found


class Cosched:
    """The executable, run for one command after another. An interruption of this script ends the command first, which
    then tells what it has. The command is in a session of its own, so that Ctrl-C comes to it once, through this script."""

    def __init__(self, executable):
        self.executable = executable
        self.running = None
        self.interrupted = False
        verdicts.judge_by(executable)
        for number in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]:
            signal.signal(number, self.interrupt)

    def interrupt(self, *_):
        self.interrupted = True
        if not self.running:
            raise KeyboardInterrupt
        self.running.terminate()

    def __call__(self, *words, **keywords):
        if self.interrupted:
            raise KeyboardInterrupt
        command = [self.executable, *map(str, words)]
        with subprocess.Popen(command, text=True, start_new_session=True, **keywords) as self.running:
            out, err = self.running.communicate()
        done = subprocess.CompletedProcess(command, self.running.returncode, out, err)
        self.running = None
        return done

    def json(self, *words, partial=False, may_fail=False, strict=False, **keywords):
        """What a command prints as JSON. `partial`: also if it was interrupted; `may_fail`: None if it prints nothing; `strict`:
        no program may fail."""
        done = self(words[0], "--json", *words[1:], **{"stdout": subprocess.PIPE, **keywords})
        if self.interrupted and not (partial and done.stdout):
            raise KeyboardInterrupt
        if (done.stdout or may_fail) and not (strict and done.returncode):
            return json.loads(done.stdout) if done.stdout else None
        sys.exit(f"bench: {' '.join(map(str, done.args))} failed\n{done.stderr or ''}")

    def compare(self, report, file, variants, *words, **keywords):
        """What `cosched compare` finds in the rounds of a report, which gets the machine."""
        document = self.json("compare", file, *words_of(variants), "--runs", report["rounds"], *words, **keywords)
        if document:
            report["machine"] = document["machine"]
        return document

    def fails(self, file, policy, out):
        """Runs a workload; why it failed, or None."""
        done = self("run", file, "--policy", policy, "--out", out, "--json", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if self.interrupted:
            raise KeyboardInterrupt
        return done.stderr.strip() or f"status {done.returncode}" if done.returncode else None

    def lacks(self, *words):
        """Why a command fails; None if it does not."""
        tried = self(*words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        return tried.stderr.strip().splitlines()[0] if tried.returncode else None

    def beside(self, *words, **keywords):
        """A command that goes on until it is not needed any more."""
        return beside([self.executable, *words], signal.SIGINT, **keywords)


@contextlib.contextmanager
def beside(command, end=signal.SIGKILL, **keywords):
    """A program that goes on until it is not needed any more, and then gets a signal."""
    keywords = {"stdout": subprocess.DEVNULL, **keywords}
    with subprocess.Popen([*map(str, command)], **keywords) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(end)


def round_folders(out, variant):
    """Where `cosched compare --out` left the runs of a variant; with one round there are no folders of rounds."""
    return [one / variant for one in sorted(out.glob("round-[0-9]*")) or [out]]


def words_of(variants):
    """Variants on the command line of `cosched compare`: of each its name, and the policy with options; where both are the same, it is
    a policy or rival that `cosched compare` knows."""
    policies = [name for name, words in variants.items() if words == name]
    named = [word for name, words in variants.items() if words != name for word in ["--variant", f"{name}={words}"]]
    return [*(["--policies", ",".join(policies)] if policies else []), *named]


def possible(cosched, asked):
    """The variants that can be had here, and why the others cannot."""
    variants, left_out = {}, {}
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(program(["true"], threads=1, misses_per_kilo_instruction=1.0))
        file.flush()
        for variant, words in asked.items():
            if problem := cosched.lacks("compare", file.name, *words_of({variant: words}), "--runs", 1):
                leave_out(left_out, variant, problem)
            else:
                variants[variant] = words
    if not variants:
        sys.exit("bench: no variant can be had here")
    return variants, left_out


def leave_out(left_out, what, why):
    left_out[what] = why
    say(f"{what} is left out: {why}")


def toml(value):
    """A value as TOML writes it."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {toml(item)}" for name, item in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value if isinstance(value, (bool, int, float)) else str(value))


def program(command, **keys):
    """A program of a workload file, with further keys."""
    words = command if isinstance(command, str) else [*map(str, command)]
    lines = [f"{key} = {toml(value)}" for key, value in {"command": words, **keys}.items()]
    return "\n".join(["[[program]]", *lines]) + "\n"


def kernel(name, *words):
    """The command of a program of workloads/."""
    return [str(word) for word in [WORKLOADS / "bin" / name, *words]]


def seconds_of(command):
    """How long a kernel took, by its own word."""
    done = subprocess.run([*map(str, command)], text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    found = told_seconds(done.stdout)
    if done.returncode != 0 or found is None:
        sys.exit(f"bench: {' '.join(map(str, command))} failed")
    return found


def told_seconds(printed):
    match = re.search(r" ok .* seconds=([0-9.]+)", printed)
    return float(match[1]) if match else None


def fitted(took, first, seconds):
    """How much work takes so many seconds. `took` tells that of an amount, or None where it fails; amounts grow until they
    take some time at all."""
    amount = first
    for attempt in range(8):
        if (needed := took(amount)) is None:
            return None
        if needed >= ENOUGH * seconds or attempt == 7:
            return amount * seconds / max(needed, 1e-3)
        amount *= min(10.0, 0.5 * seconds / max(needed, 1e-3))


def fitted_kernel(seconds, name, *words):
    """A kernel's command, with as much work as takes so many seconds."""
    command = kernel(name, *words, "--work")
    return [*command, f"{fitted(lambda work: seconds_of([*command, work]), 0.2, seconds):.4g}"]


def cpu_seconds(process):
    """CPU time of all threads so far, to the nanosecond."""
    tasks = pathlib.Path(f"/proc/{process}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def cpu_percent(process, start, length):
    """CPU time of a process in percent of one CPU, over so many seconds after those of its start; and how long that was."""
    time.sleep(start)
    before, since = cpu_seconds(process), time.monotonic()
    time.sleep(length)
    used, took = cpu_seconds(process) - before, time.monotonic() - since
    return 100 * used / took, took


def halves():
    """Two groups of the CPUs that may be used, as options of cosched name them."""
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        sys.exit("bench: with one CPU there is nothing to shuffle between")
    half = len(usable) // 2
    return ",".join("+".join(map(str, part)) for part in (usable[:half], usable[half:]))


def llvm_runtime():
    """LLVM's OpenMP runtime, where distributions put it; None: nowhere."""
    found = [path for pattern in ["/usr/lib/*/libomp.so.5", "/usr/lib/llvm-*/lib/libomp.so.5", "/usr/lib64/libomp.so*"]
             for path in sorted(glob.glob(pattern))]
    return found[0] if found else None
