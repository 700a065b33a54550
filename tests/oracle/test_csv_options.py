"""CSV in other ways of writing: what pyarrow and DuckDB read with the same options, windrow reads."""

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

WORDS = ["", "a", "b c", "it's", 'say "x"', "1,5", "x;y", "t\tt", "line\nend", "ä€", "#no", "\\", "NULL", "-"]


def written(rng, rows, delimiter=",", quote='"', null=None, escape=None):
    """Rows of a number, text and a number with nulls, as text."""

    def field(value, is_null):
        if is_null:
            return null or ""
        text = str(value)
        inner = text.replace(escape, escape * 2).replace(quote, escape + quote) if escape else text.replace(quote, quote * 2)
        plain = not any(mark in text for mark in (delimiter, quote, "\n", "\r", escape or quote)) and text != (null or "")
        return text if plain and text and not text.startswith("#") else f"{quote}{inner}{quote}"

    lines = [delimiter.join(["id", "t", "n"])]
    for number in rng.permutation(rows):
        text = f"{rng.choice(WORDS)}{rng.choice(WORDS)}x"
        lines.append(delimiter.join([str(number), field(text, rng.random() < 0.2), field(int(rng.integers(0, 99)), rng.random() < 0.2)]))
    return "\n".join(lines) + "\n"


def sorted_by_windrow(windrow, path, *options):
    out = path.with_suffix(".parquet")
    windrow("sort", path, "--by", "id", "-o", out, *options).ok()
    return pq.read_table(out).to_pylist()


def by_pyarrow(path, encoding="utf8", skip=0, null="", **parse):
    return pa.csv.read_csv(
        path,
        read_options=pa.csv.ReadOptions(encoding=encoding, skip_rows=skip),
        parse_options=pa.csv.ParseOptions(newlines_in_values=True, **parse),
        convert_options=pa.csv.ConvertOptions(null_values=[null], strings_can_be_null=True, quoted_strings_can_be_null=False),
    ).sort_by("id").to_pylist()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("quote", ['"', "'"])
def test_delimiters_and_quotes(windrow, rng, tmp_path, delimiter, quote):
    path = tmp_path / "a.csv"
    path.write_text(written(rng, 3000, delimiter, quote))
    expected = by_pyarrow(path, delimiter=delimiter, quote_char=quote)
    assert sorted_by_windrow(windrow, path, "--csv-quote", quote) == expected
    assert sorted_by_windrow(windrow, path, "--csv-quote", quote, "--csv-delimiter", delimiter) == expected


@pytest.mark.parametrize("null", ["\\N", "NA", "null", "-"])
def test_nulls(windrow, rng, tmp_path, null):
    path = tmp_path / "a.csv"
    path.write_text(written(rng, 3000, null=null))
    assert sorted_by_windrow(windrow, path, "--csv-null", null) == by_pyarrow(path, null=null)


def test_escapes(windrow, rng, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(written(rng, 3000, escape="\\"))
    expected = by_pyarrow(path, escape_char="\\", double_quote=False)
    assert sorted_by_windrow(windrow, path, "--csv-escape", "\\") == expected


@pytest.mark.parametrize("encoding, name", [("latin1", "latin1"), ("utf-16", ""), ("utf-16-be", "utf-16be"), ("cp1251", "windows-1251")])
def test_encodings_and_lines_in_front(windrow, rng, tmp_path, encoding, name):
    path = tmp_path / "a.csv"
    text = written(rng, 3000)
    text = text.replace("ä€", {"latin1": "äß", "cp1251": "жя"}.get(encoding, "ä€𝄞"))
    path.write_bytes(("of 2026\nand, \"more\n" + text).encode(encoding))
    plain = tmp_path / "plain.csv"
    plain.write_text(text)
    options = ("--charset", name) if name else ()
    assert sorted_by_windrow(windrow, path, "--csv-skip-lines", "2", *options) == by_pyarrow(plain)


def test_decimal_commas(windrow, rng, tmp_path):
    path = tmp_path / "a.csv"
    rows = [f"{i};{rng.integers(-999, 999)},{rng.integers(0, 1000):03}" if rng.random() > 0.1 else f"{i};" for i in rng.permutation(3000)]
    path.write_text("id;v\n" + "\n".join(rows) + "\n")
    query = f"SELECT * FROM read_csv('{path}', delim = ';', decimal_separator = ',', columns = {{'id': 'BIGINT', 'v': 'DOUBLE'}}, header = true) ORDER BY id"
    expected = duckdb.sql(query).to_arrow_table().to_pylist()
    assert sorted_by_windrow(windrow, path, "--csv-decimal", "comma") == expected
    # And back, in the order of the numbers.
    windrow("sort", path, "--by", "v,id", "--csv-decimal", "comma", "-o", tmp_path / "o.csv").ok()
    again = f"SELECT * FROM read_csv('{tmp_path / 'o.csv'}', delim = ';', decimal_separator = ',', columns = {{'id': 'BIGINT', 'v': 'DOUBLE'}}, header = true)"
    assert duckdb.sql(again).to_arrow_table().to_pylist() == sorted(expected, key=lambda row: (row["v"] is None, row["v"] or 0, row["id"]))


def test_comments(windrow, tmp_path):
    path = tmp_path / "a.csv"
    text = "id,t\n" + "".join(f"{i},x{i}\n" + ("# a, \"b\n" if i % 7 == 0 else "") for i in range(1000))
    path.write_text(text)
    expected = [{"id": i, "t": f"x{i}"} for i in range(1000)]
    assert sorted_by_windrow(windrow, path, "--csv-comment", "#") == expected


def test_parquet_without_delta_encodings(windrow, rng, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(written(rng, 30_000))
    for encoding, has_delta in (("delta", True), ("plain", False)):
        out = tmp_path / f"{encoding}.parquet"
        windrow("sort", path, "--by", "id", "--encoding", encoding, "-o", out).ok()
        group = pq.ParquetFile(out).metadata.row_group(0)
        used = {name for column in range(group.num_columns) for name in group.column(column).encodings}
        assert any("DELTA" in name for name in used) == has_delta, used
    assert pq.read_table(tmp_path / "plain.parquet") == pq.read_table(tmp_path / "delta.parquet")


def test_field_ids_are_kept(windrow, tmp_path):
    field = lambda name, kind, number: pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})
    member = pa.struct([field("k", pa.int64(), 7)])
    schema = pa.schema([field("id", pa.int64(), 3), field("t", pa.string(), 5), field("o", member, 6)])
    table = pa.table({"id": [2, 1], "t": ["b", "a"], "o": [{"k": 1}, None]}, schema=schema)
    pq.write_table(table, tmp_path / "a.parquet")
    for verb in (("sort", "--by", "id"), ("compact", "--key", "id"), ("dedupe", "--key", "id"), ("merge", "--by", "id:desc")):
        windrow(verb[0], tmp_path / "a.parquet", *verb[1:], "-o", tmp_path / "o.parquet").ok()
        assert pq.read_schema(tmp_path / "o.parquet").field("id").metadata[b"PARQUET:field_id"] == b"3", verb
        found = pq.ParquetFile(tmp_path / "o.parquet").schema_arrow
        assert [found.field(i).metadata[b"PARQUET:field_id"] for i in range(3)] == [b"3", b"5", b"6"], verb
        assert found.field("o").type.field("k").metadata[b"PARQUET:field_id"] == b"7", verb
