"""What DuckDB says: which rows of the input are in the answer, and in which order.

Floats reach it as integers that ascend as IEEE totalOrder does, since DuckDB holds -0.0 = 0.0 and all NaNs equal;
types that it does not know as others of the same order. A row is its number in the input.
"""

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from data import take

ROW = "_row"


def comparable(array):
    """Values that DuckDB orders as windrow documents its order."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    kind, types = array.type, pa.types
    if types.is_dictionary(kind):
        return comparable(array.cast(kind.value_type))
    if types.is_floating(kind):
        width = kind.bit_width
        raw = np.asarray(array.view({16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[width]).fill_null(0)).astype(np.int64)
        lowest = -(1 << (width - 1))
        total = np.where(raw < 0, ~raw + lowest, raw)  # a negative's bits grow with its magnitude
        return pa.array(total, mask=np.asarray(array.is_null()))
    if types.is_time(kind) or types.is_timestamp(kind) or types.is_duration(kind) or types.is_date(kind):
        return array.view(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(pa.int64())
    if types.is_decimal(kind):
        if kind.precision <= 38:
            return array.cast(pa.decimal128(kind.precision, kind.scale))
        rank = {value: i for i, value in enumerate(sorted(set(array.to_pylist()) - {None}))}
        return pa.array([rank.get(value) for value in array.to_pylist()], pa.int64())
    if types.is_fixed_size_binary(kind) or kind == pa.binary_view():
        return array.cast(pa.binary())
    if kind == pa.string_view():
        return array.cast(pa.string())
    if types.is_run_end_encoded(kind):
        return comparable(pc.run_end_decode(array))
    return array


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def by(keys):
    """`name:desc:nulls-first,...` as SQL."""
    parts = []
    for key in keys.split(","):
        name, *options = key.split(":")
        direction = "DESC" if "desc" in options else "ASC"
        nulls = "FIRST" if "nulls-first" in options else "LAST"
        parts.append(f"{quoted(name)} {direction} NULLS {nulls}")
    return ", ".join(parts)


def names(keys):
    return [key.split(":")[0] for key in keys.split(",")]


def query(table, columns, sql):
    """The answer of `sql` on `t`, which has these columns of the table and `_row`: name to numpy array."""
    held = {name: comparable(table[name]) for name in columns}
    connection = duckdb.connect(config={"threads": 2})
    connection.register("t", pa.table({**held, ROW: pa.array(np.arange(table.num_rows))}))
    return connection.execute(sql).fetchnumpy()


def rows(table, columns, sql):
    """The `_row`s that `sql` selects."""
    return pa.array(np.asarray(query(table, columns, sql)[ROW]).astype(np.int64))


def sort(table, keys):
    """The table, sorted stably."""
    return take(table, rows(table, names(keys), f"SELECT {ROW} FROM t ORDER BY {by(keys)}, {ROW}"))


def with_sql_floats(table, columns):
    """The table with one zero and one NaN in these columns: values that are equal in SQL, as windrow writes keys."""
    for name in columns:
        place, column = table.schema.get_field_index(name), table[name]
        if not pa.types.is_floating(column.type):
            continue
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        width = column.type.bit_width
        bits = column.view({16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[width]).fill_null(0)
        values = np.array(bits).view(f"f{width // 8}")
        values[values == 0] = 0.0
        values[np.isnan(values)] = np.nan
        column = pa.array(values, column.type, mask=np.asarray(column.is_null()), from_pandas=False)
        table = table.set_column(place, table.schema.field(place), column)
    return table


def latest(table, key, order_by="", op=None, live="true"):
    """The latest row of each key, by key; those that are not `live` are gone. Keys are equal as in SQL."""
    table = with_sql_floats(table, names(key))
    order = []
    for name, *options in (part.split(":") for part in order_by.split(",") if part):
        direction = "ASC" if "desc" in options else "DESC"
        nulls = "LAST" if "nulls-first" in options else "FIRST"
        order.append(f"{quoted(name)} {direction} NULLS {nulls}")
    columns = [*names(key), *(names(order_by) if order_by else []), *([op] if op else [])]
    partition = ", ".join(quoted(name) for name in names(key))
    sql = f"""
        WITH last AS (
            SELECT * FROM t
            QUALIFY row_number() OVER (PARTITION BY {partition} ORDER BY {", ".join([*order, f"{ROW} DESC"])}) = 1)
        SELECT {ROW} FROM last WHERE {live} ORDER BY {by(key)}"""
    return take(table, rows(table, dict.fromkeys(columns), sql))
