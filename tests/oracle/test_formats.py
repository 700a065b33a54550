"""Formats in and out: types come back as they were, and other engines read what we write."""

import decimal
import json

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

import data
import oracle

BINARY = ["parquet", "arrow", "arrows"]
FORMAT_OF = {"parquet": "parquet", "arrow": "arrow", "arrows": "arrow-stream", "csv": "csv", "ndjson": "ndjson"}


def numbered(rng, rows=2000, **columns):
    order = rng.permutation(rows)
    return pa.table({"k": pa.array(order), **columns})


def through_parquet(table, tmp_path):
    """The table as pyarrow brings it back from Parquet; None if pyarrow cannot."""
    try:
        return data.read(data.write(table, tmp_path / "own.parquet"))
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return None


@pytest.mark.parametrize("target", BINARY)
@pytest.mark.parametrize("source", BINARY)
@pytest.mark.parametrize("kind", data.KEYS + data.NESTED, ids=data.name_of)
def test_every_type_comes_back(windrow, rng, tmp_path, kind, source, target):
    table = numbered(rng, v=data.column(rng, kind, 2000), w=data.column(rng, kind, 2000, nulls=0))
    kept = through_parquet(table, tmp_path)
    if "parquet" in (source, target) and kept is None:
        pytest.skip("pyarrow has no Parquet for it")
    path = data.write(table, tmp_path / f"in.{source}")
    before = data.read(path)
    out = tmp_path / f"out.{target}"
    windrow("sort", path, "--by", "k", "-o", out).ok()
    got = data.read(out)
    # pyarrow reads some types from Parquet as others (a date64 as date32): as it was, or as pyarrow has it.
    answers = [table, before, through_parquet(before, tmp_path)] if "parquet" in (source, target) else [table]
    wanted = next((answer for answer in answers if answer and answer.schema.types == got.schema.types), answers[-1])
    data.same(got, oracle.sort(wanted, "k"))


@pytest.mark.parametrize("target", ["arrow", "arrows"])
@pytest.mark.parametrize("source", ["arrow", "arrows"])
@pytest.mark.parametrize("kind", data.ARROW_ONLY, ids=data.name_of)
def test_types_of_arrow_alone_come_back(windrow, rng, tmp_path, kind, source, target):
    table = numbered(rng, v=data.column(rng, kind, 2000))
    path, out = data.write(table, tmp_path / f"in.{source}"), tmp_path / f"out.{target}"
    windrow("sort", path, "--by", "k", "-o", out).ok()
    data.same(data.read(out), oracle.sort(table, "k"))


ENCODED = {
    "text views": pa.array(["a", "a view of more than twelve bytes"], pa.string_view()),
    "binary views": pa.array([b"a", b"b"], pa.binary_view()),
    "fixed-size binary": pa.array([b"ab", b"cd"], pa.binary(2)),
    "booleans": pa.array([True, False]),
    "half floats": pa.array([1.5, -2.0], pa.float16()),
    "decimals": pa.array([decimal.Decimal("1.5"), decimal.Decimal(2)], pa.decimal128(30, 1)),
    "wide decimals": pa.array([decimal.Decimal("1.5"), decimal.Decimal(2)], pa.decimal256(60, 1)),
    "seconds": pa.array([1, 2], pa.timestamp("s", "UTC")),
    "times": pa.array([1, 2], pa.time32("s")),
    "dates": pa.array([86_400_000, 0], pa.date64()),
    "durations": pa.array([1000, 2000], pa.duration("ns")),
    "zoned": pa.array([1, 2], pa.timestamp("us", "Asia/Kolkata")),
    "text": pa.array(["a", "b"]),
    "integers": pa.array([1, 2]),
    "lists": pa.array([["a", None], None]),
    "structs": pa.array([{"a": 1, "b": "x"}, {"a": None, "b": "y"}]),
}
# What plain columns of these are in Parquet.
STORED = {"seconds": pa.timestamp("ms", "UTC"), "times": pa.time32("ms"), "dates": pa.date32()}


@pytest.mark.parametrize("name", ENCODED)
def test_dictionaries_and_runs_in_parquet(windrow, tmp_path, name):
    """Their values are read by pyarrow, and by us from pyarrow's."""
    values = ENCODED[name]
    dictionary = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1], pa.int8()), values)
    both = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), values)
    runs = [pa.RunEndEncodedArray.from_arrays(pa.array([1, 4], pa.int32()), of) for of in (values, both)]
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 1, 3, 4], pa.int32()), dictionary)
    structs = pa.StructArray.from_arrays([dictionary], ["m"])
    columns = {"dictionary": dictionary, "runs": runs[0], "both": runs[1], "lists": lists, "structs": structs}
    table = pa.table({"k": [3, 2, 1, 0], **columns})
    path, out, back = data.write(table, tmp_path / "in.arrow"), tmp_path / "out.parquet", tmp_path / "back.arrow"
    windrow("sort", path, "--by", "k", "-o", out).ok()
    windrow("sort", out, "--by", "k", "-o", back).ok()
    for got in (data.read(out), data.read(back)):
        for column, before in columns.items():
            assert got[column].to_pylist() == before.to_pylist()[::-1], column
        kind = got.schema.field("dictionary").type
        stored = STORED.get(name, values.type)
        texts = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
        assert (kind.value_type if pa.types.is_dictionary(kind) else kind) == texts.get(stored, stored)
    try:
        data.write(table.select(["k", "dictionary"]), tmp_path / "theirs.parquet")
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return  # pyarrow has no Parquet for it
    windrow("sort", tmp_path / "theirs.parquet", "--by", "k", "-o", back).ok()
    assert data.read(back)["dictionary"].to_pylist() == dictionary.to_pylist()[::-1]


@pytest.mark.parametrize("suffix", BINARY)
def test_metadata_and_nullability_come_back(windrow, rng, tmp_path, suffix):
    field = pa.field("k", pa.int64(), nullable=False, metadata={"unit": "m"})
    nested = pa.field("s", pa.struct([pa.field("x", pa.int32(), nullable=False)]), nullable=False)
    schema = pa.schema([field, nested], metadata={"owner": "field 7"})
    table = pa.table([pa.array(rng.permutation(100)), pa.array([{"x": i} for i in range(100)], nested.type)], schema=schema)
    path, out = data.write(table, tmp_path / f"in.{suffix}"), tmp_path / f"out.{suffix}"
    windrow("sort", path, "--by", "k", "-o", out).ok()
    got = data.read(out).schema
    assert got.metadata[b"owner"] == b"field 7"
    assert got.field("k").metadata[b"unit"] == b"m"
    assert not got.field("k").nullable and not got.field("s").nullable and not got.field("s").type.field(0).nullable


@pytest.mark.parametrize("kind", ["uuid", "json", "unknown"])
@pytest.mark.parametrize("suffix", BINARY)
def test_extension_types_come_back(windrow, rng, tmp_path, kind, suffix):
    storage = {"uuid": pa.binary(16), "json": pa.string(), "unknown": pa.int32()}[kind]
    values = data.column(rng, storage, 300) if kind != "json" else pa.array(['{"a": 1}', "[]", None] * 100)
    if kind == "unknown":
        metadata = {"ARROW:extension:name": "windrow.test", "ARROW:extension:metadata": "x=1"}
        table = pa.table([pa.array(rng.permutation(300)), values], schema=pa.schema([("k", pa.int64()), pa.field("v", storage, metadata=metadata)]))
    else:
        extension = pa.uuid() if kind == "uuid" else pa.json_(pa.string())
        table = numbered(rng, 300, v=pa.ExtensionArray.from_storage(extension, values))
    path, out = data.write(table, tmp_path / f"in.{suffix}"), tmp_path / f"out.{suffix}"
    windrow("sort", path, "--by", "k", "-o", out).ok()
    before, got = data.read(path), data.read(out)
    assert got.schema.field("v").type == before.schema.field("v").type
    if kind == "unknown":
        assert got.schema.field("v").metadata[b"ARROW:extension:name"] == b"windrow.test"
    else:
        before, got = [t.set_column(1, "v", pa.chunked_array([c.storage for c in t["v"].chunks], storage)) for t in (before, got)]
    data.same(got, oracle.sort(before, "k"))


def plain(rng, rows=3000):
    """Types that text holds, without what text cannot tell apart: null and the empty string."""
    words = pa.array(["x", "a,b", 'quo"te', "ümläut", "new\nline", " spaces ", "1", "true", "null"])
    return pa.table(
        {
            "k": pa.array(rng.permutation(rows)),
            "i": data.column(rng, pa.int64(), rows),
            "f": pa.array(rng.normal(0, 1e6, rows)),
            "b": data.column(rng, pa.bool_(), rows),
            "s": words.take(pa.array(rng.integers(0, len(words), rows), mask=rng.random(rows) < 0.1)),
            "d": data.column(rng, pa.date32(), rows),
            "t": data.column(rng, pa.timestamp("us"), rows),
            "m": data.column(rng, pa.decimal128(18, 3), rows),
        }
    )


SCHEMA = "k:int64,i:int64,f:float64,b:bool,s:utf8,d:date32,t:timestamp_us,m:decimal128(18,3)"


@pytest.mark.parametrize("middle", ["csv", "ndjson"])
def test_text_there_and_back(windrow, rng, tmp_path, middle):
    table = plain(rng)
    if middle == "csv":
        table = table.filter(pc.is_valid(table["s"]))
    path, text, out = data.write(table, tmp_path / "in.parquet"), tmp_path / f"text.{middle}", tmp_path / "out.parquet"
    windrow("sort", path, "--by", "i,k", "-o", text).ok()
    windrow("sort", text, "--schema", SCHEMA, "--by", "k", "-o", out).ok()
    data.same(data.read(out), oracle.sort(table, "k"))


def test_other_engines_read_our_csv(windrow, rng, tmp_path):
    table = plain(rng).drop_columns(["m"])
    table = table.filter(pc.is_valid(table["s"]))
    path, out = data.write(table, tmp_path / "in.parquet"), tmp_path / "out.csv"
    windrow("sort", path, "--by", "k", "-o", out).ok()
    wanted = oracle.sort(table, "k")
    options = pa.csv.ConvertOptions(column_types=wanted.schema, strings_can_be_null=False)
    data.same(pa.csv.read_csv(out, parse_options=pa.csv.ParseOptions(newlines_in_values=True), convert_options=options), wanted)
    types = "{'k': 'BIGINT', 'i': 'BIGINT', 'f': 'DOUBLE', 'b': 'BOOLEAN', 's': 'VARCHAR', 'd': 'DATE', 't': 'TIMESTAMP'}"
    data.same(duckdb.sql(f"FROM read_csv('{out}', columns = {types}, header = true)").to_arrow_table(), wanted)


def test_other_engines_read_our_ndjson(windrow, rng, tmp_path):
    table = plain(rng).drop_columns(["m", "t"]).append_column("n", data.column(rng, pa.struct([("a", pa.int32()), ("l", pa.list_(pa.string()))]), 3000))
    path, out = data.write(table, tmp_path / "in.parquet"), tmp_path / "out.ndjson"
    windrow("sort", path, "--by", "k", "-o", out).ok()
    wanted = oracle.sort(table, "k")
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    rows = wanted.set_column(5, "d", wanted["d"].cast(pa.string())).to_pylist()
    assert lines == rows
    assert list(lines[0]) == table.column_names
    types = "{'k': 'BIGINT', 'i': 'BIGINT', 'f': 'DOUBLE', 'b': 'BOOLEAN', 's': 'VARCHAR', 'd': 'DATE', 'n': 'STRUCT(a INT, l VARCHAR[])'}"
    got = duckdb.sql(f"FROM read_json('{out}', columns = {types}, format = 'newline_delimited')").to_arrow_table()
    data.same(got.cast(wanted.schema), wanted)


def test_csv_and_ndjson_by_others(windrow, rng, tmp_path):
    """What pyarrow, DuckDB and Polars write, its schema inferred."""
    table = plain(rng).select(["k", "i", "f", "b", "s", "d"])
    table = table.filter(pc.is_valid(table["s"]))
    wanted = oracle.sort(table, "k")
    duckdb.register("rows_of_mine", table)
    pa.csv.write_csv(table, tmp_path / "pyarrow.csv")
    duckdb.sql(f"COPY rows_of_mine TO '{tmp_path}/duckdb.csv' (HEADER)")
    pl.from_arrow(table).write_csv(tmp_path / "polars.csv")
    duckdb.sql(f"COPY rows_of_mine TO '{tmp_path}/duckdb.ndjson' (FORMAT json)")
    pl.from_arrow(table).write_ndjson(tmp_path / "polars.ndjson")
    for name in ("pyarrow.csv", "duckdb.csv", "polars.csv", "duckdb.ndjson", "polars.ndjson"):
        out = tmp_path / "out.arrow"
        windrow("sort", tmp_path / name, "--by", "k", "-o", out).ok()
        got = data.read(out)
        assert [str(kind) for kind in got.schema.types[:5]] == ["int64", "int64", "double", "bool", "string"], name
        got = got.select(table.column_names)
        data.same(got.cast(table.schema), wanted)
        windrow("sort", tmp_path / name, "--schema", "k:int64,i:int64,f:float64,b:bool,s:utf8,d:date32", "--by", "k", "-o", out).ok()
        data.same(data.read(out), wanted)


def test_times_with_offsets_and_decimals_in_csv(windrow, rng, tmp_path):
    """Instants and digits are those that DuckDB reads from the same text."""
    path, out = tmp_path / "in.csv", tmp_path / "out.parquet"
    offsets = ["Z", "+00", "+02:00", "-05:30", "+1400"]
    lines = [
        f"{i},2026-0{rng.integers(1, 10)}-1{rng.integers(0, 10)}T1{rng.integers(0, 10)}:00:00.{rng.integers(0, 10**6):06}{rng.choice(offsets)},"
        f"{rng.integers(-(10**9), 10**9)}.{rng.integers(0, 1000):03}"
        for i in rng.permutation(2000)
    ]
    path.write_text("\n".join(["k,t,d", *lines]) + "\n")
    windrow("sort", path, "--by", "t,k", "--schema", "d:decimal128(20,3)", "-o", out).ok()
    types = "{'k': 'BIGINT', 't': 'TIMESTAMPTZ', 'd': 'DECIMAL(20,3)'}"
    duckdb.sql("SET TimeZone = 'UTC'")
    wanted = duckdb.sql(f"SELECT * FROM read_csv('{path}', header = true, columns = {types}) ORDER BY t, k").to_arrow_table()
    got = data.read(out)
    assert got.schema.types == [pa.int64(), pa.timestamp("us", "UTC"), pa.decimal128(20, 3)]
    data.same(got, wanted.cast(got.schema))
    # And back: pyarrow reads what is written of it.
    windrow("sort", out, "--by", "t,k", "-o", tmp_path / "again.csv").ok()
    options = pyarrow.csv.ConvertOptions(column_types=got.schema)
    data.same(pyarrow.csv.read_csv(tmp_path / "again.csv", convert_options=options), got)


def test_csv_without_header_and_with_another_separator(windrow, tmp_path):
    (tmp_path / "in.csv").write_text("3;c\n1;a\n2;\n")
    out = tmp_path / "out.arrow"
    windrow("sort", tmp_path / "in.csv", "--csv-no-header", "--csv-delimiter", ";", "--schema", "id:int32,name:utf8", "--by", "id", "-o", out).ok()
    assert data.read(out)["id"].to_pylist() == [1, 2, 3]
    (tmp_path / "in.tsv").write_text("id\tname\n3\tc\n1\ta\n")
    windrow("sort", tmp_path / "in.tsv", "--csv-delimiter", "\t", "--by", "id", "-o", out).ok()
    assert data.read(out).to_pydict() == {"id": [1, 3], "name": ["a", "c"]}


@pytest.mark.parametrize("target", list(FORMAT_OF))
@pytest.mark.parametrize("source", list(FORMAT_OF))
def test_stdin_and_stdout(windrow, rng, tmp_path, source, target):
    table = pa.table({"k": rng.permutation(3000), "s": [f"row {i}" for i in range(3000)]})
    path = tmp_path / f"in.{source}"
    if source == "ndjson":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    else:
        data.write(table, path)
    for named in ([], ["--input-format", FORMAT_OF[source]]):
        done = windrow("sort", "-", *named, "--by", "k", "-o", "-", "--output-format", FORMAT_OF[target], stdin=path.read_bytes()).ok()
        file = tmp_path / f"out.{target}"
        windrow("sort", path, "--by", "k", "-o", file).ok()
        assert done.stdout == file.read_bytes()
    if target in BINARY:
        data.same(data.read(file), oracle.sort(table, "k"))


def test_many_inputs(windrow, rng, tmp_path):
    """Files, globs, directories and formats mixed: one input after the other, in the order that is named."""
    whole = pa.table({"k": rng.integers(0, 5, 900), "row": np.arange(900)})
    parts = [whole.slice(i * 150, 150) for i in range(6)]
    (tmp_path / "d").mkdir()
    for part, name in zip(parts, ["d/a1.parquet", "d/a2.arrow", "b1.csv", "b2.parquet", "c.arrows"]):
        data.write(part, tmp_path / name)
    (tmp_path / "e.ndjson").write_text("".join(json.dumps(row) + "\n" for row in parts[5].to_pylist()))
    out = tmp_path / "out.arrow"
    done = windrow("sort", "d", "b*", "c.arrows", "e.ndjson", "--by", "k", "-o", out, cwd=tmp_path).ok()
    data.same(data.read(out), oracle.sort(whole, "k"))
    assert done.stats["rows_in"] == 900
    # Columns in another order are the same columns.
    data.write(parts[1].select(["row", "k"]), tmp_path / "turned.parquet")
    windrow("sort", "d/a1.parquet", "turned.parquet", "--by", "k", "-o", out, cwd=tmp_path).ok()
    data.same(data.read(out), oracle.sort(whole.slice(0, 300), "k"))


def test_inputs_that_do_not_fit(windrow, tmp_path):
    data.write(pa.table({"k": [1], "v": [1]}), tmp_path / "a.parquet")
    out = tmp_path / "out.parquet"
    for table, part in [(pa.table({"k": ["x"], "v": [1]}), "k"), (pa.table({"k": [1]}), "v"), (pa.table({"k": [1], "v": [1], "w": [1]}), "w")]:
        data.write(table, tmp_path / "b.parquet")
        windrow("sort", "a.parquet", "b.parquet", "--by", "k", "-o", out, cwd=tmp_path).fails(3, "a.parquet", "b.parquet", part)
    windrow("sort", "*.csv", "--by", "k", "-o", out, cwd=tmp_path).fails(3, "*.csv")
    windrow("sort", "a.parquet", "--by", "k", "-o", tmp_path / "out.unknown", cwd=tmp_path).fails(2, "--output-format")
    assert not out.exists()


# Parquet as others see it


@pytest.fixture
def mixed(rng):
    rows = 300_000
    return pa.table(
        {
            "i": pa.array(rng.integers(-(10**12), 10**12, rows), mask=rng.random(rows) < 0.05),
            "n": pa.array([{"a": i, "b": [str(i)] * (i % 3)} for i in range(1000)] * (rows // 1000)),
            "s": pa.array(rng.choice([f"word {i}" for i in range(5000)], rows)),
            "f": pa.array(rng.normal(size=rows)),
            "d": pa.array(rng.integers(0, 20_000, rows).astype(np.int32)).view(pa.date32()),
        }
    )


def test_parquet_footer(windrow, mixed, tmp_path):
    path, out = data.write(mixed, tmp_path / "in.parquet"), tmp_path / "out.parquet"
    windrow("sort", path, "--by", "s:desc:nulls-first,i,f:desc", "-o", out).ok()
    footer = pq.read_metadata(out)
    assert footer.num_rows == mixed.num_rows and footer.num_row_groups > 2
    # Columns by their place among the leaves: i, n.a, n.b.list.element, s, f, d.
    wanted = (pq.SortingColumn(3, True, True), pq.SortingColumn(0, False, False), pq.SortingColumn(4, True, False))
    for group in map(footer.row_group, range(footer.num_row_groups)):
        assert group.num_rows <= 122_880
        assert group.sorting_columns == wanted
        for column in map(group.column, range(group.num_columns)):
            assert column.compression == "ZSTD"
            assert column.has_column_index and column.has_offset_index
            assert column.statistics is not None and column.statistics.has_null_count
    # Statistics say what is there.
    at = 0
    got = data.read(out)
    for group in map(footer.row_group, range(footer.num_row_groups)):
        rows = got.slice(at, group.num_rows)
        at += group.num_rows
        for leaf, name in [(0, "i"), (3, "s"), (4, "f"), (5, "d")]:
            statistics, range_ = group.column(leaf).statistics, pc.min_max(rows[name]).as_py()
            assert statistics.null_count == rows[name].null_count
            assert statistics.min <= range_["min"] and statistics.max >= range_["max"]
            if name in "id":
                assert (statistics.min, statistics.max) == (range_["min"], range_["max"])


def test_sorting_columns_name_the_written_schema(windrow, mixed, tmp_path):
    path, out = data.write(mixed, tmp_path / "in.parquet"), tmp_path / "out.parquet"

    def sorting(select, by="s,i"):
        windrow("sort", path, "--by", by, "--select", select, "-o", out).ok()
        return pq.read_metadata(out).row_group(0).sorting_columns

    assert sorting("f,n,i,s") == (pq.SortingColumn(4), pq.SortingColumn(3))
    # Without its second column the first still orders; without its first, nothing does.
    assert sorting("d,s") == (pq.SortingColumn(1),)
    assert sorting("d,i") == ()
    windrow("compact", path, "--key", "s,i", "--order-by", "f", "-o", out).ok()
    assert pq.read_metadata(out).row_group(0).sorting_columns == (pq.SortingColumn(3), pq.SortingColumn(0))


def test_pages_can_be_skipped(windrow, rng, tmp_path):
    """The page index lets readers read a part of a column; they find the same rows."""
    rows = 400_000
    table = pa.table({"k": rng.integers(0, 10**6, rows), "v": rng.integers(0, 10**9, rows)})
    path, out = data.write(table, tmp_path / "in.parquet"), tmp_path / "out.parquet"
    windrow("sort", path, "--by", "k", "-o", out, "--page-size", "16KiB").ok()
    wanted = oracle.sort(table.filter(pc.and_(pc.greater_equal(table["k"], 1000), pc.less(table["k"], 2000))), "k")
    data.same(pq.read_table(out, filters=[("k", ">=", 1000), ("k", "<", 2000)]), wanted)
    data.same(duckdb.sql(f"FROM '{out}' WHERE k >= 1000 AND k < 2000").to_arrow_table(), wanted)
    got = pl.scan_parquet(out).filter((pl.col("k") >= 1000) & (pl.col("k") < 2000)).collect()
    assert got.equals(pl.from_arrow(wanted))


@pytest.mark.parametrize("codec", ["none", "snappy", "lz4", "zstd", "zstd:9", "gzip", "gzip:1", "brotli:3"])
def test_other_engines_read_our_parquet(windrow, mixed, tmp_path, codec):
    table = mixed.slice(0, 60_000)
    path, out = data.write(table, tmp_path / "in.parquet"), tmp_path / "out.parquet"
    windrow("sort", path, "--by", "i,s", "-o", out, "--compression", codec, "--row-group-size", "1MiB").ok()
    wanted = oracle.sort(table, "i,s")
    data.same(data.read(out), wanted)
    data.same(duckdb.sql(f"FROM '{out}'").to_arrow_table().cast(wanted.schema), wanted)
    assert pl.read_parquet(out).equals(pl.from_arrow(wanted))
    footer = pq.read_metadata(out)
    assert footer.num_row_groups > 2
    name = {"none": "UNCOMPRESSED", "lz4": "LZ4"}.get(codec, codec.split(":")[0].upper())
    assert footer.row_group(0).column(0).compression == name


def test_without_statistics(windrow, rng, tmp_path):
    path, out = data.write(numbered(rng), tmp_path / "in.parquet"), tmp_path / "out.parquet"
    windrow("sort", path, "--by", "k", "--no-statistics", "-o", out).ok()
    assert not pq.read_metadata(out).row_group(0).column(0).is_stats_set


@pytest.mark.parametrize("suffix", ["arrow", "arrows"])
@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
def test_other_engines_read_our_arrow(windrow, mixed, tmp_path, suffix, codec):
    table = mixed.slice(0, 60_000)
    path, out = data.write(table, tmp_path / "in.parquet"), tmp_path / f"out.{suffix}"
    windrow("sort", path, "--by", "i,s", "-o", out, *(["--compression", codec] if codec else [])).ok()
    wanted = oracle.sort(table, "i,s")
    data.same(data.read(out), wanted)
    frame = pl.read_ipc(out) if suffix == "arrow" else pl.read_ipc_stream(out)
    assert frame.equals(pl.from_arrow(wanted))


@pytest.mark.parametrize("version", ["1.0", "2.6"])
@pytest.mark.parametrize("page", ["1.0", "2.0"])
def test_parquet_by_pyarrow(windrow, rng, tmp_path, version, page):
    parquet_by("pyarrow", windrow, rng, tmp_path, version=version, data_page_version=page)


@pytest.mark.parametrize("writer", ["duckdb", "polars"])
def test_parquet_by_others(windrow, rng, tmp_path, writer):
    parquet_by(writer, windrow, rng, tmp_path)


def parquet_by(writer, windrow, rng, tmp_path, **options):
    table = plain(rng, 5000).append_column("n", data.column(rng, pa.list_(pa.struct([("a", pa.int32())])), 5000))
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    if writer == "pyarrow":
        pq.write_table(table, path, **options, row_group_size=700, compression="snappy", store_schema=False)
    elif writer == "duckdb":
        duckdb.from_arrow(table).write_parquet(str(path), row_group_size=2048, compression="zstd")
    else:
        pl.from_arrow(table).write_parquet(path, row_group_size=700)
    windrow("sort", path, "--by", "s,k", "-o", out).ok()
    data.same(data.read(out), oracle.sort(data.read(path), "s,k"))


@pytest.mark.parametrize("nested", [False, True])
def test_int96_times_are_read_whole(windrow, tmp_path, nested):
    """Spark's are of microseconds, whatever the year; those of others of nanoseconds, or an error."""

    def written(name, times, unit, **metadata):
        values = pa.array(times, pa.int64()).view(pa.timestamp(unit))
        if nested:
            values = pa.StructArray.from_arrays([pa.ListArray.from_arrays(list(range(len(times) + 1)), values)], ["t"])
        table = pa.table({"k": pa.array(range(len(times))[::-1]), "t": values})
        path = tmp_path / f"{name}.parquet"
        with pq.ParquetWriter(path, table.schema, use_deprecated_int96_timestamps=True, store_schema=False) as writer:
            writer.write_table(table, row_group_size=2)
            writer.add_key_value_metadata(metadata)
        return path

    def read(path):
        values = data.read(path)["t"].combine_chunks()
        values = values.field("t").values if nested else values
        return values.type, values.cast(pa.int64()).to_pylist()

    far = [-62_135_596_800_000_000, 1, 253_402_300_799_999_999]  # the years 1 and 9999
    out = tmp_path / "out.parquet"
    spark = written("spark", far, "us", **{"org.apache.spark.version": "3.5.0"})
    windrow("sort", spark, "--by", "k", "-o", out).ok()
    assert read(out) == (pa.timestamp("us"), far[::-1])
    other = written("other", far, "us")
    windrow("sort", other, "--by", "k", "-o", out).fails(3, "other.parquet", "'t'", "INT96")
    near = [-(2**63) // 10**9 * 10**9 + 10**10, None, 1_500_000_000_123_456_789, 2**63 - 10**10]
    fine = written("fine", [value or 0 for value in near], "ns") if nested else written("fine", near, "ns")
    windrow("sort", fine, "--by", "k", "-o", out).ok()
    assert read(out) == (pa.timestamp("ns"), [value or 0 if nested else value for value in near[::-1]])


def test_the_same_values_in_another_form(windrow, tmp_path):
    """Files of several writers: pyarrow, Polars and DuckDB say string, large string and view of the same column."""
    nested = pa.struct([("a", pa.list_(pa.field("item", pa.string()))), ("m", pa.map_(pa.string(), pa.int32()))])
    other = pa.struct([("a", pa.large_list(pa.field("element", pa.large_string()))), ("m", pa.map_(pa.large_string(), pa.int32()))])
    forms = {
        "s": [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()), pa.null()],
        "b": [pa.binary(), pa.binary_view(), pa.large_binary(), pa.dictionary(pa.int32(), pa.large_binary()), pa.binary()],
        "t": [pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us", "UTC"), pa.timestamp("us", "+02:00"), pa.null()],
        "n": [nested, other, nested, other, pa.null()],
    }
    values = {
        "s": ["x", None, "ä" * 40],
        "b": [b"", b"\xff" * 30, None],
        "t": [0, None, 10**15],
        "n": [{"a": ["p", None], "m": [("k", 1)]}, None, {"a": [], "m": []}],
    }
    for first in range(5):
        order = [first, *(i for i in range(5) if i != first)]
        paths, rows = [], []
        for i in order:
            columns = {"k": pa.array([i, i + 10, i + 20])}
            for name, kinds in forms.items():
                plain = pa.array(values[name], pa.int64()).view(kinds[i]) if name == "t" and i < 4 else None
                columns[name] = pa.nulls(3) if kinds[i] == pa.null() else plain if plain is not None else pa.array(values[name], kinds[i])
            table = pa.table(columns)
            rows += table.to_pylist()
            paths.append(data.write(table, tmp_path / f"in{i}.{'parquet' if i % 2 == 0 else 'arrow'}"))
        out = tmp_path / "out.arrow"
        windrow("sort", *paths, "--by", "k", "-o", out).ok()
        got = data.read(out)
        assert got.to_pylist() == sorted(rows, key=lambda row: row["k"]), first
        kinds = {name: kinds[first] for name, kinds in forms.items()}
        if first in (0, 1, 2):
            # A dictionary beside plain values is read as plain.
            assert [got.schema.field(name).type for name in ("s", "b", "t")] == [kinds[name] for name in ("s", "b", "t")]
        windrow("merge", *paths, "--by", "k", "-o", out).ok()
        assert data.read(out).to_pylist() == sorted(rows, key=lambda row: row["k"])
    windrow("check", *paths, "--by", "k").ok()


def test_decimals_and_lists_of_other_widths(windrow, tmp_path):
    lists = [pa.list_(pa.int32(), 2), pa.list_(pa.int32()), pa.list_(pa.int32(), 2), pa.list_(pa.int32(), 2)]
    kinds = [pa.decimal32(7, 2), pa.decimal64(7, 2), pa.decimal128(7, 2), pa.decimal256(7, 2)]
    values = [decimal.Decimal("-99999.99"), None, decimal.Decimal("99999.99"), decimal.Decimal("0.01")]
    paths, out = [], tmp_path / "out.arrow"
    for i, (kind, held) in enumerate(zip(kinds, lists)):
        table = pa.table({"d": pa.array(values, kind), "l": pa.array([[1, 2], None, [3, None], [4, 5]], held)})
        paths.append(data.write(table, tmp_path / f"in{i}.arrow"))
    for first in range(4):
        order = [paths[first], *(path for path in paths if path != paths[first])]
        windrow("sort", *order, "--by", "d", "-o", out).ok()
        got = data.read(out)
        assert got.schema.types == [kinds[first], lists[1]]
        assert got["d"].to_pylist() == [value for value in [values[0], values[3], values[2], None] for _ in range(4)]
        assert got["l"].to_pylist() == [value for value in [[1, 2], [4, 5], [3, None], None] for _ in range(4)]
    wide = data.write(pa.table({"d": pa.array(values, pa.decimal128(9, 2)), "l": pa.array([[1]] * 4, lists[1])}), tmp_path / "wide.arrow")
    windrow("sort", paths[0], wide, "--by", "d", "-o", out).fails(3, "wide.arrow", "'d'", "Decimal128(9, 2)")
    longer = data.write(pa.table({"d": pa.array(values, kinds[0]), "l": pa.array([[1, 2, 3]] * 4, pa.list_(pa.int32(), 3))}), tmp_path / "longer.arrow")
    windrow("sort", paths[0], longer, "--by", "d", "-o", out).fails(3, "longer.arrow", "'l'", "FixedSizeList(3")


def test_lists_whose_items_have_other_names(windrow, tmp_path):
    table = pa.table({"k": [2, 1], "l": pa.array([[1, None], []], pa.list_(pa.int64()))})
    new, old = tmp_path / "new.parquet", tmp_path / "old.parquet"
    pq.write_table(table, new, store_schema=False)
    pq.write_table(table, old, store_schema=False, use_compliant_nested_type=False)
    out = tmp_path / "out.parquet"
    for first, second in [(new, old), (old, new)]:
        windrow("sort", first, second, "--by", "l,k", "-o", out).ok()
        assert data.read(out)["l"].to_pylist() == [[], [], [1, None], [1, None]]
    pq.write_table(pa.table({"k": [2], "l": pa.array([["x"]], pa.list_(pa.string()))}), old)
    windrow("sort", new, old, "--by", "k", "-o", out).fails(3, "old.parquet", "'l'", "Utf8")


def test_csv_beside_files_that_tell_no_types(windrow, tmp_path):
    """Neither a column of nulls nor a header alone says what the values of another file are."""
    nulls = data.write(pa.table({"k": [3], "s": pa.nulls(1)}), tmp_path / "nulls.parquet")
    (tmp_path / "text.csv").write_text("s,k\nq,10\nr,9\n")
    (tmp_path / "header.csv").write_text("s,k\n")
    text, header, out = tmp_path / "text.csv", tmp_path / "header.csv", tmp_path / "out.parquet"
    windrow("sort", nulls, text, "--by", "k", "-o", out).ok()
    assert data.read(out).to_pylist() == [{"k": 3, "s": None}, {"k": 9, "s": "r"}, {"k": 10, "s": "q"}]
    windrow("sort", header, header, text, header, "--by", "k", "-o", out).ok()
    assert data.read(out).to_pylist() == [{"s": "r", "k": 9}, {"s": "q", "k": 10}]
    windrow("sort", header, header, "--by", "k", "-o", out).ok()
    assert data.read(out).schema.types == [pa.string(), pa.string()]
    windrow("sort", header, text, "--schema", "k:int32", "--by", "k", "-o", out).ok()
    assert data.read(out).schema.field("k").type == pa.int32()
    windrow("sort", header, "--schema", "z:int32", "--by", "k", "-o", out).fails(2, "'z'", "header.csv")


@pytest.mark.parametrize("suffix", ["csv", "ndjson"])
def test_integers_among_floats_are_kept_or_refused(windrow, tmp_path, suffix):
    path, out = tmp_path / f"in.{suffix}", tmp_path / f"out.{suffix}"

    def write(*values):
        lines = [f'{{"k":{value}}}' for value in values]
        path.write_text("\n".join(["k", *values] if suffix == "csv" else lines) + "\n")

    write("1.5", "9007199254740992", "-1234567890123456e4")
    windrow("sort", path, "--by", "k", "-o", out).ok()
    # No float has all these digits, and an exponent makes no decimal of them.
    write("1.5", "-12345678901234567890e0")
    windrow("sort", path, "--by", "k", "-o", out).fails(3, "-12345678901234567890e0", "line", "'k'", "--schema")
    write("1.5", "9007199254740993")
    done = windrow("sort", path, "--by", "k", "-o", out)
    if suffix == "csv":
        assert done.ok() and out.read_text() == "k\n1.5\n9007199254740993.0\n"
    else:
        done.fails(3, "9007199254740993", "line", "'k'", "--schema")
    windrow("sort", path, "--by", "k", "--schema", "k:decimal128(20,1)", "-o", out).ok()
    assert "9007199254740993" in out.read_text()
    write("123456789012345678901234567890", "2")
    done = windrow("sort", path, "--by", "k", "-o", out)
    if suffix == "csv":
        assert done.ok() and "123456789012345678901234567890" in out.read_text()
    else:
        done.fails(3, "123456789012345678901234567890", "'k'")


@pytest.mark.parametrize("delimiter", ['"', "\n", "\r", "é", "ÿ"])
def test_delimiters_that_cannot_be(windrow, tmp_path, delimiter):
    (tmp_path / "in.csv").write_text("k\n1\n")
    out = tmp_path / "out.csv"
    windrow("sort", tmp_path / "in.csv", "--by", "k", "--csv-delimiter", delimiter, "-o", out).fails(2, "--csv-delimiter")
    assert not out.exists()


def test_files_that_are_no_text(windrow, tmp_path):
    data.write(pa.table({"k": [1]}), tmp_path / "c.parquet").rename(tmp_path / "c.csv")
    (tmp_path / "d.parquet").write_bytes(b"PARE" + bytes(100) + b"PARE")
    for name, what in [("c.csv", "--input-format parquet"), ("d.parquet", "encrypted")]:
        windrow("sort", tmp_path / name, "--by", "k", "-o", tmp_path / "out.parquet").fails(3, name, what)


def test_compressed_text(windrow, tmp_path):
    import bz2
    import gzip
    import lzma

    text = b"k\n3\n1\n2\n"
    (tmp_path / "told.csv").write_bytes(gzip.compress(text))
    (tmp_path / "members.csv.gz").write_bytes(gzip.compress(text[:5]) + gzip.compress(text[5:]))
    (tmp_path / "a.csv.bz2").write_bytes(bz2.compress(text))
    (tmp_path / "a.csv.xz").write_bytes(lzma.compress(text))
    (tmp_path / "a.ndjson.gz").write_bytes(gzip.compress(b'{"k":3}\n{"k":1}\n{"k":2}\n'))
    for name in ["told.csv", "members.csv.gz", "a.csv.bz2", "a.csv.xz", "a.ndjson.gz"]:
        out = tmp_path / "out.parquet"
        windrow("sort", tmp_path / name, "--by", "k", "-o", out).ok()
        assert data.read(out)["k"].to_pylist() == [1, 2, 3], name
    out = tmp_path / "out.csv.gz"
    windrow("sort", tmp_path / "told.csv", "--by", "k", "-o", out).ok()
    assert gzip.decompress(out.read_bytes()) == b"k\n1\n2\n3\n"


# Bad input


def test_damaged_files(windrow, rng, tmp_path):
    table = numbered(rng, 5000, s=data.column(rng, pa.string(), 5000))
    for suffix in BINARY:
        path = data.write(table, tmp_path / f"in.{suffix}")
        path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
        windrow("sort", path, "--by", "k", "-o", tmp_path / "out.parquet").fails(3, f"in.{suffix}")
    (tmp_path / "ragged.csv").write_text("a,b\n1,2\n3\n")
    windrow("sort", tmp_path / "ragged.csv", "--by", "a", "-o", tmp_path / "out.parquet").fails(3, "ragged.csv", "3")
    (tmp_path / "bytes.csv").write_bytes(b"a,b\n1,\xff\xfe\n")
    windrow("sort", tmp_path / "bytes.csv", "--by", "a", "-o", tmp_path / "out.parquet").fails(3, "bytes.csv")
    (tmp_path / "broken.ndjson").write_text('{"a": 1}\n{"a": \n')
    windrow("sort", tmp_path / "broken.ndjson", "--by", "a", "-o", tmp_path / "out.parquet").fails(3, "broken.ndjson")
    (tmp_path / "late.csv").write_text("a\n" + "1\n" * 100_000 + "x\n")
    windrow("sort", tmp_path / "late.csv", "--by", "a", "-o", tmp_path / "out.parquet").fails(3, "late.csv", "a")
    assert not list(tmp_path.glob("*out*"))
