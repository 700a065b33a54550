"""`windrow compact` keeps what DuckDB's window functions and sums keep."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import data
import oracle

OPS = ["I", "U", "U", "U", "D"]


def log(rng, rows, keys, *, lsn_pool=None, null_keys=0.0, null_lsn=0.0, kind=pa.int64()):
    """A change log: out of order, with deletes, with ties where `lsn_pool` is small."""
    ids = rng.integers(0, keys, rows)
    lsn = rng.permutation(rows) if lsn_pool is None else rng.integers(0, lsn_pool, rows)
    return pa.table(
        {
            "op": pa.array(rng.choice(OPS, rows)),
            "id": pa.array(ids, mask=rng.random(rows) < null_keys).cast(kind),
            "lsn": pa.array(lsn, mask=rng.random(rows) < null_lsn),
            "name": data.column(rng, pa.string(), rows, 500),
            "amount": data.column(rng, pa.decimal128(12, 2), rows, 500),
            "row": pa.array(np.arange(rows)),
        }
    )


def compacts(windrow, table, tmp_path, expected, *arguments, suffix="parquet"):
    path, out = data.write(table, tmp_path / f"log.{suffix}"), tmp_path / f"out.{suffix}"
    done = windrow("compact", path, *arguments, "-o", out).ok()
    got = data.read(out)
    data.same(got, expected)
    assert (done.stats["rows_in"], done.stats["rows_out"]) == (table.num_rows, expected.num_rows)
    return done


LATEST = ("--key", "id", "--order-by", "lsn", "--op-column", "op")


@pytest.mark.parametrize("rows,keys", [(0, 1), (1, 1), (50, 100), (30_000, 9_000), (30_000, 40), (30_000, 1)])
@pytest.mark.parametrize("ties", [None, 5])
def test_the_latest_row_of_each_key(windrow, rng, tmp_path, rows, keys, ties):
    table = log(rng, rows, keys, lsn_pool=ties)
    live = oracle.latest(table, "id", "lsn", "op", "op <> 'D'")
    done = compacts(windrow, table, tmp_path, live.drop_columns("op"), *LATEST)
    every = oracle.latest(table, "id", "lsn", "op")
    assert done.stats["keys_deleted"] == every.num_rows - live.num_rows
    compacts(windrow, table, tmp_path, live, *LATEST, "--keep-bookkeeping")
    compacts(windrow, table, tmp_path, every, *LATEST, "--mode", "log")


def test_without_deletes(windrow, rng, tmp_path):
    table = log(rng, 10_000, 700, lsn_pool=300)
    compacts(windrow, table, tmp_path, oracle.latest(table, "id", "lsn"), "--key", "id", "--order-by", "lsn")
    # No order: the last row of the input.
    compacts(windrow, table, tmp_path, oracle.latest(table, "id"), "--key", "id")


@pytest.mark.parametrize("kind", data.KEYS, ids=data.name_of)
def test_every_type_of_key_and_order(windrow, rng, tmp_path, kind):
    rows = 4000
    table = pa.table(
        {
            "v": data.column(rng, pa.list_(pa.int64()), rows),
            "k": data.column(rng, kind, rows),
            "at": data.column(rng, kind, rows, 20),
            "op": pa.array(rng.choice(OPS, rows)),
            "row": pa.array(np.arange(rows)),
        }
    )
    arguments = ("--order-by", "at", "--op-column", "op", "--keep-bookkeeping")
    live = oracle.latest(table, "k", "at", "op", "op <> 'D'")
    compacts(windrow, table, tmp_path, live, "--key", "k", *arguments, suffix="arrow")


def test_null_keys_are_one_key_and_null_orders_come_last(windrow, rng, tmp_path):
    table = log(rng, 5000, 300, lsn_pool=50, null_keys=0.3, null_lsn=0.05)
    live = oracle.latest(table, "id", "lsn", "op", "op <> 'D'").drop_columns("op")
    compacts(windrow, table, tmp_path, live, *LATEST)
    first = oracle.latest(table, "id:nulls-first", "lsn:nulls-first", "op", "op <> 'D'").drop_columns("op")
    compacts(windrow, table, tmp_path, first, "--key", "id:nulls-first", "--order-by", "lsn:nulls-first", "--op-column", "op")


@pytest.mark.parametrize("case", range(10))
def test_composite_keys_and_orders(windrow, rng, tmp_path, case):
    rows = 6000
    kinds = [data.KEYS[i] for i in rng.choice(len(data.KEYS), 5)]
    names = ["a", "b", "c", "x", "y"]
    pools = [4, 6, 8, 5, 5]
    columns = {name: data.column(rng, kind, rows, pool) for name, kind, pool in zip(names, kinds, pools)}
    table = pa.table({**columns, "op": pa.array(rng.choice(OPS, rows)), "row": pa.array(np.arange(rows))})
    key = ",".join(f"{name}{rng.choice(['', ':desc', ':nulls-first'])}" for name in "abc"[: int(rng.integers(1, 4))])
    order = ",".join(f"{name}{rng.choice(['', ':desc', ':nulls-first', ':desc:nulls-first'])}" for name in "xy")
    live = oracle.latest(table, key, order, "op", "op <> 'D'").drop_columns("op")
    compacts(windrow, table, tmp_path, live, "--key", key, "--order-by", order, "--op-column", "op", suffix="arrow")


@pytest.mark.parametrize("files", [2, 7])
def test_later_files_win_ties(windrow, rng, tmp_path, files):
    table = log(rng, 9000, 500, lsn_pool=3)
    cuts = np.linspace(0, table.num_rows, files + 1).astype(int)
    paths = [data.write(table.slice(a, b - a), tmp_path / f"{i}.parquet", row_group_size=500) for i, (a, b) in enumerate(zip(cuts, cuts[1:]))]
    out = tmp_path / "out.parquet"
    windrow("compact", *paths, *LATEST, "-o", out).ok()
    data.same(data.read(out), oracle.latest(table, "id", "lsn", "op", "op <> 'D'").drop_columns("op"))


@pytest.mark.parametrize("words", [["insert", "Update", "upsert", "DELETE"], ["c", "u", "r", "d"], ["+I", "+U", "+I", "-D"]])
def test_spellings_of_operations(windrow, rng, tmp_path, words):
    table = log(rng, 3000, 300)
    codes = rng.choice(words, table.num_rows)
    table = table.set_column(0, "op", pa.array(codes))
    live = oracle.latest(table, "id", "lsn", "op", f"op <> '{words[-1]}'").drop_columns("op")
    compacts(windrow, table, tmp_path, live, *LATEST)
    # A flag instead: true is deleted.
    flags = table.set_column(0, "op", pc.equal(table["op"], words[-1]))
    compacts(windrow, flags, tmp_path, live, *LATEST)
    compacts(windrow, table.set_column(0, "op", table["op"].dictionary_encode()), tmp_path, live, *LATEST)


def test_operations_that_mean_nothing_are_errors(windrow, rng, tmp_path):
    table = log(rng, 100, 10)
    out = tmp_path / "out.parquet"
    for bad, part in [("x", '"x"'), (None, "null"), ("T", "truncate")]:
        ops = table["op"].to_pylist()
        ops[42] = bad
        path = data.write(table.set_column(0, "op", pa.array(ops)), tmp_path / "log.parquet")
        windrow("compact", path, *LATEST, "-o", out).fails(3, "log.parquet", "row 42", "op", part)
    assert not out.exists()


@pytest.mark.parametrize("at", [-1, 0, 1234, 10_000])
def test_as_of(windrow, rng, tmp_path, at):
    table = log(rng, 5000, 600, null_lsn=0.02)
    past = table.filter(pc.less_equal(table["lsn"], at))
    expected = oracle.latest(past, "id", "lsn", "op", "op <> 'D'").drop_columns("op")
    compacts(windrow, table, tmp_path, expected, *LATEST, f"--as-of={at}")


@pytest.mark.parametrize("kind,text,at", [
    (pa.timestamp("us"), "2026-01-31T12:00:00", datetime.datetime(2026, 1, 31, 12)),
    (pa.timestamp("ms", tz="UTC"), "2026-01-31T12:00:00Z", datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.timezone.utc)),
    (pa.date32(), "2026-01-31", datetime.date(2026, 1, 31)),
    (pa.string(), "m", "m"),
    (pa.decimal128(10, 2), "17.25", decimal.Decimal("17.25")),
], ids=str)  # fmt: skip
def test_as_of_of_any_type(windrow, rng, tmp_path, kind, text, at):
    table = log(rng, 3000, 200)
    if pa.types.is_string(kind):
        values = pa.array(rng.choice(list("abcxyzmn"), 3000))
    elif pa.types.is_decimal(kind):
        values = pa.array(rng.integers(1600, 1800, 3000)).cast(pa.decimal128(20, 0)).cast(pa.decimal128(22, 2))
        values = pc.divide(values, pa.scalar(decimal.Decimal(100))).cast(kind, safe=False)
    else:
        days = pa.array(rng.integers(20_450, 20_500, 3000).astype(np.int32)).view(pa.date32())
        values = days.cast(kind) if not getattr(kind, "tz", None) else days.cast(pa.timestamp("ms")).view(kind)
    table = table.set_column(2, "lsn", values)
    past = table.filter(pc.less_equal(table["lsn"], pa.scalar(at, kind)))
    assert 0 < past.num_rows < table.num_rows
    expected = oracle.latest(past, "id", "lsn", "op", "op <> 'D'").drop_columns("op")
    compacts(windrow, table, tmp_path, expected, *LATEST, "--as-of", text)


def test_as_of_that_cannot_be(windrow, rng, tmp_path):
    path, out = data.write(log(rng, 10, 3), tmp_path / "log.parquet"), tmp_path / "out.parquet"
    windrow("compact", path, *LATEST, "--as-of", "yesterday", "-o", out).fails(2, "yesterday", "lsn")
    windrow("compact", path, "--key", "id", "--as-of", "5", "-o", out).fails(2, "--order-by")


def test_select(windrow, rng, tmp_path):
    table = log(rng, 3000, 300)
    live = oracle.latest(table, "id", "lsn", "op", "op <> 'D'")
    compacts(windrow, table, tmp_path, live.select(["name", "op"]), *LATEST, "--select", "name,op")


def test_compacting_again_changes_nothing(windrow, rng, tmp_path):
    table = log(rng, 5000, 400)
    first, second = tmp_path / "first.parquet", tmp_path / "second.parquet"
    path = data.write(table, tmp_path / "log.parquet")
    windrow("compact", path, *LATEST, "--mode", "log", "-o", first).ok()
    windrow("compact", first, *LATEST, "--mode", "log", "-o", second).ok()
    assert first.read_bytes() == second.read_bytes()


# (row, time, diff)


def changes(rng, rows, *, kinds=(pa.int16(), pa.string()), pool=12, positive=False):
    columns = {f"c{i}": data.column(rng, kind, rows, pool) for i, kind in enumerate(kinds)}
    diff = rng.integers(1, 4, rows) if positive else rng.integers(-2, 4, rows)
    return pa.table({**columns, "ts": pa.array(rng.integers(0, 6, rows)), "delta": pa.array(diff, pa.int64())})


def summed(table, columns, order):
    """`delta` summed by the columns, zeros dropped, in this order."""
    sql = f"""
        SELECT min({oracle.ROW}) AS {oracle.ROW}, sum(delta) AS total FROM t
        GROUP BY {", ".join(map(oracle.quoted, columns))} HAVING sum(delta) <> 0 ORDER BY {oracle.by(order)}"""
    answer = oracle.query(table, [*columns, "delta"], sql)
    rows = data.take(table.select(columns), pa.array(np.asarray(answer[oracle.ROW]).astype(np.int64)))
    return rows, pa.array(np.asarray(answer["total"]).astype(np.int64))


def summed_log(table, columns, order):
    rows, totals = summed(table, columns, ",".join(order))
    return rows.append_column("delta", totals)


@pytest.mark.parametrize("key", [[], ["c1"], ["c1:desc:nulls-first", "c0"]])
def test_diffs_are_summed(windrow, rng, tmp_path, key):
    table = changes(rng, 8000)
    named = [column.split(":")[0] for column in key]
    rest = [name for name in ("c0", "c1") if name not in named]
    rows, totals = summed(table, ["c0", "c1", "ts"], ",".join([*key, *rest, "ts"]))
    arguments = ["--diff", "delta", *(["--key", ",".join(key)] if key else [])]
    expected = rows.append_column("delta", totals)
    compacts(windrow, table, tmp_path, expected, *arguments, "--time", "ts", "--mode", "log")
    # Without --time a column of that name is one like the others.
    compacts(windrow, table, tmp_path, summed_log(table, ["c0", "c1", "ts"], [*key, *rest, "ts"]), *arguments, "--mode", "log")
    # Without its time in the way a row meets itself.
    table = changes(rng, 8000, positive=True)
    rows, totals = summed(table, ["c0", "c1"], ",".join([*key, *rest]))
    expected = rows.append_column("delta", totals)
    compacts(windrow, table, tmp_path, expected, *arguments, "--time", "ts", "--keep-bookkeeping")
    compacts(windrow, table, tmp_path, rows.take(np.repeat(np.arange(len(rows)), totals)), *arguments, "--time", "ts")


@pytest.mark.parametrize("kind", data.KEYS, ids=data.name_of)
def test_diffs_of_every_type(windrow, rng, tmp_path, kind):
    table = changes(rng, 3000, kinds=(kind,), pool=40)
    compacts(windrow, table, tmp_path, summed_log(table, ["c0", "ts"], ["c0", "ts"]), "--diff", "delta", "--time", "ts", "--mode", "log", suffix="arrow")


@pytest.mark.parametrize("kind", data.NESTED, ids=data.name_of)
def test_diffs_of_nested_rows(windrow, rng, tmp_path, kind):
    """Rows are equal when their nested values are; in which order they come is not said."""
    table = changes(rng, 2000, kinds=(kind, pa.int8()), pool=6)
    path, out = data.write(table, tmp_path / "log.arrow"), tmp_path / "out.arrow"
    windrow("compact", path, "--diff", "delta", "--time", "ts", "--key", "c1", "--mode", "log", "-o", out).ok()
    counts = {}
    for row in table.to_pylist():
        at = (repr(row["c0"]), row["c1"], row["ts"])
        counts[at] = counts.get(at, 0) + row["delta"]
    got = [((repr(row["c0"]), row["c1"], row["ts"]), row["delta"]) for row in data.read(out).to_pylist()]
    assert len(got) == len(dict(got))
    assert dict(got) == {row: count for row, count in counts.items() if count != 0}


@pytest.mark.parametrize("at", [0, 3, 9])
def test_diffs_as_of(windrow, rng, tmp_path, at):
    table = changes(rng, 4000, positive=True)
    past = table.filter(pc.less_equal(table["ts"], at))
    rows, totals = summed(past, ["c0", "c1"], "c0,c1")
    expected = rows.append_column("delta", totals)
    compacts(windrow, table, tmp_path, expected, "--diff", "delta", "--time", "ts", "--as-of", at, "--keep-bookkeeping")


def test_diffs_that_cancel_leave_nothing(windrow, rng, tmp_path):
    table = changes(rng, 3000, positive=True)
    undone = table.set_column(3, "delta", pc.negate(table["delta"]))
    both = pa.concat_tables([undone, table])
    for mode in ("log", "snapshot"):
        expected = table.slice(0, 0).drop_columns([] if mode == "log" else ["ts", "delta"])
        compacts(windrow, both, tmp_path, expected, "--diff", "delta", "--time", "ts", "--mode", mode)


def test_a_negative_count_in_a_snapshot_is_an_error(windrow, tmp_path):
    table = pa.table({"name": ["ann", "bob", "bob", "cy"], "ts": [1, 1, 2, 2], "delta": [1, 1, -3, -7]})
    path, out = data.write(table, tmp_path / "log.parquet"), tmp_path / "out.parquet"
    arguments = ("compact", path, "--diff", "delta", "--time", "ts", "-o", out)
    for more in ((), ("--keep-bookkeeping",)):
        windrow(*arguments, *more).fails(3, "2 rows", "bob", "cy", "-2", "-7")
        assert not out.exists()
    windrow(*arguments, "--as-of", "1").ok()
    assert data.read(out).to_pydict() == {"name": ["ann", "bob"]}
    windrow(*arguments, "--mode", "log").ok()
    assert data.read(out)["delta"].to_pylist() == [1, 1, -3, -7]


def test_diffs_that_do_not_fit_are_errors(windrow, tmp_path):
    out = tmp_path / "out.parquet"
    many = pa.table({"x": [1, 1], "delta": pa.array([2**62, 2**62 + 2**61])})
    windrow("compact", data.write(many, tmp_path / "a.parquet"), "--diff", "delta", "--mode", "log", "-o", out).fails(3)
    small = pa.table({"x": [1] * 200, "delta": pa.array([1] * 200, pa.int8())})
    windrow("compact", data.write(small, tmp_path / "b.parquet"), "--diff", "delta", "--mode", "log", "-o", out).fails(3, "delta")
    nulls = pa.table({"x": [1, 2], "delta": pa.array([1, None], pa.int64())})
    windrow("compact", data.write(nulls, tmp_path / "c.parquet"), "--diff", "delta", "-o", out).fails(3, "delta")
    assert not out.exists()


def test_a_diff_needs_no_key(windrow, tmp_path):
    """Nothing but the diff: the empty row, as often as the sum."""
    table = pa.table({"x": [1, 1, 1], "delta": [5, -3, 1]})
    path, out = data.write(table, tmp_path / "log.parquet"), tmp_path / "out.parquet"
    windrow("compact", path, "--diff", "delta", "-o", out).ok()
    assert data.read(out).to_pydict() == {"x": [1, 1, 1]}
