"""Record batches in and out, with the libraries that people have."""

import threading
import time

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import windrow as wr
from conftest import shuffled

TAKERS = {
    "pyarrow": pa.table,
    "pyarrow reader": lambda r: pa.RecordBatchReader.from_stream(r).read_all(),
    "polars": lambda r: pl.DataFrame(r).to_arrow(),
    "pandas": lambda r: pa.Table.from_pandas(pd.DataFrame.from_arrow(r), preserve_index=False),
    "duckdb": lambda r: duckdb.sql("select * from r").to_arrow_table(),
    "iteration": lambda r: pa.Table.from_batches([pa.record_batch(batch) for batch in r]),
}
GIVERS = {
    "pyarrow table": lambda t: t,
    "pyarrow record batch": lambda t: t.combine_chunks().to_batches()[0],
    "pyarrow reader": lambda t: t.to_reader(1000),
    "pyarrow generator": lambda t: pa.RecordBatchReader.from_batches(t.schema, (b for b in t.to_batches(1000))),
    "polars": pl.from_arrow,
    "pandas": lambda t: t.to_pandas(),
    "duckdb": lambda t: duckdb.sql("select * from t"),
}


@pytest.mark.parametrize("taker", TAKERS)
def test_readers_are_taken(taker, rows):
    reader = wr.sort(rows, by="id")
    got = TAKERS[taker](reader)
    assert got["id"].to_pylist() == list(range(20_000))
    assert got["text0"].to_pylist()[7] == "0-000000000007"
    assert reader.stats.rows_out == 20_000


@pytest.mark.parametrize("giver", GIVERS)
def test_objects_are_inputs(giver, rows):
    got = pa.table(wr.sort(GIVERS[giver](rows), by="id:desc"))
    assert got["id"].to_pylist() == list(range(19_999, -1, -1))
    assert [str(value) for value in got["text0"].to_pylist()[:2]] == ["0-000000019999", "0-000000019998"]


def test_lists_mix_paths_and_objects(rows, file):
    got = pa.table(wr.sort([file, rows, pl.from_arrow(rows)], by="id"))
    assert got["id"].to_pylist() == [i for i in range(20_000) for _ in range(3)]
    merged = wr.merge([wr.sort(rows, by="id"), wr.sort(rows, by="id")], by="id", unique=True)
    assert pa.table(merged)["id"].to_pylist() == list(range(20_000))


def test_a_reader_tells_its_schema_and_is_read_once(rows):
    reader = wr.sort(rows, by="id", select="text0")
    assert reader.schema.names == ["text0"] and reader.schema.types == ["Utf8"]
    assert pa.schema(reader) == pa.schema(reader.schema) == pa.schema({"text0": pa.string()})
    assert repr(reader).splitlines()[:2] == ["text0", "Utf8"]
    batch = next(iter(reader))
    assert len(batch) == batch.num_rows and batch.num_columns == 1 and batch.schema.names == ["text0"]
    with pytest.raises(ValueError, match="only once"):
        pa.table(reader)
    reader = wr.sort(rows, by="id")
    pa.table(reader)
    with pytest.raises(ValueError, match="only once"):
        pa.table(reader)
    with pytest.raises(ValueError, match="only once"):
        next(reader)


def test_a_closed_reader_has_no_rows(rows):
    with wr.sort(rows, by="id") as reader:
        next(reader)
    assert 0 < reader.stats.rows_out < 20_000
    with pytest.raises(ValueError, match="closed"):
        next(reader)
    reader = wr.sort(rows, by="id")
    stream = pa.RecordBatchReader.from_stream(reader)
    reader.close()
    with pytest.raises(pa.ArrowInvalid, match="closed"):
        stream.read_all()


def test_metadata_and_types_survive():
    schema = pa.schema([pa.field("id", pa.int8(), metadata={"a": "b"}), pa.field("day", pa.date32())], metadata={"k": "v"})
    table = pa.table({"id": [2, 1], "day": [None, 3]}, schema=schema)
    got = pa.table(wr.sort(table, by="id"))
    assert got.schema.equals(schema, check_metadata=True) and got["day"].cast(pa.int32()).to_pylist() == [3, None]


def test_an_empty_table_has_a_schema():
    table = pa.table({"id": pa.array([], pa.int64())})
    assert pa.table(wr.sort(table, by="id")) == table


def test_nulls_first():
    table = pa.table({"a:b": [1, None, 2]})
    got = pa.table(wr.sort(table, by=wr.col("a:b", desc=True, nulls="first")))
    assert got["a:b"].to_pylist() == [None, 2, 1]
    assert wr.col("x") == wr.col("x", nulls="last") != wr.col("x", desc=True)
    assert repr(wr.col("x", desc=True, nulls="first")) == 'col("x", desc=True, nulls="first")'


def test_python_goes_on_while_a_generator_is_read(rows):
    """The job's thread takes the interpreter for each record batch, and gives it back."""
    ticks = []
    done = threading.Event()

    def tick():
        while not done.wait(0.01):
            ticks.append(1)

    def batches():
        for batch in rows.to_batches(1000):
            time.sleep(0.02)
            yield batch

    thread = threading.Thread(target=tick)
    thread.start()
    reader = wr.sort(pa.RecordBatchReader.from_batches(rows.schema, batches()), by="id")
    done.set()
    thread.join()
    assert pa.table(reader).num_rows == 20_000 and len(ticks) > 10


def test_a_merge_reads_generators_as_it_is_read():
    def reader(start):
        schema = pa.schema({"id": pa.int64()})
        return pa.RecordBatchReader.from_batches(schema, (pa.record_batch({"id": list(range(i, i + 100, 2))}) for i in range(start, 10_000, 100)))

    merged = wr.merge([reader(0), reader(1)], by="id")
    assert pl.DataFrame(merged)["id"].to_list() == list(range(10_000))


def test_two_jobs_in_two_threads(rows):
    outputs = {}

    def work(number):
        wr.sort(rows, by="id", output=f"{number}.parquet", memory="128MiB", threads=1)
        outputs[number] = pa.table(wr.sort(f"{number}.parquet", by="id:desc", memory="128MiB"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert [outputs[number]["id"][0].as_py() for number in range(4)] == [19_999] * 4


def test_a_large_chunk_that_is_held_needs_no_room_twice():
    table = shuffled(400_000, 4).combine_chunks()
    assert table.nbytes > 30 << 20
    plan = wr.explain.sort(table, by="id", memory="256MiB")
    small = wr.explain.sort(shuffled(1000, 4), by="id", memory="256MiB")
    assert plan.floor - small.floor < 12 << 20


def test_files_of_other_libraries(rows, file):
    frame = pl.scan_parquet(file).collect()
    wr.sort(frame, by="id", output="sorted.arrow")
    assert pa.ipc.open_file("sorted.arrow").read_all()["id"].to_pylist() == list(range(20_000))
    assert pq.read_table(file).num_rows == 20_000
