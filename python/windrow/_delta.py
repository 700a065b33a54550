"""Changes applied to Delta tables: one commit that removes and adds files, by deltalake's own transactions.

    table, newest version --> its files --> the library: new files beside them --> commit --> done
            ^                                                                        |
            +----------------------------- another writer came between --------------+

New files have names that no other job uses. A job that is killed leaves files that no version of the table has, which
``vacuum`` removes.
"""

import contextlib
import datetime
import json
import math
import os
import secrets
import shutil
import tempfile
import time
import typing
import urllib.parse
import uuid

from windrow import _vectors, _windrow
from windrow._errors import DataError, SpaceError, UsageError
from windrow._places import Local, Store, text
from windrow._progress import watching
from windrow._results import Applied

# How often a job begins again after another writer's commit.
ATTEMPTS = 20
# What tables may ask for without a consequence for this module, or with one that `refuse` looks at.
KNOWN = {
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "columnMapping",
    "deletionVectors",
    "generatedColumns",
    "identityColumns",
    "invariants",
    "timestampNtz",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantType",
}
TYPES = {
    "byte": "int8",
    "short": "int16",
    "integer": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "string": "utf8",
    "date": "date32",
    "timestamp": "timestamp_us(UTC)",
    "timestamp_ntz": "timestamp_us",
    "binary": "binary",
    "boolean": "bool",
}
# What a field may say about its values.
OF_FIELDS = {
    "delta.generationExpression": "generated columns",
    "delta.identity.start": "identity columns",
    "delta.invariants": "invariants",
}


def is_table(target):
    """Whether a target of changes is a Delta table."""
    if type(target).__module__.partition(".")[0] == "deltalake":
        return True
    if not isinstance(target, (str, os.PathLike)):
        return False
    target = os.path.expanduser(os.fspath(target))
    # A prefix of a store is a table of Delta, or is refused by its library.
    return "://" in target or os.path.isdir(os.path.join(target, "_delta_log"))


def apply(target, changes, transaction, mode, options):
    """Applies changes to a `deltalake.DeltaTable`, or to the table at a path."""
    from deltalake import DeltaTable
    from deltalake.exceptions import CommitFailedError

    given = None if isinstance(target, (str, os.PathLike)) else target
    uri = os.path.expanduser(os.fspath(target)) if given is None else given.table_uri
    stored = options.get("storage_options") or getattr(given, "_storage_options", None)
    if stored:
        options = {**options, "storage_options": stored}
        stored = {name: text(value) for name, value in stored.items()}

    def attempt():
        place = _place(uri, stored, options)
        with contextlib.closing(place):
            return _attempt(DeltaTable(uri, storage_options=stored), place, changes, transaction, mode, options)

    applied = repeated(attempt, (CommitFailedError, _vectors.Conflict), uri, changes, options)
    if given is not None:
        given.update_incremental()
    return applied


def repeated(attempt, conflict, name, changes, options):
    """Attempts a job until no other writer commits in between."""
    for number in range(1, ATTEMPTS + 1):
        try:
            return attempt()
        except conflict as error:
            again = "another writer changed the table during the job, and the changes are not applied"
            if (options.get("write") or {}).get("wait") is False or number == ATTEMPTS:
                raise SpaceError(f"{name}: {again}; run the job again") from error
            if not _can_be_read_again(changes):
                raise SpaceError(f"{name}: {again}; run the job again, with files or tables, which are read again") from error
            time.sleep(secrets.randbelow(100) / 1000)


def _attempt(table, place, changes, transaction, mode, options):
    refuse(table)
    by = table.metadata().partition_columns
    sizes, values = _files(table, by)
    may_hide = "deletionVectors" in (table.protocol().reader_features or [])
    adds = _vectors.adds(place, table.version(), sizes) if may_hide else {}
    vectors = {path: add["deletionVector"] for path, add in adds.items() if add.get("deletionVector")}
    if transaction is not None:
        app, version = transaction
        done = table.transaction_version(app)
        if done is not None and done >= version:
            applied = nothing(sizes, table.count() - sum(vector["cardinality"] for vector in vectors.values()))
            applied.version = table.version()
            return applied
    schema = json.loads(table.schema().to_json())
    kinds = {field["name"]: field["type"] for field in schema["fields"]}
    types = ",".join(f"{name}:{TYPES.get(kinds[name]) or kinds[name].replace('decimal', 'decimal128')}" for name in by)
    empty = table.schema().to_arrow().empty_table()
    files = {path: [(name, values[path][name]) for name in by] for path in sizes}
    hidden = {path: _vectors.read(place, vector) for path, vector in vectors.items()}
    hides = _mode(table, mode, may_hide)
    listed = Listed(place, "", files, hidden, empty.drop_columns(by), [(name, None) for name in by], [], types, hides)
    applied, bitmaps = listed.apply(changes, options)
    applied.version = table.version()
    written = [file["path"] for file in applied.files_added]
    try:
        for file in applied.files_added:
            _check_nulls(schema, file)
        if applied.dry_run or not (applied.files_removed or applied.files_added or applied.vectors or transaction):
            return applied
        new = [(file["path"], file["bytes"], dict(zip(by, file["partition"])), json.dumps(statistics(schema, file))) for file in applied.files_added]
        place.publish(written)
        if applied.vectors or vectors.keys() & {*applied.files_removed}:
            _commit_vectors(table, place, applied, adds, new, bitmaps, transaction, written)
        else:
            _commit(table, [(path, sizes[path], values[path]) for path in applied.files_removed], new, transaction)
    except BaseException as error:
        # An error may come after the commit, which has the files then.
        if isinstance(error, _vectors.Conflict) or not _is_committed(place, applied.version + 1, written):
            place.remove(written)
        raise
    applied.version += 1
    return applied


def _mode(table, mode, may_hide):
    if may_hide and table.metadata().configuration.get("delta.enableDeletionVectors") == "true":
        return mode
    if mode == "vectors":
        how = "`DeltaTable.alter.set_table_properties({'delta.enableDeletionVectors': 'true'})` allows them"
        raise UsageError(f"{table.table_uri}: the table has no deletion vectors, which write_mode=\"vectors\" writes; {how}, for readers that know them")
    return "copy"


def _commit(table, removed, new, transaction):
    """Commits by deltalake, which knows no vectors."""
    from deltalake.transaction import AddAction, CommitProperties, RemoveAction, Transaction

    now = int(time.time() * 1000)
    actions = [RemoveAction(path, True, now, size, partition) for path, size, partition in removed]
    actions += [AddAction(path, size, partition, now, True, stats) for path, size, partition, stats in new]
    # Without retries: a commit in between may have changed rows that were read here.
    once = CommitProperties(
        custom_metadata={"operationParameters": {"tool": "windrow apply"}},
        max_commit_retries=0,
        app_transactions=[Transaction(*transaction)] if transaction else None,
    )
    table.create_write_transaction(actions, "append", table.schema(), commit_properties=once)


def _commit_vectors(table, place, applied, adds, new, bitmaps, transaction, written):
    """Commits files and deletion vectors. `written` gets the file of the vectors."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    now, hides, version = int(time.time() * 1000), applied.vectors, applied.version + 1
    vectors = []
    if hides:
        path, size, vectors = _vectors.write(place, [(bitmap, file["hidden"]) for bitmap, file in zip(bitmaps, hides)])
        written.append(path)
        applied.bytes_out += size
    info = {"timestamp": now, "operation": "MERGE", "operationParameters": {"tool": "windrow apply"}, "readVersion": applied.version}
    actions = [{"commitInfo": {**info, "isBlindAppend": False, "engineInfo": "windrow", "txnId": str(uuid.uuid4())}}]
    if transaction:
        actions.append({"txn": {"appId": transaction[0], "version": transaction[1], "lastUpdated": now}})
    changed = [*applied.files_removed, *(file["path"] for file in hides)]
    actions += [{"remove": _vectors.removal(adds[path], now)} for path in changed]
    actions += [{"add": _vectors.with_vector(adds[file["path"]], vector, file["of"])} for file, vector in zip(hides, vectors)]
    for path, size, partition, stats in new:
        known = {"partitionValues": partition, "modificationTime": now, "dataChange": True}
        actions.append({"add": {"path": urllib.parse.quote(path, safe="/=+"), "size": size, **known, "stats": stats}})
    _vectors.commit(place, version, actions)
    interval = table.metadata().configuration.get("delta.checkpointInterval") or "100"
    if interval.isdigit() and version % max(int(interval), 1) == 0:
        try:
            DeltaTable(table.table_uri, storage_options=table._storage_options).create_checkpoint()
        except DeltaError:
            # The version is committed, and a reader does without a checkpoint.
            pass


def _is_committed(place, version, written):
    log = (place.read(f"_delta_log/{version:020}.json") or b"").decode()
    if not log:
        return False
    # The name of a file of vectors is encoded in the log.
    names = [os.path.basename(path) for path in written if path.endswith(".parquet")]
    return not names or any(name in log for name in names)


def _place(uri, stored, options):
    if uri.startswith("file://"):
        uri = urllib.parse.unquote(uri.removeprefix("file://"))
    if "://" not in uri:
        return Local(uri)
    return Store(uri, _Files(uri, stored), options)


class _Files:
    """The files of a table in a store, as `Store` reaches them."""

    def __init__(self, uri, stored):
        from deltalake.fs import DeltaStorageHandler

        handler = DeltaStorageHandler(uri, stored)
        self.delete_file, self.open_input_file, self._open = handler.delete_file, handler.open_input_file, handler.open_output_stream
        self._list = handler.get_file_info_selector

    def names(self, folder):
        from pyarrow.fs import FileSelector  # type: ignore[import-untyped]

        return [info.base_name for info in self._list(FileSelector(folder))]

    def open_output_stream(self, name):
        import pyarrow as pa  # type: ignore[import-untyped]

        # The stream takes bytes of Python, which pyarrow makes of a buffer that it owns.
        return pa.BufferedOutputStream(self._open(name), 8 << 20)


def refuse(table):
    """Refuses a table that asks for what is not served."""
    protocol, metadata = table.protocol(), table.metadata()
    configuration = metadata.configuration
    asked = [*({*(protocol.reader_features or []), *(protocol.writer_features or [])} - KNOWN)]
    asked += [f"the constraint {name.removeprefix('delta.constraints.')}" for name in configuration if name.startswith("delta.constraints.")]
    asked += ["column mapping"] * (configuration.get("delta.columnMapping.mode") not in (None, "none"))
    for name, what in [
        ("delta.appendOnly", "appends alone (delta.appendOnly)"),
        ("delta.enableChangeDataFeed", "a change data feed"),
        ("delta.enableRowTracking", "row tracking"),
    ]:
        asked += [what] * (str(configuration.get(name)).lower() == "true")
    schema = json.loads(table.schema().to_json())
    said = json.dumps(schema)
    asked += [what for name, what in OF_FIELDS.items() if f'"{name}"' in said]
    asked += [f"columns of type {kind}" for kind in _primitives(schema) if kind not in TYPES and not kind.startswith("decimal")]
    if asked:
        raise UsageError(f"{table.table_uri}: the table has {', '.join(sorted(asked))}; `apply` does not serve that yet")


def _primitives(kind):
    """The types of columns, members, elements and entries."""
    if isinstance(kind, str):
        return {kind}
    inner = [field["type"] for field in kind.get("fields", [])]
    inner += [kind[name] for name in ("elementType", "keyType", "valueType") if name in kind]
    return set().union(*map(_primitives, inner))


def _files(table, by):
    """The sizes of the files of a table, and their values of the columns `by`, as text."""
    actions = table.get_add_actions(flatten=True)
    columns = [actions.column(name).to_pylist() for name in ("path", "size_bytes", *(f"partition.{name}" for name in by))]
    sizes, values = {}, {}
    for name, size, *partition in zip(*columns):
        if "://" in name or name.startswith("/") or ".." in name.split("/"):
            raise UsageError(f"{name}: is a file outside of the table's directory, as in a shallow clone; copy the table first")
        path = urllib.parse.unquote(name)
        # Writers encode other characters each in their way, and a removal would miss the file.
        if urllib.parse.quote(path, safe="/=+") != name:
            raise UsageError(f"{name}: has a name that `apply` does not serve; `DeltaTable.optimize.compact` writes new files")
        sizes[path], values[path] = size, {name: text(value) for name, value in zip(by, partition)}
    return sizes, values


class Listed(typing.NamedTuple):
    """A table by its files."""

    place: typing.Any
    # The directory of new files, below the place.
    below: str
    # The files below the place, and the values of columns that they do not have.
    files: dict
    # The bitmaps of the hidden rows of files.
    hidden: dict
    # All columns of the files, without rows.
    empty: typing.Any
    # The columns that files do not have, without values.
    partition: list
    # The columns that divide the table, and their transforms; by default the columns that files do not have.
    by: list
    # The types of columns that files do not have.
    types: str
    # How rows are replaced.
    mode: str

    def apply(self, changes, options):
        """Writes the new files. Returns the result, and the bitmaps of `vectors` in it."""
        from windrow import _verbs

        # A file without rows is one of the files: others may be older than a column.
        name = os.path.join(self.below, f"part-00000-{secrets.token_hex(16)}.parquet")
        place, beside = self.place, tempfile.mkdtemp(prefix="windrow-", dir=_verbs.temp_dir(options))
        os.makedirs(os.path.dirname(place.there(name)), exist_ok=True)
        there = os.path.join(beside, os.path.basename(name))
        try:
            _verbs.head(self.empty, output=there)
            files = [(path, values, self.hidden.get(path, b"")) for path, values in self.files.items()]
            files.append((there, self.partition, b""))
            listed = (secrets.randbits(62), files, self.below, place.written_in, self.by, self.types or None, self.mode)
            target = (place.directory, listed)
            with watching(options.get("progress")) as progress:
                text, bitmaps = _windrow.apply((target, changes), progress, options)
            applied = Applied(**json.loads(text))
        except DataError as error:
            if name not in str(error):
                raise
            what = f"{place.directory}: a file has other types than the table, such as times as INT96"
            raise UsageError(f"{what}: {error}; write the table again with the types of its schema first") from error
        finally:
            shutil.rmtree(beside, ignore_errors=True)
        applied.files_removed = [path for path in applied.files_removed if path != name]
        applied.files_left = [path for path in applied.files_left if path != name]
        return applied, bitmaps


def _check_nulls(schema, file):
    nulls = {column["name"]: column["nulls"] for column in file["columns"]}
    for field in schema["fields"]:
        if not field["nullable"] and nulls.get(field["name"]):
            name = field["name"]
            raise UsageError(f"column {name!r} is null in a row of the changes, and the table allows no nulls in it")


def nothing(paths, rows):
    """The result of changes that a table has already."""
    counts = dict.fromkeys(["rows_in", "keys", "inserted", "updated", "deleted", "unchanged", "stale", "absent"], 0)
    groups = dict.fromkeys(["row_groups_rewritten", "row_groups_copied", "row_groups_left"], 0)
    sizes = dict.fromkeys(["bytes_out", "bytes_of_changes", "spilled_bytes", "peak_rss_bytes"], 0)
    files = {"files_removed": [], "files_added": [], "files_left": [*paths], "vectors": []}
    return Applied(dry_run=False, write_mode="copy", **counts, rows_out=rows, **files, **groups, **sizes, memory_limit_bytes=None, seconds=0.0)


def _can_be_read_again(changes):
    if isinstance(changes, (list, tuple)):
        return all(map(_can_be_read_again, changes))
    # Tables have a number of rows; streams do not know theirs.
    return isinstance(changes, (str, os.PathLike)) or any(hasattr(changes, name) for name in ("num_rows", "height", "iloc"))


def statistics(schema, file):
    """The statistics of a file, as a Delta log has them."""
    columns = {column["name"]: column for column in file["columns"]}
    found = {"numRecords": file["rows"], "minValues": {}, "maxValues": {}, "nullCount": {}}

    def add(fields, path, places):
        for field in fields:
            name, kind = field["name"], field["type"]
            whole = ".".join([*path, name])
            if isinstance(kind, dict) and kind["type"] == "struct":
                inner = [{} for _ in places]
                add(kind["fields"], [*path, name], inner)
                for place, values in zip(places, inner):
                    if values:
                        place[name] = values
                continue
            column = columns.get(whole)
            if column is None or not isinstance(kind, str) or "." in name:
                continue
            least, most, nulls = places
            if column["nulls"] is not None:
                nulls[name] = column["nulls"]
            for place, text, up in [(least, column["min"], False), (most, column["max"], True)]:
                value = None if text is None else _value(kind, text, up)
                if value is not None:
                    place[name] = value

    add(schema["fields"], [], [found["minValues"], found["maxValues"], found["nullCount"]])
    return found


def _value(kind, text, up):
    """A bound of a column as JSON, or None if the log would not have it right."""
    if kind in ("byte", "short", "integer", "long"):
        return int(text)
    if kind in ("string", "date"):
        return text
    if kind in ("float", "double"):
        # Not a number is the greatest value, and no bound tells of it. JSON has no infinity.
        return None if up or not math.isfinite(float(text)) else float(text)
    if kind.startswith("decimal"):
        # Numbers of JSON keep 15 digits.
        return float(text) if sum(map(str.isdigit, text)) <= 15 else None
    if kind in ("timestamp", "timestamp_ntz"):
        return _time(text, up)
    return None


def _time(text, up):
    """A time in milliseconds, as bounds are."""
    try:
        time = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    rest = time.microsecond % 1000
    time -= datetime.timedelta(microseconds=rest)
    if up and rest:
        time += datetime.timedelta(milliseconds=1)
    zone = "Z" if time.tzinfo else ""
    return time.replace(tzinfo=None).isoformat(timespec="milliseconds") + zone
