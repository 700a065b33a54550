"""Windrow's binary against oracles that its authors did not write: DuckDB, pyarrow, Polars.

    WINDROW       the binary; target/release/windrow of this repository unless set
    ORACLE_SEED   a number, or `random`; 1 unless set. Printed first; every test draws from it and its own name.
"""

import json
import os
import pathlib
import random
import subprocess
import zlib
from dataclasses import dataclass

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPORTING = {"apply", "sort", "compact", "merge", "partition"}


def _seed():
    text = os.environ.get("ORACLE_SEED", "1")
    return random.randrange(1 << 32) if text == "random" else int(text)


SEED = _seed()


def binary():
    path = pathlib.Path(os.environ.get("WINDROW", ROOT / "target/release/windrow"))
    if not path.exists():
        raise pytest.UsageError(f"no binary at {path}: cargo build --release, or set WINDROW")
    return path.resolve()


def pytest_report_header():
    return f"ORACLE_SEED={SEED}  WINDROW={binary()}"


def pytest_collection_modifyitems(items):
    """The first case of each test is marked `smoke`: a look at everything, in a minute."""
    seen = set()
    for item in items:
        name = item.nodeid.split("[", 1)[0]
        if name not in seen:
            seen.add(name)
            item.add_marker(pytest.mark.smoke)


@dataclass
class Run:
    """What one run of the binary left behind."""

    code: int
    stdout: bytes
    stderr: str
    stats: dict | None

    def ok(self):
        assert self.code == 0, f"exit {self.code}: {self.stderr}"
        return self

    def fails(self, code, *parts):
        """It failed with this exit code, and its message has these parts."""
        assert self.code == code, f"exit {self.code} instead of {code}: {self.stderr}"
        for part in parts:
            assert str(part) in self.stderr, f"no {part!r} in: {self.stderr}"
        return self


def run(*args, stdin=None, cwd=None):
    command = [str(binary()), *map(str, args)]
    if args[0] in REPORTING and "--stats" not in args:
        command += ["--stats", "json"]
    done = subprocess.run(
        command, input=stdin, stdin=None if stdin is not None else subprocess.DEVNULL, capture_output=True, cwd=cwd, timeout=120
    )
    lines = done.stderr.decode().splitlines()
    stats = next((json.loads(line) for line in lines if line.startswith('{"rows_in"')), None)
    text = "\n".join(line for line in lines if not line.startswith('{"rows_in"'))
    return Run(done.returncode, done.stdout, text, stats)


@pytest.fixture
def windrow():
    """Runs the binary: windrow("sort", path, "--by", "id", "-o", out).ok()"""
    return run


@pytest.fixture
def rng(request):
    name = request.node.nodeid.split("::", 1)[-1]
    return np.random.default_rng([SEED, zlib.crc32(name.encode())])


@pytest.fixture
def w(tmp_path):
    """Runs a line in the directory of the test: w("sort a.csv --by id -o out.csv").ok()"""
    return lambda line: run(*(line.split() if isinstance(line, str) else line), cwd=tmp_path)
