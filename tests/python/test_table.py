"""The table with a key: against a dict, with the libraries that people have, and as a guest."""

import datetime
import decimal
import os
import random
import subprocess
import sys
import time

import duckdb
import polars as pl
import pyarrow as pa
import pytest
import windrow as wr
from test_process import python

USERS = pa.schema({"id": pa.int64(), "name": pa.string()})


def users(**rows):
    return pa.table({"id": [int(key[1:]) for key in rows], "name": list(rows.values())}, schema=USERS)


def names(rows):
    return {row["id"]: row["name"] for row in pa.table(rows).to_pylist()}


@pytest.mark.parametrize("memory", [None, "48MiB"])
def test_a_table_is_a_dict_at_every_time(memory):
    random.seed(7)
    model, states = {}, {}
    with wr.Table(USERS, key="id", memory=memory) as table:
        for _ in range(120):
            if random.random() < 0.7:
                rows = [(random.randrange(300), random.choice(["x", "y" * 50, None])) for _ in range(random.randrange(1, 40))]
                at = table.upsert(pa.table({"id": [i for i, _ in rows], "name": [n for _, n in rows]}, schema=USERS))
                model |= dict(rows)
            else:
                gone = [random.randrange(300) for _ in range(random.randrange(1, 20))]
                at = table.delete(gone)
                model = {key: name for key, name in model.items() if key not in gone}
            assert at == table.now
            states[at] = dict(model)
            asked = [random.randrange(300) for _ in range(10)]
            found = pa.Table.from_batches([pa.record_batch(table.get(asked))])
            assert names(found) == {key: model[key] for key in asked if key in model}
        for at, state in states.items():
            scanned = pa.table(table.scan(at=at))
            assert scanned["id"].to_pylist() == sorted(state) and names(scanned) == state
            low, high = sorted(random.sample(range(300), 2))
            assert names(table.scan(low, high, at=at)) == {k: v for k, v in state.items() if low <= k < high}
        table.forget_before(table.now)
        assert names(table.scan()) == model
        with pytest.raises(wr.UsageError, match="forgotten"):
            table.scan(at=1)
        with pytest.raises(wr.UsageError, match="forgotten"):
            table.get([1], at=1)


GIVERS = {
    "pyarrow": lambda t: t,
    "batch": lambda t: t.combine_chunks().to_batches()[0],
    "reader": lambda t: t.to_reader(1000),
    "generator": lambda t: pa.RecordBatchReader.from_batches(t.schema, (b for b in t.to_batches(1000))),
    "polars": pl.from_arrow,
    "pandas": lambda t: t.to_pandas(),
    "duckdb": lambda t: duckdb.sql("select * from t"),
    "other order": lambda t: t.select(["text0", "id"]),
    "dictionary": lambda t: t.set_column(1, "text0", t["text0"].dictionary_encode()),
    "smaller integers": lambda t: t.set_column(0, "id", t["id"].cast(pa.int32())),
}


@pytest.mark.parametrize("giver", GIVERS)
def test_objects_are_rows_and_keys(giver, rows):
    table = wr.Table(rows.schema, key="id")
    table.upsert(GIVERS[giver](rows))
    assert pa.table(table.scan()) == rows.sort_by("id")
    found = pa.record_batch(table.get(GIVERS[giver](rows.slice(5, 3))))
    assert pa.Table.from_batches([found]) == rows.slice(5, 3)
    table.delete(GIVERS[giver](rows.slice(0, 19_999)))
    assert pl.DataFrame(table.scan())["id"].to_list() == rows["id"].to_pylist()[-1:]


def test_changes_are_applied_as_their_words_say():
    with wr.Table(USERS, key="id") as table:
        table.upsert([{"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}])
        first = table.now
        log = pa.table({"id": [2, 3, 3, 1, 4], "op": ["D", "I", "U", "u", "d"], "name": [None, "cid", "cyd", "amy", "dan"], "lsn": [5, 1, 2, 9, 1]})
        assert table.apply(log) == table.now > first
        assert names(table.scan()) == {1: "amy", 3: "cyd"} and names(table.scan(at=first)) == {1: "ann", 2: "bob"}
        table.apply(log.take([3, 2, 1, 0, 4]), order_by="lsn")
        assert names(table.scan()) == {1: "amy", 3: "cyd"}
        table.apply([{"what": "neu", "id": 7, "name": None}, {"what": "weg", "id": 1}], op="what", op_map={"neu": "insert", "weg": "delete"})
        assert names(table.scan()) == {3: "cyd", 7: None}
        table.apply(pa.table({"id": [7], "op": ["delete"]}))
        before = table.now
        assert table.apply(log.slice(0, 0)) == before and names(table.scan()) == {3: "cyd"}
        for changes, text in [
            (pa.table({"id": [1], "op": ["?"], "name": ["x"]}), '"\\?"'),
            (pa.table({"id": [1], "op": ["I"]}), 'no column named "name"'),
            (pa.table({"id": [1], "name": ["x"]}), 'no column named op'),
        ]:
            with pytest.raises(wr.WindrowError, match=text):
                table.apply(changes)
        assert table.now == before


def test_changes_of_many_batches_are_applied_like_a_dict():
    random.seed(3)
    changes = [{"op": random.choice("IUD"), "id": random.randrange(5000), "name": str(n)} for n in range(30_000)]
    model = {}
    for change in changes:
        model.pop(change["id"], None)
        if change["op"] != "D":
            model[change["id"]] = change["name"]
    with wr.Table(USERS, key="id") as table:
        table.apply(batch for batch in pa.Table.from_pylist(changes).to_batches(1000))
        assert names(table.scan()) == model and len(table) == len(model)


def test_a_table_is_asked_as_a_dict_is(rows):
    with wr.Table(rows.schema, key="id") as table:
        assert len(table) == 0 and table and 3 not in table
        table.upsert(rows)
        assert len(table) == 20_000 and 3 in table and -1 not in table and table[3] == {"id": 3, "text0": "0-000000000003"}
        with pytest.raises(KeyError):
            table[-1]
        with pytest.raises(TypeError, match="table.scan()"):
            list(table)
        found = table.scan(5, 50, columns=["text0"], where="id >= 10", limit=2).to_pylist()
        assert found == [{"text0": "0-000000000010"}, {"text0": "0-000000000011"}]
        assert table.scan(where=pl.col("id") > 19_997).to_arrow()["id"].to_pylist() == [19_998, 19_999]
        for at in (1 << 40, table.now + 1, -1):
            with pytest.raises(wr.UsageError, match="times of this table"):
                table.scan(at=at)
            with pytest.raises(wr.UsageError, match="times of this table"):
                table.get([1], at=at)


@pytest.mark.parametrize("key", ["id", "id:desc", "text0:nulls-first,id"])
def test_a_table_is_saved_and_opened(rows, key):
    with wr.Table(rows.schema, key=key) as table:
        table.upsert(rows)
        before = table.now
        table.delete([3]) if "text0" not in key else table.delete([("0-000000000003", 3)])
        assert table.save("now.parquet").rows_out == 19_999 and table.save("then.parquet", at=before).rows_out == 20_000
        table.save("now.csv")
        scanned = table.scan().to_arrow()
    with wr.Table.open("now.parquet", memory="64MiB") as again:
        assert again.scan().to_arrow() == scanned
        again.upsert("then.parquet")
        again.upsert(pl.scan_parquet("now.parquet"))
        assert len(again) == 20_000
    assert wr.Table.open("now.csv", key="id").scan().to_arrow()["id"].to_pylist() == sorted(scanned["id"].to_pylist())
    with pytest.raises(wr.UsageError, match="give key="):
        wr.Table.open("now.csv")
    with pytest.raises(FileNotFoundError):
        wr.Table.open("none.parquet")


@pytest.mark.parametrize("key", ["id", "text0:desc:nulls-first,id"])
def test_checkpoints_write_what_is_new(rows, key, tmp_path):
    state = tmp_path / "state"
    sizes = lambda: {path.name: path.stat().st_size for path in state.glob("*.arrows")}
    one = lambda id: pa.table({"id": [id], "text0": ["new"]}, schema=rows.schema)
    with wr.Table(rows.schema, key=key) as table:
        table.upsert(rows)
        table.checkpoint(state)
        first = sizes()
        before = table.upsert(one(-1))
        table.checkpoint(str(state))
        assert len(first) == 1 and first.items() < sizes().items()
        assert sum(sizes().values()) < 1.1 * sum(first.values())
        table.upsert(one(-2))
        expected = table.scan(at=before).to_arrow()
    with wr.Table.open(state, memory="64MiB") as again:
        assert again.now == before and again.scan().to_arrow() == expected and again.key == key.replace(":desc:nulls-first", "").split(",")
        again.upsert(one(-3))
        again.checkpoint(state)
        again.save("rows.parquet")
        assert len(again) == 20_002
    assert wr.Table.open("rows.parquet").scan().to_arrow() == wr.Table.open(state).scan().to_arrow()
    with pytest.raises(wr.UsageError, match="leave key= out"):
        wr.Table.open(state, key="id")
    next(state.glob("*.arrows")).write_bytes(b"other")
    with pytest.raises(wr.CorruptError):
        wr.Table.open(state)


def test_a_killed_checkpoint_leaves_one_before(tmp_path):
    program = """
import sys, pyarrow as pa, windrow as wr
with wr.Table("id:int64,value:int64", key="id") as table:
    for turn in range(1_000_000):
        table.upsert(pa.table({"id": range(20_000), "value": [turn] * 20_000}))
        table.checkpoint(sys.argv[1])
        print(turn, flush=True)
"""
    chance = random.Random(7)
    for kill in range(8):
        state = tmp_path / str(kill)
        with subprocess.Popen([sys.executable, "-c", program, state], stdout=subprocess.PIPE, text=True) as run:
            assert run.stdout
            done = -1
            for _ in range(chance.randrange(1, 5)):
                done = int(run.stdout.readline())
            time.sleep(chance.random() / 50)
            run.kill()
            done = max([done, *map(int, run.stdout)])
        with wr.Table.open(state) as table:
            values = set(table.scan().to_arrow()["value"].to_pylist())
        assert len(values) == 1 and values.pop() in (done, done + 1)


def test_keys_come_with_other_columns_and_rows_do_not(rows):
    table = wr.Table(rows.schema, key="id")
    table.upsert(rows)
    more = rows.append_column("more", rows["id"])
    with pytest.raises(wr.UsageError, match='no column named "more"; the columns are id, text0'):
        table.upsert(more)
    assert len(table.get(more.slice(5, 3))) == 3
    table.delete(more.slice(1))
    assert len(table) == 1


KEYS = {
    "integer": (pa.uint8(), 200, 201),
    "text": (pa.large_string(), "ä", "zz"),
    "bytes": (pa.binary(), b"\xff\x00", b"a"),
    "fixed bytes": (pa.binary(2), b"\xff\x00", b"ab"),
    "date": (pa.date32(), datetime.date(2024, 2, 29), datetime.date(1969, 1, 1)),
    "timestamp": (pa.timestamp("us"), datetime.datetime(2024, 2, 29, 1, 2, 3, 45), datetime.datetime(2024, 3, 1)),
    "instant": (pa.timestamp("ms", "UTC"), datetime.datetime(2024, 2, 29, tzinfo=datetime.timezone.utc), None),
    "decimal": (pa.decimal128(20, 3), decimal.Decimal("12345678901234.125"), decimal.Decimal("-0.001")),
    "float": (pa.float64(), 0.1, float("inf")),
    "truth": (pa.bool_(), True, False),
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_are_values(kind):
    data_type, here, there = KEYS[kind]
    table = wr.Table(pa.schema({"key": data_type, "number": pa.int64()}), key="key")
    table.upsert(pa.table({"key": pa.array([here, there], data_type), "number": [1, 2]}))
    assert pa.record_batch(table.get(here))["number"].to_pylist() == [1]
    assert pa.record_batch(table.get(there if there is not None else [None]))["number"].to_pylist() == [2]
    table.delete([here])
    assert pa.table(table.scan())["number"].to_pylist() == [2]


def test_keys_of_several_columns_and_orders():
    table = wr.Table("country:string,id:int64,name:string", key="country:desc,id")
    assert table.key == ["country", "id"] and table.schema.names == ["country", "id", "name"]
    table.upsert(pa.table({"country": ["nl", "de", "nl"], "id": [1, 1, 2], "name": ["a", "b", "c"]}))
    assert pa.table(table.scan())["name"].to_pylist() == ["a", "c", "b"]
    assert pa.table(table.scan(("nl", 2)))["name"].to_pylist() == ["c", "b"]
    assert pa.record_batch(table.get([("de", 1), ("be", 1), ("nl", 1)]))["name"].to_pylist() == ["b", "a"]
    table.delete(("nl", 1))
    assert pa.table(table.scan())["name"].to_pylist() == ["c", "b"]
    assert repr(table).startswith("<Table: country: Utf8, id: Int64, name: Utf8; key country, id>")


def test_mistakes():
    table = wr.Table(USERS, key="id")
    table.upsert(users(_1="ann"))
    for call, kind, text in [
        (lambda: wr.Table(USERS, key="x"), wr.UsageError, 'no column named "x"'),
        (lambda: wr.Table(USERS, key=None), wr.UsageError, "key= is missing"),  # pyright: ignore[reportArgumentType]
        (lambda: wr.Table(USERS, key=[]), wr.UsageError, "a table needs a key"),
        (lambda: wr.Table(USERS, key="id", memory="1MiB"), wr.UsageError, "memory= takes 48 MiB or more"),
        (lambda: wr.Table("id:int63", key="id"), wr.UsageError, "int63"),
        (lambda: table.upsert([1]), TypeError, "rows= takes an Arrow object, not list"),  # pyright: ignore[reportArgumentType]
        (lambda: table.upsert(pa.table({"id": [1]})), wr.UsageError, 'no column named "name"'),
        (lambda: table.upsert(pa.table({"id": ["1"], "name": ["x"]})), wr.DataError, "expected \"id\": Int64, got"),
        (lambda: table.upsert(pa.table({"id": pa.array([2**63], pa.uint64()), "name": ["x"]})), wr.DataError, "9223372036854775808"),
        (lambda: table.get("x"), wr.UsageError, 'keys=: column "id": .*x'),
        (lambda: table.get([(1, 2)]), wr.UsageError, "keys of 1 value"),
        (lambda: pa.table(table.scan([1, 2])), wr.UsageError, "a key of 2 rows"),
        (lambda: table.scan().stats, AttributeError, "without stats"),
    ]:
        with pytest.raises(kind, match=text):
            call()
    assert names(table.scan()) == {1: "ann"}
    reader = table.scan()
    table.close()
    for call in [lambda: table.now, lambda: table.get(1), lambda: table.upsert(users(_1="x")), table.scan]:
        with pytest.raises(ValueError, match="the Table was closed"):
            call()
    assert names(reader) == {1: "ann"}


def test_a_producer_may_ask_the_table():
    table = wr.Table(USERS, key="id")
    table.upsert(users(_1="ann"))

    def batches():
        for _ in range(3):
            had = pa.record_batch(table.get([1]))["name"].to_pylist()
            yield pa.record_batch({"id": [1], "name": [had[0] + "!"]}, schema=USERS)

    table.upsert(pa.RecordBatchReader.from_batches(USERS, batches()))
    assert names(table.scan()) == {1: "ann!!!"}
    table.upsert(table.scan())
    assert names(table.scan()) == {1: "ann!!!"}


GROWTH = """
import gc, random, sys, pyarrow as pa, windrow as wr
def status(name):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(name))
random.seed(1)
def batch(number):
    ids = random.sample(range(number, 1 << 40, 200), 8192)
    return pa.record_batch({"id": ids, "text": [f"{i:0100}" for i in ids]})
schema = batch(0).schema
gc.collect()
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
with wr.Table(schema, key="id", memory="64MiB", spill={"temp_dir": "."}) as table:
    for number in range(200):
        table.upsert(batch(number))
        table.forget_before(table.now)
    for number in range(200):
        table.get([random.randrange(1 << 40) for _ in range(100)])
    rows = sum(len(rows) for rows in table.scan())
    print(rows, status("VmHWM") - before, table.temp_bytes, table.memory_used)
"""


def test_resident_memory_grows_by_no_more_than_asked():
    done = python(GROWTH)
    assert done.returncode == 0, done.stderr
    rows, growth, temporary, used = map(int, done.stdout.split())
    print(growth / 2**20, temporary / 2**20, used / 2**20)
    assert rows == 200 * 8192 and temporary > 64 << 20 and used <= 64 << 20
    assert growth <= 64 << 20, f"{growth / 2**20:.1f} MiB"
    assert os.listdir() == []


def test_ctrl_c_keeps_what_was_put_in():
    code = """
import os, threading, pyarrow as pa, windrow as wr
schema = pa.schema({"id": pa.int64()})
table = wr.Table(schema, key="id")
def batches():
    for i in range(10**9):
        if i == 50:
            threading.Timer(0, lambda: os.kill(os.getpid(), 2)).start()
        yield pa.record_batch({"id": list(range(i * 100, i * 100 + 100))}, schema=schema)
try:
    table.upsert(pa.RecordBatchReader.from_batches(schema, batches()))
except KeyboardInterrupt:
    ids = pa.table(table.scan())["id"].to_pylist()
    print("stopped", len(ids) >= 5000 and ids == list(range(len(ids))))
os._exit(0)
"""
    done = python(code)
    assert done.stdout == "stopped True\n", done.stderr
