"""`--select` of Parquet: the columns that are not needed are not read. pyarrow is the judge."""

import base64
import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import data


class Keys(pe.KmsClient):
    """Wraps keys by reversing them: the tests need no secret."""

    def __init__(self, _configuration):
        super().__init__()

    def wrap_key(self, key_bytes, _master):
        return base64.b64encode(key_bytes[::-1])

    def unwrap_key(self, wrapped, _master):
        return base64.b64decode(wrapped)[::-1]


def encrypted(table, path, columns):
    """Writes `table` with some columns encrypted, and with a footer that everybody can read."""
    factory = pe.CryptoFactory(Keys)
    configuration = pe.EncryptionConfiguration(footer_key="f", column_keys={"c": columns}, plaintext_footer=True)
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), configuration)
    with pq.ParquetWriter(path, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table, row_group_size=700)


def test_plain_columns_beside_encrypted_ones(windrow, rng, tmp_path):
    table = pa.table({
        "secret": [f"s{i}" for i in range(2000)],
        "k": rng.permutation(2000),
        "point": [{"x": i, "y": -i} for i in range(2000)],
        "v": pa.array(range(2000), pa.int32()),
    })
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    encrypted(table, path, ["secret", "point.y"])
    for arguments in [(), ("--select", "k,secret"), ("--select", "k,point.x"), ("--select", "k", "--where", "secret = 's1'")]:
        windrow("sort", path, "--by", "k", *arguments, "-o", out).fails(3, "in.parquet", "encrypted", "decrypt it first")
        assert not out.exists()
    windrow("sort", path, "--by", "k", "--select", "v,k", "-o", out).ok()
    assert data.read(out).equals(table.select(["v", "k"]).sort_by("k"))
    windrow("sort", path, "--by", "k", "--select", "v,k", "--where", "v < 5", "-o", out).ok()
    assert data.read(out).equals(table.select(["v", "k"])[:5].sort_by("k"))


@pytest.mark.parametrize("limit", [None, "64MiB"])
def test_the_needed_columns(windrow, rng, tmp_path, limit):
    rows = 30_000
    table = pa.table({
        "wide": [f"{i:05}" * 20 for i in range(rows)],
        "point": [{"x": i, "y": [i, -i]} for i in range(rows)],
        "k": rng.permutation(rows),
        "at": pa.array([datetime.datetime(2020, 1, 1) + datetime.timedelta(seconds=i) for i in range(rows)], pa.timestamp("ns")),
        "past": pa.array([datetime.datetime(1, 1, 1)] * rows, pa.timestamp("us")),
        "list": [[str(i)] * (i % 3) for i in range(rows)],
    })
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(table, path, row_group_size=7000, use_deprecated_int96_timestamps=True, store_schema=False)
    limited = () if limit is None else ("--memory-limit", limit)

    def sorts(select, expected, *more):
        windrow("sort", path, "--by", "k", "--select", select, *more, *limited, "-o", out).ok()
        assert data.read(out).equals(expected.sort_by("k")), select

    sorts("k", table.select(["k"]))
    sorts("list,k", table.select(["list", "k"]))
    sorts("at,k,point", table.select(["at", "k", "point"]))
    few = table.filter(pa.compute.less(table["at"], table["at"][100]))
    sorts("k,list", few.select(["k", "list"]), "--where", f"at < '{table['at'][100].as_py()}'")
    # Times that 64 bits do not hold are an error only where the column is read.
    windrow("sort", path, "--by", "k", "--select", "k,past", "-o", out).fails(3, "'past'", "INT96")


def test_columns_of_directories(windrow, tmp_path):
    for day in [2, 1]:
        (tmp_path / f"in/day={day}").mkdir(parents=True)
        pq.write_table(pa.table({"k": [3, 1, 2], "v": ["a", "b", "c"]}), tmp_path / f"in/day={day}/a.parquet")
    out = tmp_path / "out.csv"
    for arguments, text in [
        ("--by day --select day", "day\n1\n1\n1\n2\n2\n2\n"),
        ("--by day,k --select k,day", "k,day\n1,1\n2,1\n3,1\n1,2\n2,2\n3,2\n"),
        ("--by k,v --select v", "v\nb\nb\nc\nc\na\na\n"),
        ("--by v --select v --where day=1", "v\na\nb\nc\n"),
    ]:
        windrow("sort", tmp_path / "in", *arguments.split(), "-o", out).ok()
        assert out.read_text() == text, arguments


def test_files_that_differ_in_other_columns(windrow, tmp_path):
    pq.write_table(pa.table({"a": [1], "k": [2], "x": ["p"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"x": [0.5], "k": [1], "b": [True], "a": [5]}), tmp_path / "2.parquet")
    pq.write_table(pa.table({"k": [0]}), tmp_path / "3.parquet")
    one, two, three = (tmp_path / f"{number}.parquet" for number in (1, 2, 3))
    out = tmp_path / "out.csv"
    windrow("sort", one, two, "--by", "k", "--select", "a,k", "-o", out).ok()
    assert out.read_text() == "a,k\n5,1\n1,2\n"
    windrow("sort", one, two, three, "--by", "k", "--select", "a,k", "-o", out).fails(3, "3.parquet", "'a'")
    windrow("sort", one, three, two, "--union-by-name", "--by", "k", "--select", "k,a", "-o", out).ok()
    assert out.read_text() == "k,a\n0,\n1,5\n2,1\n"
    # A name that the first file lacks is looked for in all columns of the others.
    windrow("sort", three, one, "--union-by-name", "--by", "k", "--select", "k,a", "-o", out).ok()
    assert out.read_text() == "k,a\n0,\n2,1\n"
    windrow("sort", one, "--by", "k", "--select", "nosuch,k", "-o", out).fails(2, "nosuch")
