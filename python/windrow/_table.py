"""The table with a key: rows that are kept up to date from a stream of changes."""

import os
from pathlib import Path

from windrow import _arguments, _verbs, _windrow
from windrow._errors import UsageError
from windrow._reader import Reader, _library

# More rows than there are.
_ALL = 1 << 62


def _key(name, descending, nulls_first):
    return _windrow.col(name, desc=descending, nulls="first" if nulls_first else "last")


class Table:
    """Rows with a key, kept up to date by upserts and deletes; what does not fit ``memory`` goes to temporary files.

    Each record batch of a change has a time of its own, one more than the one before; what was there at a time can be
    read until it is forgotten. Nothing is kept when the process ends: `checkpoint` writes what is new to a directory,
    `save` writes the rows to a file, and `open` has a table of either again.

    Parameters
    ----------
    schema
        The columns: an Arrow schema, or anything that has one, a dict, or text as ``"id:int64,name:string"``.
    key
        The columns that tell rows apart and order them: text, a list, or of `col`.
    memory
        What the table may add to the resident memory of the process, as for a call, 48 MiB or more: rows, filters and
        buffers. Record batches that come and go are beside it.
    spill
        Temporary files, a `Spill` or a dict, as for a call. `SpaceError` if ``max_temp_size`` does not suffice.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import windrow as wr
    >>> with wr.Table({"id": "int64", "name": "string"}, key="id") as users:
    ...     before = users.upsert(pa.table({"id": [1, 2], "name": ["ann", "bob"]}))
    ...     now = users.upsert(pa.table({"id": [2, 3], "name": ["rob", "cid"]}))
    ...     now = users.delete([1])
    ...     len(users), 3 in users, users[3]
    ...     pa.table(users.scan())["name"].to_pylist()
    ...     pa.table(users.scan(at=before))["name"].to_pylist()
    ...     pa.record_batch(users.get([3, 7])).to_pylist()
    (2, True, {'id': 3, 'name': 'cid'})
    ['rob', 'cid']
    ['ann', 'bob']
    [{'id': 3, 'name': 'cid'}]
    """

    def __init__(self, schema, *, key, memory=None, spill=None):
        self._begin(_windrow.Table(schema, {"key": key, "memory": memory, "spill": spill}), spill)

    def _begin(self, table, spill):
        self._table = table
        # The number of rows, and its time.
        self._counted = (None, 0)
        self._temp_dir = _verbs.temp_dir({"spill": spill})

    @classmethod
    def open(cls, path, *, key=None, memory=None, spill=None):
        """A table with the rows of a file, as `save` writes it, or of a directory, as `checkpoint` does.

        The key is the order that the file declares; give ``key`` for a file that declares none. A checkpoint has the
        key, and the history as far as it was not forgotten.
        """
        if isinstance(path, (str, os.PathLike)) and os.path.isfile(os.path.join(path, "MANIFEST")):
            if key is not None:
                raise UsageError(f"{path} is a checkpoint, which has a key; leave key= out")
            table = cls.__new__(cls)
            table._begin(_windrow.Table.open(Path(path), {"memory": memory, "spill": spill}), spill)
            return table
        rows = _verbs.head(path, _ALL)
        if key is None:
            order = (_verbs.inspect(path).parquet or {}).get("order")
            if not order:
                raise UsageError(f"{path} does not say what its rows are sorted by; give key=")
            key = [_key(**column) for column in order["columns"]]
        table = cls(rows.schema, key=key, memory=memory, spill=spill)
        table.upsert(rows)
        return table

    def save(self, path, *, at=None, **options):
        """Writes the rows to a file, as a whole or not at all; returns `Stats`.

        ``options`` are those of `merge`: ``write=``, ``parquet=``, ``storage_options=``, ...
        """
        by = [_key(*column) for column in self._table.order]
        return _verbs.merge(self.scan(at=at), by=by, output=path, **options)

    def checkpoint(self, directory):
        """Writes the table, with its history, to a directory on a local disk, which is created if it is missing.

        A later checkpoint to the directory writes only what is new, at the cost of the changes since the last one and of
        what was merged. A checkpoint that is cut off, also by a kill, leaves the one before. The directory is for one
        table at a time.
        """
        self._table.checkpoint(Path(directory))

    @property
    def schema(self):
        """The columns."""
        return self._table.schema

    @property
    def key(self):
        """The names of the columns of the key."""
        return self._table.key

    @property
    def now(self):
        """The time of the last change; 0 if there was none."""
        return self._table.now

    @property
    def memory_used(self):
        """The bytes of memory that its rows take now."""
        return self._table.held[0]

    @property
    def temp_bytes(self):
        """The bytes of temporary files that it has."""
        return self._table.held[1]

    def upsert(self, rows):
        """Puts rows in, in place of those with their keys; returns the time from which on all are there.

        ``rows`` is an input as of `sort`, or a dict for a single row; columns are found by name, and all of them must
        be there. Of several rows with one key the last counts. A call that fails in the middle has put the record
        batches before that in.
        """
        return self._table.upsert(self._rows(rows))

    def apply(self, changes, *, op="op", op_map=None, order_by=None):
        """Applies changes, of which the column ``op`` says what each does; returns the time from which on all are there.

        Words as ``insert``, ``update``, ``delete``, ``I``, ``U``, ``D`` are known, and ``op_map`` has others, as of `compact`. Of
        several changes with one key the last counts, or the greatest by ``order_by``. Columns that the table does not
        have are left out. A deleted row needs its key alone. ``changes`` is as of `upsert`.
        """
        import tempfile

        changes, words = self._rows(changes, more=True), {"op_map": op_map}
        with tempfile.TemporaryDirectory(prefix="windrow-", dir=self._temp_dir) as directory:
            # The last change of each key is read three times.
            last = f"{directory}/last.arrow"
            log = {"op": op, "changes": {**words, "mode": "log"}, "order_by": order_by, "output": last}
            _verbs.compact(changes, self.key, **log)
            given = _verbs.head(last, 0).schema.names

            def live(columns):
                return _verbs.compact(last, self.key, op=op, changes=words, select=columns)

            keys = _verbs.head(last, _ALL, select=self.key)
            # Deletes alone may come without the other columns.
            self._table.upsert(live([name for name in self.schema.names if name in given]))
            return self._table.delete(_verbs.diff(keys, live(self.key), self.key))

    def delete(self, keys):
        """Takes rows out by their keys; returns the time from which on they are gone.

        ``keys`` is a value or a list of values, tuples where the key has several columns, or anything that exports
        Arrow with these columns. Keys that are not there are passed over.
        """
        return self._table.delete(keys)

    def get(self, keys, *, at=None):
        """The rows with these keys, those that there are, as they were asked for; as they are, or were ``at`` a time.

        ``keys`` as of `delete`.
        """
        return self._table.get(keys, self._at(at))

    def __len__(self):
        """The number of rows, which are counted once for each time."""
        now, count = self._counted
        if now != self.now:
            self._counted = now, count = self.now, sum(len(batch) for batch in self._table.scan(None, None, None))
        return count

    def __bool__(self):
        return True

    def __contains__(self, key):
        return len(self._table.get([key], None)) > 0

    def __getitem__(self, key):
        """The row with a key, as a dict. Needs pyarrow."""
        rows = _library("pyarrow", "Table[...]").record_batch(self._table.get([key], None)).to_pylist()
        if not rows:
            raise KeyError(key)
        return rows[0]

    def __iter__(self):
        raise TypeError("the rows of a Table are those of table.scan()")

    def scan(self, start=None, stop=None, *, at=None, columns=None, where=None, limit=None):
        """All rows in the order of the key, or those from the key ``start`` on and before ``stop``, as a `Reader`.

        ``columns`` are those to have, ``where`` is a condition as of `sort`, and ``limit`` the most rows. What becomes of
        the table while the reader is read does not show in it.
        """
        rows = Reader(self._table.scan(start, stop, self._at(at)))
        if columns is None and where is None and limit is None:
            return rows
        return _verbs.head(rows, _ALL if limit is None else limit, select=columns, where=where)

    def forget_before(self, time):
        """Gives up what was there before ``time``; its memory and files are free as changes go on."""
        self._table.forget_before(time)

    def close(self):
        """Gives memory and temporary files back; those of readers that are open when they end."""
        self._table.close()

    def __enter__(self):
        return self

    def __exit__(self, error, value, trace):
        self.close()

    def _at(self, time):
        if time is not None and not 0 <= time <= self.now:
            raise UsageError(f"at={time}: times of this table are from 0 to {self.now}, which is table.now")
        return time

    def _rows(self, rows, more=False):
        """Rows as Arrow."""
        if isinstance(rows, dict):
            rows = [rows]
        if not (isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows)):
            return rows if isinstance(rows, list) or _arguments.is_arrow(rows) else _verbs.head(rows, _ALL)
        arrow = _library("pyarrow", "a Table of dicts")
        schema, names = arrow.schema(self.schema), list(dict.fromkeys(name for row in rows for name in row))
        types = {field.name: field.type for field in schema}
        columns = {name: arrow.array([row.get(name) for row in rows], types.get(name)) for name in names}
        lacking = [name for name in types if any(name not in row for row in rows)]
        if lacking and not more:
            raise UsageError(f"a row has no {lacking[0]!r}; the columns are {', '.join(types)}, and a null is None")
        return arrow.table(columns)

    def __repr__(self):
        columns = ", ".join(f"{name}: {kind}" for name, kind in zip(self.schema.names, self.schema.types))
        return f"<Table: {columns}; key {', '.join(self.key)}>"
