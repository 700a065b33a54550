"""Recipes of the documentation."""

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import windrow as wr
from conftest import LOG


def test_polars():
    """A log that does not fit goes through Windrow; what is left of it through Polars."""
    latest = pl.DataFrame(wr.compact(LOG, key="o_orderkey", order_by="lsn", op="op", memory="256MiB"))
    log = pl.read_parquet(LOG)
    expected = log.sort("lsn").group_by("o_orderkey", maintain_order=True).last().filter(pl.col("op") != "D").sort("o_orderkey")
    assert latest["o_orderkey"].to_list() == expected["o_orderkey"].to_list()
    assert latest["lsn"].to_list() == expected["lsn"].to_list()
    wr.sort(latest.filter(pl.col("lsn") > 30000000), by="lsn:desc", output="recent.parquet")
    assert pl.read_parquet("recent.parquet")["lsn"].is_sorted(descending=True)


def test_duckdb():
    """DuckDB's query in, rows in order out, and a query over those."""
    db = duckdb.connect()
    changes = db.sql(f"select o_orderkey, lsn, op from '{LOG}' where lsn > 30000000")
    latest = wr.compact(changes, key="o_orderkey", order_by="lsn", op="op")
    [(count, orders)] = db.sql("select count(*), count(distinct o_orderkey) from latest").fetchall()
    query = f"select count(*) from (from '{LOG}' where lsn > 30000000 qualify row_number() over (partition by o_orderkey order by lsn desc) = 1) where op <> 'D'"
    assert [(count,)] == [(orders,)] == db.sql(query).fetchall()
    wr.sort(db.sql(f"select * from '{LOG}'"), by="o_orderkey,lsn", output="sorted.parquet")
    assert wr.check("sorted.parquet", by="o_orderkey,lsn")


def test_a_data_set_of_pyarrow():
    """Only the columns and rows that a data set's scanner lets through."""
    import pyarrow.dataset as ds

    scanner = ds.dataset(LOG).scanner(columns=["o_orderkey", "lsn"], filter=ds.field("lsn") < 27_000_000)
    table = pa.table(wr.sort(scanner.to_reader(), by="lsn:desc"))
    expected = pq.read_table(LOG, columns=["lsn"], filters=[("lsn", "<", 27_000_000)])
    assert table["lsn"].to_pylist() == sorted(expected["lsn"].to_pylist(), reverse=True)


def test_a_partition_at_a_time():
    """The shape of Spark's mapInArrow: record batches in, record batches out."""

    def newest(batches):
        first = next(batches)
        reader = pa.RecordBatchReader.from_batches(first.schema, (b for part in ([first], batches) for b in part))
        for batch in wr.compact(reader, key="o_orderkey", order_by="lsn", op="op"):
            yield pa.record_batch(batch)

    rows = pa.Table.from_batches(newest(iter(pq.read_table(LOG).to_batches(5000))))
    assert rows.num_rows == 28_752
