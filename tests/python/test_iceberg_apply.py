"""Changes applied to Iceberg tables: one snapshot, which pyiceberg and Polars read, and other writers are not overwritten."""

import datetime
import os
import threading

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import windrow as wr
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField
from test_delta import changes, first_rows, in_parts, inserted
from windrow import _delta


@pytest.fixture
def catalog(tmp_path):
    (tmp_path / "warehouse").mkdir()
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/warehouse")
    catalog.create_namespace("n")
    return catalog


def created(catalog, name, rows, schema=None):
    table = catalog.create_table(f"n.{name}", schema=schema or rows.schema)
    if rows is not None:
        table.append(rows)
    return table


def read(table):
    return sorted(map(repr, table.scan().to_arrow().to_pylist()))


def data(table):
    folder = f"{table.location().removeprefix('file://')}/data"
    return set(os.listdir(folder)) if os.path.isdir(folder) else set()


@pytest.mark.parametrize("seed", range(4))
def test_batches_are_as_one_compact(catalog, tmp_path, seed):
    rng = np.random.default_rng(seed)
    first = first_rows(rng, seed % 2)
    table = created(catalog, "t", None, first.schema)
    in_parts(first, 2, table.append)
    before = table.metadata.current_snapshot_id
    logs = [inserted(first)]
    for salt in range(1, 5):
        log = changes(rng, salt)
        logs.append(log)
        done = wr.apply(table, log, "id", op="op", write={"max_file_size": "64KiB"})
        assert done.version == table.metadata.current_snapshot_id
        assert catalog.load_table("n.t").scan().to_arrow().num_rows == done.rows_out
        again = wr.apply(table, log, "id", op="op")
        assert (again.version, again.files_added) == (done.version, [])
    expected = pa.table(wr.compact(pa.concat_tables(logs), key="id", op="op"))
    assert read(table) == sorted(map(repr, expected.to_pylist()))
    assert pl.scan_iceberg(table).collect().height == expected.num_rows
    assert table.scan(snapshot_id=before).to_arrow().num_rows == first.num_rows
    middle = int(expected["id"][expected.num_rows // 2].as_py())
    assert table.scan(f"id == {middle}").to_arrow().num_rows == 1, "bounds enclose the keys"
    for task in table.scan().plan_files():
        assert task.file.lower_bounds and task.file.record_count
        schema = pq.read_schema(task.file.file_path.removeprefix("file://"))
        numbers = {field.name: int(field.metadata[b"PARQUET:field_id"]) for field in schema}
        assert numbers == {field.name: field.field_id for field in table.schema().fields}
    assert not catalog.load_table("n.t").properties


def test_a_replayed_transaction_commits_nothing(catalog):
    table = created(catalog, "t", pa.table({"id": [1, 2], "v": ["a", "b"]}))
    log = pa.table({"id": [2, 3], "v": ["B", "C"]})
    version = wr.apply(table, log, "id", transaction=("app", 7)).version
    other = pa.table({"id": [2], "v": ["older"]})
    done = wr.apply(table, other, "id", transaction=("app", 7))
    assert (done.version, done.keys, done.rows_out) == (version, 0, 3)
    assert wr.apply(table, log, "id", transaction=("app", 8)).version == version
    assert catalog.load_table("n.t").properties["windrow.transaction.app"] == "8"
    assert wr.apply(table, other, "id", transaction=("other", 1)).updated == 1


@pytest.mark.parametrize("stream", [False, True])
def test_another_writer_in_between(catalog, monkeypatch, stream):
    table = created(catalog, "t", pa.table({"id": [1, 2], "v": ["a", "b"]}))
    library, calls = _delta._windrow.apply, []

    def applied(*given):
        result = library(*given)
        if not calls:
            catalog.load_table("n.t").append(pa.table({"id": [5], "v": ["other"]}))
        calls.append(given)
        return result

    monkeypatch.setattr(_delta, "_windrow", type("Library", (), {"apply": staticmethod(applied)}))
    log = pa.table({"id": [2, 5], "v": ["B", "E"]})
    if stream:
        with pytest.raises(wr.SpaceError, match="run the job again"):
            wr.apply(table, log.to_reader(), "id")
        assert len(data(table)) == 2, "nothing of the job"
        return
    done = wr.apply(table, log, "id")
    assert (len(calls), done.updated, done.inserted) == (2, 2, 0)
    assert sorted(table.scan().to_arrow()["v"].to_pylist()) == ["B", "E", "a"]
    assert len(data(table)) == 4


def test_writers_side_by_side_lose_nothing(catalog):
    created(catalog, "t", pa.table({"id": pa.array(range(300)), "v": ["a"] * 300}))
    failed = []

    def write(writer):
        try:
            for round in range(2):
                ids = list(range(writer, 300, 3))
                log = pa.table({"id": ids, "v": [f"{writer} {round}"] * len(ids)})
                wr.apply(catalog.load_table("n.t"), log, "id")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=[writer]) for writer in range(3)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failed, failed
    found = catalog.load_table("n.t").scan().to_arrow().sort_by("id").to_pydict()
    assert found == {"id": list(range(300)), "v": [f"{i % 3} 1" for i in range(300)]}


def test_first_rows_last_rows_and_columns_that_are_newer_than_files(catalog):
    schema = pa.schema([pa.field("id", pa.int32(), nullable=False), ("v", pa.string()), ("at", pa.timestamp("us", "UTC"))])
    table = created(catalog, "t", None, schema)
    moment = datetime.datetime(2026, 1, 31, tzinfo=datetime.timezone.utc)
    with pytest.raises((wr.UsageError, wr.DataError), match="null"):
        wr.apply(table, pa.table({"id": pa.array([None], pa.int32()), "v": ["a"], "at": [moment]}), "id")
    assert data(table) == set()
    assert wr.apply(table, pa.table({"id": [2, 1], "v": ["b", "a"], "at": [moment] * 2}), "id").inserted == 2
    with table.update_schema() as update:
        update.add_column("w", DoubleType())
        update.update_column("id", LongType())
    done = wr.apply(table, pa.table({"id": [2, 2**40], "v": ["B", "C"], "at": [moment] * 2, "w": [2.5, 3.5]}), "id")
    assert (done.updated, done.inserted) == (1, 1)
    found = table.scan().to_arrow().sort_by("id").to_pydict()
    assert (found["id"], found["w"], found["v"]) == ([1, 2, 2**40], [None, 2.5, 3.5], ["a", "B", "C"])
    log = pa.table({"id": [1, 2, 2**40], "op": ["D"] * 3})
    assert wr.apply(table, log, "id", op="op", read={"union_by_name": True}).deleted == 3
    assert table.scan().to_arrow().num_rows == 0
    assert wr.apply(table, pa.table({"id": [7], "v": ["c"], "at": [moment], "w": [1.0]}), "id").inserted == 1


def test_what_is_not_served_is_refused_by_name(catalog):
    log = pa.table({"id": [1], "v": ["a"]})
    table = created(catalog, "renamed", log)
    with table.update_schema() as update:
        update.rename_column("v", "w")
    with pytest.raises(wr.UsageError, match="renamed"):
        wr.apply(table, pa.table({"id": [1], "w": ["a"]}), "id")
    table = created(catalog, "again", log)
    with table.update_schema() as update:
        update.delete_column("v")
    with table.update_schema() as update:
        update.add_column("v", LongType())
    with pytest.raises(wr.UsageError, match="added again"):
        wr.apply(table, log, "id")


def test_files_in_the_order_of_the_table_say_so(catalog):
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "n", LongType()))
    order = SortOrder(SortField(1, IdentityTransform(), SortDirection.ASC, NullOrder.NULLS_LAST))
    table = catalog.create_table("n.ordered", schema, sort_order=order)
    for key, expected in [("id", order.order_id), ("n", None)]:
        wr.apply(table, pa.table({"id": [2, 1], "n": [len(key), 0]}), key)
        assert {task.file.sort_order_id for task in table.scan().plan_files()} >= {expected}
