"""`windrow check` finds the first row out of order; `windrow inspect` tells what pyarrow reads in the footer."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import data
import oracle


def ranks(table, keys):
    """For each row the rank of its key, equal keys having equal ranks."""
    sql = f"SELECT rank AS {oracle.ROW} FROM (SELECT {oracle.ROW} AS place, dense_rank() OVER (ORDER BY {oracle.by(keys)}) AS rank FROM t) ORDER BY place"
    return np.asarray(oracle.rows(table, oracle.names(keys), sql))


def first_broken(table, keys, unique):
    """Rows that are unique are so as in SQL, and in its order: one zero, one NaN."""
    steps = np.diff(ranks(oracle.with_sql_floats(table, oracle.names(keys)) if unique else table, keys))
    bad = np.flatnonzero(steps <= 0 if unique else steps < 0)
    return int(bad[0]) + 1 if len(bad) else None


@pytest.mark.parametrize("unique", [False, True])
@pytest.mark.parametrize("kind", data.KEYS, ids=data.name_of)
def test_the_first_offending_row(windrow, rng, tmp_path, kind, unique):
    more = ["--unique"] if unique else []
    for keys in ("k:desc:nulls-first", "k,j:desc"):
        table = pa.table({"k": data.column(rng, kind, 1500, 400), "j": np.arange(1500)})
        ordered = oracle.sort(table, keys)
        broken = ordered.num_rows // 2
        swapped = data.take(ordered, pa.array([*range(broken), ordered.num_rows - 1, *range(broken, ordered.num_rows - 1)]))
        for case in (ordered, swapped, ordered.slice(0, 0), ordered.slice(0, 1)):
            path = data.write(case, tmp_path / "in.arrow")
            wanted = first_broken(case, keys, unique)
            done = windrow("check", path, "--by", keys, *more)
            if wanted is None:
                done.ok()
            else:
                done.fails(1, "in.arrow", f"row {wanted} ")


def test_rows_in_several_row_groups_and_files(windrow, tmp_path):
    values = np.arange(5000)
    good = data.write(pa.table({"k": values}), tmp_path / "a.parquet", row_group_size=700)
    bad = values.copy()
    bad[[2800, 4000]] = 0
    broken = data.write(pa.table({"k": bad}), tmp_path / "b.parquet", row_group_size=700)
    windrow("check", good, "--by", "k", "--unique").ok()
    # Each by itself: the second file begins before the first ends.
    windrow("check", good, good, "--by", "k", "--unique").ok()
    done = windrow("check", good, broken, "--by", "k").fails(1, "b.parquet", "row 2800 ")
    assert "a.parquet" not in done.stderr
    quiet = windrow("check", good, "--by", "k", "--quiet").ok()
    assert quiet.stderr == "" and quiet.stdout == b""


def test_check_of_what_cannot_be(windrow, tmp_path):
    path = data.write(pa.table({"k": [1]}), tmp_path / "a.parquet")
    windrow("check", path, "--by", "nope").fails(2, "nope", "k")
    windrow("check", tmp_path / "missing.parquet", "--by", "k").fails(3, "missing.parquet")


def test_what_sort_writes_is_in_order(windrow, rng, tmp_path):
    table = pa.table({"a": data.column(rng, pa.float64(), 5000), "b": data.column(rng, pa.string(), 5000), "row": np.arange(5000)})
    path, out = data.write(table, tmp_path / "in.parquet"), tmp_path / "out.parquet"
    keys = "a:desc:nulls-first,b"
    windrow("sort", path, "--by", keys, "-o", out).ok()
    windrow("check", out, "--by", keys).ok()
    windrow("check", out, "--by", "a:desc").fails(1, "out.parquet")


def inspected(windrow, path):
    done = windrow("inspect", path, "--json").ok()
    [line] = done.stdout.decode().splitlines()
    return json.loads(line)


@pytest.mark.parametrize("compression", ["zstd", "snappy", "none"])
def test_inspect_tells_what_the_footer_holds(windrow, rng, tmp_path, compression):
    columns = {
        "i": data.column(rng, pa.int32(), 5000),
        "s": data.column(rng, pa.string(), 5000, nulls=0.5),
        "d": data.column(rng, pa.date32(), 5000),
        "t": data.column(rng, pa.timestamp("us"), 5000),
        "nested": data.column(rng, pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))]), 5000),
    }
    table = pa.table(columns)
    path = data.write(table, tmp_path / "in.parquet", row_group_size=1200, compression=compression)
    facts, footer = inspected(windrow, path), pq.read_metadata(path)
    assert facts["format"] == "parquet"
    assert facts["bytes"] == path.stat().st_size
    assert facts["rows"] == 5000
    assert [field["name"] for field in facts["schema"]] == table.column_names
    parquet = facts["parquet"]
    assert parquet["created_by"] == footer.created_by
    assert [group["rows"] for group in parquet["row_groups"]] == [1200, 1200, 1200, 1200, 200]
    assert parquet["order"] is None
    for group, theirs in zip(parquet["row_groups"], map(footer.row_group, range(5))):
        assert group["uncompressed_bytes"] == theirs.total_byte_size
        assert group["compressed_bytes"] == sum(theirs.column(i).total_compressed_size for i in range(theirs.num_columns))
    leaves = {leaf["name"]: leaf for leaf in parquet["columns"]}
    assert list(leaves) == [footer.schema.column(i).path for i in range(len(footer.schema))]
    for name in ("i", "s", "d", "t"):
        assert leaves[name]["nulls"] == table[name].null_count
    least = pa.compute.min_max(table["i"]).as_py()
    assert (leaves["i"]["min"], leaves["i"]["max"]) == (str(least["min"]), str(least["max"]))
    least = pa.compute.min_max(table["d"]).as_py()
    assert (leaves["d"]["min"], leaves["d"]["max"]) == (str(least["min"]), str(least["max"]))
    codec = {"none": "uncompressed"}.get(compression, compression)
    assert {leaf["codec"] for leaf in parquet["columns"]} == {codec}


def test_inspect_says_whether_the_declared_order_holds(windrow, tmp_path):
    schema = pa.schema([("k", pa.int64()), ("v", pa.string())])
    declared = [pq.SortingColumn(0, descending=True, nulls_first=True), pq.SortingColumn(1)]
    values = list(range(1000))[::-1]
    good = pa.table({"k": [None, *values], "v": ["x"] * 1001}, schema)
    holds = data.write(good, tmp_path / "holds.parquet", sorting_columns=declared, row_group_size=100)
    order = inspected(windrow, holds)["parquet"]["order"]
    assert order["columns"] == [{"name": "k", "descending": True, "nulls_first": True}, {"name": "v", "descending": False, "nulls_first": False}]
    assert order["holds"] is True and order["first_row_out_of_order"] is None
    text = windrow("inspect", holds).ok().stdout.decode()
    assert "k desc nulls first, v asc nulls last: holds" in text

    values[640] = 5000
    bad = data.write(pa.table({"k": [None, *values], "v": ["x"] * 1001}, schema), tmp_path / "bad.parquet", sorting_columns=declared, row_group_size=100)
    order = inspected(windrow, bad)["parquet"]["order"]
    assert order["holds"] is False and order["first_row_out_of_order"] == 641
    assert "broken at row 641" in windrow("inspect", bad).ok().stdout.decode()


@pytest.mark.parametrize("suffix", ["arrow", "arrows", "csv", "parquet"])
def test_inspect_any_format(windrow, rng, tmp_path, suffix):
    table = pa.table({"id": np.arange(300), "name": ["x"] * 300})
    path = data.write(table, tmp_path / f"in.{suffix}")
    facts = inspected(windrow, path)
    assert [field["name"] for field in facts["schema"]] == ["id", "name"]
    assert facts["schema"][0]["type"] == "Int64"
    assert facts["bytes"] == path.stat().st_size
    assert facts["rows"] in (300, None)
    text = windrow("inspect", path).ok().stdout.decode()
    for part in (path.name, "id", "name", "Int64"):
        assert part in text


def test_inspect_of_several_files(windrow, tmp_path):
    for name in ("a", "b"):
        data.write(pa.table({name: [1, 2]}), tmp_path / f"{name}.parquet")
    lines = windrow("inspect", tmp_path / "*.parquet", "--json").ok().stdout.decode().splitlines()
    assert [json.loads(line)["schema"][0]["name"] for line in lines] == ["a", "b"]
    windrow("inspect", tmp_path / "missing.parquet").fails(3, "missing.parquet")
    (tmp_path / "text.parquet").write_text("no Parquet at all, but long enough to be one")
    windrow("inspect", tmp_path / "text.parquet").fails(3, "text.parquet")


def test_inspect_shows_no_control_characters(windrow, tmp_path):
    table = pa.table({"a\x1b[31m": ["\x07\0", "\x1b[2J"], "tab\tname": [1, 2]})
    path = data.write(table, tmp_path / "in.parquet")
    shown = windrow("inspect", path).ok().stdout.decode()
    assert not any(ord(c) < 32 and c != "\n" for c in shown)
    assert "a\\u{1b}[31m" in shown and "tab\\tname" in shown
