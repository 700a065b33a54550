"""Changes applied to Delta tables: the rows of one `compact` and of deltalake's own merge, by one commit that readers and
other writers understand."""

import datetime
import decimal
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import windrow as wr
from deltalake import DeltaTable, Schema, TableFeatures, write_deltalake
from windrow import _delta

MOST = 2_000


def rows(rng, ids, salt):
    hashes = (np.asarray(ids) * 2654435761 + salt) % 1_000_003
    return pa.table(
        {
            "v": [f"text {h % 97}" for h in hashes],
            "id": pa.array(ids, pa.int64()),
            "n": pa.array(hashes, pa.int64(), mask=hashes % 11 == 0),
            "at": pa.array(hashes, pa.timestamp("us", "UTC")),
            "d": pa.array([decimal.Decimal(int(h)) / 100 for h in hashes], pa.decimal128(12, 2)),
            "m": pa.array([[("k", int(h % 5))] for h in hashes], pa.map_(pa.string(), pa.int64())),
            "l": pa.array([list(range(h % 3)) for h in hashes], pa.list_(pa.int64())),
            "s": pa.array([{"x": int(h % 13), "y": None} for h in hashes], pa.struct([("x", pa.int32()), ("y", pa.string())])),
        }
    )


def changes(rng, salt):
    ids = rng.choice(MOST + 300, size=int(rng.integers(1, 80)), replace=False)
    if rng.integers(2):
        ids = int(rng.integers(MOST)) + np.arange(int(rng.integers(1, 80)))
    ops = rng.choice(["insert", "update", "delete"], size=len(ids), p=[0.3, 0.4, 0.3])
    return rows(rng, ids, salt).append_column("op", pa.array(ops))


def read(table):
    found = DeltaTable(table).to_pyarrow_table()
    return sorted(map(repr, found.select(sorted(found.column_names)).to_pylist()))


def files(table):
    return {path for path in os.listdir(table) if path != "_delta_log"}


def live(table):
    return {uri.rsplit("/", 1)[1] for uri in DeltaTable(table).file_uris()}


def first_rows(rng, are_in_order):
    ids = np.sort(rng.choice(MOST, size=int(rng.integers(10, MOST)), replace=False))
    return rows(rng, ids if are_in_order else rng.permutation(ids), 0)


def inserted(rows):
    """The log that inserts these rows."""
    return rows.append_column("op", pa.array(["insert"] * rows.num_rows))


def in_parts(rows, parts, write):
    """Writes rows in so many parts."""
    cuts = [rows.num_rows * part // parts for part in range(parts + 1)]
    for start, end in zip(cuts, cuts[1:]):
        write(rows.slice(start, end - start))


def merged_by_deltalake(table, log):
    merge = DeltaTable(table).merge(log, "t.id = s.id", source_alias="s", target_alias="t")
    columns = {name: f"s.{name}" for name in log.column_names if name != "op"}
    merge = merge.when_matched_delete("s.op = 'delete'").when_matched_update(columns)
    merge.when_not_matched_insert(columns, "s.op <> 'delete'").execute()


@pytest.mark.parametrize("seed", range(8))
def test_batches_are_as_one_compact_and_as_merges_of_deltalake(tmp_path, seed):
    rng = np.random.default_rng(seed)
    table, twin = str(tmp_path / "table"), str(tmp_path / "twin")
    first = first_rows(rng, seed % 2)
    in_parts(first, 3, lambda part: write_deltalake(table, part, mode="append"))
    write_deltalake(twin, first)
    logs = [inserted(first)]
    for salt in range(1, 6):
        log = changes(rng, salt)
        logs.append(log)
        before = DeltaTable(table).version()
        dry = wr.apply(table, log, "id", op="op", dry_run=True)
        assert DeltaTable(table).version() == before
        done = wr.apply(table, log, "id", op="op", memory="256MiB", write={"max_file_size": "64KiB"})
        assert (dry.inserted, dry.updated, dry.deleted) == (done.inserted, done.updated, done.deleted)
        assert DeltaTable(table).version() == done.version == before + bool(done.files_removed or done.files_added)
        assert live(table) == {*done.files_left, *(file["path"] for file in done.files_added)}
        assert DeltaTable(table).count() == done.rows_out
        again = wr.apply(table, log, "id", op="op")
        assert (again.version, again.files_added) == (done.version, [])
        merged_by_deltalake(twin, log)
        assert read(table) == read(twin)
    write_deltalake(str(tmp_path / "all"), wr.compact(pa.concat_tables(logs), key="id", op="op"))
    assert read(table) == read(str(tmp_path / "all"))
    assert pl.read_delta(table).height == DeltaTable(table).count()
    assert sorted(map(repr, DeltaTable(table, version=2).to_pyarrow_table()["id"].to_pylist())) == sorted(map(repr, first["id"].to_pylist()))


def test_a_replayed_transaction_commits_nothing(tmp_path):
    table = str(tmp_path / "table")
    write_deltalake(table, pa.table({"id": [1, 2], "v": ["a", "b"]}))
    log = pa.table({"id": [2, 3], "v": ["B", "C"]})
    assert wr.apply(table, log, "id", transaction=("app", 7)).version == 1
    write_deltalake(table, pa.table({"id": [9], "v": ["z"]}), mode="append")
    other = pa.table({"id": [2], "v": ["older"]})
    for version in (7, 6):
        done = wr.apply(table, other, "id", transaction=("app", version))
        assert (done.version, done.keys, done.rows_out, len(done.files_left)) == (2, 0, 4, 2)
    assert wr.apply(table, log, "id", transaction=("app", 8)).version == 3, "nothing but the transaction"
    assert DeltaTable(table).transaction_version("app") == 8
    assert wr.apply(table, other, "id", transaction=("other", 1)).updated == 1
    lake = tmp_path / "lake"
    wr.sort(log, "id", output=lake / "a.parquet") if lake.mkdir() is None else None
    with pytest.raises(wr.UsageError, match="transaction="):
        wr.apply(lake, log, "id", transaction=("app", 1))


def in_between(monkeypatch, commit):
    """Makes another writer commit during the first attempt."""
    library, calls = _delta._windrow.apply, []

    def applied(*given):
        result = library(*given)
        if not calls:
            commit()
        calls.append(given)
        return result

    monkeypatch.setattr(_delta, "_windrow", type("Library", (), {"apply": staticmethod(applied)}))
    return calls


def test_another_writer_in_between_makes_the_job_begin_again(tmp_path, monkeypatch):
    table = str(tmp_path / "table")
    write_deltalake(table, pa.table({"id": [1, 2], "v": ["a", "b"]}))
    log = pa.table({"id": [2, 5], "v": ["B", "E"]})
    calls = in_between(monkeypatch, lambda: write_deltalake(table, pa.table({"id": [5], "v": ["other"]}), mode="append"))
    given = DeltaTable(table)
    done = wr.apply(given, log, "id")
    assert (len(calls), done.version, given.version(), done.updated, done.inserted) == (2, 2, 2, 2, 0)
    assert sorted(given.to_pyarrow_table()["v"].to_pylist()) == ["B", "E", "a"]
    assert len(files(table) - live(table)) == 2, "the old files, and nothing of the first attempt"


@pytest.mark.parametrize("wait", [None, False])
def test_a_stream_is_not_read_twice(tmp_path, monkeypatch, wait):
    table = str(tmp_path / "table")
    write_deltalake(table, pa.table({"id": [1], "v": ["a"]}))
    before = files(table)
    in_between(monkeypatch, lambda: DeltaTable(table).delete("id = 77"))
    in_between(monkeypatch, lambda: write_deltalake(table, pa.table({"id": [8], "v": ["h"]}), mode="append"))
    log = pa.table({"id": [1], "v": ["A"]})
    with pytest.raises(wr.SpaceError, match="run the job again"):
        wr.apply(table, log.to_reader() if wait is None else log, "id", write={} if wait is None else {"wait": wait})
    assert len(files(table) - before) == 1
    assert wr.apply(table, log, "id").updated == 1


def test_writers_side_by_side_lose_nothing(tmp_path):
    table = str(tmp_path / "table")
    write_deltalake(table, pa.table({"id": pa.array(range(1000)), "v": ["a"] * 1000}))
    failed = []

    def write(writer):
        try:
            for round in range(4):
                ids = list(range(writer, 1000, 4))
                wr.apply(table, pa.table({"id": ids, "v": [f"{writer} {round}"] * len(ids)}), "id")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=[writer]) for writer in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failed, failed
    found = DeltaTable(table).to_pyarrow_table().sort_by("id").to_pydict()
    assert found == {"id": list(range(1000)), "v": [f"{i % 4} 3" for i in range(1000)]}


def log_of(table):
    return "".join(path.read_text() for path in sorted((pathlib.Path(table) / "_delta_log").glob("*.json"))[1:])


def test_statistics_are_bounds_of_every_type(tmp_path):
    table = str(tmp_path / "table")
    moment = datetime.datetime(2026, 1, 31, 12, 0, 0, 123456)
    nan = float("nan")
    values = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int64()),
            "i": pa.array([-5, 7, None], pa.int8()),
            "t": ["a", "b" * 300, None],
            "z": ["\U0010ffff" * 80, "z", "y"],
            "d": pa.array([datetime.date(1960, 1, 2), datetime.date(2030, 1, 1), None], pa.date32()),
            "u": pa.array([moment, moment, None], pa.timestamp("us", "UTC")),
            "w": pa.array([moment, moment, None], pa.timestamp("us")),
            "f": pa.array([1.5, nan, None], pa.float64()),
            "n": pa.array([float("-inf"), 2.5, None], pa.float64()),
            "m": pa.array([decimal.Decimal("1.25"), decimal.Decimal("-2.50"), None], pa.decimal128(9, 2)),
            "h": pa.array([decimal.Decimal(10**29 + 1), decimal.Decimal(1), None], pa.decimal128(30, 0)),
            "b": [True, False, None],
            "y": [b"a", b"b", None],
            "s": [{"x": 1, "y": "q", "r": {"k": 9}}, {"x": 5, "y": None, "r": None}, None],
            "l": [[1], [2], None],
            "a.b": [1, 2, 3],
        }
    )
    write_deltalake(table, values.slice(0, 1))
    done = wr.apply(table, values, "id")
    assert (done.inserted, done.unchanged) == (2, 1)
    [action] = pa.table(DeltaTable(table).get_add_actions()).to_pylist()
    least, most, nulls = action["min"], action["max"], action["null_count"]
    assert action["num_records"] == 3
    assert (least["id"], most["id"], least["i"], most["i"], nulls["i"]) == (1, 3, -5, 7, 1)
    assert least["t"] == "a" and most["t"] >= "b" * 300 and len(most["t"]) < 100
    assert (least["d"], most["d"]) == (datetime.date(1960, 1, 2), datetime.date(2030, 1, 1))
    for name in "uw":
        assert least[name].replace(tzinfo=None) == datetime.datetime(2026, 1, 31, 12, 0, 0, 123000)
        assert most[name].replace(tzinfo=None) == datetime.datetime(2026, 1, 31, 12, 0, 0, 124000)
    assert least["f"] == 1.5 and most.get("f") is None, "not a number is greater"
    assert least.get("n") is None and "Infinity" not in log_of(table), "JSON has no infinity"
    assert (float(least["m"]), float(most["m"])) == (-2.5, 1.25)
    assert (least["s"]["x"], most["s"]["x"], least["s"]["y"], nulls["s"]["x"], most["s"]["r"]["k"]) == (1, 5, "q", 1, 9)
    for name, value in [("t", "b" * 300), ("i", 7), ("u", moment.replace(tzinfo=datetime.timezone.utc)), ("id", 3), ("h", 10**29 + 1)]:
        assert pl.scan_delta(table).filter(pl.col(name) == value).collect().height >= 1, name
    dataset = DeltaTable(table).to_pyarrow_table(filters=[("t", "=", "b" * 300)])
    assert dataset.num_rows == 1
    found, expected = (t.drop_columns(["f"]).sort_by("id") for t in (DeltaTable(table).to_pyarrow_table(), values))
    assert found.cast(expected.schema).equals(expected)


@pytest.mark.parametrize(
    "how, message",
    [
        ({"configuration": {"delta.appendOnly": "true"}}, "appends alone"),
        ({"configuration": {"delta.enableChangeDataFeed": "true"}}, "change data feed"),
    ],
)
def test_what_a_table_asks_for_is_refused_by_name(tmp_path, how, message):
    table = str(tmp_path / "table")
    log = pa.table({"id": [1], "v": ["a"]})
    write_deltalake(table, log, **how)
    before = files(table)
    with pytest.raises(wr.UsageError, match=message):
        wr.apply(table, log, "id")
    assert files(table) == before and DeltaTable(table).version() == 0


def edited(table, edit):
    """Edits the actions of the first commit."""
    log = pathlib.Path(table) / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    [edit(action) for action in actions]
    log.write_text("\n".join(map(json.dumps, actions)))


@pytest.mark.parametrize(
    "metadata, message",
    [
        ({"delta.generationExpression": "id + 1"}, "generated columns"),
        ({"delta.identity.start": 1}, "identity columns"),
        ({"delta.invariants": '{"expression": {"expression": "id > 0"}}'}, "invariants"),
    ],
)
def test_what_a_field_asks_for_is_refused_by_name(tmp_path, metadata, message):
    table = str(tmp_path / "table")
    log = pa.table({"id": [1], "v": ["a"]})
    write_deltalake(table, log)

    def edit(action):
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            schema["fields"][0]["metadata"] = metadata
            action["metaData"]["schemaString"] = json.dumps(schema)

    edited(table, edit)
    with pytest.raises(wr.UsageError, match=message):
        wr.apply(table, log, "id")


def test_a_constraint_is_refused_by_name(tmp_path):
    table = str(tmp_path / "table")
    log = pa.table({"id": [1], "v": ["a"]})
    write_deltalake(table, log)
    DeltaTable(table).alter.add_constraint({"positive": "id > 0"})
    with pytest.raises(wr.UsageError, match="the constraint positive"):
        wr.apply(table, log, "id")


def test_a_feature_that_is_not_known_is_refused_by_name(tmp_path):
    table = str(tmp_path / "table")
    log = pa.table({"id": [1], "v": ["a"]})
    write_deltalake(table, log)
    features = [TableFeatures.RowTracking, TableFeatures.DomainMetadata]
    DeltaTable(table).alter.add_feature(features, allow_protocol_versions_increase=True)
    with pytest.raises(wr.UsageError, match="domainMetadata, rowTracking"):
        wr.apply(table, log, "id")


def test_files_elsewhere_are_refused(tmp_path):
    table = str(tmp_path / "table")
    log = pa.table({"id": [1], "v": ["a"]})
    write_deltalake(table, log)
    other = str(tmp_path / "other")
    write_deltalake(other, log)

    def edit(action):
        if "add" in action:
            action["add"]["path"] = f"{table}/{next(iter(live(table)))}"

    edited(other, edit)
    with pytest.raises(wr.UsageError, match="outside of the table"):
        wr.apply(other, log, "id")


def test_a_column_that_is_newer_than_the_files(tmp_path):
    table = str(tmp_path / "table")
    write_deltalake(table, pa.table({"id": [1, 2], "v": ["a", "b"]}))
    DeltaTable(table).alter.add_columns(Schema.from_arrow(pa.schema([("w", pa.float64())])).fields)
    done = wr.apply(table, pa.table({"id": [2, 3], "v": ["B", "C"], "w": [2.5, 3.5]}), "id")
    assert (done.updated, done.inserted) == (1, 1)
    found = DeltaTable(table).to_pyarrow_table().sort_by("id").to_pydict()
    assert found == {"id": [1, 2, 3], "v": ["a", "B", "C"], "w": [None, 2.5, 3.5]}
    with pytest.raises(wr.UsageError, match='"x"'):
        wr.apply(table, pa.table({"id": [2], "v": ["B"], "w": [2.5], "x": [1]}), "id")


def test_times_as_int96_are_refused(tmp_path):
    table = str(tmp_path / "table")
    log = pa.table({"id": [1], "at": pa.array([0], pa.timestamp("us", "UTC"))})
    write_deltalake(table, log)
    [name] = live(table)
    pq.write_table(log, f"{table}/{name}", use_deprecated_int96_timestamps=True, store_schema=False)
    before = files(table)
    with pytest.raises(wr.UsageError, match="INT96"):
        wr.apply(table, log, "id")
    assert files(table) == before


def test_an_empty_table_gets_its_first_rows_and_loses_its_last(tmp_path):
    table = str(tmp_path / "table")
    DeltaTable.create(table, Schema.from_arrow(pa.schema([pa.field("id", pa.int32(), nullable=False), ("v", pa.string())])))
    with pytest.raises((wr.UsageError, wr.DataError), match="null"):
        wr.apply(table, pa.table({"id": pa.array([None], pa.int32()), "v": ["a"]}), "id")
    done = wr.apply(table, pa.table({"id": [2, 1], "v": ["b", "a"]}), "id")
    assert (done.version, done.inserted, done.files_removed, len(done.files_added)) == (1, 2, [], 1)
    assert DeltaTable(table).to_pyarrow_table().to_pydict() == {"id": [1, 2], "v": ["a", "b"]}
    log = pa.table({"id": [1, 2], "v": pa.array([None, None], pa.string()), "op": ["D", "D"]})
    done = wr.apply(table, log, "id", op="op")
    assert (done.deleted, done.files_added, DeltaTable(table).count()) == (2, [], 0)
    assert wr.apply(table, pa.table({"id": [7], "v": ["c"]}), "id").inserted == 1
    assert live(table) <= files(table)


def test_a_table_in_an_odd_place_and_files_of_odd_names(tmp_path):
    table = str(tmp_path / "a table é+")
    log = pa.table({"id": [1], "v": ["b"]})
    write_deltalake(table, pa.table({"id": [1], "v": ["a"]}))
    assert wr.apply(pathlib.Path(table), log, "id").updated == 1
    assert DeltaTable(table).to_pyarrow_table()["v"].to_pylist() == ["b"]
    other = str(tmp_path / "other")
    write_deltalake(other, log)
    [name] = live(other)
    os.rename(f"{other}/{name}", f"{other}/a b.parquet")
    edited(other, lambda action: action.get("add", {}).update(path="a%20b.parquet"))
    assert wr.apply(other, pa.table({"id": [1], "v": ["c"]}), "id").updated == 1
    assert DeltaTable(other).to_pyarrow_table()["v"].to_pylist() == ["c"], "the old file is removed"
    [name] = live(other)
    # Another writer encoded a character that need not be.
    edited(other, lambda action: action.get("add", {}).update(path="%61.parquet"))
    with pytest.raises(wr.UsageError, match="%61.parquet"):
        wr.apply(other, log, "id")


def test_a_kill_leaves_a_version_and_the_next_job_cleans_up(tmp_path):
    table = str(tmp_path / "table")
    write_deltalake(table, pa.table({"id": range(60_000), "v": [f"{i * 7919 % 100_003}" for i in range(60_000)]}))
    code = f"import pyarrow as pa, windrow as wr, deltalake; print('ready', flush=True); " \
        f"wr.apply({table!r}, pa.table({{'id': range(0, 60_000, 100), 'v': ['ROUND'] * 600}}), 'id')"
    for round in range(8):
        child = subprocess.Popen([sys.executable, "-c", code.replace("ROUND", str(round))], stdout=subprocess.PIPE)
        child.stdout.readline()
        time.sleep(0.01 + 0.04 * round)
        child.send_signal(signal.SIGKILL)
        child.wait()
        found = DeltaTable(table).to_pyarrow_table()
        assert found.num_rows == 60_000 and len(set(found.sort_by("id")["v"].to_pylist()[::100])) in (1, 600)
    wr.apply(table, pa.table({"id": [0], "v": ["last"]}), "id")
    assert not [name for name in files(table) if name.startswith(".")]
