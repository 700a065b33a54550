"""The rows of a call: read once, by any Arrow library, or by the methods that name one."""

import itertools
import sys

from windrow import _rows


class Reader:
    """Rows in order, as record batches. They are made as they are read, and can be read once.

    Any Arrow library takes a reader: ``pa.table(reader)``, ``pl.DataFrame(reader)``, ``con.from_arrow(reader)``. The
    methods do the same. A reader shows its first rows where it is printed; they are still to be read then.

    >>> import pyarrow as pa
    >>> import windrow as wr
    >>> orders = pa.table({"id": [3, 1, 2], "price": [30, None, 20]})
    >>> wr.sort(orders, by="id")
    id     price
    Int64  Int64
    -----  -----
    1      null
    2      20
    3      30
    (3 rows)
    >>> wr.sort(orders, by="id").to_pylist()
    [{'id': 1, 'price': None}, {'id': 2, 'price': 20}, {'id': 3, 'price': 30}]
    """

    def __init__(self, rows):
        self._rows = rows
        # Rows of a record batch that fetchmany() has not returned.
        self._fetched = None

    @property
    def schema(self):
        """The columns."""
        return self._rows.schema

    @property
    def stats(self):
        """The `Stats` of the call so far. Rows are made as they are read: ``rows_out`` counts those that were read."""
        stats = self._rows.stats
        stats._ended = self._rows.ended
        return stats

    def to_arrow(self):
        """All rows as a ``pyarrow.Table``."""
        return _library("pyarrow", "Reader.to_arrow()").table(self)

    read_all = to_arrow

    def to_polars(self):
        """All rows as a ``polars.DataFrame``. (``pl.from_arrow(reader)`` makes a series of structs.)"""
        return _library("polars", "Reader.to_polars()").DataFrame(self)

    def to_pandas(self, **options):
        """All rows as a ``pandas.DataFrame``; ``options`` are those of ``pyarrow.Table.to_pandas``."""
        _library("pandas", "Reader.to_pandas()")
        return self.to_arrow().to_pandas(**options)

    def to_duckdb(self, connection=None):
        """The rows as a relation of DuckDB, on its default connection unless one is given.

        DuckDB reads the rows when the relation is, once; ``.create("name")`` keeps them in a table.
        """
        duckdb = _library("duckdb", "Reader.to_duckdb()")
        return (duckdb if connection is None else connection).from_arrow(self)

    def to_pylist(self):
        """All rows as a list of dicts. Needs pyarrow."""
        return self.to_arrow().to_pylist()

    def fetchmany(self, size=1):
        """The next ``size`` rows as a list of tuples, fewer at the end. Needs pyarrow."""
        if self._fetched is None:
            arrow = _library("pyarrow", "Reader.fetchmany()")
            batches = (arrow.record_batch(batch) for batch in self)
            columns = ([column.to_pylist() for column in batch.columns] for batch in batches)
            self._fetched = itertools.chain.from_iterable(zip(*columns) for columns in columns)
        return list(itertools.islice(self._fetched, size))

    def fetchone(self):
        """The next row as a tuple, or None at the end. Needs pyarrow."""
        return next(iter(self.fetchmany()), None)

    def fetchall(self):
        """The rows that are left, as a list of tuples. Needs pyarrow."""
        return self.fetchmany(None)

    def close(self):
        """Ends the call; its memory and temporary files are given back."""
        self._rows.close()

    def __enter__(self):
        return self

    def __exit__(self, error, value, trace):
        self.close()

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._rows)

    def __getattr__(self, name):
        if name == "stats":
            # The property said why.
            return type(self).stats.fget(self)
        if name in _LINES:
            raise AttributeError(f"a Reader has no {name}: {_LINES[name]}")
        raise AttributeError(f"'Reader' object has no attribute {name!r}")

    def __getitem__(self, name):
        raise TypeError(f"the rows of a Reader come once, in order: reader.to_arrow()[{name!r}] has a column, next(reader) a record batch")

    def __arrow_c_stream__(self, requested_schema=None):
        if sys._getframe(1).f_globals.get("__name__") == "polars.series.series":
            raise TypeError("that makes a series of structs of a Reader; pl.DataFrame(reader), or reader.to_polars()")
        return self._rows.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self):
        return self._rows.__arrow_c_schema__()

    def __array__(self, dtype=None, copy=None):
        # What pandas and NumPy ask for, who would take the record batches for values.
        raise TypeError("a Reader is no array; reader.to_pandas() makes a DataFrame")

    def __repr__(self):
        return self._shown(_rows.text)

    def _repr_html_(self):
        return self._shown(_rows.html)

    def _shown(self, write):
        first = self._rows.peek()
        if first is not None:
            return write(*first)
        columns = ", ".join(f"{name}: {kind}" for name, kind in zip(self.schema.names, self.schema.types))
        plain = f"<Reader: {columns}>"
        return plain if write is _rows.text else _rows.escaped(plain)


# What other libraries call it, or have in place of arguments.
_LINES = {
    "arrow": "reader.to_arrow()",
    "collect": "reader.to_polars(), reader.to_arrow(), ...",
    "columns": "reader.schema.names",
    "df": "reader.to_pandas()",
    "dtypes": "reader.schema.types",
    "fetch_arrow_table": "reader.to_arrow()",
    "fetchdf": "reader.to_pandas()",
    "filter": 'the call has where="..."',
    "head": "wr.head(reader, 10), or reader.fetchmany(10)",
    "limit": "wr.head(reader, 10), or reader.fetchmany(10)",
    "num_rows": "rows are made as they are read; reader.stats.rows_out counts them",
    "pl": "reader.to_polars()",
    "read_next_batch": "next(reader)",
    "rows": "reader.fetchall()",
    "select": "the call has select=[...]",
    "shape": "rows are made as they are read; reader.stats.rows_out counts them",
    "show": "print(reader)",
    "sink_parquet": 'the call has output="..."',
    "to_dicts": "reader.to_pylist()",
    "to_parquet": 'the call has output="..."',
    "to_table": "reader.to_arrow()",
    "write_parquet": 'the call has output="..."',
}


def _library(name, call):
    try:
        return __import__(name)
    except ImportError as error:
        raise ImportError(f"{call} needs {name}: pip install {name}") from error
