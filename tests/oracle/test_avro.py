"""Avro object files that fastavro and Polars write: rows come out as they were, and damage is an error."""

import datetime
import decimal
import io
import json

import fastavro
import polars as pl
import pytest

import data

CODECS = ["null", "deflate", "snappy", "zstandard", "bzip2", "xz"]

FIELDS = [
    {"name": "k", "type": "long"},
    {"name": "i", "type": ["null", "int"]},
    {"name": "b", "type": "boolean"},
    {"name": "f", "type": "float"},
    {"name": "d", "type": ["double", "null"]},
    {"name": "s", "type": ["null", "string"]},
    {"name": "y", "type": "bytes"},
    {"name": "e", "type": {"type": "enum", "name": "Color", "symbols": ["RED", "GREEN", "BLUE"]}},
    {"name": "x", "type": {"type": "fixed", "name": "Four", "size": 4}},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
    {"name": "ms", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
    {"name": "clock", "type": {"type": "long", "logicalType": "time-micros"}},
    {"name": "m", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}]},
    {"name": "list", "type": {"type": "array", "items": ["null", "long"]}},
    {"name": "map", "type": {"type": "map", "values": "string"}},
    {"name": "in", "type": ["null", {"type": "record", "name": "Inner", "fields": [{"name": "a", "type": "int"}, {"name": "c", "type": "Color"}]}]},
    {"name": "ins", "type": {"type": "array", "items": "Inner"}},
    {"name": "four", "type": ["null", "Four"]},
]
SCHEMA = {"type": "record", "name": "Row", "namespace": "org.example", "fields": FIELDS}


def row(rng, k):
    maybe = lambda value: None if rng.random() < 0.2 else value
    text = lambda: "".join(rng.choice(list("abcdéß"), int(rng.integers(0, 20))))
    day = datetime.date(2000, 1, 1) + datetime.timedelta(days=int(rng.integers(-20000, 20000)))
    moment = datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=int(rng.integers(-(10**15), 10**15)))
    inner = lambda: {"a": int(rng.integers(-9, 9)), "c": str(rng.choice(["RED", "BLUE"]))}
    return {
        "k": k,
        "i": maybe(int(rng.integers(-(2**31), 2**31))),
        "b": bool(rng.random() < 0.5),
        "f": float(int(rng.integers(-1000, 1000)) / 8),
        "d": maybe(float(rng.normal())),
        "s": maybe(text()),
        "y": text().encode(),
        "e": str(rng.choice(["RED", "GREEN", "BLUE"])),
        "x": rng.bytes(4),
        "day": day,
        "at": maybe(moment),
        "ms": moment.replace(microsecond=moment.microsecond // 1000 * 1000),
        "local": moment.replace(tzinfo=None),
        "clock": moment.time(),
        "m": maybe(decimal.Decimal(int(rng.integers(-(10**9), 10**9))) / 100),
        "list": [maybe(int(rng.integers(0, 2**40))) for _ in range(int(rng.integers(0, 4)))],
        "map": {text(): text() for _ in range(int(rng.integers(0, 3)))},
        "in": maybe(inner()),
        "ins": [inner() for _ in range(int(rng.integers(0, 3)))],
        "four": maybe(rng.bytes(4)),
    }


def written(rows, codec, schema=SCHEMA, **options):
    out = io.BytesIO()
    fastavro.writer(out, schema, rows, codec=codec, **options)
    return out.getvalue()


def shuffled(rng, count):
    rows = [row(rng, k) for k in range(count)]
    return [rows[i] for i in rng.permutation(count)], rows


def rows_of(path, maps=("map",)):
    rows = data.read(path).to_pylist()
    return [{name: dict(value) if name in maps else value for name, value in row.items()} for row in rows]


@pytest.mark.parametrize("codec", CODECS)
def test_every_type_and_codec(w, rng, tmp_path, codec):
    rows, expected = shuffled(rng, 3000)
    (tmp_path / "a.avro").write_bytes(written(rows, codec))
    for threads, out in [(1, "a.arrow"), (2, "b.arrow")]:
        run = w(f"sort a.avro --by k -o {out} --threads {threads}").ok()
        assert run.stats["rows_in"] == 3000
        assert rows_of(tmp_path / out) == expected
    w("sort a.avro --by k -o a.parquet").ok()
    assert rows_of(tmp_path / "a.parquet") == expected


def test_other_ways_in(w, windrow, rng, tmp_path):
    rows, expected = shuffled(rng, 5000)
    halves = [written(rows[:2000], "deflate"), written(rows[2000:], "null", sync_interval=900)]
    (tmp_path / "a.avro").write_bytes(halves[0])
    (tmp_path / "no-extension").write_bytes(halves[1])
    for format in ("", " --input-format avro"):
        w(f"sort a.avro no-extension --by k -o out.arrow{format}").ok()
        assert rows_of(tmp_path / "out.arrow") == expected
    (tmp_path / "b.avro").write_bytes(halves[1])
    w("sort *.avro --by k -o out.arrow").ok()
    assert rows_of(tmp_path / "out.arrow") == expected
    done = windrow("sort", "-", "--by", "k", "-o", tmp_path / "p.arrow", stdin=halves[1])
    done.ok()
    assert rows_of(tmp_path / "p.arrow") == [row for row in expected if row in rows[2000:]]


def test_verbs_on_avro(w, rng, tmp_path):
    schema = {"type": "record", "name": "Change", "fields": [{"name": "op", "type": "string"}, {"name": "id", "type": "int"}, {"name": "v", "type": ["null", "string"]}]}
    table, log = {}, []
    for _ in range(4000):
        key = int(rng.integers(0, 300))
        if key in table and rng.random() < 0.3:
            log.append({"op": "D", "id": key, "v": None})
            del table[key]
        else:
            table[key] = f"v{len(log)}"
            log.append({"op": "I", "id": key, "v": table[key]})
    (tmp_path / "log.avro").write_bytes(written(log, "snappy", schema))
    w("compact log.avro --key id --op-column op -o out.csv").ok()
    assert (tmp_path / "out.csv").read_text() == "id,v\n" + "".join(f"{key},{table[key]}\n" for key in sorted(table))
    w("sort log.avro --by id --where id=7 --select id,v -o out.ndjson").ok()
    lines = [json.loads(line) for line in (tmp_path / "out.ndjson").read_text().splitlines()]
    assert lines == [{"id": change["id"], "v": change["v"]} for change in log if change["id"] == 7]
    w("inspect log.avro").ok()
    w("check log.avro --by id").fails(1)
    w("sort log.avro --by id -o out.avro").fails(2, "avro is read, and not written")
    w("sort log.avro --by id -o out --output-format avro").fails(2)


@pytest.mark.parametrize("compression", ["uncompressed", "snappy", "deflate"])
def test_polars_writes_it(w, rng, tmp_path, compression):
    frame = pl.DataFrame({"k": rng.permutation(5000), "s": [f"row {i}" for i in range(5000)], "f": rng.random(5000)})
    frame.write_avro(tmp_path / "a.avro", compression=compression)
    w("sort a.avro --by k -o out.parquet").ok()
    assert pl.read_parquet(tmp_path / "out.parquet").equals(frame.sort("k"))


@pytest.mark.floor
def test_files_of_many_blocks_are_shared_by_threads(w, rng, tmp_path):
    schema = {"type": "record", "name": "R", "fields": [{"name": "k", "type": "long"}, {"name": "s", "type": "string"}]}
    order = rng.permutation(400_000)
    rows = ({"k": int(k), "s": f"some text of the row {k}"} for k in order)
    for codec in ("null", "zstandard"):
        (tmp_path / "a.avro").write_bytes(written(rows, codec, schema))
        rows = ({"k": int(k), "s": f"some text of the row {k}"} for k in order)
        for options in ("--threads 2", "--threads 1 --memory-limit 48MiB"):
            run = w(f"sort a.avro --by k -o out.parquet {options}").ok()
            table = data.read(tmp_path / "out.parquet")
            assert table["k"].to_pylist() == list(range(400_000))
            assert table["s"][123_456].as_py() == "some text of the row 123456"
            if "limit" in options:
                assert run.stats["peak_rss_bytes"] <= 48 << 20


def test_no_rows(w, tmp_path):
    (tmp_path / "a.avro").write_bytes(written([], "null"))
    w("sort a.avro --by k -o out.parquet").ok()
    table = data.read(tmp_path / "out.parquet")
    assert table.num_rows == 0 and table.column_names == [field["name"] for field in FIELDS]


def test_damage_is_an_error_and_never_half_of_the_rows(w, rng, tmp_path):
    schema = {"type": "record", "name": "R", "fields": [{"name": "k", "type": "long"}, {"name": "l", "type": {"type": "array", "items": "string"}}]}
    rows = [{"k": k, "l": [str(k)] * (k % 3)} for k in range(300)]
    for codec in ("null", "deflate", "snappy"):
        whole = written(rows, codec, schema, sync_interval=300)
        path = tmp_path / "a.avro"
        for cut in rng.integers(4, len(whole), 40):
            path.write_bytes(whole[:cut])
            run = w("sort a.avro --by k -o out.csv --select k")
            # What ends between two blocks is a file.
            assert run.code == 3 or run.code == 0 and whole[:cut].endswith(whole[-16:]), (codec, cut, run.stderr)
            assert "panicked" not in run.stderr
        for at in rng.integers(0, len(whole), 120):
            broken = bytearray(whole)
            broken[at] ^= int(rng.integers(1, 256))
            path.write_bytes(broken)
            run = w("sort a.avro --by k -o out.csv --select k")
            assert run.code in (0, 2, 3) and "panicked" not in run.stderr, (codec, at, run.stderr)
            if run.code == 0:
                assert run.stats["rows_out"] == 300, (codec, at)


def test_refusals(w, tmp_path):
    write = lambda schema, rows=(): (tmp_path / "a.avro").write_bytes(written(list(rows), "null", schema))
    recursive = {"type": "record", "name": "Tree", "fields": [{"name": "next", "type": ["null", "Tree"]}]}
    write(recursive)
    w("sort a.avro --by next -o out.csv").fails(3, "a.avro", "contains itself")
    write("long", [1, 2])
    w("sort a.avro --by k -o out.csv").fails(3, "a.avro", "no record")
    write({"type": "record", "name": "N", "fields": [{"name": "n", "type": "null"}]}, [{"n": None}] * 3)
    w("sort a.avro --by n -o out.csv").fails(3, "a.avro", "without any bytes")
    (tmp_path / "a.avro").write_bytes(b"PAR1 or so")
    w("sort a.avro --by k -o out.csv").fails(3)


def test_a_block_that_is_longer_than_those_before_it_in_a_stream(windrow, tmp_path):
    schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}, {"name": "s", "type": "string"}]}
    rows = [{"id": at * 7919 % 120_011, "s": f"{at:>60}"} for at in range(120_011)]
    for codec in CODECS:
        file = io.BytesIO()
        writer = fastavro.write.Writer(file, schema, codec=codec, sync_interval=1 << 40)
        for at, row in enumerate(rows):
            writer.write(row)
            if at in (9, len(rows) - 1):
                writer.flush()
        out = tmp_path / "out.parquet"
        options = ["--input-format", "avro", "--by", "id", "--memory-limit", "192MiB"]
        windrow("sort", "-", *options, "-o", out, stdin=file.getvalue()).ok()
        assert pl.read_parquet(out)["id"].to_list() == list(range(len(rows))), codec
