"""Where rows go: directories that have files, open files; and what a call leaves out, or cannot reach."""

import io
import os
import pathlib
import subprocess
import sys
import threading

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import windrow as wr

OLD = pa.table({"day": [1, 1, 2], "n": [1, 2, 3]})
NEW = pa.table({"day": [2, 3], "n": [4, 5]})


def lake(directory="lake"):
    return sorted(zip(*pq.read_table(directory).select(["day", "n"]).to_pydict().values()))


def put(rows, **options):
    return wr.partition(rows, "day", hive=True, output="lake", **options)


EXPECTED = {
    "overwrite": [(2, 4), (3, 5)],
    "append": [(1, 1), (1, 2), (2, 3), (2, 4), (3, 5)],
    "replace_partitions": [(1, 1), (1, 2), (2, 4), (3, 5)],
}


@pytest.mark.parametrize("mode", EXPECTED)
def test_a_directory_with_files_is_written_again(mode):
    put(OLD, mode=mode)
    os.chmod("lake", 0o750)
    put(NEW, write=wr.Write(mode=mode))
    assert lake() == EXPECTED[mode]
    put(NEW, mode=mode)
    if mode != "append":
        assert lake() == EXPECTED[mode]
    assert os.listdir() == ["lake"] and os.stat("lake").st_mode & 0o777 == 0o750


def test_rows_appended_twice_are_there_twice():
    for _ in range(3):
        put(NEW, mode="append")
    assert lake() == sorted([(2, 4), (3, 5)] * 3)
    assert sorted(os.listdir("lake/day=2")) == ["part-0-1.parquet", "part-0-2.parquet", "part-0.parquet"]


@pytest.mark.parametrize("mode", EXPECTED)
def test_a_job_that_fails_leaves_the_directory(mode):
    put(OLD)

    def batches():
        yield NEW.to_batches()[0]
        raise OSError("the producer fell over")

    with pytest.raises(wr.DataError, match="fell over"):
        put(batches(), mode=mode)
    assert lake() == sorted([(1, 1), (1, 2), (2, 3)]) and os.listdir() == ["lake"]


def test_the_directory_is_there_at_any_moment():
    tables = [pa.table({"day": list(range(5)), "n": [n] * 5}) for n in range(2)]
    put(tables[0])
    ended = threading.Event()
    failures, seen = [], 0

    def write():
        try:
            for turn in range(1, 40):
                put(tables[turn % 2], mode="replace_partitions" if turn % 3 else "overwrite")
        except Exception as error:
            failures.append(error)
        ended.set()

    thread = threading.Thread(target=write)
    thread.start()
    while not ended.is_set():
        # Of a directory that was replaced in between, some entries are removed already.
        seen += os.listdir("lake") == [f"day={day}" for day in range(5)] or os.path.isdir("lake")
    thread.join()
    assert not failures and seen > 10 and lake() == [(day, 1) for day in range(5)] and os.listdir() == ["lake"]


def test_two_writers_lose_no_rows():
    """One of two at the same moment may be told to run again."""
    put(OLD)
    done = []

    def write(number):
        for turn in range(10):
            rows = pa.table({"day": [number], "n": [turn]})
            try:
                put(rows, mode="append")
                done.append((number, turn))
            except wr.SpaceError:
                pass

    threads = [threading.Thread(target=write, args=(10 + number,)) for number in range(3)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert done and lake() == sorted([(1, 1), (1, 2), (2, 3), *done]) and os.listdir() == ["lake"]


def test_only_directories_of_data_are_replaced():
    put(OLD)
    pathlib.Path("lake/notes.txt").write_text("mine")
    for mode in EXPECTED:
        with pytest.raises(wr.UsageError, match="notes.txt"):
            put(NEW, mode=mode)
    os.rename("lake/notes.txt", "lake/_metadata")
    with pytest.raises(wr.UsageError, match="_metadata"):
        put(NEW, mode="append")
    os.rename("lake/_metadata", "lake/_SUCCESS")
    put(OLD, mode="overwrite")
    os.mkdir("lake/_delta_log")
    pathlib.Path("lake/_delta_log/00000000000000000000.json").write_text("{}")
    with pytest.raises(wr.UsageError, match="_delta_log"):
        put(NEW, mode="append")
    with pytest.raises(wr.UsageError, match='write\\["mode"\\]= says what becomes|say with write\\["mode"\\]='):
        put(NEW)
    with pytest.raises(wr.UsageError, match="needs hive="):
        wr.partition(NEW, "day", into=2, output="lake", mode="replace_partitions")
    with pytest.raises(wr.UsageError, match='needs write\\["max_file_size"\\]='):
        wr.sort(NEW, "day", output="a.parquet", write={"mode": "append"})
    with pytest.raises(TypeError, match="write={'mode': ...}"):
        wr.sort(NEW, "day", output="a.parquet", mode="append")  # pyright: ignore[reportCallIssue, reportArgumentType]
    with pytest.raises(wr.UsageError, match="none of error, overwrite, append, replace_partitions"):
        put(NEW, mode="ignore")


@pytest.mark.parametrize("extension", ["parquet", "csv", "arrow", "ndjson.gz"])
def test_open_files_are_written(extension):
    wr.sort(NEW, "n", output=f"a.{extension}")
    with open(f"b.{extension}", "wb") as file:
        assert wr.sort(NEW, "n", output=file).rows_out == 2
    assert pathlib.Path(f"a.{extension}").read_bytes() == pathlib.Path(f"b.{extension}").read_bytes()
    buffer = io.BytesIO(b"in front")
    buffer.seek(0, io.SEEK_END)
    wr.sort(NEW, "n", output=buffer, write={"format": "csv"})
    assert buffer.getvalue() == b"in frontday,n\n2,4\n3,5\n"
    assert sorted(os.listdir()) == [f"a.{extension}", f"b.{extension}"]


def test_explaining_writes_no_open_file():
    buffer = io.BytesIO()
    assert wr.explain.sort(NEW, "n", output=buffer, write={"format": "csv"}).to_dict()["order"] == "n"
    assert buffer.getvalue() == b"" and os.listdir() == []


def test_copies_of_open_files_do_not_stay():
    data = io.BytesIO()
    pq.write_table(OLD, data)

    def again():
        data.seek(0)
        return data

    spill = {"temp_dir": "."}
    wr.sort(again(), "n", output="a.parquet", spill=spill)
    reader = wr.sort(again(), "n", spill=spill)
    assert os.listdir() == ["a.parquet"] and reader.to_arrow()["n"].to_pylist() == [1, 2, 3]
    assert wr.check(again(), "n") and wr.inspect(again()).rows == 3
    with pytest.raises(wr.UsageError):
        wr.sort(again(), "x", spill=spill)
    assert os.listdir() == ["a.parquet"]


def test_what_is_left_out_is_a_warning():
    indexed = pd.DataFrame({"n": [2, 1]}, index=pd.Index(["a", "b"], name="key"))
    with pytest.warns(UserWarning, match="index 'key'.*reset_index") as noted:
        wr.sort([indexed], "n")
    assert [warning.filename for warning in noted] == [__file__]
    duckdb.sql("copy (select (range * 7919) % 100000 as n, 'x' || range % 5 as name from range(100000)) to 'bloom.parquet'")
    with pytest.warns(UserWarning, match="Bloom filters") as noted:
        wr.sort("bloom.parquet", "n", output="a.parquet")
    assert [warning.filename for warning in noted] == [__file__]


def test_a_reader_says_that_it_is_not_read():
    reader = wr.sort(OLD, "n")
    assert "; not all rows were read" in repr(reader.stats) and "not all were read" in reader.stats._repr_html_()
    reader.to_arrow()
    assert reader.stats.rows_out == 3 and "not all" not in repr(reader.stats)


DENIED = """
import os, sys, windrow as wr
if os.getuid() == 0:
    os.setuid(65534)
for call in [lambda: wr.sort("secret.parquet", "n"), lambda: wr.sort("open.parquet", "n", output="closed/a.parquet"), lambda: wr.sort("hidden", "n")]:
    try:
        call()
    except PermissionError as error:
        print(type(error).__name__, error.file)
"""


def test_denied_files_are_permission_errors(tmp_path):
    for path in [tmp_path, *tmp_path.parents][:-1]:
        if path.stat().st_uid == os.getuid():
            os.chmod(path, 0o755)
    pq.write_table(OLD, "secret.parquet")
    pq.write_table(OLD, "open.parquet")
    os.mkdir("closed")
    os.mkdir("hidden")
    for name, mode in [("secret.parquet", 0), ("hidden", 0), ("closed", 0o555)]:
        os.chmod(name, mode)
    done = subprocess.run([sys.executable, "-c", DENIED], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["AccessError secret.parquet", "AccessError closed/a.parquet", "AccessError hidden"], done.stderr


def test_a_store_that_is_not_there_is_a_connection_error():
    options = {"endpoint": "http://127.0.0.1:9", "allow_http": True, "region": "x", "access_key_id": "k", "secret_access_key": "s", "max_retries": 0}
    with pytest.raises(ConnectionError, match="127.0.0.1:9") as raised:
        wr.sort("s3://bucket/a.parquet", "n", storage_options=options)
    assert isinstance(raised.value, wr.StoreError)


def test_progress_without_a_terminal_is_lines(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    wr.sort(OLD, "n", output="a.parquet", progress=True)
    assert capsys.readouterr().err.splitlines()[-1] == "windrow: write: 3 of 3 rows"
