"""Others read the checksums of Parquet pages that windrow writes, and notice damage by them."""

import random

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROWS = 20_000


@pytest.fixture
def written(windrow, tmp_path):
    table = pa.table({
        "id": pa.array(range(ROWS), pa.int64()),
        "few": pa.array([None if i % 9 == 0 else f"kind {i % 4}" for i in range(ROWS)]),
        "many": pa.array([f"{i * 0x9E3779B9:x}" for i in range(ROWS)]),
        "list": pa.array([None if i % 5 == 0 else list(range(i % 4)) for i in range(ROWS)]),
    })
    source, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(table, source)

    def write(*options):
        windrow("sort", source, "--by", "id", "-o", out, "--page-size", "8KiB", *options)
        return table, out

    return write


@pytest.mark.parametrize("codec", ["none", "snappy", "zstd"])
def test_others_read_them(written, codec):
    table, out = written("--compression", codec)
    assert pq.ParquetFile(out, page_checksum_verification=True).read().equals(table)
    [(ids, least)] = duckdb.sql(f"SELECT count(*), min(many) FROM '{out}'").fetchall()
    assert (ids, least) == (ROWS, min(table["many"].to_pylist()))
    # By page index and all.
    some = duckdb.sql(f"SELECT few FROM '{out}' WHERE id = 17002").fetchall()
    assert some == [("kind 2",)]


def test_pyarrow_notices_damage(written):
    table, out = written("--compression", "none")
    whole = out.read_bytes()
    end = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    draw = random.Random(1)
    refused = 0
    for _ in range(100):
        damaged = bytearray(whole)
        damaged[draw.randrange(4, end)] ^= 1 << draw.randrange(8)
        out.write_bytes(damaged)
        try:
            assert pq.ParquetFile(out, page_checksum_verification=True).read().equals(table)
        except (OSError, pa.ArrowException):
            refused += 1
    assert refused > 90
