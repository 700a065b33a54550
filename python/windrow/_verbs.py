"""The calls: arguments go to the library as they are, under their names.

Which arguments there are, what they mean and what they are unless given is the library's table of settings. ``help`` and
``inspect.signature`` read it when they are asked: see `windrow._arguments`.
"""

import os

from windrow import _arguments, _windrow
from windrow._errors import UsageError
from windrow._reader import Reader
from windrow._results import Applied, Check, Explain, Inspect


class Call:
    """A function of this package, with the arguments of a verb of the library."""

    def __init__(self, verb, run, text, key=None, inputs=("inputs",), within="", more=()):
        self.__name__ = verb
        self.__qualname__ = within + verb
        self.__module__ = "windrow"
        self.inputs, self.key = inputs, key
        # What may come without its name, behind the inputs.
        self.positional = (key, *more) if key else ()
        self._run, self._text = run, text

    def __call__(self, *given, **options):
        names = (*self.inputs, *self.positional)
        if len(given) > len(names) or any(map(_arguments.is_rows, given[len(self.inputs) :])):
            raise TypeError(_arguments.positional(self, names, given))
        for name, value in zip(names, given):
            if name in options:
                line = f"; several inputs are one list: {self.__name__}([a, b], {name}=...)" if self.inputs == ("inputs",) else ""
                raise TypeError(f"{self.__name__}() has two values for {name}={line}")
            options[name] = value
        if self.inputs[1:] == ("new",) and len(given) == 2 and isinstance(given[1], str) and self.key not in options:
            # The key in the place of the other side.
            del options[self.inputs[1]]
        missing = [name for name in self.inputs if name not in options]
        if missing:
            line = f"wr.{self.__name__}({', '.join(self.inputs)}, {self.key}=...)" if len(self.inputs) > 1 else ""
            raise TypeError(f"{self.__name__}() needs {missing[0]}={': ' * bool(line)}{line}")
        # Directories with copies of open files.
        kept = []
        directory = temp_dir(options)
        try:
            given = ((name, options.pop(name)) for name in self.inputs)
            inputs = tuple(value if name == "target" else _taken(value, directory, kept) for name, value in given)
            inputs = inputs if len(inputs) > 1 else inputs[0]
            options = _others(self.__name__, options)
            if not hasattr(options.get("output"), "write"):
                return self._run(self.__name__, inputs, options)
            from windrow import _inputs

            options["output"], copy = _inputs.copied(options["output"], directory, options.get("write"), kept)
            result = self._run(self.__name__, inputs, options)
            copy()
            return result
        finally:
            if kept:
                from windrow import _inputs

                # These calls read files while their rows are read.
                _inputs.removed(kept, self.__name__ in ("merge", "head") and options.get("output") is None)

    def __get__(self, instance, owner=None):
        # What has this method is a function to `help`.
        return self

    def __reduce__(self):
        return self.__qualname__

    def __repr__(self):
        return f"<function windrow.{self.__qualname__}>"

    @property
    def __signature__(self):
        return _arguments.signature(self)

    @property
    def __doc__(self):
        return _arguments.documentation(self, self._text)


def _taken(value, temp_dir, kept):
    """What the library reads for an input."""
    if isinstance(value, (str, os.PathLike)):
        return value
    if isinstance(value, (list, tuple)) and not (value and all(isinstance(row, dict) for row in value)):
        return [_taken(one, temp_dir, kept) for one in value]
    from windrow import _inputs

    return _inputs.taken(value, temp_dir, kept)


def temp_dir(options):
    """The directory for temporary files that an option names, or None."""
    spill = options.get("spill")
    directories = spill.get("temp_dir") if isinstance(spill, dict) else None
    return directories[0] if isinstance(directories, (list, tuple)) and directories else directories


def _others(verb, options):
    """The options as the library has them."""
    where = options.get("where")
    if where is not None and not isinstance(where, str):
        from windrow import _filters

        options["where"] = _filters.text(where)
    if verb == "dedupe" and options.get("keep") is False:
        # pandas' word.
        options["keep"] = "none"
    if verb == "partition" and "mode" in options:
        options["write"] = {**(options.get("write") or {}), "mode": options.pop("mode")}
    return options


def _watched(call, options):
    if options.get("progress") in (None, False):
        return call(None)
    from windrow._progress import watching

    with watching(options["progress"]) as progress:
        return call(progress)


def _run(verb, inputs, options):
    result = _watched(lambda progress: _windrow.run(verb, inputs, progress, options), options)
    if options.get("output") is None:
        return Reader(result)
    if result.details.bloom_filters_dropped:
        _arguments.warned("the output has no Bloom filters, and inputs have some: look-ups that used them read more")
    return result


def _read(text):
    # It takes longer than all else that the import of this package needs.
    import json

    return json.loads(text)


def _apply(_, inputs, options):
    from windrow import _delta, _iceberg, _vectors

    target, changes = inputs
    transaction = options.pop("transaction", None)
    mode = _vectors.mode_of(options.pop("write_mode", None))
    if _delta.is_table(target):
        return _delta.apply(target, changes, transaction, mode, options)
    if _iceberg.is_table(target):
        return _iceberg.apply(target, changes, transaction, mode, options)
    if mode != "copy":
        raise UsageError("write_mode= is for tables of Delta and Iceberg: a directory has no place to record hidden rows")
    if transaction is not None:
        raise UsageError("transaction= is for tables of Delta and Iceberg: a directory has no place to record it")
    target = os.path.expanduser(os.fspath(target))
    text, _ = _watched(lambda progress: _windrow.apply((target, changes), progress, options), options)
    return Applied(**_read(text))


def _check(_, inputs, options):
    return Check(**_read(_windrow.check(inputs, options)))


def _inspect(_, inputs, options):
    many, files = _windrow.inspect(inputs, options)
    found = [Inspect(text, _read(facts)) for text, facts in files]
    return found if many else found[0]


def _explain(verb, inputs, options):
    return Explain(**_read(_windrow.explain(verb, inputs, options)))


def explaining(call):
    """The call that only explains what ``call`` would do."""
    text = f"What `{call.__name__}` would do with the same arguments, without doing it."
    return Call(call.__name__, _explain, text, call.key, call.inputs, "explain.", call.positional[1:])


sort = Call(
    "sort",
    _run,
    r"""Sorts rows by columns; equal rows keep their order.

Examples
--------
>>> import pyarrow as pa
>>> import windrow as wr
>>> rows = pa.table({"id": [2, 1, 3], "name": ["b", None, "c"]})
>>> pa.table(wr.sort(rows, "id", descending=True))["id"].to_pylist()
[3, 2, 1]
>>> pa.table(wr.sort(rows, by=wr.col("name", nulls="first"), select=["name"]))["name"].to_pylist()
[None, 'b', 'c']
>>> pa.table(wr.sort(rows, by="id:desc", where="name is not null", limit=1))["id"].to_pylist()
[3]
""",
    key="by",
)

compact = Call(
    "compact",
    _run,
    r"""Reduces a change log to the latest state of each key, or sums (row, time, diff) changes.

Of the rows of one ``key`` the greatest by ``order_by`` wins; of equals, the later in the input. A winning delete
removes the key from a snapshot.

Examples
--------
>>> import pyarrow as pa
>>> import windrow as wr
>>> changes = pa.table({"id": [1, 2, 1, 2], "lsn": [1, 2, 3, 4], "op": ["I", "I", "U", "D"], "name": list("abcd")})
>>> pa.table(wr.compact(changes, key="id", order_by="lsn", op="op")).to_pylist()
[{'id': 1, 'lsn': 3, 'name': 'c'}]
""",
    key="key",
)

apply = Call(
    "apply",
    _apply,
    r"""Applies a change log to a directory of Parquet files, or to a table of Delta or Iceberg.

Only row groups with a changed key are encoded. A directory changes as a whole or not at all, a Delta table by one commit, and an
Iceberg table by one snapshot. The last change of a key counts. If the files have the columns of ``order_by``, a change that
is older than its row loses.

Examples
--------
>>> import pyarrow as pa
>>> import windrow as wr
>>> users = pa.table({"id": [1, 2, 3], "name": ["ann", "bob", "cid"]})
>>> written = wr.sort(users, "id", output="users", write={"max_file_size": "1MiB", "format": "parquet"})
>>> log = pa.table({"op": ["U", "D", "I"], "id": [2, 3, 4], "name": ["rob", None, "dan"]})
>>> applied = wr.apply("users", log, "id", op="op")
>>> applied.inserted, applied.updated, applied.deleted
(1, 1, 1)
>>> pa.table(wr.sort("users", "id"))["name"].to_pylist()
['ann', 'rob', 'dan']
""",
    key="key",
    inputs=("target", "inputs"),
    more=("order_by",),
)

merge = Call(
    "merge",
    _run,
    r"""Merges inputs that are sorted already; one that is not is an `UnsortedError` that names the row.

Examples
--------
>>> import pyarrow as pa
>>> import windrow as wr
>>> evens, odds = pa.table({"id": [0, 2, 4]}), pa.table({"id": [1, 3]})
>>> pa.table(wr.merge([evens, odds], "id"))["id"].to_pylist()
[0, 1, 2, 3, 4]
""",
    key="by",
)

dedupe = Call(
    "dedupe",
    _run,
    r"""Leaves one row of each key, sorted by it.

Keys are equal as in SQL: nulls are one key, and so are -0.0 and 0.0, and all NaN.

Examples
--------
>>> import pyarrow as pa
>>> import windrow as wr
>>> rows = pa.table({"id": [2, 1, 2], "name": ["a", "b", "c"]})
>>> pa.table(wr.dedupe(rows, "id", keep="last"))["name"].to_pylist()
['b', 'c']
""",
    key="key",
)

diff = Call(
    "diff",
    _run,
    r"""The changes that make ``new`` of ``old``, sorted by the key: a change log that `compact` takes.

Either side may be in any order; one that has a key twice is an error. The first column says what a change does:
``"insert"``, ``"update"`` or ``"delete"``; the others are the new row, or the old one that is gone.

Examples
--------
>>> import pyarrow as pa
>>> import windrow as wr
>>> old = pa.table({"id": [1, 2, 3], "name": ["ann", "bob", "cid"]})
>>> new = pa.table({"id": [4, 3, 2], "name": ["dan", "cid", "rob"]})
>>> pa.table(wr.diff(old, new, key="id")).to_pylist()[0]
{'op': 'delete', 'id': 1, 'name': 'ann'}
>>> pa.table(wr.diff(old, new, key="id"))["op"].to_pylist()
['delete', 'update', 'insert']
""",
    inputs=("old", "new"),
    key="key",
)

head = Call(
    "head",
    _run,
    r"""The first rows of the inputs, as they come: ten unless ``rows`` says how many.

Examples
--------
>>> import pyarrow as pa
>>> import windrow as wr
>>> pa.table(wr.head(pa.table({"id": [3, 1, 2]}), 2))["id"].to_pylist()
[3, 1]
""",
    key="rows",
)

partition = Call(
    "partition",
    _run,
    r"""Splits rows into files of a directory; rows with equal ``by`` go to the same one.

``mode`` is for a directory that has files.

Examples
--------
>>> import pyarrow as pa
>>> import windrow as wr
>>> events = pa.table({"user": [1, 2, 3, 1], "at": [4, 3, 2, 1]})
>>> wr.partition(events, "user", into=2, sort="at", output="events").partitions["files"]
2
>>> wr.merge("events", by="at", output="events.parquet").rows_out
4
""",
    key="by",
    more=("output",),
)

check = Call(
    "check",
    _check,
    r"""Whether every input is sorted by these columns, each by itself.

``unique`` also asks that no two rows are equal in them, as in SQL; ``float_order`` is as of `sort`. The result is true or false, and has the first
offending ``file`` and ``row``.

Examples
--------
>>> import pyarrow as pa
>>> import windrow as wr
>>> wr.check(pa.table({"id": [1, 2, 2]}), by="id", unique=True).row
2
""",
    key="by",
)

inspect = Call(
    "inspect",
    _inspect,
    r"""Schema, rows, row groups, sizes and statistics of a file, and whether a declared order holds.

A list of these where ``inputs`` is a list, a directory or a pattern.

Examples
--------
>>> import pyarrow as pa
>>> import windrow as wr
>>> stats = wr.sort(pa.table({"id": [2, 1]}), by="id", output="sorted.parquet")
>>> facts = wr.inspect("sorted.parquet")
>>> facts.rows, facts.parquet["order"]["holds"]
(2, True)
""",
)
