"""Exceptions by kind, in Python's words, with the place that they are about."""

# Calls are wrong on purpose.
# pyright: reportArgumentType=false, reportCallIssue=false

import os
import pathlib
import pickle
import subprocess
import sys

import pyarrow as pa
import pytest
import windrow as wr


def test_usage(rows):
    with pytest.raises(wr.UsageError, match="no column named \"x\"; the columns are id, text0") as raised:
        wr.sort(rows, by="x")
    assert raised.value.column == "x" and isinstance(raised.value, ValueError)
    for call in [
        lambda: wr.sort(rows, by="id:down"),
        lambda: wr.sort(rows, by=[]),
        lambda: wr.sort([], by="id"),
        lambda: wr.sort(rows, by="id", output="a.unknown"),
        lambda: wr.sort(rows, by="id", output="a.parquet", write={"compression": "zip"}),
        lambda: wr.sort(rows, by="id", output="a.parquet", parquet={"page_size": 10}),
        lambda: wr.sort(rows, by="id", memory="none"),
        lambda: wr.sort(rows, by="id", threads=0),
        lambda: wr.sort(rows, by="id", spill={"to": "tape"}),
        lambda: wr.sort(rows, by="id", spill={"temp_dir": "missing"}),
        lambda: wr.sort(rows, by="id", csv={"delimiter": "ab"}),
        lambda: wr.col("id", nulls="middle"),
        lambda: wr.compact(rows),
        lambda: wr.compact(rows, key="id", preset="oracle"),
        lambda: wr.compact(rows, changes={"diff": "id"}, op="id"),
        lambda: wr.merge(rows, by="id", changes={"time": "id"}),
        lambda: wr.partition(rows, by="id", output="parts"),
        lambda: wr.partition(rows, by="id", output="parts", into=2, hive=True),
        lambda: wr.partition(rows, by="id", output=None, into=2),
    ]:
        with pytest.raises(wr.UsageError) as raised:
            call()
        assert "--" not in str(raised.value)
    assert os.listdir() == []


def test_messages_have_the_words_of_this_package(rows):
    with pytest.raises(wr.UsageError, match=r'write\["format"\]='):
        wr.sort(rows, by="id", output="a.unknown")
    with pytest.raises(wr.UsageError, match="select="):
        wr.sort(rows, by="id", select="x")


def test_types(rows):
    for call in [
        lambda: wr.sort(3, by="id"),
        lambda: wr.sort([rows, None], by="id"),
        lambda: wr.sort(rows, by=3),
        lambda: wr.sort(rows, by="id", memory=1.5),
        lambda: wr.sort(rows, by="id", output=3),
        lambda: wr.sort(rows, by="id", progress="yes"),
        lambda: wr.sort(rows, by="id", unknown=1),
        lambda: wr.explain.sort(rows, by="id", unknown=1),
        lambda: wr.sort(rows),
    ]:
        with pytest.raises((TypeError, wr.UsageError)):
            call()


def test_a_pattern_without_files_is_a_file_that_is_not_there():
    with pytest.raises(FileNotFoundError, match="no file matches") as raised:
        wr.sort("none-*.parquet", by="id")
    assert isinstance(raised.value, wr.InputNotFoundError) and raised.value.file == "none-*.parquet"


def test_missing_inputs():
    with pytest.raises(FileNotFoundError) as raised:
        wr.sort("missing.parquet", by="id")
    assert isinstance(raised.value, wr.WindrowError) and "missing.parquet" in str(raised.value)
    assert raised.value.file == "missing.parquet"


def test_data():
    pathlib.Path("a.csv").write_text("id\n" + "1\n" * 300_000 + "x\n")
    with pytest.raises(wr.DataError) as raised:
        wr.sort("a.csv", by="id", output="b.csv", read={"schema": "id:int64"})
    assert raised.value.file == "a.csv" and isinstance(raised.value, ValueError)
    pathlib.Path("damaged.parquet").write_bytes(b"PAR1" + b"\0" * 100 + b"PAR1")
    with pytest.raises(wr.DataError, match="damaged.parquet"):
        wr.inspect("damaged.parquet")
    assert sorted(os.listdir()) == ["a.csv", "damaged.parquet"]


def test_unsorted():
    tables = [pa.table({"id": [1, 2]}), pa.table({"id": [1, 3, 2]})]
    with pytest.raises(wr.UnsortedError) as raised:
        wr.merge(tables, by="id", output="a.parquet")
    assert raised.value.file == "inputs[1] (Table)" and raised.value.row == 2
    with pytest.raises(wr.DataError):
        list(wr.merge(tables, by="id"))


def test_what_a_producer_raises(rows):
    def batches():
        yield rows.to_batches(1000)[0]
        raise RuntimeError("the producer gave up")

    for output in ["a.parquet", None]:
        with pytest.raises(wr.DataError, match="the producer gave up"):
            wr.sort(pa.RecordBatchReader.from_batches(rows.schema, batches()), by="id", output=output)
    assert os.listdir() == []


def test_the_floor(rows):
    with pytest.raises(wr.MemoryFloorError) as raised:
        wr.sort(rows, by="id", memory="1MiB", output="a.parquet")
    error = raised.value
    assert isinstance(error, MemoryError) and error.limit == 1 << 20
    assert 8 << 20 < error.floor < 80 << 20 and "memory=1024 KiB is below the floor" in str(error)
    wr.sort(rows, by="id", memory=error.floor + (1 << 20), output="a.parquet")


PAGED_OUT = """
import ctypes, pathlib, windrow as wr

def floor():
    try:
        wr.sort("rows.parquet", by="id", output="s.parquet", memory="1MiB")
    except wr.MemoryFloorError as error:
        return error.floor

def page_out():
    libc, pageout = ctypes.CDLL(None), 21
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        if "/_windrow." in line:
            start, end = (int(place, 16) for place in line.split()[0].split("-"))
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), pageout)

floor()
before = floor()
page_out()
assert abs(floor() - before) <= 1 << 20
page_out()
wr.sort("rows.parquet", by="id", output="s.parquet", memory=before + (1 << 20))
"""


def test_the_floor_stays_where_the_system_takes_code_away(file):
    """Code of the package that is paged out between two calls comes back while the second opens its inputs.

    In a process of its own, where the system takes no code of other libraries away.
    """
    done = subprocess.run([sys.executable, "-c", PAGED_OUT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_space(rows):
    with pytest.raises(wr.SpaceError) as raised:
        wr.sort(rows, by="id", output="/proc/nothing.parquet")
    assert isinstance(raised.value, OSError) and raised.value.file.startswith("/proc/")


def test_fields_survive_pickling():
    error = wr.UnsortedError("row 2")
    error.row = 2
    copy = pickle.loads(pickle.dumps(error))
    assert copy.row == 2 and str(copy) == "row 2" and copy.file is None
