"""The package as it is installed, against the command line tool (WINDROW) and other libraries."""

import os
import pathlib
import subprocess

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOG = ROOT / "examples/data/orders_log.parquet"


@pytest.fixture(autouse=True)
def own_directory(tmp_path, monkeypatch):
    """A test's own directory, for inputs, outputs and temporary files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))


@pytest.fixture
def tool():
    """Runs the command line tool."""
    binary = os.environ["WINDROW"]

    def run(*args):
        subprocess.run([binary, *map(str, args)], check=True, capture_output=True)

    return run


def shuffled(rows, columns=1):
    """Distinct ids in no order, and payload."""
    ids = [i * 7919 % rows for i in range(rows)]
    table = pa.table({"id": pa.array(ids, pa.int64())})
    for number in range(columns):
        table = table.append_column(f"text{number}", pa.array([f"{number}-{i:012}" for i in ids]))
    return table


@pytest.fixture
def rows():
    return shuffled(20_000)


@pytest.fixture
def file(rows):
    pq.write_table(rows, "rows.parquet")
    return "rows.parquet"
