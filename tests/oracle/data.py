"""The shapes of data that the tests share, and reading and writing them with pyarrow.

A column is drawn from a pool of values, so that duplicates are frequent; pools hold the ends of a type's range.
"""

import decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
FLOATS = [pa.float16(), pa.float32(), pa.float64()]
UNITS = ["s", "ms", "us", "ns"]
TIMES = [
    pa.date32(),
    pa.date64(),
    pa.time32("s"),
    pa.time32("ms"),
    pa.time64("us"),
    pa.time64("ns"),
    *[pa.timestamp(unit) for unit in UNITS],
    pa.timestamp("us", tz="UTC"),
    pa.timestamp("ns", tz="+02:00"),
    *[pa.duration(unit) for unit in UNITS],
]
DECIMALS = [
    pa.decimal32(7, 2),
    pa.decimal64(16, 3),
    pa.decimal128(9, 2),
    pa.decimal128(38, 10),
    pa.decimal256(38, 4),
    pa.decimal256(76, 20),
]
BYTES = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()]
FIXED_BINARY = [pa.binary(1), pa.binary(16)]
ENCODED = [pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.int64())]
KEYS = [pa.bool_(), *INTEGERS, *FLOATS, *TIMES, *DECIMALS, *BYTES, *FIXED_BINARY, *ENCODED]

NESTED = [
    pa.list_(pa.int64()),
    pa.large_list(pa.string()),
    pa.list_(pa.float32(), 3),
    pa.struct([("a", pa.int32()), ("b", pa.string()), ("c", pa.list_(pa.date32()))]),
    pa.list_(pa.struct([("x", pa.float64()), ("y", pa.list_(pa.bool_()))])),
    pa.map_(pa.string(), pa.decimal128(12, 3)),
    pa.struct([("only", pa.struct([("deep", pa.binary())]))]),
    pa.month_day_nano_interval(),
    pa.null(),
]
# Types that Parquet has no name for, or that pyarrow does not write there.
ARROW_ONLY = [
    pa.run_end_encoded(pa.int32(), pa.string()),
    pa.list_view(pa.int32()),
    pa.large_list_view(pa.string()),
    pa.sparse_union([pa.field("i", pa.int32()), pa.field("s", pa.string())]),
    pa.dense_union([pa.field("i", pa.int32()), pa.field("s", pa.string())]),
    pa.list_(pa.dictionary(pa.int16(), pa.string())),
    pa.list_(pa.string_view()),
]

# By IEEE totalOrder, with the signs and payloads of NaNs.
FLOAT_EDGES = {
    16: [0xFE00, 0xFC00, 0xFBFF, 0x8001, 0x8000, 0x0000, 0x0001, 0x3C00, 0x7BFF, 0x7C00, 0x7E00, 0x7E01],
    32: [0xFFC00001, 0xFFC00000, 0xFF800000, 0x80000001, 0x80000000, 0, 1, 0x3F800000, 0x7F800000, 0x7FC00000, 0x7FC00001],
    64: [
        0xFFF8000000000001,
        0xFFF8000000000000,
        0xFFF0000000000000,
        0x8000000000000001,
        0x8000000000000000,
        0,
        1,
        0x3FF0000000000000,
        0x7FF0000000000000,
        0x7FF8000000000000,
        0x7FF8000000000001,
    ],
}
TEXTS = ["", "\0", "\0\0", "a", "a\0", "a\0b", "ab", "b", "ä", "é\u0301", "\U0001f33e", "z" * 40, "z" * 39 + "y", "prefix-" * 5]


def column(rng, kind, rows, pool=64, nulls=0.1):
    """`rows` values of type `kind`, out of at most `pool` different ones."""
    values = _pool(rng, kind, pool)
    if kind == pa.null():
        return pa.nulls(rows)
    if len(values) == 0 or rows == 0:
        return _empty(kind)
    picks = rng.integers(0, len(values), rows)
    if pa.types.is_union(kind):
        return values.take(pa.array(picks))
    mask = rng.random(rows) < nulls
    picks = pa.array(picks, mask=mask)
    if pa.types.is_run_end_encoded(kind):
        return pc.run_end_encode(values.take(picks), run_end_type=kind.run_end_type)
    return pick(values, picks)


def _empty(kind):
    return pa.array([], kind) if not pa.types.is_union(kind) else _union(kind, 0)


def pick(array, indices):
    """`array.take`, of the types too that pyarrow does not take from."""
    kind = array.type
    if pa.types.is_run_end_encoded(kind):
        plain = [pc.run_end_decode(chunk) for chunk in getattr(array, "chunks", [array])]
        plain = pa.chunked_array(plain, kind.value_type).take(indices).combine_chunks()
        return pc.run_end_encode(plain, run_end_type=kind.run_end_type)
    try:
        return array.take(indices)
    except pa.ArrowNotImplementedError:
        values = array.to_pylist()
        return pa.array([None if i is None else values[i] for i in indices.to_pylist()], kind)


def take(table, indices):
    """`table.take`, of any columns."""
    return pa.table([pick(column, indices) for column in table.columns], schema=table.schema)


def _union(kind, count):
    codes = pa.array([i % 2 for i in range(count)], pa.int8())
    if kind.mode == "sparse":
        children = [pa.array(range(count), pa.int32()), pa.array([f"u{i}" for i in range(count)])]
        return pa.UnionArray.from_sparse(codes, children, field_names=["i", "s"])
    half, rest = (count + 1) // 2, count // 2
    children = [pa.array(range(half), pa.int32()), pa.array([f"u{i}" for i in range(rest)])]
    offsets = pa.array([i // 2 for i in range(count)], pa.int32())
    return pa.UnionArray.from_dense(codes, offsets, children, field_names=["i", "s"])


def _pool(rng, kind, pool):
    types = pa.types
    if types.is_null(kind):
        return pa.nulls(1)
    if types.is_boolean(kind):
        return pa.array([False, True])
    if types.is_integer(kind):
        info = np.iinfo(kind.to_pandas_dtype())
        edges = [info.min, info.min + 1, 0, 1, info.max - 1, info.max]
        drawn = rng.integers(info.min, info.max, pool, dtype=kind.to_pandas_dtype(), endpoint=True)
        small = rng.integers(0, 100, pool // 2)
        return pa.array([*edges, *drawn.tolist(), *small.tolist()], kind)
    if types.is_floating(kind):
        width = kind.bit_width
        bits = np.array(FLOAT_EDGES[width], f"u{width // 8}")
        drawn = rng.normal(0, 1000, pool).astype(f"f{width // 8}").view(bits.dtype)
        return pa.array(np.concatenate([bits, drawn]).view(f"f{width // 8}"))
    if types.is_date32(kind):
        return pa.array(rng.integers(-100_000, 100_000, pool), pa.int32()).view(kind)
    if types.is_date64(kind):
        return pa.array(rng.integers(-100_000, 100_000, pool) * 86_400_000, pa.int64()).view(kind)
    if types.is_time(kind):
        day = 86_400 * {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}[kind.unit]
        plain = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array([0, day - 1, *rng.integers(0, day, pool).tolist()], plain).view(kind)
    if types.is_timestamp(kind) or types.is_duration(kind):
        # Seconds since 1900 and to 2100, so that oracles can print them.
        scale = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}[kind.unit]
        drawn = rng.integers(-2_000_000_000, 4_000_000_000, pool) * scale + rng.integers(0, scale, pool)
        return pa.array([-1, 0, 1, *drawn.tolist()], pa.int64()).view(kind)
    if types.is_decimal(kind):
        digits = rng.integers(1, kind.precision, pool, endpoint=True)
        whole = [int("".join(map(str, rng.integers(0, 10, count)))) * int(rng.choice([-1, 1])) for count in digits]
        ends = [0, 1, -1, 10**kind.precision - 1, 1 - 10**kind.precision]
        with decimal.localcontext(prec=80):
            return pa.array([decimal.Decimal(value).scaleb(-kind.scale) for value in [*ends, *whole]], kind)
    if types.is_dictionary(kind):
        values = _pool(rng, kind.value_type, min(pool, 90)).unique()[:100]
        return pa.DictionaryArray.from_arrays(pa.array(range(len(values)), kind.index_type), values)
    if types.is_fixed_size_binary(kind):
        width = kind.byte_width
        return pa.array([b"\0" * width, b"\xff" * width, *[rng.bytes(width) for _ in range(pool)]], kind)
    if types.is_binary(kind) or types.is_large_binary(kind) or kind == pa.binary_view():
        texts = [text.encode() for text in TEXTS] + [b"\xff", b"\xff\xff", b"\xff\0", b"\x80"]
        return pa.array(texts + [rng.bytes(int(rng.integers(0, 30))) for _ in range(pool)], kind)
    if types.is_string(kind) or types.is_large_string(kind) or kind == pa.string_view():
        words = ["".join(rng.choice(list("abcñ𝛼 "), int(rng.integers(0, 24)))) for _ in range(pool)]
        return pa.array(TEXTS + words, kind)
    if types.is_union(kind):
        return _union(kind, pool)
    if types.is_run_end_encoded(kind):
        return _pool(rng, kind.value_type, pool)
    if types.is_interval(kind):
        return pa.array([(int(m), int(d), int(n)) for m, d, n in rng.integers(-1000, 1000, (pool, 3))], kind)
    return pa.array([_value(rng, kind) for _ in range(pool)], kind)


def _value(rng, kind):
    """One nested value; NaN and -0.0 stay out, since pyarrow compares nested floats by value."""
    types = pa.types
    if rng.random() < 0.15:
        return None
    if types.is_struct(kind):
        return {field.name: _value(rng, field.type) for field in kind}
    if types.is_fixed_size_list(kind):
        return [_value(rng, kind.value_type) for _ in range(kind.list_size)]
    if types.is_map(kind):
        return [(f"k{i}", _value(rng, kind.item_type)) for i in range(int(rng.integers(0, 4)))]
    if types.is_nested(kind):
        return [_value(rng, kind.value_type) for _ in range(int(rng.integers(0, 5)))]
    if types.is_floating(kind):
        return float(rng.integers(-100, 100)) + 0.5
    if types.is_dictionary(kind):
        return str(rng.choice(["red", "green", "blue"]))
    if types.is_decimal(kind):
        return decimal.Decimal(int(rng.integers(-(10**6), 10**6))).scaleb(-kind.scale)
    values = _pool(rng, kind, 8)
    return values[int(rng.integers(0, len(values)))].as_py()


def name_of(kind):
    """A test's id for a type."""
    return str(kind).replace(" ", "")[:60]


def bits(array):
    """The array with floats as integers of their bits, so that NaN and -0.0 are themselves."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    if pa.types.is_floating(array.type):
        return array.view({16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[array.type.bit_width])
    return array


def same(got, expected):
    """Equal schemas without metadata, equal rows in equal places, floats by their bits."""
    assert got.column_names == expected.column_names
    assert got.num_rows == expected.num_rows
    for name in expected.column_names:
        ours, theirs = got[name], expected[name]
        assert ours.type == theirs.type, f"{name}: {ours.type} instead of {theirs.type}"
        if pa.types.is_dictionary(ours.type):
            ours, theirs = ours.cast(ours.type.value_type), theirs.cast(theirs.type.value_type)
        if pa.types.is_run_end_encoded(ours.type):
            ours, theirs = [pa.chunked_array([pc.run_end_decode(c) for c in a.chunks], a.type.value_type) for a in (ours, theirs)]
        if pa.types.is_union(ours.type) or not pa.types.is_primitive(ours.type):
            equal = ours.equals(theirs) or ours.to_pylist() == theirs.to_pylist()
        else:
            equal = bits(ours).equals(bits(theirs))
        if not equal:
            pairs = enumerate(zip(bits(ours).to_pylist(), bits(theirs).to_pylist()))
            row, (mine, wanted) = next((row, pair) for row, pair in pairs if pair[0] != pair[1])
            raise AssertionError(f"{name}, row {row}: {mine!r} instead of {wanted!r}")


def write(table, path, **options):
    """A file of the format that the extension names."""
    kind = path.suffix
    if kind == ".parquet":
        pq.write_table(table, path, **options)
    elif kind == ".arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=1000)
    elif kind == ".arrows":
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=1000)
    elif kind == ".csv":
        pa.csv.write_csv(table, path)
    else:
        raise ValueError(path)
    return path


def read(path):
    kind = path.suffix
    if kind == ".parquet":
        return pq.read_table(path)
    if kind == ".arrow":
        return pa.ipc.open_file(path).read_all()
    if kind == ".arrows":
        return pa.ipc.open_stream(path).read_all()
    raise ValueError(path)
