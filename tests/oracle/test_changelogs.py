"""Each preset of `compact --op-preset` on logs as its system writes them, against DuckDB SQL on the same file."""

import json

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import data

LETTERS = ["c", "u", "u", "d"]


def rows_of(path):
    """Rows as dictionaries, in file order."""
    if path.suffix == ".ndjson":
        return [json.loads(line) for line in path.read_text().splitlines()]
    return data.read(path).to_pylist()


def sql(query, **files):
    for name, path in files.items():
        query = query.replace(f"${name}", f"read_json('{path}', format = 'newline_delimited', sample_size = -1)")
    return duckdb.connect().sql(query).to_arrow_table().to_pylist()


def agree(got, expected, *, ordered_by):
    """Equal as rows, whatever the order of the columns."""
    assert [row[ordered_by] for row in got] == sorted(row[ordered_by] for row in got)
    key = lambda row: row[ordered_by]
    assert sorted(got, key=key) == sorted(expected, key=key)


def write_lines(path, events, rng=None):
    order = range(len(events)) if rng is None else rng.permutation(len(events))
    path.write_text("".join(json.dumps(events[i]) + "\n" for i in order))
    return path


def history(rng, events, keys):
    """A table's changes as its database saw them: (lsn, what, id, old row, new row)."""
    table, out = {}, []
    for lsn in range(1000, 1000 + events):
        key = int(rng.integers(0, keys))
        old = table.get(key)
        if old is not None and rng.random() < 0.25:
            out.append((lsn, "d", key, table.pop(key), None))
            continue
        new = {"id": key, "name": str(rng.choice(["ann", "bob", "cy", "dö"])), "score": float(rng.integers(0, 100)) / 4}
        if rng.random() < 0.1:
            new["name"] = None
        out.append((lsn, "u" if old else "c", key, old, new))
        table[key] = new
    return out, table


# Debezium


def debezium(rng, events=3000, keys=400, snapshot=100, full=True):
    changes, table = history(rng, events, keys)
    docs = []

    def event(op, before, after, lsn):
        return {
            "before": before,
            "after": after,
            "source": {"version": "3.0.0.Final", "connector": "postgresql", "ts_ms": 1559033904863 + lsn, "snapshot": "false", "db": "postgres", "table": "people", "txId": lsn // 3, "lsn": lsn},
            "op": op,
            "ts_ms": 1559033904900 + lsn,
            "transaction": None,
        }

    for lsn, op, key, old, new in changes:
        # REPLICA IDENTITY DEFAULT: of the old row, the key is all that is known.
        before = old if full or old is None else {"id": key, "name": None, "score": None}
        docs.append(event(op, before if op != "c" else None, new, lsn))
    for key in range(keys, keys + snapshot):
        docs.append(event("r", None, {"id": key, "name": "from before", "score": 0.5}, 900))
    return docs, table


DEBEZIUM = """
    WITH events AS (
        SELECT *, row_number() OVER () AS place FROM $log WHERE op IN ('c', 'u', 'd', 'r')
    ), latest AS (
        SELECT CASE WHEN op = 'd' THEN before.id ELSE after.id END AS id, after.name AS name, after.score AS score, op,
               CASE WHEN op = 'r' THEN 0 ELSE 1 END AS class, source.lsn AS lsn, place
        FROM events
        QUALIFY row_number() OVER (PARTITION BY id ORDER BY class DESC, lsn DESC, place DESC) = 1
    )
    SELECT {columns} FROM latest WHERE {live} ORDER BY id"""


@pytest.mark.parametrize("full", [True, False], ids=["identity full", "identity default"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_debezium(windrow, rng, tmp_path, full, shuffled):
    docs, table = debezium(rng, full=full)
    log = write_lines(tmp_path / "log.ndjson", docs, rng if shuffled else None)
    out = tmp_path / "out.parquet"
    arguments = ("--op-preset", "debezium", "--key", "id", "--order-by", "source.lsn")
    windrow("compact", log, *arguments, "-o", out).ok()
    got = rows_of(out)
    agree(got, sql(DEBEZIUM.format(columns="id, name, score", live="op <> 'd'"), log=log), ordered_by="id")
    live = [row for row in got if row["id"] < 400]
    assert live == [table[key] for key in sorted(table)], "the table as the database has it"
    # All that a snapshot hides.
    windrow("compact", log, *arguments, "--keep-bookkeeping", "-o", out).ok()
    kept = rows_of(out)
    names = {"id", "name", "score", "op", "ts_ms", "transaction", *(f"source.{name}" for name in docs[0]["source"])}
    assert set(kept[0]) == names
    assert [{name: row[name] for name in ("id", "name", "score")} for row in kept] == got
    # Deletes too.
    windrow("compact", log, *arguments, "--mode", "log", "--select", "id,op,source.lsn", "-o", out).ok()
    agree(rows_of(out), sql(DEBEZIUM.format(columns="id, op, lsn AS \"source.lsn\"", live="true"), log=log), ordered_by="id")


def test_debezium_a_snapshot_row_loses_to_any_event(windrow, rng, tmp_path):
    """Even to one with a smaller lsn, if that was written behind it: its transaction was open when the snapshot was taken."""
    docs, table = debezium(rng, keys=200, snapshot=0)
    for key in range(0, 300, 2):
        docs.append({**docs[0], "op": "r", "before": None, "after": {"id": key, "name": "stale", "score": -1.5}, "source": {**docs[0]["source"], "lsn": 10**9}})
    log, out = write_lines(tmp_path / "log.ndjson", docs, rng), tmp_path / "out.parquet"
    windrow("compact", log, "--op-preset", "debezium", "--key", "id", "--order-by", "source.lsn", "-o", out).ok()
    got = rows_of(out)
    agree(got, sql(DEBEZIUM.format(columns="id, name, score", live="op <> 'd'"), log=log), ordered_by="id")
    stale = {row["id"] for row in got if row["name"] == "stale"}
    touched = {(doc["after"] or doc["before"])["id"] for doc in docs if doc["op"] != "r"}
    assert stale == set(range(0, 300, 2)) - touched
    assert [row for row in got if row["id"] not in stale] == [table[key] for key in sorted(table)]


@pytest.mark.parametrize("seconds", [True, False], ids=["ts_ms", "positions alone"])
def test_debezium_takes_another_snapshot(windrow, rng, tmp_path, seconds):
    """Events are lost between two snapshots; what the second reads is newer than what came before it."""
    docs, _ = debezium(rng, events=3000, keys=200, snapshot=0)
    first, lost, table, log = 2400, 2900, {}, []
    for place, doc in enumerate(docs):
        if place == lost:
            state = dict(table)
            source = {**doc["source"], "snapshot": "true", "lsn": docs[lost - 1]["source"]["lsn"]}
            reads = [{**doc, "op": "r", "before": None, "after": row, "source": source, "ts_ms": doc["ts_ms"]} for row in state.values()]
            log += reads
        key = (doc["after"] or doc["before"])["id"]
        if doc["op"] == "d":
            table.pop(key)
        else:
            table[key] = doc["after"]
        if not first <= place < lost:
            log.append({**doc, "ts_ms": doc["ts_ms"] + (place >= lost)})
    if not seconds:
        log = [{name: value for name, value in doc.items() if name != "ts_ms"} for doc in log]
    expected = {}
    for doc in log:
        if doc["op"] == "d":
            expected.pop(doc["before"]["id"], None)
        else:
            expected[doc["after"]["id"]] = doc["after"]
    path, out = write_lines(tmp_path / "log.ndjson", log, rng), tmp_path / "out.parquet"
    done = windrow("compact", path, "--op-preset", "debezium", "--key", "id", "--order-by", "source.lsn", "-o", out).ok()
    assert rows_of(out) == [expected[key] for key in sorted(expected)]
    assert len(reads) > 50 and done.stats["keys_renewed"] > 0


def test_debezium_in_kafka_connects_envelope(windrow, rng, tmp_path):
    docs, table = debezium(rng, snapshot=0, events=500, keys=60)
    wrapped = [{"schema": {"type": "struct", "name": "dbserver1.people.Envelope"}, "payload": doc} for doc in docs]
    wrapped.append({"schema": None, "payload": None})
    log, out = write_lines(tmp_path / "log.ndjson", wrapped), tmp_path / "out.ndjson"
    windrow("compact", log, "--op-preset", "debezium", "--key", "id", "--order-by", "source.lsn", "-o", out).ok()
    assert rows_of(out) == [table[key] for key in sorted(table)]


def test_debezium_markers_and_tombstones_are_no_rows(windrow, rng, tmp_path):
    docs, table = debezium(rng, snapshot=0, events=500, keys=60)
    message = {**docs[0], "op": "m", "before": None, "after": None}
    tombstone = dict.fromkeys(docs[0])
    for at in range(0, 500, 7):
        docs.insert(at, message if at % 2 else tombstone)
    log, out = write_lines(tmp_path / "log.ndjson", docs), tmp_path / "out.parquet"
    windrow("compact", log, "--op-preset", "debezium", "--key", "id", "--order-by", "source.lsn", "-o", out).ok()
    assert rows_of(out) == [table[key] for key in sorted(table)]


def test_debezium_as_parquet(windrow, rng, tmp_path):
    """Typed structs, as a sink connector writes them."""
    docs, table = debezium(rng, snapshot=0, events=2000, keys=60)
    row = pa.struct([("id", pa.int64()), ("name", pa.string()), ("score", pa.float64())])
    source = pa.struct([("lsn", pa.int64()), ("table", pa.string())])
    schema = pa.schema([("before", row), ("after", row), ("source", source), ("op", pa.string()), ("ts_ms", pa.int64())])
    log = data.write(pa.Table.from_pylist(docs, schema), tmp_path / "log.parquet", row_group_size=300)
    out = tmp_path / "out.parquet"
    windrow("compact", log, "--op-preset", "debezium", "--key", "id", "--order-by", "source.lsn", "-o", out).ok()
    assert data.read(out).column_names == ["id", "name", "score"]
    assert rows_of(out) == [table[key] for key in sorted(table)]


@pytest.mark.parametrize("suffix", ["ndjson", "parquet"])
def test_debezium_updates_that_change_the_key(windrow, rng, tmp_path, suffix):
    """The key of a view is not always the table's: an update frees the key that the row had."""
    docs, table, lsn = [], {}, 0
    for _ in range(1500):
        row, lsn = int(rng.integers(0, 40)), lsn + 1
        old = table.get(row)
        taken = {held["code"] for held in table.values()}
        free = [code for code in range(60) if code not in taken]
        new = {"id": row, "code": int(rng.choice(free)), "v": lsn}
        if old and rng.random() < 0.5:
            new["code"] = old["code"]
        event = {"before": old, "after": new, "source": {"lsn": lsn}, "op": "u" if old else "c"}
        if old and rng.random() < 0.2:
            event, new = {**event, "after": None, "op": "d"}, None
        docs.append(event)
        table.pop(row, None)
        if new:
            table[row] = new
    image = pa.struct([("id", pa.int64()), ("code", pa.int64()), ("v", pa.int64())])
    schema = pa.schema([("before", image), ("after", image), ("source", pa.struct([("lsn", pa.int64())])), ("op", pa.string())])
    if suffix == "ndjson":
        log = write_lines(tmp_path / "log.ndjson", docs)
    else:
        log = data.write(pa.Table.from_pylist(docs, schema), tmp_path / "log.parquet", row_group_size=100)
    out = tmp_path / "out.parquet"
    windrow("compact", log, "--op-preset", "debezium", "--key", "code", "--order-by", "source.lsn", "-o", out).ok()
    assert rows_of(out) == sorted(table.values(), key=lambda row: row["code"])
    # Of old rows that lack the key nothing is known.
    partial = [{**doc, "before": doc["before"] and {**doc["before"], "code": None}} for doc in docs if doc["op"] != "d"]
    log = write_lines(tmp_path / "partial.ndjson", partial)
    windrow("compact", log, "--op-preset", "debezium", "--key", "code", "--order-by", "source.lsn", "-o", out).ok()
    latest = {doc["after"]["code"]: doc["after"] for doc in partial}
    assert rows_of(out) == [latest[code] for code in sorted(latest)]


def test_debezium_that_cannot_be(windrow, rng, tmp_path):
    docs, _ = debezium(rng, snapshot=0, events=50, keys=5)
    out = tmp_path / "out.parquet"
    arguments = ("--op-preset", "debezium", "--key", "id", "--order-by", "source.lsn", "-o", out)
    for change, part in [({"op": "t"}, "truncate"), ({"op": "d", "before": None}, "before"), ({"op": "u", "after": None}, "after"), ({"op": None}, "operation")]:
        broken = [*docs[:40], {**docs[40], "before": docs[40]["before"] or docs[40]["after"], "after": docs[40]["after"] or docs[40]["before"], **change}, *docs[41:]]
        log = write_lines(tmp_path / "log.ndjson", broken)
        windrow("compact", log, *arguments).fails(3, "log.ndjson", "row 40", part)
    plain = data.write(pa.table({"id": [1], "op": ["c"]}), tmp_path / "plain.parquet")
    windrow("compact", plain, *arguments).fails(2, "after")


# Delta Lake's change data feed


def delta(rng, events=3000, keys=300):
    changes, table = history(rng, events, keys)
    rows = []
    for lsn, op, key, old, new in changes:
        stamp = {"_commit_version": lsn, "_commit_timestamp": 1_700_000_000_000_000 + lsn * 1000}
        if op == "u":
            rows.append({**old, "_change_type": "update_preimage", **stamp})
        kind = {"c": "insert", "u": "update_postimage", "d": "delete"}[op]
        rows.append({**(new or old), "_change_type": kind, **stamp})
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("name", pa.string()),
            ("score", pa.float64()),
            ("_change_type", pa.string()),
            ("_commit_version", pa.int64()),
            ("_commit_timestamp", pa.timestamp("us", tz="UTC")),
        ]
    )
    return pa.Table.from_pylist(rows, schema), table


def latest_plain(log, op, order, ignored, deleted, columns):
    return duckdb.connect().sql(f"""
        WITH log AS (SELECT *, row_number() OVER () AS place FROM log)
        SELECT {columns} FROM (
            SELECT * FROM log WHERE {op} NOT IN ({ignored})
            QUALIFY row_number() OVER (PARTITION BY id ORDER BY {order} DESC, place DESC) = 1)
        WHERE {op} NOT IN ({deleted}) ORDER BY id""").to_arrow_table()  # fmt: skip


@pytest.mark.parametrize("shuffled", [False, True])
def test_delta_cdf(windrow, rng, tmp_path, shuffled):
    log, table = delta(rng)
    if shuffled:
        log = log.take(rng.permutation(log.num_rows))
    path, out = data.write(log, tmp_path / "cdf.parquet"), tmp_path / "out.parquet"
    arguments = ("--op-preset", "delta-cdf", "--key", "id", "--order-by", "_commit_version")
    windrow("compact", path, *arguments, "-o", out).ok()
    want = latest_plain(log, "_change_type", "_commit_version", "'update_preimage'", "'delete'", "id, name, score")
    data.same(data.read(out), want)
    assert rows_of(out) == [table[key] for key in sorted(table)]
    windrow("compact", path, *arguments, "--mode", "log", "-o", out).ok()
    data.same(data.read(out), latest_plain(log, "_change_type", "_commit_version", "'update_preimage'", "''", "* EXCLUDE place").cast(log.schema))


def test_delta_cdf_as_of_a_version(windrow, rng, tmp_path):
    log, _ = delta(rng)
    path, out = data.write(log, tmp_path / "cdf.parquet"), tmp_path / "out.parquet"
    windrow("compact", path, "--op-preset", "delta-cdf", "--key", "id", "--order-by", "_commit_version", "--as-of", "2500", "-o", out).ok()
    past = log.filter(pa.compute.less_equal(log["_commit_version"], 2500))
    data.same(data.read(out), latest_plain(past, "_change_type", "_commit_version", "'update_preimage'", "'delete'", "id, name, score"))


@pytest.mark.parametrize("by", ["_commit_version", "_commit_timestamp,_commit_version"])
def test_delta_commits_are_sets(windrow, rng, tmp_path, by):
    """In one commit keys move, and rows are deleted and inserted anew; the rows of it come in any order."""
    table, rows = {}, []
    for version in range(1, 300):
        before = dict(table)
        stamp = {"_commit_version": version, "_commit_timestamp": 1_700_000_000_000_000 + version // 2}
        commit, taken = [], set()
        for key in rng.choice(40, int(rng.integers(1, 12)), replace=False).tolist():
            new = {"id": key, "name": f"v{version}", "score": float(version)}
            target = int(rng.integers(40, 80))
            if key in taken:
                continue
            if key not in before:
                commit.append({**new, "_change_type": "insert", **stamp})
            elif rng.random() < 0.3 and target not in before and target not in taken:
                taken.add(target)
                commit.append({**before[key], "_change_type": "update_preimage", **stamp})
                commit.append({**new, "id": target, "_change_type": "update_postimage", **stamp})
                new, table[target] = None, {**new, "id": target}
            elif rng.random() < 0.5:
                commit.append({**before[key], "_change_type": "delete", **stamp})
                commit.append({**new, "_change_type": "insert", **stamp})
            else:
                commit.append({**before[key], "_change_type": "delete", **stamp})
                new = None
            table.pop(key, None)
            if new:
                table[key] = new
        for key in [key for key in before if key >= 40 and key not in taken and rng.random() < 0.05]:
            commit.append({**before[key], "_change_type": "delete", **stamp})
            table.pop(key)
        rows += [commit[i] for i in rng.permutation(len(commit))]
    log = pa.Table.from_pylist(rows).sort_by("_commit_version") if by == "_commit_version" else pa.Table.from_pylist(rows)
    path, out = data.write(log, tmp_path / "cdf.parquet"), tmp_path / "out.parquet"
    windrow("compact", path, "--op-preset", "delta-cdf", "--key", "id", "--order-by", by, "-o", out).ok()
    assert rows_of(out) == [table[key] for key in sorted(table)]
    windrow("compact", path, "--op-preset", "delta-cdf", "--key", "id", "--order-by", by, "--mode", "log", "-o", out).ok()
    got = data.read(out)
    assert got.column_names == log.column_names
    live = [row["id"] for row in got.to_pylist() if row["_change_type"] in ("insert", "update_postimage")]
    assert live == sorted(table)


# wal2json, flattened


@pytest.mark.parametrize("version", [1, 2])
def test_wal2json(windrow, rng, tmp_path, version):
    changes, table = history(rng, 3000, 300)
    column = "action" if version == 2 else "kind"
    words = {"c": "I", "u": "U", "d": "D"} if version == 2 else {"c": "insert", "u": "update", "d": "delete"}
    events = [{column: words[op], "lsn": lsn, **(new or {"id": key, "name": None, "score": None})} for lsn, op, key, old, new in changes]
    if version == 2:
        for at in range(0, 3000, 50):
            events.insert(at, {"action": str(rng.choice(["B", "C", "M"])), "lsn": None, "id": None, "name": None, "score": None})
    path, out = write_lines(tmp_path / "log.ndjson", events, rng), tmp_path / "out.parquet"
    windrow("compact", path, "--op-preset", "wal2json", "--key", "id", "--order-by", "lsn", "--select", "id,name,score", "-o", out).ok()
    want = sql(f"""
        SELECT id, name, score FROM (
            SELECT * FROM $log WHERE {column} NOT IN ('B', 'C', 'M')
            QUALIFY row_number() OVER (PARTITION BY id ORDER BY lsn DESC) = 1)
        WHERE lower({column}[1]) <> 'd' ORDER BY id""", log=path)  # fmt: skip
    agree(rows_of(out), want, ordered_by="id")
    assert rows_of(out) == [table[key] for key in sorted(table)]


def test_wal2json_as_postgresql_writes_its_lsns(windrow, rng, tmp_path):
    """As text, in two hexadecimal halves without leading zeros, which no text order fits."""
    changes, table = history(rng, 3000, 300)
    number = lambda lsn: (lsn - 1000) * 0x123_4567 + 0xFFF_F000
    text = lambda number: f"{number >> 32:X}/{number & 0xFFFFFFFF:X}"
    words = {"c": "I", "u": "U", "d": "D"}
    empty = {"name": None, "score": None}
    events = [{"action": words[op], "lsn": text(number(lsn)), **(new or {"id": key, **empty})} for lsn, op, key, old, new in changes]
    assert sorted(event["lsn"] for event in events) != [event["lsn"] for event in events]
    path, out = write_lines(tmp_path / "log.ndjson", events, rng), tmp_path / "out.parquet"
    compact = ["compact", path, "--op-preset", "wal2json", "--key", "id", "--order-by", "lsn", "--select", "id,name,score", "-o", out]
    windrow(*compact).ok()
    latest = f"""
        SELECT id, name, score FROM (
            SELECT *, ('0x' || split_part(lsn, '/', 1))::UBIGINT * 4294967296 + ('0x' || split_part(lsn, '/', 2))::UBIGINT AS n FROM $log)
        WHERE n <= {{limit}} QUALIFY row_number() OVER (PARTITION BY id ORDER BY n DESC) = 1 AND action <> 'D' ORDER BY id"""
    agree(rows_of(out), sql(latest.format(limit=1 << 62), log=path), ordered_by="id")
    assert rows_of(out) == [table[key] for key in sorted(table)]
    limit = number(2500)
    windrow(*compact, "--as-of", text(limit)).ok()
    agree(rows_of(out), sql(latest.format(limit=limit), log=path), ordered_by="id")


def test_wal2json_with_its_lists(windrow, tmp_path):
    path = tmp_path / "log.ndjson"
    lines = [
        '{"action":"I","schema":"public","table":"t","columns":[{"name":"id","type":"integer","value":1},{"name":"x","type":"text","value":"a"}]}',
        '{"action":"I","schema":"public","table":"t","columns":[{"name":"id","type":"integer","value":2},{"name":"x","type":"text","value":"b"}]}',
        '{"action":"U","schema":"public","table":"t","columns":[{"name":"id","type":"integer","value":1},{"name":"x","type":"text","value":"c"}],"identity":[{"name":"id","type":"integer","value":1}]}',
        '{"action":"D","schema":"public","table":"t","identity":[{"name":"id","type":"integer","value":2}]}',
    ]
    path.write_text("\n".join(lines) + "\n")
    windrow("compact", path, "--op-preset", "wal2json", "--key", "id", "-o", tmp_path / "out.parquet").ok()
    assert data.read(tmp_path / "out.parquet").to_pylist() == [{"id": 1, "x": "c"}]


# Paimon


def paimon(rng, column, as_number):
    changes, table = history(rng, 3000, 300)
    rows, sequence = [], 0
    for lsn, op, key, old, new in changes:
        for word, row in {"c": [("+I", new)], "u": [("-U", old), ("+U", new)], "d": [("-D", old)]}[op]:
            kind = ["+I", "-U", "+U", "-D"].index(word) if as_number else word
            rows.append({"_KEY_id": key, "_SEQUENCE_NUMBER": sequence, column: kind, **row})
            sequence += 1
    schema = [
        ("_KEY_id", pa.int64()),
        ("_SEQUENCE_NUMBER", pa.int64()),
        (column, pa.int8() if as_number else pa.string()),
        ("id", pa.int64()),
        ("name", pa.string()),
        ("score", pa.float64()),
    ]
    return pa.Table.from_pylist(rows, pa.schema(schema)), table


@pytest.mark.parametrize("column,as_number", [("_ROW_KIND", False), ("rowkind", False), ("_VALUE_KIND", True)])
def test_paimon(windrow, rng, tmp_path, column, as_number):
    log, table = paimon(rng, column, as_number)
    log = log.take(rng.permutation(log.num_rows))
    path, out = data.write(log, tmp_path / "log.parquet"), tmp_path / "out.parquet"
    arguments = ("--op-preset", "paimon", "--key", "id", "--order-by", "_SEQUENCE_NUMBER")
    windrow("compact", path, *arguments, "-o", out).ok()
    gone = ("1", "3") if as_number else ("'-U'", "'-D'")
    data.same(data.read(out), latest_plain(log, column, "_SEQUENCE_NUMBER", *gone, "id, name, score"))
    assert rows_of(out) == [table[key] for key in sorted(table)]
    windrow("compact", path, *arguments, "--keep-bookkeeping", "-o", out).ok()
    assert data.read(out).column_names == log.column_names


def test_names_that_windrow_keeps(windrow, tmp_path):
    path = data.write(pa.table({"id": [1], "op": ["I"], "__windrow_deleted": [1]}), tmp_path / "a.parquet")
    windrow("compact", path, "--key", "id", "--op-column", "op", "-o", tmp_path / "o.parquet").fails(2, "__windrow_deleted")
