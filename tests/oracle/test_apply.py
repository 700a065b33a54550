"""Changes applied to a directory of Parquet files: after any batches of changes the table is what one `compact` of
the table and of all changes is, whoever wrote the files and in whatever order they are."""

import shutil

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import data

KEYS = {
    "int": ("id", lambda ids: [pa.array(ids, pa.int64())]),
    "int32": ("id", lambda ids: [pa.array(ids, pa.int32())]),
    "text": ("id", lambda ids: [pa.array([f"{'x' * (int(i) % 90)}{int(i) * 7919 % 100_003:06}" for i in ids])]),
    "float": ("id", lambda ids: [pa.array(np.where(ids == 5, np.nan, np.where(ids == 6, -0.0, ids - 100.5)))]),
    "null": ("id", lambda ids: [pa.array([None if i == 7 else int(i) for i in ids], pa.int64())]),
    "pair": ("a,id", lambda ids: [pa.array(ids // 50, pa.int32()), pa.array([str(int(i) % 50) for i in ids])]),
    "descending": ("id:desc", lambda ids: [pa.array(ids, pa.int64())]),
    "decimal": ("id", lambda ids: [pa.array(ids, pa.int64()).cast(pa.decimal128(21, 2))]),
    "last": ("id", lambda ids: [pa.array(ids, pa.int64())]),  # behind all other columns
    "member": ("k.id", lambda ids: [pa.StructArray.from_arrays([pa.array(ids, pa.int64())], ["id"])]),
    "dictionary": ("id", lambda ids: [pa.array([f"{i:05}" for i in ids]).dictionary_encode()]),
}
MOST = 3_000


def rows(rng, kind, ids, salt):
    key, make = KEYS[kind]
    names = [name.split(":")[0].split(".")[0] for name in key.split(",")]
    hashes = (ids * 2654435761 + salt) % 1_000_003
    values = {
        "n": pa.array(hashes, pa.int64(), mask=hashes % 11 == 0),
        "t": pa.array([f"text {h % 97}" for h in hashes]),
        "l": pa.array([list(range(h % 4)) for h in hashes], pa.list_(pa.int32())),
        "s": pa.array([{"x": int(h % 13), "y": None} for h in hashes], pa.struct([("x", pa.int32()), ("y", pa.string())])),
    }
    keys = dict(zip(names, make(np.asarray(ids))))
    return pa.table({**values, **keys} if kind == "last" else {**keys, **values})


def table(rng, kind, directory, how):
    """Writes files of the table; returns their ids."""
    ids = np.sort(rng.choice(MOST, size=int(rng.integers(1, MOST // 2)), replace=False))
    key, _ = KEYS[kind]
    directory.mkdir()
    whole = rows(rng, kind, ids, 0)
    if how == "scattered":
        whole = whole.take(rng.permutation(whole.num_rows))
    elif kind != "dictionary":  # which is in order, as the ids are
        names = [(k.split(":")[0], "descending" if k.endswith("desc") else "ascending") for k in key.split(",")]
        whole = whole.take(pc.sort_indices(whole.flatten(), names))
    cuts = np.sort(rng.integers(0, whole.num_rows + 1, size=int(rng.integers(0, 5))))
    for i, (start, end) in enumerate(zip([0, *cuts], [*cuts, whole.num_rows])):
        part = whole.slice(start, end - start)
        if how == "halves":  # files that overlap, each in order
            part = whole.take(pa.array(np.arange(i, whole.num_rows, len(cuts) + 1)))
        group = int(rng.integers(20, 400))
        options = {"write_page_index": bool(rng.integers(2)), "compression": rng.choice(["zstd", "snappy", "none"])}
        pq.write_table(part, directory / f"{i}.parquet", row_group_size=group, **options)
    return ids


def batch(rng, kind, salt):
    """A batch of changes: some keys twice, some deleted, some new."""
    shape = rng.integers(3)
    if shape == 0:  # anywhere
        ids = rng.integers(0, MOST + 200, size=int(rng.integers(1, 60)))
    elif shape == 1:  # in one place
        ids = int(rng.integers(MOST)) + rng.integers(0, 40, size=int(rng.integers(1, 80)))
    else:  # at the end
        ids = MOST + rng.integers(0, 500, size=int(rng.integers(1, 200)))
    changes = rows(rng, kind, ids, salt)
    ops = rng.choice(["insert", "update", "delete"], size=len(ids), p=[0.3, 0.4, 0.3])
    return changes.append_column("op", pa.array(ops))


def read(directory):
    files = sorted(path for path in directory.iterdir() if path.suffix == ".parquet")
    return pa.concat_tables([pq.read_table(path) for path in files])


def plain(table):
    """Rows as comparable values, in any order."""
    return sorted((repr(row) for row in zip(*(column.to_pylist() for column in table.columns))))


@pytest.mark.parametrize("how", ["sorted", "scattered", "halves"])
@pytest.mark.parametrize("kind", KEYS)
def test_batches_are_as_one_compact(w, rng, tmp_path, kind, how):
    key, _ = KEYS[kind]
    for round in range(3):
        lake = tmp_path / f"lake{round}"
        table(rng, kind, lake, how)
        old = read(lake)
        old = old.append_column("op", pa.array(["insert"] * old.num_rows))
        logs = [old]
        for number in range(int(rng.integers(1, 6))):
            changes = batch(rng, kind, number + 1)
            logs.append(changes)
            data.write(changes, tmp_path / "changes.parquet")
            sized = "--max-file-size 64KiB" if rng.integers(2) else ""
            line = f"apply {lake} changes.parquet --key {key} --op-column op --threads 2 {sized}"
            dry = w(f"{line} --dry-run").ok().stats
            before = {path.name: path.stat().st_ino for path in lake.iterdir()}
            done = w(line).ok().stats
            for name in ["inserted", "updated", "deleted", "unchanged", "absent", "rows_out"]:
                assert dry[name] == done[name], name
            after = {path.name: path.stat().st_ino for path in lake.iterdir()}
            assert set(before) - set(done["files_removed"]) == set(done["files_left"])
            assert {n: i for n, i in before.items() if n in done["files_left"]}.items() <= after.items()
            assert set(after) == set(done["files_left"]) | {file["path"] for file in done["files_added"]}
            assert read(lake).num_rows == done["rows_out"]
            again = w(line).ok().stats
            assert (again["inserted"], again["updated"], again["deleted"], again["bytes_out"]) == (0, 0, 0, 0)
        data.write(pa.concat_tables(logs), tmp_path / "all.parquet")
        w(f"compact all.parquet --key {key} --op-column op -o expected.parquet").ok()
        expected = pq.read_table(tmp_path / "expected.parquet")
        found = read(lake)
        if kind == "float":  # compact writes -0.0 as 0.0, apply leaves untouched rows as they are
            found, expected = (t.set_column(0, "id", pa.array(np.asarray(t["id"]) + 0.0)) for t in (found, expected))
        assert plain(found) == plain(expected)
        if how == "sorted":
            files = sorted(lake.iterdir())
            for path in files:
                w(f"check {path} --by {key} --float-order sql -q").ok()
        assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]
        shutil.rmtree(lake)


def test_files_of_windrow_are_copied_by_row_group(w, rng, tmp_path):
    ids = np.arange(200_000)
    data.write(rows(rng, "int", ids, 0), tmp_path / "in.parquet")
    w("sort in.parquet --by id -o lake --max-file-size 512KiB --row-group-size 256KiB").ok()
    groups = sum(pq.ParquetFile(p).num_row_groups for p in (tmp_path / "lake").iterdir())
    change = rows(rng, "int", np.array([100_000]), 1)
    data.write(change, tmp_path / "changes.parquet")
    done = w("apply lake changes.parquet --key id").ok().stats
    assert (done["updated"], done["row_groups_rewritten"], len(done["files_removed"])) == (1, 1, 1)
    assert done["row_groups_rewritten"] + done["row_groups_copied"] + done["row_groups_left"] == groups
    [added] = done["files_added"]
    found = pq.ParquetFile(tmp_path / "lake" / added["path"])
    assert found.metadata.row_group(0).sorting_columns[0].column_index == 0
    [id_] = [column for column in added["columns"] if column["name"] == "id"]
    read_back = found.read()["id"]
    assert (int(id_["min"]), int(id_["max"]), id_["nulls"]) == (read_back[0].as_py(), read_back[-1].as_py(), 0)
    w("check lake --by id --unique -q").ok()
    with duckdb.connect() as db:
        rows_, = db.execute(f"SELECT count(*) FROM '{tmp_path}/lake/*.parquet' WHERE id = 100000 AND t = ?", [change['t'][0].as_py()]).fetchone()
    assert rows_ == 1


def test_bloom_filters_and_annotations_stay(w, rng, tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    with duckdb.connect() as db:
        db.execute(
            f"COPY (SELECT range::INTEGER id, 'n' || (range % 500) t, range::DECIMAL(9,2) d FROM range(50000)) "
            f"TO '{lake}/a.parquet' (ROW_GROUP_SIZE 10000)"
        )
        w_changes = tmp_path / "changes.ndjson"
        w_changes.write_text('{"id": 12345, "t": "new", "d": 1.25}\n')
        done = w("apply lake changes.ndjson --key id").ok().stats
        assert (done["updated"], done["row_groups_copied"]) == (1, 4), done
        name = done["files_added"][0]["path"]
        bloom = db.execute(f"SELECT bloom_filter_offset, row_group_id FROM parquet_metadata('{lake}/{name}') WHERE path_in_schema = 't'").fetchall()
        assert all(offset for offset, _ in bloom), bloom
        excluded = db.execute(f"SELECT count(*) FROM parquet_bloom_probe('{lake}/{name}', 't', 'absent') WHERE NOT bloom_filter_excludes").fetchone()
        assert excluded == (0,)
        assert db.execute(f"SELECT count(*), sum(d)::VARCHAR FROM '{lake}/*.parquet' WHERE t <> 'new'").fetchone()[0] == 49999


def test_an_older_change_loses(w, tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    pq.write_table(pa.table({"id": [1, 2, 3], "at": [10, 20, 30], "v": ["a", "b", "c"]}), lake / "a.parquet")
    (tmp_path / "c.ndjson").write_text(
        '{"id": 1, "at": 5, "v": "old"}\n{"id": 2, "at": 20, "v": "same"}\n{"id": 3, "at": 31, "v": "new"}\n{"id": 4, "at": 1, "v": "d"}\n'
    )
    done = w("apply lake c.ndjson --key id --order-by at").ok().stats
    assert (done["stale"], done["updated"], done["inserted"]) == (1, 2, 1)
    assert read(lake)["v"].to_pylist() == ["a", "same", "new", "d"]
    (tmp_path / "d.ndjson").write_text('{"id": 3, "at": 30, "op": "delete"}\n{"id": 4, "at": 2, "op": "delete"}\n')
    done = w("apply lake d.ndjson --key id --order-by at --op-column op --union-by-name").ok().stats
    assert (done["stale"], done["deleted"]) == (1, 1)
    assert read(lake)["v"].to_pylist() == ["a", "same", "new"]


def test_nulls_and_nans_are_in_no_bounds(w, tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    nan = float("nan")
    for i, keys in enumerate([[1.0, 2.0], [3.0, 4.0, nan], [None]]):
        pq.write_table(pa.table({"k": pa.array(keys, pa.float64()), "v": ["a"] * len(keys)}), lake / f"{i}.parquet")
    change = pa.table({"k": pa.array([nan, None, 3.0], pa.float64()), "v": ["nan", "null", "three"]})
    pq.write_table(change, tmp_path / "c.parquet")
    done = w("apply lake c.parquet --key k").ok().stats
    assert (done["updated"], done["inserted"], len(done["files_left"])) == (3, 0, 1)
    assert read(lake)["v"].to_pylist() == ["a", "a", "three", "a", "nan", "null"]


def test_a_table_keeps_its_columns(w, tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    schema = pa.schema([pa.field("id", pa.int32(), nullable=False), ("v", pa.string())])
    for i in range(3):
        pq.write_table(pa.table({"id": [2 * i, 2 * i + 1], "v": ["a", "b"]}, schema=schema), lake / f"{i}.parquet")
    (tmp_path / "d.ndjson").write_text("".join(f'{{"id": {i}, "op": "D"}}\n' for i in range(9)))
    done = w("apply lake d.ndjson --key id --op-column op --union-by-name").ok().stats
    assert (done["deleted"], done["absent"], done["rows_out"]) == (6, 3, 0)
    [left] = lake.iterdir()
    assert pq.read_table(left).schema.equals(schema)
    (tmp_path / "i.ndjson").write_text('{"id": 7, "v": "c"}\n{"id": 3, "v": "d"}\n')
    w("apply lake i.ndjson --key id").ok()
    assert read(lake).to_pydict() == {"id": [3, 7], "v": ["d", "c"]}


@pytest.mark.parametrize(
    "line, message",
    [
        ('{"id": 1, "v": "x", "w": 1}', 'the changes have a column "w"'),
        ('{"id": 1}', 'the table has a column "v"'),
        ('{"id": 3000000000, "v": "x"}', "row 0"),
        ('{"id": 1.5, "v": "x"}', "does not fit the table, where it is Int32"),
        ('{"id": "x", "v": "x"}', "does not fit the table"),
        ('{"id": null, "v": "x"}', "is null, and the table allows no nulls"),
        ('{"id": 1, "v": 5}', 'column "v" is Int64 in the changes and'),
        ('{"id": "1.5", "v": "x"}', "does not fit the table"),
    ],
)
def test_what_does_not_fit_is_refused(w, tmp_path, line, message):
    lake = tmp_path / "lake"
    lake.mkdir()
    schema = pa.schema([pa.field("id", pa.int32(), nullable=False), ("v", pa.string())])
    pq.write_table(pa.table({"id": [1], "v": ["a"]}, schema=schema), lake / "a.parquet")
    (tmp_path / "c.ndjson").write_text(line + "\n")
    run = w("apply lake c.ndjson --key id")
    assert run.code in (2, 3) and message in run.stderr, run.stderr
    assert read(lake).to_pydict() == {"id": [1], "v": ["a"]}


def test_other_tables_and_repeated_keys_are_refused(w, tmp_path):
    (tmp_path / "c.ndjson").write_text('{"id": 1, "v": "x"}\n')
    for log, name in [("_delta_log", "Delta"), (".hoodie", "Hudi")]:
        lake = tmp_path / name
        (lake / log).mkdir(parents=True)
        pq.write_table(pa.table({"id": [1], "v": ["a"]}), lake / "a.parquet")
        w(f"apply {lake} c.ndjson --key id").fails(2, name)
    for files in [[[1, 1]], [[1], [1]], [[0, 1], [1, 2]], [[2, 1, 1]]]:
        lake = tmp_path / "twice"
        lake.mkdir()
        for i, ids in enumerate(files):
            pq.write_table(pa.table({"id": ids, "v": ["a"] * len(ids)}), lake / f"{i}.parquet")
        w(f"apply {lake} c.ndjson --key id").fails(3, "the same key", "dedupe")
        shutil.rmtree(lake)
    w("apply none c.ndjson --key id").fails(2, "none")


def test_rows_out_of_order_behind_the_first_batches_are_sorted(w, tmp_path):
    ids = np.arange(30_000)
    ids[[20_000, 29_998]] = ids[[29_998, 20_000]]
    for sized in ["", "--max-file-size 64KiB"]:
        lake = tmp_path / "lake"
        lake.mkdir()
        pq.write_table(pa.table({"id": ids, "v": [f"{i * 7919 % 100_003}" for i in ids]}), lake / "a.parquet")
        (tmp_path / "c.ndjson").write_text('{"id": 5, "v": "X"}\n{"id": 29998, "v": "Y"}\n{"id": 20001, "v": "Z"}\n')
        done = w(f"apply lake c.ndjson --key id {sized}").ok().stats
        assert (done["updated"], done["inserted"]) == (3, 0)
        assert {path.name for path in lake.iterdir()} == {file["path"] for file in done["files_added"]}
        found = read(lake).to_pydict()
        assert found["id"] == list(range(30_000))
        assert [found["v"][i] for i in (5, 20_001, 29_998)] == ["X", "Z", "Y"]
        shutil.rmtree(lake)


def test_a_dictionary_gets_more_values_than_its_keys_can_count(w, tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    values = pa.array([f"c{i}" for i in range(100)]).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string()))
    pq.write_table(pa.table({"id": range(100), "c": values}), lake / "a.parquet")
    pq.write_table(pa.table({"id": range(50, 200), "c": [f"n{i}" for i in range(150)]}), tmp_path / "c.parquet")
    done = w("apply lake c.parquet --key id").ok().stats
    assert (done["updated"], done["inserted"]) == (50, 100)
    assert read(lake)["c"].to_pylist() == [f"c{i}" for i in range(50)] + [f"n{i}" for i in range(150)]


def test_the_key_and_the_order_are_taken_without_being_selected(w, tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    pq.write_table(pa.table({"id": [1, 2], "at": [5, 5], "v": ["a", "b"], "n": [1, 2]}), lake / "a.parquet")
    (tmp_path / "c.ndjson").write_text('{"id": 1, "at": 3, "v": "old", "w": 0}\n{"id": 3, "at": 9, "v": "c", "w": 0}\n')
    w("apply lake c.ndjson --key id --order-by at --select nothing --union-by-name").fails(2, "nothing")
    done = w("apply lake c.ndjson --key id --order-by at --select v --union-by-name").ok().stats
    assert (done["stale"], done["inserted"]) == (1, 1)
    assert read(lake).to_pylist()[2] == {"id": 3, "at": 9, "v": "c", "n": None}


def test_members_of_structs_are_key_and_order(w, tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    for name, ids in [("a", [1, 3, 5]), ("b", [2, 4, 6])]:  # files overlap
        rows_ = [{"x": 0, "id": i, "at": 10} for i in ids]
        pq.write_table(pa.table({"v": [name] * 3, "s": rows_}), lake / f"{name}.parquet")
    (tmp_path / "c.ndjson").write_text(
        '{"v": "X", "s": {"x": 1, "id": 4, "at": 5}}\n{"v": "Y", "s": {"x": 1, "id": 3, "at": 15}}\n'
    )
    done = w("apply lake c.ndjson --key s.id --order-by s.at").ok().stats
    assert (done["stale"], done["updated"], len(done["files_left"])) == (1, 1, 1)
    assert read(lake)["v"].to_pylist() == ["a", "Y", "a", "b", "b", "b"]


def test_files_may_differ_in_columns_and_types_by_name(w, tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    old = pa.table({"id": pa.array([1, 3, 2**20], pa.int32()), "v": ["a", "b", "c"]})
    pq.write_table(old, lake / "a.parquet")
    pq.write_table(pa.table({"w": [1.5, 2.5], "id": pa.array([2, 2**40], pa.int64()), "v": ["d", "e"]}), lake / "b.parquet")
    (tmp_path / "c.ndjson").write_text('{"id": 3, "v": "X", "w": 9.5}\n{"id": 4, "v": "Y", "w": 8.5}\n')
    w("apply lake c.ndjson --key id").fails(3, "--union-by-name")
    done = w("apply lake c.ndjson --key id --union-by-name").ok().stats
    assert (done["updated"], done["inserted"]) == (1, 1)
    found = {row["id"]: (row["v"], row.get("w")) for path in lake.iterdir() for row in pq.read_table(path).to_pylist()}
    expected = {1: ("a", None), 2: ("d", 1.5), 3: ("X", 9.5), 4: ("Y", 8.5), 2**20: ("c", None), 2**40: ("e", 2.5)}
    assert found == expected


def test_nothing_to_apply_and_nothing_to_apply_to(w, tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    (tmp_path / "c.ndjson").write_text('{"id": 1, "v": "x"}\n')
    w("apply lake c.ndjson --key id").fails(2, "has no files to change", "compact")
    pq.write_table(pa.table({"id": [1], "v": ["a"]}), lake / "a.parquet")
    pq.write_table(pa.table({"id": pa.array([], pa.int64()), "v": pa.array([], pa.string())}), tmp_path / "none.parquet")
    done = w("apply lake none.parquet --key id").ok().stats
    assert (done["keys"], done["files_left"], done["files_added"]) == (0, ["a.parquet"], [])
    (lake / "b.csv").write_text("id,v\n7,x\n")
    w("apply lake c.ndjson --key id").fails(2, "b.csv", "Parquet")
