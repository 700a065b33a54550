"""Files of limited size: together they are the sorted rows, apart their ranges do not overlap, and none is too large."""

import gzip

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import data

ROWS = 120_000
# How many keys: many rows of each, a few, or one.
KEYS = [3, 40, 5_000, 10 * ROWS]
SIZES = [64 << 10, 300_000, 1 << 20]
FORMATS = ["parquet", "arrow", "csv", "ndjson", "csv.gz"]


def rows(rng, keys):
    columns = {
        "k": pa.array(rng.integers(0, keys, ROWS), pa.int64(), mask=rng.random(ROWS) < 0.001),
        "n": pa.array(np.arange(ROWS)),
        "t": pa.array([f"value {value:x}" for value in rng.integers(0, 1 << 40, ROWS)]),
        "x": pa.array(rng.random(ROWS)),
    }
    return pa.table(columns)


def read(path, form):
    text = gzip.decompress(path.read_bytes()) if form.endswith(".gz") else path.read_bytes()
    if form.startswith(("csv", "ndjson")):
        plain = path.parent.parent / "plain"
        plain.write_bytes(text)
        of = "read_csv(?, null_padding=true)" if form.startswith("csv") else "read_json(?, format='newline_delimited')"
        with duckdb.connect() as db:
            return db.execute(f"SELECT k, n FROM {of}", [str(plain)]).fetchall()
    table = data.read(path)
    return list(zip(table["k"].to_pylist(), table["n"].to_pylist()))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("keys", KEYS)
def test_parts_are_the_sorted_rows(w, rng, tmp_path, form, keys):
    table = rows(rng, keys)
    data.write(table, tmp_path / "in.parquet")
    with duckdb.connect() as db:
        db.register("t", table)
        expected = db.execute("SELECT k, n FROM t ORDER BY k NULLS LAST, n").fetchall()
    most = {}
    for key, _ in expected:
        most[key] = most.get(key, 0) + 1
    compression = "--compression gzip" if form.endswith(".gz") else ""
    kind = form.removesuffix(".gz")
    for size in SIZES:
        out = tmp_path / f"out-{size}"
        run = w(f"sort in.parquet --by k -o {out} --max-file-size {size} --output-format {kind} {compression} --threads 2").ok()
        files = sorted(out.iterdir())
        assert [file.name for file in files] == [f"part-{i:05}.{form}" for i in range(len(files))]
        assert run.stats["partitions"]["files"] == len(files)
        assert run.stats["bytes_out"] == sum(file.stat().st_size for file in files)
        parts = [read(file, form) for file in files]
        assert [row for part in parts for row in part] == expected
        order = [[(key is None, key) for key, _ in (part[0], part[-1])] for part in parts]
        assert all(before[1] < after[0] for before, after in zip(order, order[1:]))
        for file, part in zip(files, parts):
            # A key that goes on behind the limit keeps its file.
            share = most[part[-1][0]] / len(part)
            assert file.stat().st_size <= size or file.stat().st_size * (1 - share) <= size, (file, size)
        if keys > ROWS:
            assert all(file.stat().st_size <= size for file in files)
            # Files are not cut for nothing: two that follow from one another are more than one can be.
            halves = [a.stat().st_size + b.stat().st_size > size // 2 for a, b in zip(files, files[1:])]
            assert all(halves[:-1])
        one = tmp_path / f"one-{size}"
        w(f"sort in.parquet --by k -o {one} --max-file-size {size} --output-format {kind} {compression} --threads 1 --memory-limit 96MiB").ok()
        assert [file.read_bytes() for file in sorted(one.iterdir())] == [file.read_bytes() for file in files]


def test_every_verb_cuts_between_keys(w, rng, tmp_path):
    table = rows(rng, 500)
    data.write(table, tmp_path / "a.parquet")
    data.write(table.slice(0, ROWS // 2), tmp_path / "b.parquet")
    for name in "ab":
        w(f"sort {name}.parquet --by k -o s{name}.parquet").ok()
        w(f"sort {name}.parquet --by n -o n{name}.parquet").ok()
    jobs = {
        "sort a.parquet b.parquet --by k": "k",
        "sort a.parquet b.parquet --by k --limit 100000 --select t,n": None,
        "merge sa.parquet sb.parquet --by k": "k",
        "merge na.parquet nb.parquet --by n --unique": "n",
        "dedupe a.parquet b.parquet --key n": "n",
        "dedupe a.parquet b.parquet --key n --keep none": "n",
        "compact a.parquet --key n --order-by x": "n",
        "diff a.parquet b.parquet --key n": "n",
    }
    for number, (job, key) in enumerate(jobs.items()):
        w(f"{job} -o {number}.parquet").ok()
        w(f"{job} -o {number} --max-file-size 128KiB").ok()
        whole = data.read(tmp_path / f"{number}.parquet")
        files = sorted((tmp_path / str(number)).iterdir())
        assert len(files) > 2, job
        parts = [data.read(file) for file in files]
        assert pa.concat_tables(parts).equals(whole), job
        if key:
            ends = [[part[key][at].as_py() for at in (0, len(part) - 1)] for part in parts]
            ends = [[(value is None, value) for value in pair] for pair in ends]
            assert all(before[1] < after[0] for before, after in zip(ends, ends[1:])), job


def test_files_declare_their_order_and_no_rows_are_a_file(w, tmp_path):
    data.write(pa.table({"k": pa.array([], pa.int64()), "v": pa.array([], pa.string())}), tmp_path / "none.parquet")
    w("sort none.parquet --by k:desc -o out --max-file-size 1MiB").ok()
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["part-00000.parquet"]
    file = pq.ParquetFile(tmp_path / "out" / "part-00000.parquet")
    assert file.metadata.num_rows == 0 and file.schema_arrow.names == ["k", "v"]


def test_refusals(w, tmp_path):
    data.write(pa.table({"k": [2, 1]}), tmp_path / "a.parquet")
    w("sort a.parquet --by k -o - --max-file-size 1MiB").fails(2, "many files")
    w("sort a.parquet --by k -o out --max-file-size 1KiB").fails(2, "--max-file-size 1024 B: takes 64 KiB at the least")
    w("partition a.parquet --by k --into 2 -o out --max-file-size 1MiB").fails(2, "--max-file-size: partitions are files of their own")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note").write_text("x")
    w("sort a.parquet --by k -o full --max-file-size 1MiB").fails(2, "not empty")
    w("sort full/a*.parquet a.parquet --by k -o a.parquet --max-file-size 1MiB").fails(3)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name in ("out", "full")) == ["full"]
