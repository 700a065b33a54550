"""One case: a job in folders of its own, run again and again.

    FOLDER/in    inputs           FOLDER/bad   damaged copies of them
    FOLDER/out   the output       FOLDER/tmp   temporary files

The tool runs in FOLDER, so that a failure can be repeated from a copy of it.
"""

import hashlib
import os
import re
import shlex
import shutil
import signal
from pathlib import Path

from .commands import random_job

MIB = 1 << 20
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30}
FLOOR = re.compile(r"floor (?:of this job, )?([\d.]+) (B|KiB|MiB|GiB)")
NEEDED = re.compile(r"the job needs a memory limit of ([\d.]+) (B|KiB|MiB|GiB)")


def size_in(pattern, text):
    found = pattern.search(text)
    return int(float(found[1]) * UNITS[found[2]]) if found else None


def digest(path):
    """What is at a path: None, a file's bytes, or a folder's files."""
    if path.is_dir():
        return {str(file.relative_to(path)): digest(file) for file in sorted(path.rglob("*")) if file.is_file()}
    return hashlib.sha1(path.read_bytes()).hexdigest() if path.exists() else None


class Case:
    # Seconds after which a run hangs.
    patience = 60

    def __init__(self, rng, folder, starter, binary, big):
        self.rng, self.folder, self.starter, self.binary = rng, folder, starter, binary
        for name in ("in", "out", "tmp", "bad"):
            (folder / name).mkdir(parents=True)
        self.job = random_job(rng, folder / "in", big)
        self.job.inputs = [Path("in") / path.name for path in self.job.inputs]
        same = self.job.output and Path(self.job.output).suffixes == Path(self.job.inputs[0]).suffixes
        self.in_place = bool(same) and len(self.job.inputs) == 1 and not self.job.stdin and not self.job.whole_folder and rng.random() < 0.3
        # The right output, and what was there before.
        self.right = self.before = None
        self.seconds = 0.05
        self.knobs = []
        self.limit = None
        # For `repeat.sh`: what was run, and what was done to files.
        self.commands, self.notes = [], []

    @property
    def output(self):
        return self.folder / "out" / self.job.output if self.job.output else self.folder / "stdout"

    def state(self):
        return digest(self.output)

    # ---- before a run -------------------------------------------------------------------------

    def empty(self, name):
        for path in (self.folder / name).iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def stage(self, old=None):
        """Nothing is left of other runs; an older output may be there, or is the input."""
        self.empty("out")
        self.empty("tmp")
        self.output.unlink(missing_ok=True) if not self.output.is_dir() else None
        if self.in_place:
            shutil.copy(self.folder / self.job.inputs[0], self.output)
        elif self.job.output and (self.rng.random() < 0.4 if old is None else old):
            self.output.mkdir() if self.job.directory else self.output.write_bytes(b"what was there")
        self.before = self.state()
        self.inputs = self.look_at_inputs()

    def look_at_inputs(self):
        stats = {path.name: path.stat() for path in (self.folder / "in").iterdir()}
        return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in stats.items()}

    def set_knobs(self, threads=None, limit=None, more=()):
        """Options of memory and threads for the runs that follow; `limit` in bytes."""
        self.limit = limit
        self.knobs = ["--temp-dir", "tmp"] if self.job.limited else []
        if self.job.limited and threads:
            self.knobs += ["--threads", str(threads)]
        if self.job.limited and limit:
            self.knobs += ["--memory-limit", str(limit)]
        self.knobs += list(more) if self.job.limited else []

    def floor(self):
        """The least limit under these knobs, as the plan names it; None of verbs without a plan."""
        if not self.job.limited:
            return None
        ended = self.run(more=["--explain"])
        return size_in(FLOOR, ended.said + (self.folder / "stdout").read_text(errors="replace"))

    def needed(self, ended):
        """The limit that a message says a job needs, since it met a long row."""
        return size_in(NEEDED, ended.said)

    # ---- runs ---------------------------------------------------------------------------------

    def argv(self, inputs=None, output=None, more=()):
        if self.in_place:
            inputs = [Path("out") / self.job.output]
        output = output or (Path("out") / self.job.output if self.job.output else None)
        return self.job.argv(self.binary, inputs or self.job.inputs, output, [*self.knobs, *more])

    def start(self, inputs=None, output=None, more=(), limits=None, streams=None, stage=True, name="", old=None):
        if stage:
            self.stage(old)
        argv = self.argv(inputs, output, more)
        streams = {"out": self.folder / f"stdout{name}", "said": self.folder / f"said{name}", **(streams or {})}
        if self.job.stdin and "feed" not in streams:
            source = self.folder / (inputs or self.job.inputs)[0]
            streams["feed"] = {"path": str(source), "bytes": source.stat().st_size}
        self.commands.append(shlex.join(argv) + (f" <{(inputs or self.job.inputs)[0]}" if self.job.stdin else ""))
        env = {"TMPDIR": str(self.folder / "tmp"), "RUST_BACKTRACE": "0"}
        return self.starter.start(argv, self.folder, streams, limits or {}, env)

    def run(self, **how):
        return self.start(**how).end(self.patience)

    # ---- moments ------------------------------------------------------------------------------

    def wait(self, running):
        """Until a random moment: at any time, when the output has begun, or when rows are spilled."""
        way = self.rng.random()
        if way < 0.3 and self.job.output:
            running.until(lambda: any(name.startswith(".") for name in os.listdir(self.folder / "out")), 2)
            running.over(self.rng.random() ** 2 * 0.02)
        elif way < 0.6 and self.job.big:
            running.until(lambda: any(True for _ in self.temporary(running)), 2)
            running.over(self.rng.random() * self.seconds * 0.7)
        else:
            running.over(self.rng.random() * self.seconds)

    def temporary(self, running):
        """Open temporary files that hold something. They have no names."""
        start = str(self.folder / "tmp")
        for path, target in running.open_files():
            if target.startswith((start, "/memfd:")):
                try:
                    if os.stat(path).st_size:
                        yield path, target
                except OSError:
                    continue

    def stop(self, running, number=signal.SIGKILL):
        if not running.over():
            running.signal(number)
