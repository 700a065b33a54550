"""The table with a key: rows that are kept up to date from a stream of changes."""

from windrow import _windrow
from windrow._reader import Reader


class Table:
    """Rows with a key, kept up to date by upserts and deletes; what does not fit ``memory`` goes to temporary files.

    Each record batch of a change has a time of its own, one more than the one before; what was there at a time can be
    read until it is forgotten. Nothing is kept when the process ends: to keep a table, write out ``scan()``.

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
    ...     pa.table(users.scan())["name"].to_pylist()
    ...     pa.table(users.scan(at=before))["name"].to_pylist()
    ...     pa.record_batch(users.get([3, 7])).to_pylist()
    ['rob', 'cid']
    ['ann', 'bob']
    [{'id': 3, 'name': 'cid'}]
    """

    def __init__(self, schema, *, key, memory=None, spill=None):
        options = {"key": key, "memory": memory, "spill": spill}
        self._table = _windrow.Table(schema, options)

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

        ``rows`` is anything that exports Arrow; columns are found by name. Of several with one key the last counts.
        A call that fails in the middle has put the record batches before that in.
        """
        return self._table.upsert(rows)

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
        return self._table.get(keys, at)

    def scan(self, start=None, stop=None, *, at=None):
        """All rows in the order of the key, or those from the key ``start`` on and before ``stop``, as a `Reader`.

        What becomes of the table while that is read does not show in it.
        """
        return Reader(self._table.scan(start, stop, at))

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

    def __repr__(self):
        columns = ", ".join(f"{name}: {kind}" for name, kind in zip(self.schema.names, self.schema.types))
        return f"<Table: {columns}; key {', '.join(self.key)}>"
