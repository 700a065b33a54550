"""Stats, Check, Inspect, Explain, and progress."""

import ast
import json
import pathlib
import sys
import types

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import windrow as wr
from conftest import shuffled


def test_stats(rows):
    stats = wr.sort(rows, by="id", output="a.parquet")
    assert (stats.rows_in, stats.rows_out, stats.rows_dropped, stats.partitions) == (20_000, 20_000, 0, None)
    assert len([name for name in vars(stats) if name not in ("details", "_ended")]) == 10
    assert set(stats.details.phase_seconds) == {"read", "settle", "write"} and stats.details.network is None
    with pytest.raises(AttributeError, match="stats.details.phase_seconds"):
        stats.phase_seconds
    with pytest.raises(AttributeError, match="it has rows_in, rows_out"):
        stats.rows
    assert json.loads(json.dumps(stats.to_dict()))["rows_out"] == 20_000
    assert "20,000 rows in" in repr(stats) and "<th>rows_out</th><td>20,000</td>" in stats._repr_html_()
    assert "phase_seconds" not in stats._repr_html_() and "<th>phase_seconds.read</th>" in stats.details._repr_html_()
    assert "chunks_kept" in repr(stats.details)


def test_notes_about_inputs_are_warnings(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,v\n--,----\n10,a\n9,b\n")
    for output in (None, "a.parquet"):
        with pytest.warns(UserWarning, match="column 'id' is text.*on line 2") as noted:
            wr.sort(path, "id", output=output)
        assert [warning.filename for warning in noted] == [__file__]


def test_check(rows, file):
    wr.sort(rows, by="id", output="sorted.parquet")
    checked = wr.check("sorted.parquet", by="id", unique=True)
    assert checked and checked.rows == 20_000 and checked.files == 1 and repr(checked) == "<Check: in order: 1 files, 20000 rows>"
    checked = wr.check(["sorted.parquet", file], by="id")
    assert not checked and (checked.file, checked.row) == (file, 3)


def test_inspect(rows):
    wr.sort(rows, by="id", output="sorted.parquet")
    facts = wr.inspect("sorted.parquet")
    assert (facts.file, facts.format, facts.rows) == ("sorted.parquet", "parquet", 20_000)
    assert facts.schema[0] == {"name": "id", "type": "Int64", "nullable": True}
    assert facts.parquet["order"]["holds"] is True
    assert "row groups" in repr(facts) and facts._repr_html_().startswith("<pre>")
    json.dumps(facts.to_dict())
    assert [facts.rows for facts in wr.inspect("*.parquet")] == [20_000]
    assert [facts.format for facts in wr.inspect(["sorted.parquet", rows])] == ["parquet", "arrow-stream"]


def test_stubs_name_every_field(rows):
    tree = ast.parse(pathlib.Path(wr.__file__).with_name("__init__.pyi").read_text())
    stubs = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    inspected = wr.partition(rows, by="id", into=2, output="parts"), wr.inspect("parts")[0]
    for result in [*inspected, wr.check(rows, by="id"), wr.explain.sort(rows, by="id")]:
        assert type(result)._repr_html_(result).startswith("<")
        stub = stubs[type(result).__name__].body
        named = {line.target.id for line in stub if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)}
        if isinstance(result, wr.Stats):
            fields = {line.target.id for line in stubs["Details"].body if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)}
            assert fields == {*vars(result.details), "network"}
        # What only some jobs have is None on the class.
        absent = {name for name, value in vars(type(result)).items() if value is None}
        assert named == {name for name in {*vars(result), *absent} if not name.startswith("_")}, type(result)


@pytest.mark.parametrize("output", ["a.parquet", None])
def test_explain(rows, output):
    plan = wr.explain.sort(rows, by="id:desc", output=output, memory="128MiB", threads=2)
    assert plan.limit == 128 << 20 and 8 << 20 < plan.floor < plan.limit
    assert plan.to_dict()["order"] == "id desc" and plan.to_dict()["memory"].startswith("128 MiB (floor ")
    assert "order          id desc" in repr(plan) and "<th>order</th>" in plan._repr_html_()
    assert wr.explain.compact(rows, key="id").to_dict()["rule"] == "last"
    assert "hash of id" in wr.explain.partition(rows, by="id", into=4, output="parts").to_dict()["partitions"]
    with pytest.raises(wr.MemoryFloorError):
        wr.explain.merge(rows, by="id", memory=1)


def test_progress(rows):
    seen = []
    wr.sort(rows, by="id", output="a.parquet", progress=seen.append)
    assert seen[-1] == wr.Progress("write", 20_000, 20_000, 0)
    reader = wr.sort(slow(rows), by="id", progress=seen.append)
    assert {moment.phase for moment in seen} <= {"read", "settle", "write"} and pa.table(reader).num_rows == 20_000


def test_progress_is_told_five_times_a_second(rows):
    import time

    seen = []
    wr.sort(slow(rows), by="id", output="a.parquet", progress=lambda moment: seen.append((time.monotonic(), moment)))
    times = [at for at, _ in seen[:-1]]
    assert len(times) >= 3 and all(later - earlier >= 0.19 for earlier, later in zip(times, times[1:]))
    assert any(moment.phase == "read" and 0 < moment.rows < 20_000 for _, moment in seen)


def slow(rows):
    import time

    def batches():
        for batch in rows.to_batches(500):
            time.sleep(0.025)
            yield batch

    return pa.RecordBatchReader.from_batches(rows.schema, batches())


def test_what_a_watcher_raises_stops_the_job(rows):
    class Enough(Exception):
        pass

    def watch(moment):
        raise Enough

    with pytest.raises(Enough):
        wr.sort(slow(rows), by="id", output="a.parquet", progress=watch)
    import os

    assert os.listdir() == []


def test_a_bar(rows, capfd):
    wr.sort(slow(rows), by="id", output="a.parquet", progress=True)
    out, err = capfd.readouterr()
    assert out == "" and "read" in err


def test_a_line_where_there_is_no_tqdm(rows, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    written = []
    terminal = types.SimpleNamespace(isatty=lambda: True, write=written.append, flush=lambda: None)
    monkeypatch.setattr(sys, "stderr", terminal)
    wr.sort(rows, by="id", output="a.parquet", progress=True)
    assert "write: 20,000 of 20,000 rows" in "".join(written) and written[-1] == "\r\x1b[K"


ORDERS = pa.table({"id": [3, 1, 2], "name": ["c", None, "b\nb"]})
SORTED = [{"id": 1, "name": None}, {"id": 2, "name": "b\nb"}, {"id": 3, "name": "c"}]


def test_readers_become_what_one_works_with():
    import duckdb
    import pandas

    assert wr.sort(ORDERS, by="id").to_arrow().to_pylist() == SORTED
    assert wr.sort(ORDERS, by="id").read_all().to_pylist() == SORTED
    assert wr.sort(ORDERS, by="id").to_pylist() == SORTED
    assert wr.sort(ORDERS, by="id").to_polars().to_dicts() == SORTED
    frame = wr.sort(ORDERS, by="id").to_pandas(types_mapper={pa.int64(): pandas.Int64Dtype()}.get)
    assert frame["id"].tolist() == [1, 2, 3] and frame["id"].dtype == pandas.Int64Dtype()
    assert wr.sort(ORDERS, by="id").to_duckdb().fetchall() == [(1, None), (2, "b\nb"), (3, "c")]
    with duckdb.connect() as connection:
        wr.sort(ORDERS, by="id").to_duckdb(connection).create("orders")
        assert connection.sql("select sum(id) from orders").fetchall() == [(6,)]


def test_a_reader_is_fetched_piece_by_piece(rows):
    reader = wr.sort(rows, by="id")
    ids = [fetched[0] for fetched in reader.fetchmany(7)]
    assert ids == list(range(7)) and reader.fetchmany()[0][0] == 7
    assert len(reader.fetchmany(30_000)) == 20_000 - 8 and reader.fetchmany(3) == []


def test_what_takes_a_reader_for_something_else_names_the_call():
    import numpy
    import pandas

    for take in [pandas.DataFrame, numpy.asarray]:
        with pytest.raises(TypeError, match=r"reader.to_pandas\(\)"):
            take(wr.sort(ORDERS, by="id"))


def test_a_library_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match="to_polars.* pip install polars"):
        wr.sort(ORDERS, by="id").to_polars()


def test_readers_show_their_first_rows_which_are_still_to_be_read(rows):
    reader = wr.sort(ORDERS, by="id")
    assert repr(reader).splitlines() == [
        "id     name",
        "Int64  Utf8",
        "-----  ----",
        "1      null",
        "2      b\\nb",
        "3      c",
        "(3 rows)",
    ]
    assert "<td><em>null</em></td>" in reader._repr_html_() and reader.to_pylist() == SORTED
    assert repr(reader) == "<Reader: id: Int64, name: Utf8>"
    reader = wr.sort(rows, by="id")
    assert repr(reader).endswith("(the first 10 rows)") and len(reader.to_arrow()) == 20_000
    batch = next(wr.sort(rows, by="id"))
    assert repr(batch).endswith(f"(the first 10 of {len(batch):,} rows)")
    wide = pa.table({f"column{at}": ["<" * 99] for at in range(20)})
    text, html = repr(wr.sort(wide, by="column0")), wr.sort(wide, by="column0")._repr_html_()
    assert "..." in text and "column11" in text and "column12" not in text and "20 columns" in text
    assert "&lt;" in html and "<<" not in html
    none = wr.sort(ORDERS, by="id", where="id > 9")
    assert none.to_pylist() == []
    with wr.Table({"id": "int64"}, key="id") as table:
        table.upsert(pa.table({"id": [2, 1]}))
        assert repr(table.scan()).splitlines()[3:] == ["1", "2", "(2 rows)"]


def test_an_error_behind_the_first_rows_is_that_of_who_reads():
    def batches():
        yield ORDERS.to_batches()[0]
        raise OSError("the producer fell over")

    with pytest.raises(wr.WindrowError, match="fell over"):
        wr.sort(pa.RecordBatchReader.from_batches(ORDERS.schema, batches()), by="id").to_arrow()
    late = pa.table({"id": [*range(100_000), 5]})
    reader = wr.merge([late], by="id")
    assert repr(reader).endswith("(the first 10 rows)")
    with pytest.raises((wr.UnsortedError, pa.ArrowException), match="sorts before"):
        reader.to_arrow()
