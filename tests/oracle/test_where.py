"""Conditions: row groups and pages that statistics rule out are not read, and what comes out is what DuckDB selects."""

import datetime
import decimal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import data

ROWS = 60_000


def table(rng, clustered):
    """Rows whose columns ascend, about, where they are clustered, so that pages have narrow bounds."""
    place = np.arange(ROWS) + (rng.integers(-50, 50, ROWS) if clustered else rng.integers(0, ROWS, ROWS))
    floats = np.where(rng.random(ROWS) < 0.001, np.nan, place / 7)
    nulls = lambda share: rng.random(ROWS) < share
    runs = np.repeat(rng.random(ROWS // 500) < 0.3, 500)
    return pa.table(
        {
            "n": pa.array(np.arange(ROWS)),
            "i": pa.array(place, pa.int64(), mask=nulls(0.01)),
            "u": pa.array(place + 100, pa.uint32()),
            "f": pa.array(floats, mask=nulls(0.01)),
            "s": pa.array([f"key {value:07} of some length" for value in place], mask=nulls(0.01)),
            "d": pa.array([datetime.date(2000, 1, 1) + datetime.timedelta(days=int(value) // 100) for value in place]),
            "m": pa.array([decimal.Decimal(int(value)) / 100 for value in place], pa.decimal128(12, 2)),
            "sparse": pa.array(place, pa.int32(), mask=runs),
            "list": pa.array([[int(value)] * (int(value) % 3) for value in place]),
        }
    )


def conditions(rng):
    at = lambda: int(rng.integers(0, ROWS))
    a = at()
    yield from [
        f"i = {a}",
        f"i >= {a} and i < {a + 300}",
        f"i > {a} and s < 'key {min(a + 900, ROWS):07}'",
        f"u in ({a}, {at()}, {at()})",
        f"f > {a / 7} and i < {a + 50}",
        f"f <= {a / 7} and n > {a - 200}",
        f"s = 'key {a:07} of some length'",
        f"d = {datetime.date(2000, 1, 1) + datetime.timedelta(days=a // 100)}",
        f"m >= {a / 100:.2f} and m <= {a / 100 + 1:.2f}",
        f"sparse is null and i >= {a} and i < {a + 3000}",
        f"sparse is not null and i < {a}",
        f"n != {a} and n >= {a - 3} and n < {a + 3}",
        "i is null",
        f"n < {a} and n > {a}",
    ]


def sql(condition):
    """A literal of a date is text to DuckDB."""
    return condition.replace("d = 2", "d = DATE '2").rstrip() + ("'" if "d = 2" in condition else "")


@pytest.mark.parametrize("writer", ["windrow", "pyarrow", "pyarrow v2", "without index"])
@pytest.mark.parametrize("clustered", [True, False])
def test_what_is_selected(w, rng, tmp_path, writer, clustered):
    rows = table(rng, clustered)
    path = tmp_path / "a.parquet"
    if writer == "windrow":
        pq.write_table(rows, tmp_path / "plain.parquet")
        w("sort plain.parquet --by n -o a.parquet --page-size 8KiB --row-group-size 4MiB").ok()
    else:
        version = "2.0" if writer.endswith("v2") else "1.0"
        index = writer != "without index"
        pq.write_table(rows, path, row_group_size=25_000, data_page_size=4096, data_page_version=version, write_page_index=index)
    read = []
    for condition in conditions(rng):
        with duckdb.connect() as db:
            db.register("t", rows)
            expected = [row[0] for row in db.execute(f"SELECT n FROM t WHERE {sql(condition)} ORDER BY n").fetchall()]
        run = w(["sort", "a.parquet", "--by", "n", "--where", condition, "-o", "out.parquet", "--threads", "2"]).ok()
        got = data.read(tmp_path / "out.parquet")
        assert got["n"].to_pylist() == expected, condition
        data.same(got, rows.take(pa.array(expected, pa.int64())))
        read.append(run.stats["rows_in"])
        first = w(["head", "a.parquet", "-n", "3", "--where", condition, "-o", "head.parquet"]).ok()
        assert data.read(tmp_path / "head.parquet")["n"].to_pylist() == expected[:3], condition
    if clustered and writer != "without index":
        # A few pages of a row group, not all of it.
        assert read[1] < 25_000, read


def test_rows_keep_their_numbers(w, tmp_path):
    """Of rows that are equal the first stays first, and a message names the row that it is about."""
    n = np.arange(200_000)
    rows = pa.table({"n": n, "k": n % 5, "op": ["I"] * 150_000 + [None] + ["I"] * 49_999})
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=100_000, data_page_size=4096, write_page_index=True)
    w("dedupe a.parquet --key k --where n>=99990 --select n -o out.csv").ok()
    assert (tmp_path / "out.csv").read_text() == "n\n99990\n99991\n99992\n99993\n99994\n"
    run = w("compact a.parquet --key n --op-column op --where n>=140000 -o out.csv")
    run.fails(3, "a.parquet", "row 150000")
