"""Daft, in an environment of its own: it takes no pyarrow as new as that of the other tests."""

import daft
import pyarrow as pa
import pytest
import windrow as wr
from conftest import ROOT, shuffled
from test_guides import run


@pytest.fixture(autouse=True)
def own_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def test_readers_are_taken():
    reader = wr.sort(shuffled(20_000), by="id")
    got = daft.from_arrow(reader).to_pydict()
    assert got["id"] == list(range(20_000)) and got["text0"][7] == "0-000000000007"
    assert reader.stats.rows_out == 20_000


def test_frames_are_inputs():
    frame = daft.from_arrow(shuffled(20_000))
    few = frame.where(daft.col("id") < 100)
    got = pa.table(wr.sort(few, by="id:desc"))
    assert got["id"].to_pylist() == list(range(99, -1, -1))
    assert wr.sort(frame, by="id", output="sorted.parquet").rows_out == 20_000
    assert daft.read_parquet("sorted.parquet").to_pydict()["id"] == list(range(20_000))


def test_the_guide():
    run(ROOT / "docs/site/guides/daft.md")
