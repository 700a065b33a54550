"""Changes applied to partitioned tables of Delta and Iceberg: rows move between partitions, and readers that prune by
partition find them."""

import datetime
import decimal

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import windrow as wr
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.transforms import parse_transform

REGIONS = ["nl", "a b", "50%", "x=y", "ü", None, "be", "n/a"]
START = datetime.datetime(2026, 1, 30, tzinfo=datetime.timezone.utc)


def rows(rng, ids):
    """Rows whose partitions are drawn anew: a change of a key is likely to move its row."""
    n = rng.integers(0, 8, size=len(ids))
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "region": pa.array([REGIONS[i] for i in n]),
            "day": pa.array([None if i == 7 else START.date() + datetime.timedelta(days=int(i)) for i in n], pa.date32()),
            "at": pa.array([None if i == 6 else START + datetime.timedelta(hours=7 * int(i)) for i in n], pa.timestamp("us", "UTC")),
            "n": pa.array(n - 3, pa.int32()),
            "d": pa.array([decimal.Decimal(int(i)) / 100 for i in n], pa.decimal128(9, 2)),
            "b": pa.array([None if i == 0 else bool(i % 2) for i in n]),
            "v": [f"v{i}" for i in rng.integers(0, 20, size=len(ids))],
        }
    )


def logs(rng):
    """The table at first, and three logs of changes."""
    yield rows(rng, np.arange(0, 600, 2))
    for _ in range(3):
        log = rows(rng, rng.choice(700, size=int(rng.integers(1, 60)), replace=False))
        yield log.append_column("op", pa.array(rng.choice(["insert", "delete"], size=log.num_rows, p=[0.7, 0.3])))


def applied(model, log):
    for row in log.to_pylist():
        op = row.pop("op", "insert")
        model.pop(row["id"], None)
        if op != "delete":
            model[row["id"]] = row


def in_order(found):
    return sorted((dict(sorted(row.items())) for row in found), key=lambda row: row["id"])


DELTA = [["region"], ["day"], ["at"], ["n", "region"], ["d"], ["b"]]


@pytest.mark.parametrize("by", DELTA, ids=map("-".join, DELTA))
@pytest.mark.parametrize("key", ["id", "local"])
def test_delta(tmp_path, by, key):
    rng = np.random.default_rng(len(by[0]))
    first, *rest = logs(rng)
    table, model = str(tmp_path / "table"), {}
    write_deltalake(table, first, partition_by=by)
    applied(model, first)
    for log in rest:
        if key == "local":  # changes stay in their partitions
            log = log.drop_columns(by)
            old = {row["id"]: row for row in model.values()}
            for name in by:
                log = log.append_column(name, pa.array([old.get(i, {}).get(name) for i in log["id"].to_pylist()], first.schema.field(name).type))
        done = wr.apply(table, log, "id" if key == "id" else ["id", *by], op="op")
        applied(model, log)
        found = DeltaTable(table)
        assert in_order(found.to_pyarrow_table().to_pylist()) == in_order(model.values())
        assert in_order(pl.read_delta(table).to_dicts()) == in_order(model.values())
        assert found.version() == done.version and done.rows_out == len(model)
        with duckdb.connect() as db:
            paths = found.file_uris()
            assert db.execute("SELECT count(*) FROM read_parquet(?)", [paths]).fetchone() == (len(model),)
        if by == ["region"]:  # pruned by the values in the log
            pruned = pl.scan_delta(table).filter(pl.col("region") == "a b").collect()
            assert pruned.height == sum(row["region"] == "a b" for row in model.values())
        assert wr.apply(table, log, "id" if key == "id" else ["id", *by], op="op").version == done.version


def test_delta_begins_empty_and_ends_empty(tmp_path):
    table = str(tmp_path / "table")
    write_deltalake(table, pa.table({"id": pa.array([], pa.int64()), "region": pa.array([], pa.string())}), partition_by=["region"])
    log = pa.table({"id": [1, 2, 3], "region": ["nl", None, "nl"]})
    assert wr.apply(table, log, "id").inserted == 3
    assert in_order(DeltaTable(table).to_pyarrow_table().to_pylist()) == in_order(log.to_pylist())
    assert wr.apply(table, log.append_column("op", pa.array(["delete"] * 3)), "id", op="op").deleted == 3
    assert DeltaTable(table).file_uris() == []
    assert wr.apply(table, log, "id").inserted == 3
    assert DeltaTable(table).count() == 3


ICEBERG = [
    [("region", "identity")],
    [("id", "bucket[5]")],
    [("region", "bucket[3]")],
    [("d", "bucket[4]")],
    [("day", "day")],
    [("at", "hour")],
    [("at", "month"), ("n", "identity")],
    [("region", "truncate[1]"), ("day", "year")],
    [("id", "truncate[100]")],
    [("n", "void"), ("b", "identity")],
]


@pytest.mark.parametrize("by", ICEBERG, ids=lambda by: "-".join(transform for _, transform in by))
def test_iceberg(tmp_path, by):
    rng = np.random.default_rng(len(by[0][0]))
    first, *rest = logs(rng)
    (tmp_path / "warehouse").mkdir()
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/warehouse")
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", schema=first.schema)
    with table.update_spec() as spec:
        for name, transform in by:
            spec.add_field(name, parse_transform(transform), f"{name}_{transform.partition('[')[0]}")
    model = {}
    wr.apply(table, first, "id")
    applied(model, first)
    for log in rest:
        done = wr.apply(table, log, "id", op="op")
        applied(model, log)
        assert in_order(table.scan().to_arrow().to_pylist()) == in_order(model.values())
        assert in_order(pl.scan_iceberg(table).collect().to_dicts()) == in_order(model.values())
        assert done.rows_out == len(model)
        partitions = table.inspect.partitions().to_pylist()
        assert sum(partition["record_count"] for partition in partitions) == len(model)
        # Readers skip the files of other partitions.
        for row in list(model.values())[:5]:
            name = by[-1][0]
            if row[name] is not None:
                value = f"'{row[name].isoformat()}'" if hasattr(row[name], "isoformat") else repr(row[name]).lower() if name == "b" else f"'{row[name]}'" if name == "region" else str(row[name])
                pruned = table.scan(row_filter=f"{name} = {value}").to_arrow()
                assert pruned.num_rows == sum(other[name] == row[name] for other in model.values())
        assert wr.apply(table, log, "id", op="op").files_added == []


def test_files_of_an_earlier_spec_are_refused(tmp_path):
    (tmp_path / "warehouse").mkdir()
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/warehouse")
    catalog.create_namespace("n")
    log = pa.table({"id": [1], "v": ["a"]})
    table = catalog.create_table("n.t", schema=log.schema)
    table.append(log)
    with table.update_spec() as spec:
        spec.add_identity("v")
    with pytest.raises(wr.UsageError, match="earlier partition spec"):
        wr.apply(table, log, "id")
