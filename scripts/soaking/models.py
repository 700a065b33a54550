"""What is right: rows that DuckDB chooses, or a few slow lines of Python.

DuckDB gets the columns that decide as values that it orders as the tool documents it (`oracle.comparable`), and answers with
places of rows. The values come from the table.
"""

import duckdb
import numpy as np
import pyarrow as pa

import data
import oracle
from oracle import ROW as PLACE
from oracle import by as order_of
from oracle import names, quoted, with_sql_floats

CONNECTION = duckdb.connect(config={"threads": 1})


def ask(table, columns, sql, more=None):
    """The places that `sql` selects from `t`."""
    held = {name: oracle.comparable(table[name]) for name in columns} | (more or {})
    CONNECTION.register("t", pa.table({**held, PLACE: pa.array(np.arange(table.num_rows))}))
    found = CONNECTION.execute(sql).fetchnumpy()
    CONNECTION.unregister("t")
    return found


def places(table, columns, sql, more=None):
    return pa.array(np.asarray(ask(table, columns, sql, more)[PLACE]).astype(np.int64))


def selected(table, condition):
    """Rows that meet a condition of one comparison: (name, operator, value)."""
    name, operator, value = condition
    column = table[name].combine_chunks()
    if value is None:
        found = np.flatnonzero(np.asarray(column.is_null() if operator == "is null" else column.is_valid()))
    else:
        CONNECTION.register("t", pa.table({"c": column, PLACE: pa.array(np.arange(table.num_rows))}))
        found = CONNECTION.execute(f"SELECT {PLACE} FROM t WHERE c {operator} ? ORDER BY {PLACE}", [value]).fetchnumpy()[PLACE]
        CONNECTION.unregister("t")
    return data.take(table, pa.array(np.asarray(found).astype(np.int64)))


def sort(table, keys, sql_floats=False):
    """Stably sorted."""
    compared = with_sql_floats(table, names(keys)) if sql_floats else table
    sql = f"SELECT {PLACE} FROM t ORDER BY {order_of(keys)}, {PLACE}"
    return data.take(table, places(compared, names(keys), sql))


def chosen(table, key, keep, order="", live="true", columns=()):
    """One row of each key, by key: the first of the order, which ends with the place in the input."""
    table = with_sql_floats(table, names(key))
    partition = ", ".join(quoted(name) for name in names(key))
    order = ", ".join([*([order] if order else []), f"{PLACE} {'ASC' if keep == 'first' else 'DESC'}"])
    only = "count(*) OVER (PARTITION BY " + partition + ") = 1" if keep == "none" else "true"
    sql = f"""
        WITH kept AS (SELECT * FROM t QUALIFY row_number() OVER (PARTITION BY {partition} ORDER BY {order}) = 1 AND {only})
        SELECT {PLACE} FROM kept WHERE {live} ORDER BY {order_of(key)}"""
    return data.take(table, places(table, dict.fromkeys([*names(key), *columns]), sql))


def latest_first(order_by):
    """--order-by as SQL that has the latest row first."""
    parts = []
    for part in order_by.split(","):
        name, *options = part.split(":")
        direction = "ASC" if "desc" in options else "DESC"
        nulls = "LAST" if "nulls-first" in options else "FIRST"
        parts.append(f"{quoted(name)} {direction} NULLS {nulls}")
    return ", ".join(parts)


def compacted(table, key, order_by, op, mode):
    live = f"{quoted(op)} <> 'D'" if mode == "snapshot" else "true"
    kept = chosen(table, key, "last", latest_first(order_by) if order_by else "", live, [*(names(order_by) if order_by else []), op])
    return kept.drop_columns(op) if mode == "snapshot" else kept


def last_known(table, key):
    """The last row of each key, each column with its last value that is not null."""
    table = with_sql_floats(table, names(key))
    others = [name for name in table.column_names if name not in names(key)]
    known = {f"known {name}": table[name].is_valid() for name in others}
    group = ", ".join(quoted(name) for name in names(key))
    picks = ", ".join(f"max({PLACE}) FILTER (WHERE {quoted(f'known {name}')}) AS {quoted(name)}" for name in others)
    sql = f"SELECT max({PLACE}) AS {PLACE}, {picks} FROM t GROUP BY {group} ORDER BY {order_of(key)}"
    found = ask(table, names(key), sql, known)
    columns = {}
    for name in table.column_names:
        places = np.ma.asarray(found[PLACE if name in names(key) else name])
        mask = np.ma.getmaskarray(places)
        columns[name] = data.pick(table[name].combine_chunks(), pa.array(places.filled(0).astype(np.int64), mask=mask))
    return pa.table(columns, schema=table.schema)


def summed(table, key, diff):
    """Rows of the log of changes, without those that cancel out, by key and by all other columns."""
    others = [name for name in table.column_names if name != diff]
    rest = [name for name in others if name not in names(key)]
    group = ", ".join(quoted(name) for name in others)
    order = ", ".join([order_of(key), *(f"{quoted(name)} ASC NULLS LAST" for name in rest)])
    sql = f"""
        SELECT min({PLACE}) AS {PLACE}, sum({quoted(diff)})::BIGINT AS total FROM t GROUP BY {group}
        HAVING sum({quoted(diff)}) <> 0 ORDER BY {order}"""
    found = ask(table, table.column_names, sql)
    kept = data.take(table, pa.array(np.asarray(found[PLACE]).astype(np.int64)))
    place = table.schema.get_field_index(diff)
    return kept.set_column(place, diff, pa.array(np.asarray(found["total"]).astype(np.int64), pa.int64()))


def changes(old, new, key, op):
    """What makes `new` of `old`: each has a key once."""
    both = pa.concat_tables([old, new]).combine_chunks()
    compared = pa.table({name: oracle.comparable(both[name]) for name in names(key)})
    keys = list(zip(*(compared[name].to_pylist() for name in names(key))))
    before = dict(zip(keys[: old.num_rows], range(old.num_rows)))
    after = dict(zip(keys[old.num_rows :], range(old.num_rows, both.num_rows)))
    rows = both.to_pylist()
    words = {}
    for one in {**before, **after}:
        if one not in after:
            words[before[one]] = "delete"
        elif one not in before:
            words[after[one]] = "insert"
        elif rows[before[one]] != rows[after[one]]:
            words[after[one]] = "update"
    table = data.take(both, pa.array(list(words), pa.int64())).add_column(0, op, pa.array(list(words.values()), pa.string()))
    return sort(table, key)


def first_unsorted(table, keys, unique, sql_floats):
    """The first row that is not behind the row before it."""
    compared = with_sql_floats(table, names(keys)) if unique or sql_floats else table
    sql = f"SELECT {PLACE}, dense_rank() OVER (ORDER BY {order_of(keys)}) AS rank FROM t ORDER BY {PLACE}"
    ranks = np.asarray(ask(compared, names(keys), sql)["rank"]).astype(np.int64)
    steps = np.diff(ranks)
    bad = np.flatnonzero(steps <= 0 if unique else steps < 0)
    return int(bad[0]) + 1 if len(bad) else None
