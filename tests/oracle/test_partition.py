"""`windrow partition`: the files together are the input, each key in one file, in the order it had; hive
directories read back with DuckDB, pyarrow and Polars."""

import collections

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import data
import oracle

ROW = "row"


def table_of(rng, kinds, rows, pool=40, nulls=0.1):
    columns = {f"c{i}": data.column(rng, kind, rows, pool, nulls) for i, kind in enumerate(kinds)}
    return pa.table({**columns, ROW: pa.array(np.arange(rows))})


def parts(directory, suffix="parquet"):
    return [data.read(path) for path in sorted(directory.glob(f"part-*.{suffix}"))]


def keys_of(table, names):
    """Keys that are equal in Python when they are one key: all NaN are, and zeros of either sign."""
    rows = zip(*(table[name].to_pylist() for name in names))
    plain = lambda v: "NaN" if isinstance(v, float) and v != v else v
    return [tuple(plain(v) for v in row) for row in rows]


def check_hash(table, files, names):
    where = {}
    for number, part in enumerate(files):
        rows = part[ROW].to_pylist()
        assert rows == sorted(rows), f"file {number} is not in input order"
        for key in keys_of(part, names):
            assert where.setdefault(key, number) == number
    whole = pa.concat_tables(files)
    data.same(data.take(whole, pc.sort_indices(whole[ROW])), table)


@pytest.mark.parametrize("into", [1, 2, 16, 333])
@pytest.mark.parametrize("keys", ["c0", "c1,c0", "c2"])
def test_hash(windrow, rng, tmp_path, into, keys):
    table = table_of(rng, [pa.int32(), pa.string(), pa.float64(), pa.list_(pa.string())], 20_000)
    source, out = data.write(table, tmp_path / "in.parquet"), tmp_path / "out"
    done = windrow("partition", source, "--by", keys, "--into", into, "-o", out).ok()
    files = parts(out)
    assert len(files) == into == done.stats["partitions"]["files"]
    assert done.stats["rows_in"] == done.stats["rows_out"] == table.num_rows
    check_hash(table, files, keys.split(","))


@pytest.mark.parametrize("kind", data.KEYS, ids=data.name_of)
def test_every_key_type(windrow, rng, tmp_path, kind):
    table = table_of(rng, [kind], 3000)
    source = data.write(table, tmp_path / "in.arrow")
    out = tmp_path / "out"
    windrow("partition", source, "--by", "c0", "--into", 7, "-o", out, "--output-format", "arrow").ok()
    files = parts(out, "arrow")
    assert len(files) == 7
    rows = [row for part in files for row in part[ROW].to_pylist()]
    assert sorted(rows) == list(range(3000))
    keys = iter(oracle.comparable(pa.concat_tables(files).unify_dictionaries()["c0"]).to_pylist())
    where = {}
    for number, part in enumerate(files):
        for _ in range(part.num_rows):
            assert where.setdefault(next(keys), number) == number


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.decimal128(20, 2), pa.date32(), pa.float32()], ids=str)
@pytest.mark.parametrize("direction", ["", ":desc", ":nulls-first"])
def test_sampled_ranges(windrow, rng, tmp_path, kind, direction):
    table = table_of(rng, [kind, pa.int8()], 30_000, pool=5000)
    source, out = data.write(table, tmp_path / "in.parquet", row_group_size=7000), tmp_path / "out"
    by = f"c0{direction}"
    windrow("partition", source, "--by", by, "--range", "--into", 12, "-o", out).ok()
    files = parts(out)
    assert len(files) == 12
    for part in files:
        rows = part[ROW].to_pylist()
        assert rows == sorted(rows)
    # Sorted each, they are the sorted input: ranges do not overlap.
    whole = pa.concat_tables([oracle.sort(part, f"{by},{ROW}") for part in files])
    data.same(whole, oracle.sort(table, by))
    # Nulls are a tenth, and one key.
    assert max(part.num_rows for part in files) < 30_000 / 12 * 2.5


@pytest.mark.parametrize("kind", [kind for kind in data.NESTED if "float" not in str(kind)], ids=data.name_of)
@pytest.mark.parametrize("how", [[], ["--range"]], ids=["hash", "ranges"])
def test_nested_keys(windrow, rng, tmp_path, kind, how):
    table = table_of(rng, [kind], 5000, pool=700)
    source, out = data.write(table, tmp_path / "in.arrow"), tmp_path / "out"
    windrow("partition", source, "--by", "c0", *how, "--into", 7, "-o", out, "--output-format", "arrow").ok()
    files = parts(out, "arrow")
    where = {}
    for number, part in enumerate(files):
        assert part[ROW].to_pylist() == sorted(part[ROW].to_pylist())
        for key in part["c0"].to_pylist():
            assert where.setdefault(repr(key), number) == number
    assert sorted(row for part in files for row in part[ROW].to_pylist()) == list(range(5000))
    # Keys that many rows have may all be in one file.
    counts = collections.Counter(repr(key) for part in files for key in part["c0"].to_pylist())
    often = sum(count for count in counts.values() if count > 100)
    assert max(part.num_rows for part in files) <= often + (5000 - often) / 7 * 1.5
    if how:
        # Sorted each, they are the sorted input.
        sort = lambda path, to: windrow("sort", path, "--by", "c0", "-o", to).ok()
        sort(source, tmp_path / "whole.arrow")
        for path in sorted(out.iterdir()):
            sort(path, path)
        data.same(pa.concat_tables(parts(out, "arrow")), data.read(tmp_path / "whole.arrow"))


def test_a_list_has_no_text_for_range_at(windrow, rng, tmp_path):
    source = data.write(table_of(rng, [pa.list_(pa.int64())], 10), tmp_path / "in.arrow")
    done = windrow("partition", source, "--by", "c0", "--range-at", "5", "-o", tmp_path / "out")
    done.fails(2, "--range-at", "no value of column")


def test_each_file_sorted(windrow, rng, tmp_path):
    table = table_of(rng, [pa.int32(), pa.string()], 20_000)
    source, out = data.write(table, tmp_path / "in.parquet"), tmp_path / "out"
    windrow("partition", source, "--by", "c0", "--into", 5, "--sort", "c1:desc,row:desc", "-o", out).ok()
    files = parts(out)
    for path, part in zip(sorted(out.iterdir()), files):
        data.same(part, oracle.sort(part, "c1:desc,row:desc"))
        windrow("check", path, "--by", "c1:desc,row:desc").ok()
        sorting = pq.ParquetFile(path).metadata.row_group(0).sorting_columns
        assert [(s.column_index, s.descending) for s in sorting] == [(1, True), (2, True)]
    whole = pa.concat_tables(files)
    data.same(data.take(whole, pc.sort_indices(whole[ROW])), table)


TEXTS = ["nl", "Den Haag", "a/b", "x=y", "100%", "%20", "zürich", "\U0001f33e", "..", "a+b", "q?", "'\"", "null", None]


def hive(windrow, rng, tmp_path, *more):
    rows = 5000
    picks = rng.integers(0, len(TEXTS), rows)
    table = pa.table(
        {
            "name": pa.array([TEXTS[i] for i in picks]),
            "year": pa.array(rng.integers(2020, 2024, rows), pa.int32()),
            "value": data.column(rng, pa.float64(), rows),
            ROW: pa.array(np.arange(rows)),
        }
    )
    source, out = data.write(table, tmp_path / "in.parquet"), tmp_path / "lake"
    done = windrow("partition", source, "--by", "name,year", "--hive", "-o", out, *more).ok()
    assert done.stats["partitions"]["files"] == len(list(out.glob("*/*/part-0.parquet"))) == len(TEXTS) * 4
    return table, out


def test_hive_with_duckdb(windrow, rng, tmp_path):
    table, out = hive(windrow, rng, tmp_path)
    connection = duckdb.connect()
    got = connection.execute(
        f"SELECT name, year::INT AS year, {ROW} FROM read_parquet('{out}/**/*.parquet', hive_partitioning = true, "
        f"hive_types = {{'name': VARCHAR, 'year': INT}}) ORDER BY {ROW}"
    ).fetchall()
    expected = list(zip(*(table[name].to_pylist() for name in ("name", "year", ROW))))
    assert got == expected


def test_hive_with_pyarrow(windrow, rng, tmp_path):
    table, out = hive(windrow, rng, tmp_path)
    schema = pa.schema([("name", pa.string()), ("year", pa.int32())])
    found = ds.dataset(out, format="parquet", partitioning=ds.partitioning(schema, flavor="hive"))
    got = found.to_table(columns=table.column_names).sort_by(ROW)
    data.same(got.combine_chunks(), table)


def test_hive_with_polars(windrow, rng, tmp_path):
    table, out = hive(windrow, rng, tmp_path, "--sort", "value")
    got = pl.scan_parquet(out / "**/*.parquet", hive_partitioning=True, hive_schema={"name": pl.String, "year": pl.Int32})
    got = got.select("name", "year", ROW).sort(ROW).collect()
    expected = list(zip(*(table[name].to_pylist() for name in ("name", "year", ROW))))
    assert got.rows() == expected


def test_hash_is_stable_across_inputs_and_limits(windrow, rng, tmp_path):
    """The file of a key depends on the key and the number of files alone."""
    table = table_of(rng, [pa.int64(), pa.string()], 8000, pool=500)
    halves = [table.slice(0, 4000), table.slice(4000)]
    paths = [data.write(half, tmp_path / f"in{i}.{kind}") for i, (half, kind) in enumerate(zip(halves, ["parquet", "arrow"]))]
    where = {}
    for i, path in enumerate(paths):
        out = tmp_path / f"out{i}"
        windrow("partition", path, "--by", "c1,c0", "--into", 32, "--memory-limit", "128MiB", "-o", out).ok()
        for number, part in enumerate(parts(out)):
            for key in keys_of(part, ["c1", "c0"]):
                assert where.setdefault(key, number) == number
