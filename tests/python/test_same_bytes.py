"""What is written is what the command line tool writes, to the byte."""

import pathlib

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import windrow as wr
from conftest import LOG, shuffled

JOBS = {
    "sort": (
        dict(by="o_orderkey:desc,lsn"),
        ["--by", "o_orderkey:desc,lsn"],
    ),
    "sort, all options": (
        dict(by=["op", wr.col("lsn", desc=True)], select=["lsn", "op"], write={"compression": "zstd:3"}, parquet=wr.Parquet(row_group_size="1MiB", page_size=65536, statistics=False), threads=2, memory="256MiB", spill=wr.Spill(compression="lz4", temp_dir=".", max_temp_size="1GiB")),
        ["--by", "op,lsn:desc", "--select", "lsn,op", "--compression", "zstd:3", "--row-group-size", "1MiB", "--page-size", "64KiB", "--no-statistics"],
    ),
    "compact": (
        dict(key="o_orderkey", order_by="lsn", op="op"),
        ["--key", "o_orderkey", "--order-by", "lsn", "--op-column", "op"],
    ),
    "compact, log": (
        dict(key=["o_orderkey"], order_by=["lsn"], op="op", preset="generic", changes=wr.ChangeLog(mode="log", as_of=30_000_000)),
        ["--key", "o_orderkey", "--order-by", "lsn", "--op-column", "op", "--op-preset", "generic", "--mode", "log", "--as-of", "30000000"],
    ),
    "sort, some rows": (
        dict(by="lsn:desc", limit=100, where="op != D and o_orderkey > 1000"),
        ["--by", "lsn:desc", "--limit", "100", "--where", "op != D and o_orderkey > 1000"],
    ),
    "sort, as in SQL": (
        dict(by="o_totalprice", float_order="sql", read={"union_by_name": True}),
        ["--by", "o_totalprice", "--float-order", "sql", "--union-by-name"],
    ),
    "dedupe": (
        dict(key="o_orderkey", keep="last", select=["o_orderkey", "lsn"]),
        ["--key", "o_orderkey", "--keep", "last", "--select", "o_orderkey,lsn"],
    ),
    "dedupe, none": (
        dict(key="o_orderkey", keep="none"),
        ["--key", "o_orderkey", "--keep", "none"],
    ),
    "head": (
        dict(rows=7),
        ["--rows", "7"],
    ),
    "compact, bookkeeping": (
        dict(key="o_orderkey", order_by="lsn", op="op", changes={"keep_bookkeeping": True}),
        ["--key", "o_orderkey", "--order-by", "lsn", "--op-column", "op", "--keep-bookkeeping"],
    ),
}


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("extension", ["parquet", "arrow", "arrows", "csv", "ndjson"])
def test_a_job_of_one_file(tool, name, extension):
    options, flags = JOBS[name]
    verb = name.split(",")[0]
    if extension in ("csv", "ndjson"):
        options = {**options, "write": None}
        flags = [flag for flag in flags if flag not in ("--compression", "zstd:3")]
    tool(verb, LOG, *flags, "-o", f"theirs.{extension}")
    stats = getattr(wr, verb)(LOG, output=f"ours.{extension}", **options)
    ours, theirs = pathlib.Path(f"ours.{extension}").read_bytes(), pathlib.Path(f"theirs.{extension}").read_bytes()
    assert ours == theirs
    assert stats.bytes_out == len(ours)
    # The first rows are read, and no more than come with them.
    assert stats.rows_in < 51_684 if verb == "head" else stats.rows_in == 51_684


def test_a_raw_change_log(tool):
    lines = [
        '{"action":"I","schema":"public","table":"t","columns":[{"name":"id","type":"integer","value":1},{"name":"x","type":"text","value":"a"}]}',
        '{"action":"U","schema":"public","table":"t","columns":[{"name":"id","type":"integer","value":1},{"name":"x","type":"text","value":"b"}],"identity":[{"name":"id","type":"integer","value":1}]}',
        '{"action":"I","schema":"public","table":"u","columns":[{"name":"id","type":"integer","value":1}]}',
    ]
    pathlib.Path("log.ndjson").write_text("\n".join(lines))
    tool("compact", "log.ndjson", "--key", "id", "--op-preset", "auto", "--table", "t", "-o", "theirs.parquet")
    wr.compact("log.ndjson", key="id", preset="auto", changes={"table": "t"}, output="ours.parquet")
    assert pathlib.Path("ours.parquet").read_bytes() == pathlib.Path("theirs.parquet").read_bytes()
    assert pq.read_table("ours.parquet").to_pylist() == [{"id": 1, "x": "b"}]


def test_words_of_operations(tool):
    rows = pa.table({"id": [1, 2, 1], "what": ["neu", "neu", "weg"]})
    pq.write_table(rows, "log.parquet")
    flags = ["--key", "id", "--op-column", "what", "--op-map", "neu=insert,weg=delete"]
    tool("compact", "log.parquet", *flags, "-o", "theirs.parquet")
    for words in ("neu=insert,weg=delete", {"neu": "insert", "weg": "delete"}):
        wr.compact("log.parquet", key="id", op="what", changes={"op_map": words}, output="ours.parquet")
        assert pathlib.Path("ours.parquet").read_bytes() == pathlib.Path("theirs.parquet").read_bytes()


def test_directories_with_names_of_columns(tool):
    tool("partition", LOG, "--by", "op", "--hive", "-o", "lake")
    tool("sort", "lake", "--by", "lsn", "--where", "op = D", "-o", "theirs.parquet")
    wr.sort("lake", by="lsn", where="op = D", output="ours.parquet")
    assert pathlib.Path("ours.parquet").read_bytes() == pathlib.Path("theirs.parquet").read_bytes()


def test_merges(tool):
    for number in range(3):
        wr.sort(shuffled(3000 + number), by="id", output=f"{number}.parquet")
    tool("merge", "0.parquet", "1.parquet", "2.parquet", "--by", "id", "--unique", "-o", "theirs.parquet")
    wr.merge(["0.parquet", pathlib.Path("1.parquet"), "2.parquet"], by="id", unique=True, output="ours.parquet")
    wr.merge("[0-2].parquet", by="id", unique=True, output="pattern.parquet")
    assert len({pathlib.Path(f"{name}.parquet").read_bytes() for name in ("ours", "theirs", "pattern")}) == 1
    assert pq.read_table("ours.parquet").num_rows == 3002


def test_merges_of_diffs(tool):
    table = pa.table({"id": [1, 1, 2], "at": [1, 2, 1], "diff": [1, -1, 1]})
    wr.compact(table, changes=wr.ChangeLog(diff="diff", time="at", mode="log"), output="a.parquet")
    wr.compact(table, changes=wr.ChangeLog(diff="diff", time="at", mode="log"), output="b.parquet")
    tool("merge", "a.parquet", "b.parquet", "--by", "id", "--consolidate", "--diff", "diff", "--time", "at", "-o", "theirs.parquet")
    wr.merge(["a.parquet", "b.parquet"], by="id", changes={"diff": "diff", "time": "at"}, output="ours.parquet")
    assert pathlib.Path("ours.parquet").read_bytes() == pathlib.Path("theirs.parquet").read_bytes()


PARTITIONS = [
    (dict(by="o_orderkey", into=7), ["--by", "o_orderkey", "--into", "7"]),
    (dict(by="o_orderkey", ranges=3, sort="lsn"), ["--by", "o_orderkey", "--range", "--into", "3", "--sort", "lsn"]),
    (dict(by="lsn", ranges=[27_000_000, 30_000_000]), ["--by", "lsn", "--range-at", "27000000", "--range-at", "30000000"]),
    (dict(by=["op", "lsn"], ranges=[("I", 5), ("U", 7)]), ["--by", "op,lsn", "--range-at", "I,5", "--range-at", "U,7"]),
    (dict(by="op", hive=True, write={"format": "csv"}), ["--by", "op", "--hive", "--output-format", "csv"]),
]


@pytest.mark.parametrize("options, flags", PARTITIONS)
def test_partitions(tool, options, flags):
    tool("partition", LOG, *flags, "-o", "theirs")
    stats = wr.partition(LOG, output="ours", **options)
    files = {path.relative_to("theirs") for path in pathlib.Path("theirs").rglob("*") if path.is_file()}
    assert files == {path.relative_to("ours") for path in pathlib.Path("ours").rglob("*") if path.is_file()}
    assert stats.partitions["files"] == len(files)
    for name in files:
        assert ("ours" / name).read_bytes() == ("theirs" / name).read_bytes()


def test_text_is_read_as_told(tool):
    pathlib.Path("a.csv").write_text("3;x\n1;y\n")
    flags = ["--csv-delimiter", ";", "--csv-no-header", "--schema", "column_1:int32,column_2:utf8"]
    tool("sort", "a.csv", "--by", "column_1", "-o", "theirs.parquet", *flags)
    for schema in ["column_1:int32,column_2:utf8", {"column_1": "int32", "column_2": "utf8"}, pa.schema({"column_1": pa.int32(), "column_2": pa.string()})]:
        wr.sort("a.csv", by="column_1", output="ours.parquet", csv=wr.Csv(delimiter=";", header=False), read={"schema": schema})
        assert pathlib.Path("ours.parquet").read_bytes() == pathlib.Path("theirs.parquet").read_bytes()


def test_an_input_may_be_the_output(file, tool):
    tool("sort", file, "--by", "id", "-o", "theirs.parquet")
    wr.sort(file, by="id", output=file)
    assert pathlib.Path(file).read_bytes() == pathlib.Path("theirs.parquet").read_bytes()


@pytest.mark.parametrize("more", [{}, {"format": "summary"}, {"op": "change", "select": ["lsn"]}])
def test_differences(tool, rows, more):
    changed = rows.slice(10).set_column(1, "text0", pa.array([f"{n % 3}" for n in range(rows.num_rows - 10)]))
    pq.write_table(rows, "old.parquet")
    pq.write_table(pa.concat_tables([changed.rename_columns(rows.column_names), shuffled(30_000).slice(25_000)]).group_by("id").aggregate([("text0", "max")]).rename_columns(["id", "text0"]), "new.parquet")
    more = {**more, "select": ["text0"]} if "select" in more else more
    flags = [flag for name, value in more.items() for flag in ({"format": "--format", "op": "--op-column", "select": "--select"}[name], value[0] if name == "select" else value)]
    tool("diff", "old.parquet", "new.parquet", "--key", "id", *flags, "-o", "theirs.parquet")
    stats = wr.diff("old.parquet", "new.parquet", key="id", output="ours.parquet", **more)
    assert pathlib.Path("ours.parquet").read_bytes() == pathlib.Path("theirs.parquet").read_bytes()
    assert stats.rows_out == pq.read_metadata("ours.parquet").num_rows > 0
    if not more:
        # Applied to the old side they give the new one.
        changes = wr.diff(pq.read_table("old.parquet"), "new.parquet", key="id")
        applied = wr.compact(["old.parquet", changes], key="id", op="op", changes={"op_map": {"": "insert"}}, read={"union_by_name": True})
        assert pa.table(applied).select(["id", "text0"]) == pq.read_table("new.parquet").sort_by("id")
