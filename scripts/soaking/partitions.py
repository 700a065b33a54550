"""Jobs of `partition`: the files together are the input, a key is in one file, and names say where it is."""

import urllib.parse

import numpy as np
import pyarrow as pa

import data

from . import files, models, tables
from .tables import ROW


def partition(maker):
    way = str(maker.rng.choice(["hash", "range", "range at", "hive"]))
    table = maker.table()
    counted = maker.where(table)
    order = tables.keys_of(table)[0] + ":desc" if maker.chance(0.3) else None
    maker.output_options()
    maker.options += ["--output-format", maker.target, *(["--sort", order] if order else [])]
    judge = {"hash": by_hash, "range": by_range, "range at": at_values, "hive": by_hive}[way](maker, table, counted, order)
    return maker.job(tables.pieces(maker.rng, table), judge, target=maker.target, output="out", directory=True)


def held(maker, path, wanted, order, null_text):
    """The rows of one file, which are rows of the input in the order that they should have."""
    got = maker.read(path, wanted)
    numbers = got[ROW].cast(pa.int64()).to_pylist()
    place = {number: place for place, number in enumerate(wanted[ROW].to_pylist())}
    assert all(number in place for number in numbers), f"{path.name}: a row that is not in the input"
    mine = data.take(wanted, pa.array(sorted(place[number] for number in numbers), pa.int64()))
    mine = models.sort(mine, order) if order and order.split(":")[0] in mine.column_names else mine
    told = files.difference(got, mine, maker.target, null_text)
    assert told is None, f"{path.name}: {told}"
    return numbers


def numbered(maker, folder, wanted, order, into, null_text):
    paths = sorted(folder.iterdir())
    assert len(paths) == into, f"{len(paths)} files instead of {into}"
    numbers = [held(maker, path, wanted, order, null_text) for path in paths]
    every = sorted(number for part in numbers for number in part)
    assert every == sorted(wanted[ROW].to_pylist()), f"{len(every)} rows instead of {wanted.num_rows}"
    return numbers


def ranks(table, by, sql_floats):
    """For each row's number the rank of its key. A hash is that of floats as in SQL, ranges are those of the order of `sort`."""
    compared = models.with_sql_floats(table, models.names(by)) if sql_floats else table
    sql = f"SELECT {models.PLACE}, dense_rank() OVER (ORDER BY {models.order_of(by)}) AS rank FROM t ORDER BY {models.PLACE}"
    found = np.asarray(models.ask(compared, models.names(by), sql)["rank"]).astype(np.int64).tolist()
    return dict(zip(table[ROW].to_pylist(), found))


def by_hash(maker, table, wanted, order):
    by = tables.keys_of(table)[: int(maker.rng.integers(1, 3))]
    into = int(maker.rng.choice([1, 2, 7, 40]))
    maker.options += ["--by", ",".join(by), "--into", str(into)]
    null_text = maker.null_text

    def judge(folder):
        rank, where = ranks(wanted, ",".join(by), True), {}
        for number, rows in enumerate(numbered(maker, folder, wanted, order, into, null_text)):
            for row in rows:
                assert where.setdefault(rank[row], number) == number, "a key is in two files"

    return judge


def by_range(maker, table, wanted, order):
    into = int(maker.rng.choice([1, 3, 9]))
    by = tables.keys_of(table)[0] + str(maker.rng.choice(["", ":desc", ":nulls-first"]))
    maker.options += ["--by", by, "--range", "--into", str(into)]
    return ascending(maker, wanted, order, by, into)


def ascending(maker, wanted, order, by, into):
    null_text = maker.null_text

    def judge(folder):
        rank, last = ranks(wanted, by, False), 0
        for rows in numbered(maker, folder, wanted, order, into, null_text):
            held = [rank[row] for row in rows]
            assert not held or min(held) > last, "ranges overlap"
            last = max([last, *held])

    return judge


def at_values(maker, table, wanted, order):
    """Ranges of the rows' numbers, whose ends are known."""
    ends = sorted({int(end) for end in maker.rng.integers(0, max(2, table.num_rows), 3)})
    maker.options += ["--by", ROW, *[word for end in ends for word in ("--range-at", str(end))]]
    null_text = maker.null_text

    def judge(folder):
        for number, rows in enumerate(numbered(maker, folder, wanted, order, len(ends) + 1, null_text)):
            assert all(sum(row >= end for end in ends) == number for row in rows), "a row in another range"

    return judge


def by_hive(maker, table, wanted, order):
    """A directory for each value of columns whose text is known."""
    plain = [pa.string(), pa.bool_(), pa.date32(), *data.INTEGERS]
    # Names of directories have at most 255 bytes.
    names = [name for name in tables.keys_of(table) if table[name].type in plain and name != "long"][:2]
    if not names or table.num_columns - len(names) < 2:
        return by_hash(maker, table, wanted, order)
    maker.options += ["--by", ",".join(names), "--hive"]
    null_text = maker.null_text

    def judge(folder):
        rest = wanted.drop_columns(names)
        keys = dict(zip(wanted[ROW].to_pylist(), zip(*(wanted[name].to_pylist() for name in names))))
        seen = []
        for path in sorted(file for file in folder.rglob("*") if file.is_file()):
            parts = [part.split("=", 1) for part in path.relative_to(folder).parts[:-1]]
            assert [urllib.parse.unquote(name) for name, _ in parts] == [maker.odd.get(name, name) for name in names], path
            texts = tuple(text_of(urllib.parse.unquote(text)) for _, text in parts)
            rows = held(maker, path, rest, order, null_text)
            assert rows, f"{path}: no rows"
            for row in rows:
                assert tuple(map(shown, keys[row])) == texts, f"{path}: row {row} is of {keys[row]}"
            seen += rows
        assert sorted(seen) == sorted(wanted[ROW].to_pylist()), f"{len(seen)} rows instead of {wanted.num_rows}"

    return judge


def shown(value):
    """The text of a value in a path."""
    return value if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def text_of(name):
    return None if name == "__HIVE_DEFAULT_PARTITION__" else name
