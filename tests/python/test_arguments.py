"""Arguments as people type them: groups, positions, the spellings of other libraries, and what is refused."""

# Calls are wrong on purpose.
# pyright: reportArgumentType=false, reportCallIssue=false

import inspect
import os
import pathlib
import subprocess
import sys

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import windrow as wr
from conftest import ROOT

CALLS = ["sort", "compact", "apply", "merge", "partition", "dedupe", "diff", "head", "check", "inspect"]


def ids(rows, name="id"):
    return pa.table(rows)[name].to_pylist()


def test_the_stubs_and_groups_are_those_of_the_table_of_settings():
    done = subprocess.run([sys.executable, ROOT / "scripts/stubs", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("verb", CALLS)
def test_a_call_has_few_keywords_and_says_what_they_are(verb):
    call = getattr(wr, verb)
    parameters = inspect.signature(call).parameters
    keywords = [name for name, parameter in parameters.items() if parameter.kind is parameter.KEYWORD_ONLY]
    assert len(keywords) <= 16
    for name in parameters:
        assert f"\n{name}\n    " in call.__doc__
    assert inspect.isroutine(call) and call.__name__ == verb and ">>>" in call.__doc__


@pytest.mark.parametrize("group", [wr.Csv, wr.Read, wr.Write, wr.Parquet, wr.Spill, wr.ChangeLog])
def test_a_group_is_a_dict_of_what_is_given(group):
    names = list(inspect.signature(group).parameters)
    assert group() == {} and group(**{names[0]: 1}) == {names[0]: 1}
    assert repr(group(**{names[0]: "x"})) == f"{group.__name__}({names[0]}='x')"
    assert all(f"\n{name}\n    " in inspect.getdoc(group) for name in names)


ROWS = pa.table({"id": [2, 1, None, 3], "x": ["b", "a", "c", "b"]})


@pytest.mark.parametrize("arguments, expected", [
    (dict(by="id:desc"), [3, 2, 1, None]),
    (dict(by="id", descending=True), [3, 2, 1, None]),
    (dict(by="id", nulls_last=False), [None, 1, 2, 3]),
    (dict(by=["x", "id"], descending=[True, False]), [None, 2, 3, 1]),
    (dict(by=("id", "descending")), [3, 2, 1, None]),
    (dict(by=[("x", "ascending"), ("id", "descending")]), [1, 3, 2, None]),
    (dict(by=("x", "id")), [1, 2, 3, None]),
    (dict(by=wr.col("id", desc=True)), [3, 2, 1, None]),
    (dict(by="id", columns=["id"]), [1, 2, 3, None]),
    (dict(by="id", spill={"to": "disk"}, threads=1), [1, 2, 3, None]),
    (dict(by="id", spill=wr.Spill(compression="lz4", temp_dir=".")), [1, 2, 3, None]),
])
def test_orders_are_said_in_many_ways(arguments, expected):
    assert ids(wr.sort(ROWS, **arguments)) == expected


def test_keys_and_numbers_of_rows_may_be_positional():
    assert ids(wr.sort(ROWS, "id")) == [1, 2, 3, None]
    assert ids(wr.head(ROWS, 2)) == [2, 1]
    assert ids(wr.dedupe(ROWS, "x")) == [1, 2, None]
    assert ids(wr.merge([ROWS.slice(0, 1), ROWS.slice(1, 1)], "id")) == [1, 2]
    assert wr.check(ROWS, "x").row == 1
    assert ids(wr.compact(ROWS, "x")) == [1, 3, None]
    assert ids(wr.diff(ROWS.slice(0, 1), ROWS.slice(0, 2), "id")) == [1]
    assert wr.partition(ROWS, "x", into=2, output="parts").partitions["files"] == 2
    assert wr.explain.sort(ROWS, "id").to_dict()["order"] == "id"


def test_groups_reach_the_job():
    pathlib.Path("in.csv").write_text("# so\n2;1,5\n1;-\n")
    csv = wr.Csv(delimiter=";", decimal="comma", header=False, null="-", comment="#")
    read = {"schema": {"column_1": "int32", "column_2": "float64"}}
    got = pa.table(wr.sort("in.csv", "column_1", csv=csv, read=read)).to_pylist()
    assert got == [{"column_1": 1, "column_2": None}, {"column_1": 2, "column_2": 1.5}]
    parquet = wr.Parquet(statistics=False, encoding="plain", row_group_size="1MiB")
    wr.sort("in.csv", "column_1", csv=csv, output="out", parquet=parquet, write=wr.Write(format="parquet", compression="gzip"))
    column = pq.ParquetFile("out").metadata.row_group(0).column(0)
    assert column.compression == "GZIP" and column.statistics is None
    log = pa.table({"id": [1, 1], "what": ["x", "y"]})
    assert ids(wr.compact(log, "id", op="what", changes={"op_map": {"x": "insert", "y": "delete"}})) == []
    assert ids(wr.compact(log, "id", op="what", changes=wr.ChangeLog(op_map="x=insert,y=delete", mode="log"))) == [1]


def test_ranges_are_a_number_or_their_starts(file):
    assert wr.partition(file, "id", ranges=3, output="a").partitions["files"] == 3
    assert wr.partition(file, "id", ranges=[10, 20], output="b").partitions["files"] == 3
    assert max(ids(wr.sort("b/part-00000.parquet", "id"))) == 9


def test_paths_are_those_of_other_libraries(rows, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    pq.write_table(rows, "rows of mine.parquet")
    wr.sort(pathlib.Path("rows of mine.parquet"), "id", output=pathlib.Path("a.parquet"))
    wr.sort("~/a.parquet", "id", output="~/b.parquet")
    address = (tmp_path / "rows of mine.parquet").as_uri()
    assert "%20" in address
    wr.sort([address], "id", output=(tmp_path / "c.parquet").as_uri())
    assert sorted(os.listdir()) == ["a.parquet", "b.parquet", "c.parquet", "rows of mine.parquet"]
    assert pathlib.Path("a.parquet").read_bytes() == pathlib.Path("c.parquet").read_bytes()


@pytest.mark.parametrize("call, text", [
    (lambda: wr.sort(ROWS, by="id", csv_delimiter=";"), "csv_delimiter= is csv={'delimiter': ...}"),
    (lambda: wr.sort(ROWS, by="id", delimiter=";"), "delimiter= is csv={'delimiter': ...}"),
    (lambda: wr.sort(ROWS, by="id", row_group_size=1), "row_group_size= is parquet={'row_group_size': ...}"),
    (lambda: wr.sort(ROWS, by="id", compression="gzip"), "compression= is write={'compression': ...} or spill={'compression': ...}"),
    (lambda: wr.sort(ROWS, by="id", format="csv"), "format= is read={'format': ...} or write={'format': ...}"),
    (lambda: wr.sort(ROWS, by="id", output_format="csv"), "output_format= is write={'format': ...}"),
    (lambda: wr.sort(ROWS, by="id", temp_dir="."), "temp_dir= is spill={'temp_dir': ...}"),
    (lambda: wr.sort(ROWS, by="id", schema="id:int8"), "schema= is read={'schema': ...}"),
    (lambda: wr.compact(ROWS, key="id", op_map="x=insert"), "op_map= is changes={'op_map': ...}"),
    (lambda: wr.compact(ROWS, key="id", as_of=3), "as_of= is changes={'as_of': ...}"),
    (lambda: wr.sort(ROWS, by="id", store_options={}), "store_options= is storage_options="),
    (lambda: wr.partition(ROWS, by="id", range_at=[1], output="a"), "range_at= is ranges="),
    (lambda: wr.compact(ROWS, key="id", orderby="x"), "did you mean order_by?"),
    (lambda: wr.sort(ROWS, by="id", delimeter=";"), "did you mean csv={'delimiter': ...}?"),
    (lambda: wr.sort(ROWS, by="id", csv={"delimeter": ";"}), "did you mean delimiter?"),
    (lambda: wr.sort(ROWS, by="id", zzz=1), "has no argument 'zzz'; it has by, "),
    (lambda: wr.merge(ROWS, by="id", descending=True), "has no argument 'descending'"),
    (lambda: wr.sort(ROWS, by="id", csv=";"), "csv= takes a dict"),
    (lambda: wr.sort(ROWS, by=3), '("id", "descending")'),
    (lambda: wr.sort(ROWS, by=pl.col("id")), "not an expression; write \"id\""),
    (lambda: wr.sort(ROWS, by=[pl.col("id").alias("y")]), "not an expression"),
    (lambda: wr.sort(ROWS, "id", "x"), "takes 2 positional arguments, not 3: inputs, by"),
    (lambda: wr.sort(ROWS, "id", by="x"), "two values for by="),
    (lambda: wr.sort(by="id"), "needs inputs="),
    (lambda: wr.Table("id:int64", key="id", spill={"too": "disk"}), "did you mean to?"),
])
def test_what_is_not_taken_is_refused_with_the_spelling_that_is(call, text):
    with pytest.raises(TypeError) as raised:
        call()
    assert text in str(raised.value)


def test_values_that_cannot_be_are_refused():
    for call, text in [
        (lambda: wr.sort(ROWS, descending=True), "by= is missing"),
        (lambda: wr.sort(ROWS, by="-id"), 'descending is "id:desc"'),
        (lambda: wr.sort(ROWS, by=["id", "x"], descending=[True] * 3), "descending= has 3 values, and by= 2 columns"),
        (lambda: wr.sort(ROWS, by="id", csv={"delimiter": "ab"}), 'csv["delimiter"]=: takes one character'),
        (lambda: wr.partition(ROWS, by="id", into=2, ranges=[1], output="a"), "ranges= and into= exclude each other"),
        (lambda: wr.partition(ROWS, by="id", into=2, ranges=3, output="a"), "into= and ranges= exclude each other"),
        (lambda: wr.partition(ROWS, by="id", ranges=3, into=2, output="a"), "into= and ranges= exclude each other"),
        (lambda: wr.merge(ROWS, by="id", unique=True, changes={"diff": "x"}), 'unique= and changes["diff"]= exclude'),
    ]:
        with pytest.raises(wr.UsageError) as raised:
            call()
        assert text in str(raised.value)
    assert os.listdir() == []
