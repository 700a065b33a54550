"""`windrow merge` interleaves sorted files as a stable sort of their concatenation does."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import data
import oracle
from test_compact import changes, summed_log


def shards(rng, tmp_path, keys, kinds, rows, files, pool=30, suffix="parquet"):
    """Sorted files, and all their rows one file after the other. Some files are empty."""
    tables, paths = [], []
    for i in range(files):
        count = 0 if i == 1 and files > 2 else int(rng.integers(1, rows))
        columns = {f"c{j}": data.column(rng, kind, count, pool) for j, kind in enumerate(kinds)}
        table = pa.table({**columns, "from": pa.array([f"{i}:{row}" for row in range(count)], pa.string())})
        table = oracle.sort(table, keys)
        tables.append(table)
        paths.append(data.write(table, tmp_path / f"in{i:03}.{suffix}", **({"row_group_size": 400} if suffix == "parquet" else {})))
    return paths, pa.concat_tables(tables)


@pytest.mark.parametrize("files", [1, 2, 3, 17])
@pytest.mark.parametrize("keys", ["c0", "c0:desc,c1:nulls-first", "c1,c0"])
def test_merge_is_a_stable_sort(windrow, rng, tmp_path, files, keys):
    paths, whole = shards(rng, tmp_path, keys, [pa.int32(), pa.string()], 3000, files)
    out = tmp_path / "out.parquet"
    done = windrow("merge", *paths, "--by", keys, "-o", out).ok()
    data.same(data.read(out), oracle.sort(whole, keys))
    assert done.stats["rows_in"] == done.stats["rows_out"] == whole.num_rows
    assert done.stats["spilled_bytes"] == 0


@pytest.mark.parametrize("kind", data.KEYS, ids=data.name_of)
def test_every_key_type(windrow, rng, tmp_path, kind):
    paths, whole = shards(rng, tmp_path, "c0:desc", [kind, pa.list_(pa.string())], 700, 4, suffix="arrow")
    out = tmp_path / "out.arrow"
    windrow("merge", *paths, "--by", "c0:desc", "-o", out).ok()
    if pa.types.is_dictionary(kind):
        whole = whole.unify_dictionaries()
        if kind.index_type.bit_width < 32:
            # There may be more values in all inputs than such keys number.
            wide = pa.dictionary(pa.int32(), kind.value_type)
            whole = whole.set_column(0, "c0", whole["c0"].cast(kind.value_type).cast(wide))
    data.same(data.read(out), oracle.sort(whole, "c0:desc"))


@pytest.mark.parametrize("keys", ["c0", "c0:desc,c1"])
def test_unique_keeps_the_last(windrow, rng, tmp_path, keys):
    paths, whole = shards(rng, tmp_path, keys, [pa.int32(), pa.string()], 2000, 5)
    out = tmp_path / "out.parquet"
    windrow("merge", *paths, "--by", keys, "--unique", "-o", out).ok()
    data.same(data.read(out), oracle.latest(whole, keys))


@pytest.mark.parametrize("kind", data.FLOATS, ids=str)
def test_unique_floats_are_equal_as_in_sql(windrow, rng, tmp_path, kind):
    """Of each of the zeros and of all NaN one row stays, the last; a file whose NaN stand in front is not in that order."""
    tables, paths = [], []
    for i in range(4):
        table = pa.table({"c0": data.column(rng, kind, 2000), "row": np.arange(2000) + 2000 * i})
        raw = data.write(table, tmp_path / f"raw{i}.parquet")
        paths.append(tmp_path / f"in{i}.parquet")
        windrow("sort", raw, "--by", "c0", "--float-order", "sql", "-o", paths[-1]).ok()
        tables.append(data.read(paths[-1]))
        wanted = oracle.with_sql_floats(table, ["c0"])
        order = oracle.rows(wanted, ["c0"], f"SELECT {oracle.ROW} FROM t ORDER BY c0 NULLS LAST, {oracle.ROW}")
        data.same(tables[-1], table.take(order))
    out = tmp_path / "out.parquet"
    windrow("merge", *paths, "--by", "c0", "--unique", "-o", out).ok()
    data.same(data.read(out), oracle.latest(pa.concat_tables(tables), "c0"))
    windrow("merge", *paths, "--by", "c0", "--float-order", "sql", "-o", out).ok()
    windrow("check", *paths, out, "--by", "c0", "--float-order", "sql").ok()
    windrow("check", paths[0], "--by", "c0").fails(1, "--float-order sql")
    windrow("merge", *paths, "--by", "c0", "-o", out).fails(3, "in0.parquet", "sorts before")
    windrow("sort", tmp_path / "raw0.parquet", "--by", "c0", "-o", paths[0]).ok()
    windrow("merge", *paths, "--by", "c0", "--unique", "-o", out).fails(3, "in0.parquet", "--float-order sql")


def test_files_that_duckdb_sorted_are_in_order(windrow, rng, tmp_path):
    table = pa.table({"c0": data.column(rng, pa.float64(), 3000), "row": np.arange(3000)})
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    connection = duckdb.connect()
    connection.register("t", table)
    connection.execute(f"COPY (SELECT * FROM t ORDER BY c0 NULLS LAST) TO '{path}' (FORMAT parquet)")
    windrow("check", path, "--by", "c0", "--float-order", "sql").ok()
    windrow("check", path, "--by", "c0").fails(1, "--float-order sql")
    windrow("merge", path, path, "--by", "c0", "--float-order", "sql", "-o", out).ok()
    windrow("check", path, "--by", "c0:nulls-first").fails(1, "--by c0 --float-order sql")


@pytest.mark.parametrize("key", ["c0", "c1:desc,c0"])
@pytest.mark.parametrize("timed", [True, False])
def test_consolidate_sums(windrow, rng, tmp_path, key, timed):
    parts, paths = [], []
    named = [part.split(":")[0] for part in key.split(",")]
    order = [*key.split(","), *(name for name in ("c0", "c1") if name not in named), "ts"]
    time = ["--time", "ts"] if timed else []
    for i in range(6):
        table = changes(rng, 1500)
        parts.append(table)
        source, path = data.write(table, tmp_path / f"raw{i}.parquet"), tmp_path / f"in{i}.parquet"
        windrow("compact", source, "--key", key, *time, "--diff", "delta", "--mode", "log", "-o", path).ok()
        paths.append(path)
    out = tmp_path / "out.parquet"
    windrow("merge", *paths, "--by", key, *time, "--diff", "delta", "--consolidate", "-o", out).ok()
    data.same(data.read(out), summed_log(pa.concat_tables(parts), ["c0", "c1", "ts"], order))


def test_consolidate_takes_files_sorted_by_others(windrow, rng, tmp_path):
    """Sorted by DuckDB by the key and all other columns, not yet summed."""
    parts = [oracle.sort(changes(rng, 1500), "c0,c1,ts") for _ in range(3)]
    paths = [data.write(part, tmp_path / f"in{i}.parquet") for i, part in enumerate(parts)]
    out = tmp_path / "out.parquet"
    windrow("merge", *paths, "--by", "c0", "--time", "ts", "--diff", "delta", "--consolidate", "-o", out).ok()
    data.same(data.read(out), summed_log(pa.concat_tables(parts), ["c0", "c1", "ts"], ["c0", "c1", "ts"]))


@pytest.mark.parametrize("bad", [1, 399, 400, 1999])
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_an_unsorted_file_is_named_with_its_row(windrow, rng, tmp_path, bad, suffix):
    good = pa.table({"k": np.arange(0, 4000, 2)})
    values = np.arange(1, 4001, 2)
    values[bad] = -1
    paths = [
        data.write(good, tmp_path / f"good.{suffix}"),
        data.write(pa.table({"k": values}), tmp_path / f"broken.{suffix}", **({"row_group_size": 400} if suffix == "parquet" else {})),
        data.write(good, tmp_path / f"also_good.{suffix}"),
    ]
    out = tmp_path / f"out.{suffix}"
    for more in ((), ("--unique",)):
        done = windrow("merge", *paths, "--by", "k", *more, "-o", out).fails(3, f"row {bad}", f"broken.{suffix}")
        assert "good" not in done.stderr.replace("broken", "")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(p.name for p in paths)


def test_many_files_at_a_small_limit(windrow, rng, tmp_path):
    """More files than may be open at once: still one stable order, and equal rows by file."""
    paths, whole = shards(rng, tmp_path, "c0", [pa.int16(), pa.string()], 300, 120)
    out = tmp_path / "out.parquet"
    for more in ((), ("--unique",)):
        done = windrow("merge", *paths, "--by", "c0", *more, "--memory-limit", "64MiB", "-o", out).ok()
        assert done.stats["peak_rss_bytes"] <= 64 << 20
        data.same(data.read(out), oracle.latest(whole, "c0") if more else oracle.sort(whole, "c0"))


def test_merging_what_sort_wrote_is_sorting(windrow, rng, tmp_path):
    table = pa.table({"k": data.column(rng, pa.float64(), 9000), "v": np.arange(9000)})
    halves = []
    for i in range(3):
        source = data.write(table.slice(i * 3000, 3000), tmp_path / f"raw{i}.parquet")
        halves.append(tmp_path / f"sorted{i}.parquet")
        windrow("sort", source, "--by", "k:desc", "-o", halves[-1]).ok()
    whole = data.write(table, tmp_path / "whole.parquet")
    windrow("merge", *halves, "--by", "k:desc", "-o", tmp_path / "merged.parquet").ok()
    windrow("sort", whole, "--by", "k:desc", "-o", tmp_path / "sorted.parquet").ok()
    assert (tmp_path / "merged.parquet").read_bytes() == (tmp_path / "sorted.parquet").read_bytes()
