"""Random tables of what formats can hold.

Every table has a column `row`, which numbers the rows of the input: so an output tells which rows it holds, in which order.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import data

ROW = "row"
TIMES = [pa.timestamp(unit) for unit in data.UNITS] + [pa.timestamp("us", tz="UTC")]
# Types that have a text, and types of lists and objects of JSON.
SCALARS = [
    pa.bool_(), *data.INTEGERS, pa.float32(), pa.float64(), pa.date32(), *TIMES, pa.decimal128(9, 2), pa.decimal128(38, 10), pa.string(),
]
LISTS = [pa.list_(pa.int64()), pa.list_(pa.string()), pa.struct([("a", pa.int64()), ("b", pa.string())])]
AVRO = [
    pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", tz="UTC"),
    pa.timestamp("ms", tz="UTC"), pa.time64("us"), pa.decimal128(12, 2), pa.string(), pa.binary(),
]
# pyarrow puts no unions together.
ARROW_ONLY = [kind for kind in data.ARROW_ONLY if not pa.types.is_union(kind)]
PARQUET_NESTED = [kind for kind in data.NESTED if kind != pa.month_day_nano_interval()]
# Types that Parquet has no name for, and those that they become.
PARQUET_NAMES = {pa.date64(): pa.date32(), pa.time32("s"): pa.time32("ms"), pa.timestamp("s"): pa.timestamp("ms")}
# What inputs and outputs of a format hold.
KINDS = {
    "parquet": data.KEYS + PARQUET_NESTED,
    "arrow": data.KEYS + data.NESTED + ARROW_ONLY,
    "arrow-stream": data.KEYS + data.NESTED + ARROW_ONLY,
    "csv": SCALARS,
    "ndjson": SCALARS + LISTS,
    "avro": AVRO + [pa.list_(pa.int64())],
}
WORDS = ["nl", "a,b", 'say "x"', "two\nlines", " blank ", "tab\t", "007", "1e5", "true", "null", "é", "\U0001f33e", "x" * 40]


def kinds_for(source, target):
    """Types that come through from one format to the other."""
    # A column of nulls alone has no type in text.
    return [kind for kind in KINDS[source] if kind in KINDS[target] and (source == target or not pa.types.is_null(kind))]


def is_key(kind):
    return kind in data.KEYS or kind in SCALARS or kind in AVRO


def names_of(table, test):
    return [field.name for field in table.schema if field.name != ROW and test(field.type)]


def keys_of(table):
    return names_of(table, is_key)


def row_count(rng, big):
    if big:
        return int(np.exp(rng.uniform(np.log(30), np.log(20_000))))
    return int(rng.choice([0, 1, 2, 3, 10, 40, 200, 1000, 5000], p=[0.05, 0.05, 0.05, 0.05, 0.15, 0.2, 0.3, 0.12, 0.03]))


def skewed(rng, column):
    """Few values have most of the rows."""
    places = (len(column) * rng.random(len(column)) ** 4).astype(np.int64)
    return data.pick(column, pa.array(places))


def column(rng, kind, rows):
    pool = int(rng.choice([1, 3, 20, 300]))
    nulls = float(rng.choice([0, 0.1, 0.5, 1], p=[0.35, 0.45, 0.15, 0.05]))
    made = data.column(rng, kind, rows, pool, nulls)
    if kind == pa.string() and rows and rng.random() < 0.3:
        made = data.pick(pa.array(WORDS), pa.array(rng.integers(0, len(WORDS), rows), mask=rng.random(rows) < nulls))
    return skewed(rng, made) if rows and rng.random() < 0.3 else made


def long_text(rng, rows, mean, kind):
    """Values of about `mean` bytes, some of which share long prefixes."""
    letters = "".join(rng.choice(list("abcdefgh0123456789"), 4 * mean))
    starts = rng.integers(0, 2 * mean, rows)
    sizes = np.minimum(rng.exponential(mean, rows).astype(int), 2 * mean)
    texts = [letters[start : start + size] for start, size in zip(starts.tolist(), sizes.tolist())]
    texts = pa.array(texts, pa.string())
    return texts.cast(kind)


def random_table(rng, kinds, big):
    rows = row_count(rng, big)
    scalars = [kind for kind in kinds if is_key(kind)]
    pick = lambda some: some[int(rng.integers(len(some)))]
    width = int(rng.choice([1, 2, 4, 7, 60], p=[0.15, 0.3, 0.35, 0.17, 0.03])) if not big else int(rng.integers(1, 5))
    columns = {f"k{i}": column(rng, pick(scalars), rows) for i in range(int(rng.integers(1, 4)))}
    columns |= {f"v{i}": column(rng, pick(kinds), rows) for i in range(width)}
    texts = [kind for kind in (pa.string(), pa.large_string(), pa.binary()) if kind in kinds]
    if big:
        columns["long"] = long_text(rng, rows, int(rng.integers(12, 24)) * 1_000_000 // rows, pick(texts))
    elif rows and rng.random() < 0.05:
        columns["long"] = long_text(rng, rows, int(rng.choice([100, 1000, 5000])) if rows < 2000 else 100, pick(texts))
    return shuffled(rng, pa.table({**columns, ROW: pa.array(np.arange(rows))}))


def shuffled(rng, table):
    """The columns in any order."""
    return table.select([table.column_names[i] for i in rng.permutation(table.num_columns)])


def pieces(rng, table, most=4):
    """The table in some pieces, which may be empty."""
    count = int(rng.choice([1, 2, 3, most], p=[0.55, 0.2, 0.15, 0.1]))
    cuts = sorted(int(cut) for cut in rng.integers(0, table.num_rows, count - 1, endpoint=True))
    ends = [0, *cuts, table.num_rows]
    return [table.slice(start, end - start).combine_chunks() for start, end in zip(ends, ends[1:])]


def replaced(table, name, column):
    place = table.schema.get_field_index(name)
    return table.set_column(place, name, column)


def as_written(table, source, null_text):
    """The table as files of this format hold it: JSON has no NaN, CSV without a text for nulls no empty text, Parquet no seconds."""
    for name, kind in zip(table.column_names, table.schema.types):
        values = table[name]
        if source == "parquet" and kind in PARQUET_NAMES:
            table = replaced(table, name, values.cast(PARQUET_NAMES[kind]))
        elif pa.types.is_floating(kind) and source in ("csv", "ndjson"):
            finite = pc.is_finite(values) if source == "ndjson" else pc.invert(pc.is_nan(values))
            other = pa.scalar(None if source == "ndjson" else float("nan"), kind)
            table = replaced(table, name, pc.if_else(pc.fill_null(finite, True), values, other))
        elif kind == pa.string() and source == "csv":
            # Whether "" is null depends on its quotes; a carriage return may be a line end of old.
            table = replaced(table, name, pc.replace_substring(values, "\r", "_"))
            if not null_text:
                table = replaced(table, name, pc.if_else(pc.equal(values, ""), "empty", table[name]))
    return table.combine_chunks()
