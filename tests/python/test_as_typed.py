"""Lines as people type them who know Polars, DuckDB, pandas and pyarrow: each works, or its error names the line that does."""

import datetime
import io
import pathlib
import subprocess
import sys
import zipfile

import duckdb
import fsspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import windrow as wr

ROWS = [
    {"id": 3, "day": datetime.date(2026, 1, 2), "name": "cid", "ts": 1},
    {"id": 1, "day": datetime.date(2026, 1, 1), "name": "ann", "ts": 2},
    {"id": 2, "day": datetime.date(2026, 1, 2), "name": None, "ts": 3},
    {"id": 1, "day": datetime.date(2026, 1, 1), "name": "amy", "ts": 4},
]


@pytest.fixture
def names():
    """What the lines use."""
    table = pa.Table.from_pylist(ROWS)
    pq.write_table(table, "rows.parquet")
    pathlib.Path("rows.csv").write_text("id,name\n3,cid\n1,ann\n")
    with zipfile.ZipFile("rows.zip", "w") as archive:
        archive.write("rows.parquet")
    wr.partition(table, "day", hive=True, output="lake")
    con = duckdb.connect()
    con.register("rows", table)
    frame = pl.DataFrame(table)
    changes = [{"op": "update", "id": 1, "name": "eve"}, {"op": "delete", "id": 2}]
    users = wr.Table({"id": "int64", "name": "string"}, key="id")
    users.upsert([{"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}])
    fsspec.filesystem("memory").pipe("/rows.parquet", pathlib.Path("rows.parquet").read_bytes())
    return {
        **{"wr": wr, "pl": pl, "pa": pa, "pc": pc, "ds": ds, "pd": pd, "np": np, "io": io, "duckdb": duckdb, "fsspec": fsspec},
        **{"Path": pathlib.Path, "zipfile": zipfile, "date": datetime.date},
        **{"table": table, "frame": frame, "lazy": frame.lazy(), "pandas": table.to_pandas(), "con": con, "rows": ROWS},
        **{"old": frame.unique("id", keep="first", maintain_order=True), "new": frame.unique("id", keep="last"), "changes": changes},
        **{"users": users, "reader": wr.sort(table, "id")},
    }


IDS = [1, 1, 2, 3]
LINES = [
    # Sorts: Polars' sort, pandas' sort_values, pyarrow's sort_by, DuckDB's order by.
    ('wr.sort(table, "id")', IDS),
    ('wr.sort(frame, "id", descending=True)', IDS[::-1]),
    ('wr.sort(frame, ["day", "id"], descending=[True, False])', [2, 3, 1, 1]),
    ('wr.sort(frame, "name", nulls_last=False)', [2, 1, 1, 3]),
    ('wr.sort(table, [("day", "descending"), ("id", "ascending")])', [2, 3, 1, 1]),
    ('wr.sort(pandas, by=["day", "id"])', [1, 1, 2, 3]),
    ('wr.sort("rows.parquet", "id", columns=["id"])', IDS),
    ('wr.sort(Path("rows.parquet"), "id", limit=2)', [1, 1]),
    ('wr.sort(frame, "day", "id")', "by=['day', 'id']"),
    ('wr.sort(frame, "id desc")', '"id:desc"'),
    ('wr.sort(frame, pl.col("id"))', 'write "id"'),
    ('wr.sort(pandas, "id", ascending=False)', "ascending= is descending="),
    ('wr.sort(pandas, "id", na_position="first")', "na_position= is nulls_last="),
    ('wr.sort(frame, "id", maintain_order=True)', "equal rows keep their order"),
    ('wr.sort(pandas, "id", inplace=True)', "returns new rows"),
    ('wr.sort_values(pandas, "id")', "wr.sort"),
    # Inputs that people have in hand.
    ('wr.sort(lazy, "id")', IDS),
    ('wr.sort(pl.scan_parquet("rows.parquet").filter(pl.col("id") > 1), "id")', [2, 3]),
    ('wr.sort(lazy.filter(pl.col("id") > 9), "id")', []),
    ('wr.sort(ds.dataset("lake", partitioning="hive"), "id")', IDS),
    ('wr.sort(ds.dataset("rows.parquet").scanner(columns=["id"]), "id")', IDS),
    ('wr.sort(con.sql("from rows"), "id")', IDS),
    ('wr.sort(con.execute("select * from rows where id > 1"), "id")', "con.sql(query)"),
    ('wr.sort(rows, "id")', IDS),
    ('wr.sort([{"id": 2}, {"id": 1, "x": "y"}], "id")', [1, 2]),
    ('wr.sort({"id": [2, 1]}, "id")', [1, 2]),
    ('wr.sort({"id": 2}, "id")', '[{"id": 1}]'),
    ('wr.sort(Path(".").glob("*.parquet"), "id")', IDS),
    ('wr.sort("*.parquet", "id")', IDS),
    ('wr.sort(table.to_batches(max_chunksize=1), "id")', IDS),
    ('wr.sort((batch for batch in table.to_batches(max_chunksize=1)), "id")', IDS),
    ('wr.sort((frame.slice(at, 1) for at in range(4)), "id")', IDS),
    ('wr.sort([table, "rows.parquet", lazy], "id", limit=6)', [1] * 6),
    ('wr.sort(open("rows.parquet", "rb"), "id")', IDS),
    ('wr.sort(open("rows.csv"), "id")', 'open(path, "rb")'),
    ('wr.sort(io.BytesIO(Path("rows.parquet").read_bytes()), "id")', IDS),
    ('wr.merge(io.BytesIO(Path("rows.parquet").read_bytes()), "ts")', [3, 1, 2, 1]),
    ('wr.sort(io.BytesIO(b"id\\n2\\n1\\n"), "id", read={"format": "csv"})', [1, 2]),
    ('wr.sort(zipfile.ZipFile("rows.zip").open("rows.parquet"), "id")', IDS),
    ('wr.sort(fsspec.open("memory://rows.parquet"), "id")', IDS),
    ('wr.sort(fsspec.filesystem("memory").open("/rows.parquet"), "id")', IDS),
    ('wr.sort(np.array([2, 1]), "id")', 'pyarrow.table({"name": array})'),
    ('wr.sort(frame["id"], "id")', "series.to_frame()"),
    ('wr.sort(lazy.group_by("id"), "id")', "paths, Arrow objects, frames"),
    # Duplicates and latest rows: unique, drop_duplicates, distinct on.
    ('wr.dedupe(frame, "id")', [1, 2, 3]),
    ('wr.dedupe(frame, ["id", "day"], keep="last")', [1, 2, 3]),
    ('wr.dedupe(pandas, "id", keep=False)', [2, 3]),
    ('wr.dedupe(frame, keep="any")', "none of first, last"),
    ('wr.dedupe(pandas, subset="id")', "subset= is key="),
    ('wr.drop_duplicates(pandas)', "wr.dedupe"),
    ('wr.compact(frame, "id", order_by="ts")', [1, 2, 3]),
    ('wr.compact(frame, "id", order_by="ts:desc", select=["id", "ts"])', [1, 2, 3]),
    # Upserts, differences, merges.
    ('wr.compact([old.select("id", "name"), pl.from_dicts(changes)], "id", op="op", changes={"op_map": {None: "insert"}}, read={"union_by_name": True})', [1, 3]),
    ('wr.diff(old, new, "id")', [1]),
    ('wr.diff(old, new, on="id")', "on= is key="),
    ('wr.diff(old, "id")', "wr.diff(old, new, key=...)"),
    ('wr.merge([table.sort_by("id"), table.sort_by("id")], "id")', [1, 1, 1, 1, 2, 2, 3, 3]),
    ('wr.merge(old, new, key="id")', "merge([a, b], by=...)"),
    ('wr.merge([old, new], on="id")', "on= is by="),
    ('wr.merge([old, new], by="id", how="left")', "join columns with Polars or DuckDB"),
    # Heads.
    ('wr.head("rows.parquet", 2)', [3, 1]),
    ('wr.head(lazy, 2)', [3, 1]),
    ('wr.head(frame, n=2)', "n= is rows="),
    # Filters.
    ('wr.sort(frame, "id", where="id > 1")', [2, 3]),
    ('wr.sort(frame, "id", where="id = 1 and ts > 2 or id between 2 and 3")', [1, 2, 3]),
    ('wr.sort(frame, "id", where="not (id in (1, 2)) or name like \'a%y\'")', [1, 3]),
    ('wr.sort(frame, "id", where=pl.col("id") > 1)', [2, 3]),
    ('wr.sort(frame, "id", where=(pl.col("day") == date(2026, 1, 1)) & ~(pl.col("ts") > 2))', [1]),
    ('wr.sort(frame, "id", where=pl.col("id").is_in([2, 3]) | pl.col("name").str.starts_with("am"))', [1, 2, 3]),
    ('wr.sort(frame, "id", where=pl.col("id").is_between(2, 3) & pl.col("name").is_not_null())', [3]),
    ('wr.sort(frame, "id", where=pc.field("id") > 1)', [2, 3]),
    ('wr.sort(frame, "id", where=pc.field("id").isin([1]) & (pc.field("day") >= date(2026, 1, 1)) & (pc.field("ts") == 4))', [1]),
    ('wr.sort(frame, "id", where=~pc.field("name").isin(["ann", "cid"]) | pc.starts_with(pc.field("name"), "c"))', [1, 2, 3]),
    ('wr.sort(frame, "id", where=[("id", ">", 1), ("day", "==", date(2026, 1, 2))])', [2, 3]),
    ('wr.sort(frame, "id", where=[[("id", "in", [1])], [("name", "=", "cid")]])', [1, 1, 3]),
    ('wr.sort(con.sql("from rows"), "id", where=duckdb.ColumnExpression("id") > 1)', [2, 3]),
    ('wr.sort(frame, "id", where=pl.col("id") * 2 > 2)', "lazy.filter(...)"),
    ('wr.sort(frame, "id", where=lambda row: row["id"] > 1)', "an expression of Polars or pyarrow"),
    ('wr.sort(frame, "id", filters=[("id", ">", 1)])', "filters= is where="),
    ('wr.sort(frame, "id", where="id > 1 & id < 3")', "`and` or `or` is expected"),
    # Results.
    ("reader.to_polars()", IDS),
    ("reader.to_arrow()", IDS),
    ("reader.read_all()", IDS),
    ("pa.Table.from_pandas(reader.to_pandas())", IDS),
    ("reader.to_duckdb(con).to_arrow_table()", IDS),
    ("pl.DataFrame(reader)", IDS),
    ("pa.table(reader)", IDS),
    ('duckdb.sql("from reader").to_arrow_table()', IDS),
    ("pl.from_arrow(reader)", "reader.to_polars()"),
    ("pd.DataFrame(reader)", "reader.to_pandas()"),
    ("reader.collect()", "reader.to_polars()"),
    ("reader.df()", "reader.to_pandas()"),
    ("reader.columns", "reader.schema.names"),
    ("reader.num_rows", "reader.stats.rows_out"),
    ('reader["id"]', 'reader.to_arrow()[\'id\']'),
    ('reader.write_parquet("a.parquet")', "output="),
    ('pa.table({"id": [row[0] for row in reader.fetchall()]})', IDS),
    ('pa.table({"id": [reader.fetchone()[0], *(row[0] for row in reader.fetchmany(2))]})', IDS[:3]),
    # Outputs.
    ('wr.head(wr.sort(frame, "id", output="a.parquet") and "a.parquet")', IDS),
    ('wr.head(wr.sort(frame, "id", output=open("a.parquet", "wb")) and "a.parquet")', IDS),
    ('wr.sort(frame, "id", output=open("a.csv", "w"))', 'open(path, "wb")'),
    ('wr.sort(frame, "id", output=io.BytesIO())', 'write={"format": "parquet"}'),
    ('wr.sort(frame, "id", output="a", partition_by="day")', "wr.partition(inputs, by, hive=True, output=...)"),
    ('wr.partition(frame, "day", hive=True, output="lake")', "mode"),
    ('wr.sort((wr.partition(frame, "day", "b", hive=True), "b")[1], "id")', IDS),
    ('wr.sort("rows.parquet", "rows.csv", by="id")', "sort([a, b], by=...)"),
    ('wr.sort((wr.partition(frame, "day", hive=True, output="lake", mode="append"), "lake")[1], "id")', sorted(IDS * 2)),
    ('wr.sort((wr.partition(frame.filter(pl.col("ts") > 2), "day", hive=True, output="lake", mode="overwrite"), "lake")[1], "id")', [1, 2]),
    ('wr.partition(frame, "day", hive=True, output="lake", existing_data_behavior="delete_matching")', "mode= of partition"),
    ('wr.partition(frame, partition_cols=["day"], output="b")', "partition_cols= is by="),
    # Tables.
    ('users.scan(where="id > 1", columns=["id"])', [2]),
    ('pa.table({"id": [len(users), int(1 in users), users[1]["id"]]})', [2, 1, 1]),
    ('(users.apply(changes), users.scan())[1]', [1]),
    ('users.upsert([{"id": 3, "nam": "cid"}])', "the columns are id, name"),
    ("users.scan(at=9)", "table.now"),
    ("users[7]", "7"),
    ('(users.save("a.parquet"), wr.Table.open("a.parquet").scan())[1]', [1, 2]),
    # What is not there.
    ('wr.sort("none/*.parquet", "id")', "no file matches"),
    ('wr.read_parquet("rows.parquet")', "every call takes paths"),
    ("wr.upsert(old, new)", "wr."),
]


@pytest.mark.parametrize("line, expected", LINES, ids=[line for line, _ in LINES])
def test_a_line_works_or_names_the_one_that_does(names, line, expected):
    if isinstance(expected, list):
        assert pa.table(eval(line, names))["id"].to_pylist() == expected
        return
    with pytest.raises((TypeError, ValueError, AttributeError, LookupError, OSError)) as raised:
        eval(line, names)
    assert expected in str(raised.value)


PROGRAM = """
import datetime
import io
import zipfile
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import fsspec  # type: ignore[import-untyped]
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.dataset as ds  # type: ignore[import-untyped]

import windrow as wr

con = duckdb.connect()
table: pa.Table
frame: pl.DataFrame
lazy: pl.LazyFrame
pandas: pd.DataFrame
rows: list[dict[str, Any]]
old: pl.DataFrame
new: pl.DataFrame
changes: list[dict[str, Any]]
users: wr.Table
reader: wr.Reader
"""
# Other spellings, which signatures do not have, and what other libraries say.
UNTYPED = ['columns=["id"])', "keep=False", "to_duckdb(con)", "duckdb.sql(", "fetchone()[0]"]


def test_the_lines_that_work_pass_a_type_checker():
    lines = [line for line, expected in LINES if isinstance(expected, list) and not any(part in line for part in UNTYPED)]
    assert len(lines) > 60
    pathlib.Path("program.py").write_text("\n".join([PROGRAM, *lines, ""]))
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "program.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
