"""Inputs that are in order already, as other writers left them: row groups are passed on, or files are merged without a
sort. Either way the rows are those of a sort, and merged bytes are those of a sort, too."""

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


def rows(rng, ids):
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "t": [f"some text of row {a} {b} {c}" for a, b, c in rng.integers(0, 1 << 60, (len(ids), 3))],
            "x": rng.random(len(ids)),
        }
    )


def unordered(rng, table, path):
    pq.write_table(table.take(rng.permutation(table.num_rows)), path)


@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip", "lz4"])
@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_row_groups_of_other_writers_are_passed_on(w, rng, tmp_path, codec, direction):
    ids = np.arange(200_000)
    if direction == "desc":
        ids = ids[::-1]
    table = rows(rng, ids)
    halves = [table.slice(0, 120_000), table.slice(120_000)]
    for i, half in enumerate(halves):
        pq.write_table(half, tmp_path / f"{1 - i}.parquet", row_group_size=50_000, compression=codec, write_page_index=True)
    done = w(f"sort 0.parquet 1.parquet --by id:{direction} -o out.parquet").ok().stats
    assert done["row_groups_passed"] == 5
    assert pq.read_table(tmp_path / "out.parquet").equals(table)
    file = pq.ParquetFile(tmp_path / "out.parquet").metadata
    assert file.row_group(0).sorting_columns[0].column_index == 0
    assert file.row_group(0).column(1).compression.startswith({"lz4": "LZ4"}.get(codec, codec.upper()))
    w(f"check out.parquet --by id:{direction} -q").ok()
    # Settings of the writer have all rows encoded.
    assert w(f"sort 0.parquet 1.parquet --by id:{direction} --compression zstd:3 -o new.parquet").ok().stats["row_groups_passed"] == 0
    assert pq.read_table(tmp_path / "new.parquet").equals(table)


def test_row_groups_of_duckdb_are_passed_on(w, tmp_path):
    with duckdb.connect() as db:
        db.execute(f"COPY (SELECT range id, 'n' || hash(range) t FROM range(300000)) TO '{tmp_path}/in.parquet' (ROW_GROUP_SIZE 100000)")
        assert w("sort in.parquet --by id -o out.parquet").ok().stats["row_groups_passed"] == 3
        same = db.execute(f"SELECT count(*) FROM (FROM '{tmp_path}/in.parquet' EXCEPT FROM '{tmp_path}/out.parquet')").fetchone()
        # A file without row groups tells nothing of an index of pages, which the others lack.
        pq.ParquetWriter(tmp_path / "none.parquet", pq.read_schema(tmp_path / "in.parquet")).close()
        assert pq.ParquetFile(tmp_path / "none.parquet").num_row_groups == 0
        assert w("sort none.parquet in.parquet --by id -o more.parquet").ok().stats["rows_out"] == 300_000
    assert same == (0,)
    assert pq.read_table(tmp_path / "more.parquet")["id"].to_pylist() == list(range(300_000))
    found = pq.read_table(tmp_path / "out.parquet")
    assert found["id"].to_pylist() == list(range(300_000))


@pytest.mark.parametrize(
    "why",
    ["small groups", "rows within", "one group", "equal keys the wrong way", "uncompressed", "other indexes"],
)
def test_what_only_looks_in_order_is_sorted(w, rng, tmp_path, why):
    ids = np.arange(200_000)
    if why == "rows within":
        ids[150_000:150_002] = ids[150_000:150_002][::-1]
    if why == "one group":
        ids[[0, -1]] = ids[[-1, 0]]
    if why == "equal keys the wrong way":
        ids //= 200_000
    table = rows(rng, ids)
    group = {"small groups": 500, "one group": 200_000}.get(why, 50_000)
    codec = "none" if why == "uncompressed" else "snappy"
    pq.write_table(table.slice(100_000), tmp_path / "a.parquet", row_group_size=group, compression=codec)
    pq.write_table(table.slice(0, 100_000), tmp_path / "b.parquet", row_group_size=group, compression=codec, write_page_index=why == "other indexes")
    done = w("sort a.parquet b.parquet --by id -o out.parquet").ok().stats
    assert done["row_groups_passed"] == (4 if why == "equal keys the wrong way" else 0)
    expected = pa.concat_tables([table.slice(100_000), table.slice(0, 100_000)]).sort_by("id")
    found = pq.read_table(tmp_path / "out.parquet")
    assert found["id"].equals(expected["id"])
    if why == "equal keys the wrong way":
        expected = pa.concat_tables([table.slice(100_000), table.slice(0, 100_000)])
    assert sorted(found["t"].to_pylist()) == sorted(expected["t"].to_pylist())


LINES = {
    "sort": ("sort {} --by id", "id"),
    "sort by more": ("sort {} --by id,t", "id"),
    "descending": ("sort {} --by id:desc", "id:desc"),
    "compact": ("compact {} --key id --op-column op", "id"),
    "compact by order": ("compact {} --key id --op-column op --order-by at", "id"),
    "dedupe": ("dedupe {} --key id --keep last", "id"),
    "first": ("dedupe {} --key id --keep first", "id"),
    "selected": ("sort {} --by id --select t,id", "id"),
    "limited": ("sort {} --by id --limit 1000", "id"),
    "where": ("sort {} --by id --where x<0.5", "id"),
    "sized": ("sort {} --by id --max-file-size 256KiB", "id"),
}


@pytest.mark.parametrize("limit", ["", "--memory-limit 128MiB"])
@pytest.mark.parametrize("name", LINES)
def test_sorted_files_are_merged_to_the_bytes_of_a_sort(w, rng, tmp_path, name, limit):
    """The same rows come unsorted: by other writers, one row group each, in an order of which nothing is left."""
    line, by = LINES[name]
    repeated = "compact" in name or name in ("dedupe", "first")
    parts = []
    for i in range(4):
        ids = np.sort(rng.choice(40_000, 20_000, replace=False)) if repeated else np.arange(i, 80_000, 4)
        if by.endswith("desc"):
            ids = ids[::-1]
        part = rows(rng, ids)
        part = part.append_column("at", pa.array(np.full(len(ids), i)))
        parts.append(part.append_column("op", pa.array(rng.choice(["insert", "delete"], len(ids), p=[0.8, 0.2]))))
    for i, part in enumerate(parts):
        declared = [pq.SortingColumn(0, descending=by.endswith("desc"))] if i % 2 else None
        pq.write_table(part, tmp_path / f"a{i}.parquet", row_group_size=6_000, sorting_columns=declared)
        unordered(rng, part, tmp_path / f"b{i}.parquet")
    found = []
    for letter in "ab":
        files = " ".join(f"{letter}{i}.parquet" for i in range(4))
        out = f"{letter}.out" if name == "sized" else f"{letter}.parquet"
        done = w(f"{line.format(files)} -o {out} {limit} --stats json").ok().stats
        assert done["row_groups_passed"] == 0
        if letter == "a":
            assert done["spilled_bytes"] == 0
        whole = tmp_path / out
        found.append([path.read_bytes() for path in sorted(whole.iterdir())] if whole.is_dir() else whole.read_bytes())
    if name == "sized":  # the sizes of parts depend on the rows of the inputs' row groups
        found = [pa.concat_tables(pq.read_table(path) for path in sorted((tmp_path / out).iterdir())) for out in ["a.out", "b.out"]]
    assert found[0] == found[1]


def test_a_declared_order_that_does_not_hold(w, rng, tmp_path):
    for i in range(2):
        ids = np.arange(i, 100_000, 2)
        ids[-2:] = ids[-2:][::-1]
        pq.write_table(rows(rng, ids), tmp_path / f"{i}.parquet", row_group_size=10_000, sorting_columns=[pq.SortingColumn(0)])
    w("sort 0.parquet 1.parquet --by id -o out.parquet").ok()
    assert pq.read_table(tmp_path / "out.parquet")["id"].to_pylist() == list(range(100_000))
    w("merge 0.parquet 1.parquet --by id -o never.parquet").fails(3, "sorts before the row in front of it")
