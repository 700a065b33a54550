"""Tables as files of any format, in the forms of several writers, and outputs as tables again."""

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import re

import cramjam
import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from backports import zstd

import data

from .tables import PARQUET_NAMES

SUFFIX = {"parquet": "parquet", "arrow": "arrow", "arrow-stream": "arrows", "csv": "csv", "ndjson": "ndjson", "avro": "avro"}
CHECKED_ZSTD = {zstd.CompressionParameter.checksum_flag: 1}
PACKERS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lambda raw: lzma.compress(raw, preset=0),
    "zst": lambda raw: zstd.compress(raw, options=CHECKED_ZSTD),
    "lz4": lambda raw: bytes(cramjam.lz4.compress(raw)),
}
MAGIC = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zst", b"\x04\x22\x4d\x18": "lz4"}
AVRO_CODECS = ["null", "deflate", "snappy", "zstandard", "bzip2", "xz"]


# ---- writing ----------------------------------------------------------------------------------


def write(rng, table, path, source, null_text, packed, delimiter):
    """A file of the table; the dice choose how its writer is set."""
    if source == "parquet":
        write_parquet(rng, table, path)
    elif source in ("arrow", "arrow-stream"):
        write_arrow(rng, table, path, pa.ipc.new_file if source == "arrow" else pa.ipc.new_stream)
    elif source == "avro":
        write_avro(rng, table, path)
    else:
        text = csv_of(rng, table, null_text, delimiter) if source == "csv" else ndjson_of(rng, table)
        path.write_bytes(pack(rng, text.encode(), packed))


def write_parquet(rng, table, path):
    rows = max(1, table.num_rows)
    pq.write_table(
        table,
        path,
        row_group_size=int(rng.choice([rows, max(1, rows // 3), max(1, rows // 20)])),
        data_page_size=int(rng.choice([1 << 20, 1000, 20_000])),
        compression=str(rng.choice(["none", "snappy", "zstd", "gzip", "brotli", "lz4"])),
        use_dictionary=bool(rng.random() < 0.6),
        data_page_version=str(rng.choice(["1.0", "2.0"])),
        write_page_index=bool(rng.random() < 0.4),
        write_page_checksum=bool(rng.random() < 0.6),
    )


def write_arrow(rng, table, path, writer_of):
    codec = [None, "lz4", "zstd"][int(rng.integers(3))]
    chunk = max(1, table.num_rows // int(rng.choice([1, 3, 20])))
    with writer_of(path, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(table, max_chunksize=chunk)


def avro_type(kind):
    types = pa.types
    if types.is_list(kind):
        return {"type": "array", "items": ["null", "long"]}
    if types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if types.is_timestamp(kind):
        unit = {"us": "micros", "ms": "millis"}[kind.unit]
        return {"type": "long", "logicalType": ("timestamp-" if kind.tz else "local-timestamp-") + unit}
    named = {
        pa.bool_(): "boolean", pa.int32(): "int", pa.int64(): "long", pa.float32(): "float", pa.float64(): "double",
        pa.string(): "string", pa.binary(): "bytes", pa.date32(): {"type": "int", "logicalType": "date"},
        pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
    }
    return named[kind]


def write_avro(rng, table, path):
    fields = [{"name": field.name, "type": ["null", avro_type(field.type)]} for field in table.schema]
    schema = fastavro.parse_schema({"type": "record", "name": "Row", "fields": fields})
    with open(path, "wb") as target:
        interval = int(rng.choice([100, 2000, 16_000]))
        fastavro.writer(target, schema, table.to_pylist(), codec=str(rng.choice(AVRO_CODECS)), sync_interval=interval)


def texts_of(column):
    """Values as text, nulls as None."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        texts = pc.replace_substring(column.cast(pa.timestamp(kind.unit)).cast(pa.string()), " ", "T").to_pylist()
        return [text + "Z" if text and kind.tz else text for text in texts]
    return column.cast(pa.string()).to_pylist()


def csv_of(rng, table, null_text, delimiter):
    out = io.StringIO()
    # A null in quotes would be an empty string.
    bare = rng.random() < 0.7 or null_text or any(column.null_count for column in table.columns)
    quoting = csv.QUOTE_MINIMAL if bare else csv.QUOTE_NONNUMERIC
    writer = csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator="\n" if rng.random() < 0.8 else "\r\n")
    writer.writerow(table.column_names)
    columns = [[null_text if text is None else text for text in texts_of(column)] for column in table.columns]
    writer.writerows(zip(*columns))
    return out.getvalue()


BARE = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)


def tokens_of(column):
    kind = column.type
    if pa.types.is_nested(kind):
        return [json.dumps(value) if value is not None else None for value in column.to_pylist()]
    texts = texts_of(column)
    return texts if any(test(kind) for test in BARE) else [json.dumps(text) if text is not None else None for text in texts]


def ndjson_of(rng, table):
    """Objects, of which all but the first may leave out what is null."""
    names = [json.dumps(name) for name in table.column_names]
    columns = [tokens_of(column) for column in table.columns]
    absent = rng.random() < 0.3
    lines = []
    for values in zip(*columns):
        pairs = [f"{name}:{value or 'null'}" for name, value in zip(names, values) if value is not None or not absent or not lines]
        lines.append("{" + ",".join(pairs) + "}\n")
    return "".join(lines)


def pack(rng, raw, packed):
    """Compressed text, of one member or several."""
    if not packed:
        return raw
    cuts = sorted(rng.integers(0, len(raw), int(rng.integers(0, 3)), endpoint=True).tolist())
    ends = [0, *cuts, len(raw)]
    return b"".join(PACKERS[packed](raw[start:end]) for start, end in zip(ends, ends[1:]) if end > start or len(ends) == 2)


# ---- schemas of text --------------------------------------------------------------------------


def type_name(kind):
    """As --schema has it."""
    types = pa.types
    if types.is_list(kind):
        return f"list({type_name(kind.value_type)})"
    if types.is_struct(kind):
        return "struct(" + ",".join(f"{field.name}:{type_name(field.type)}" for field in kind) + ")"
    if types.is_decimal(kind):
        return f"decimal128({kind.precision},{kind.scale})"
    if types.is_timestamp(kind):
        return f"timestamp_{kind.unit}" + ("(UTC)" if kind.tz else "")
    plain = {pa.string(): "utf8", pa.bool_(): "bool", pa.float32(): "float32", pa.float64(): "float64", pa.date32(): "date32"}
    return plain.get(kind) or str(kind)


def schema_option(table):
    return ",".join(f"{field.name}:{type_name(field.type)}" for field in table.schema)


# ---- reading ----------------------------------------------------------------------------------


def unpacked(raw):
    kind = next((kind for magic, kind in MAGIC.items() if raw.startswith(magic)), None)
    if kind == "lz4":
        with pa.CompressedInputStream(pa.BufferReader(raw), "lz4") as stream:
            return stream.read()
    return {"gz": gzip.decompress, "bz2": bz2.decompress, "xz": lzma.decompress, "zst": zstd.decompress}[kind](raw) if kind else raw


def read(path, target, wanted, null_text, delimiter):
    """The table in a file of the tool's. `wanted` says what the columns of text are."""
    if target == "parquet":
        return pq.ParquetFile(path).read()
    if target == "arrow":
        return pa.ipc.open_file(path).read_all()
    if target == "arrow-stream":
        return pa.ipc.open_stream(path).read_all()
    text = unpacked(path.read_bytes()).decode()
    return read_csv(text, wanted, null_text, delimiter) if target == "csv" else read_ndjson(text, wanted)


def typed(texts, kind):
    """Texts as values of the type."""
    return pa.array(texts, pa.string()).cast(kind)


csv.field_size_limit(1 << 30)


def read_csv(text, wanted, null_text, delimiter):
    records = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    if not records:
        raise ValueError("no header")
    columns = list(zip(*records[1:])) or [()] * len(records[0])
    null = null_text if null_text is not None else ""
    arrays = []
    for name, texts in zip(records[0], columns):
        kind = wanted.schema.field(name).type
        arrays.append(typed([None if text == null or (text == "" and kind != pa.string()) else text for text in texts], kind))
    return pa.table(arrays, names=records[0])


def json_value(value, kind):
    if value is None:
        return None
    if pa.types.is_list(kind):
        return [json_value(item, kind.value_type) for item in value]
    if pa.types.is_struct(kind):
        return {field.name: json_value(value.get(field.name), field.type) for field in kind}
    return int(value) if pa.types.is_integer(kind) else value


def read_ndjson(text, wanted):
    rows = [json.loads(line, parse_float=str, parse_int=str) for line in text.split("\n") if line]
    arrays = []
    for field in wanted.schema:
        values = [row.get(field.name) for row in rows]
        if pa.types.is_nested(field.type):
            arrays.append(pa.array([json_value(value, field.type) for value in values], field.type))
        else:
            texts = [str(value).lower() if isinstance(value, bool) else value for value in values]
            arrays.append(typed(texts, field.type))
    names = [*dict.fromkeys(name for row in rows for name in row)] if rows else wanted.column_names
    if set(names) != set(wanted.column_names):
        raise ValueError(f"columns {names} instead of {wanted.column_names}")
    return pa.table(arrays, names=wanted.column_names)


# ---- comparing --------------------------------------------------------------------------------


def plain(kind, target):
    """The type that a value has in whatever form a format keeps it."""
    types = pa.types
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return plain(kind.value_type, target)
    return PARQUET_NAMES.get(kind, kind) if target == "parquet" else kind


def comparable(column, target):
    """A column in one chunk of plain values; floats as their bits, as far as the format keeps them."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    kind = column.type
    if pa.types.is_run_end_encoded(kind):
        column = pc.run_end_decode(column)
    elif pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    if plain(kind, target) != column.type:
        column = column.cast(plain(kind, target))
    if not pa.types.is_floating(column.type):
        return column
    if target == "ndjson":
        column = pc.if_else(pc.fill_null(pc.is_finite(column), True), column, pa.scalar(None, column.type))
    elif target == "csv":
        column = pc.if_else(pc.fill_null(pc.is_nan(column), False), pa.scalar(float("nan"), column.type), column)
    return data.bits(column)


def difference(got, wanted, target, null_text):
    """What differs first, or None."""
    if got.column_names != wanted.column_names:
        return f"columns {got.column_names} instead of {wanted.column_names}"
    if got.num_rows != wanted.num_rows:
        return f"{got.num_rows} rows instead of {wanted.num_rows}"
    for name in wanted.column_names:
        ours, theirs = comparable(got[name], target), comparable(wanted[name], target)
        if target == "csv" and null_text is None and pa.types.is_string(theirs.type):
            ours, theirs = (pc.if_else(pc.equal(side, ""), pa.scalar(None, side.type), side) for side in (ours, theirs))
        if ours.type != theirs.type and not same_type(ours.type, theirs.type):
            return f"{name}: {ours.type} instead of {theirs.type}"
        if ours.type == theirs.type and not pa.types.is_nested(ours.type) and ours.equals(theirs):
            continue
        for row, (mine, other) in enumerate(zip(ours.to_pylist(), theirs.to_pylist())):
            if mine != other:
                return f"{name}, row {row}: {mine!r} instead of {other!r}"
    return None


def same_type(ours, theirs):
    """Names of the items of lists are not part of a value; narrow keys of dictionaries within lists may have become wide."""
    strip = lambda kind: str(kind).replace("element:", "item:").replace(" not null", "").replace("entries:", "").replace("key_value:", "")
    return strip(ours) in (strip(theirs), re.sub(r"indices=u?int(8|16)\b", "indices=int32", strip(theirs)))


def size_of(path):
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) if path.is_dir() else os.stat(path).st_size
