"""Changes applied to Iceberg tables: one snapshot that removes and adds files, by pyiceberg's own transactions.

The files are written as for Delta tables, see `windrow._delta`. A transaction of the caller is a property of the table.
"""

import contextlib
import os
import uuid

from windrow import _vectors
from windrow._delta import Listed, nothing, repeated
from windrow._errors import UsageError
from windrow._places import Local, Store

# The property that records the version of an application's changes.
RECORD = "windrow.transaction."


def is_table(target):
    """Whether a target of changes is a table of pyiceberg."""
    return type(target).__module__.partition(".")[0] == "pyiceberg"


# Names of pyiceberg's settings of a store, and Windrow's.
SETTINGS = {
    "s3.endpoint": "endpoint",
    "s3.region": "region",
    "s3.access-key-id": "access_key_id",
    "s3.secret-access-key": "secret_access_key",
    "s3.session-token": "session_token",
}


def apply(table, changes, transaction, mode, options):
    """Applies changes to a `pyiceberg.table.Table`, which is refreshed."""
    from pyiceberg.exceptions import CommitFailedException

    name = ".".join(table.name())
    if not options.get("storage_options"):
        known = {ours: table.io.properties[theirs] for theirs, ours in SETTINGS.items() if theirs in table.io.properties}
        if known.get("endpoint", "").startswith("http:"):
            known["allow_http"] = True
        options = {**options, "storage_options": known} if known else options

    def attempt():
        table.refresh()
        with contextlib.closing(_place(table, options)) as place:
            return _attempt(table, name, place, changes, transaction, mode, options)

    return repeated(attempt, CommitFailedException, name, changes, options)


def _attempt(table, name, place, changes, transaction, mode, options):
    from pyiceberg.exceptions import CommitFailedException

    refuse(table, name)
    files, hidden = _files(table, name)
    files = {os.path.relpath(_plain(file.file_path), place.directory): file for file in files}
    hidden = {path: hidden[file.file_path] for path, file in files.items() if file.file_path in hidden}
    if any(path.startswith("..") for path in files):
        raise UsageError(f"{name}: the table has files outside of its directory; rewrite them first")
    if transaction is not None:
        record, version = RECORD + transaction[0], transaction[1]
        if int(table.properties.get(record, version - 1)) >= version:
            done = nothing(files, sum(file.record_count for file in files.values()) - sum(map(len, hidden.values())))
            done.version = table.metadata.current_snapshot_id
            return done
    by = [(table.schema().find_column_name(field.source_id), str(field.transform)) for field in _fields(table)]
    paths, bitmaps = {path: [] for path in files}, {path: rows.serialize() for path, rows in hidden.items()}
    listed = Listed(place, "data", paths, bitmaps, _empty(table.schema()), [], by, "", _mode(table, name, mode))
    applied, bitmaps = listed.apply(changes, options)
    applied.version = table.metadata.current_snapshot_id
    new = [file["path"] for file in applied.files_added]
    if applied.dry_run or not (new or applied.files_removed or applied.vectors or transaction):
        return applied
    written = [*new]
    # Not sent to the catalogue. Without retries: a commit in between may have changed rows that were read here.
    table.metadata.properties["commit.retry.num-retries"] = "0"
    try:
        _check_nulls(table.schema(), applied.files_added)
        place.publish(new)
        deletes = _hide(table, place, applied, files, hidden, bitmaps, written)
        with table.transaction() as commit:
            if transaction is not None:
                commit.set_properties({record: str(version)})
            if new or applied.files_removed or deletes:
                said = {"tool": "windrow apply"}
                update = commit.update_snapshot(snapshot_properties=said)
                with _producer(commit, table.io, said, deletes) if deletes else update.overwrite() as snapshot:
                    for path in applied.files_removed:
                        snapshot.delete_data_file(files[path])
                    for path in new:
                        snapshot.append_data_file(_data_file(table, path, place.there(path)))
    except (CommitFailedException, UsageError):
        # After another error nobody knows whether the catalogue has the files.
        place.remove(written)
        raise
    applied.version = table.metadata.current_snapshot_id
    return applied


def _plain(uri):
    # Iceberg's paths are not encoded.
    return "/" + uri.removeprefix("file:").lstrip("/") if uri.startswith("file:") else uri


def _mode(table, name, mode):
    if table.metadata.format_version == 2 and _vectors.known_version():
        return mode
    if mode == "vectors":
        raise UsageError(f'{name}: write_mode="vectors" is served with pyiceberg 0.12 and tables of version 2 of the format')
    return "copy"


def _producer(transaction, io, properties, deletes):
    # The module needs pyiceberg.
    from windrow._deletes import Producer

    return Producer(transaction, io, properties, deletes)


def _hide(table, place, applied, files, hidden, bitmaps, written):
    """Writes position deletes, a file for each partition. `written` gets their paths."""
    from pyroaring import BitMap64

    parts = {}
    for of, bitmap in zip(applied.vectors, bitmaps):
        file, rows = files[of["path"]], BitMap64.deserialize(bitmap)
        rows -= hidden.get(of["path"], BitMap64())
        parts.setdefault((file.spec_id, file.partition), {})[file.file_path] = (rows, file)
    deletes = []
    for part in parts.values():
        path = f"data/{uuid.uuid4()}-deletes.parquet"
        written.append(path)
        there = place.there(path)
        os.makedirs(os.path.dirname(there), exist_ok=True)
        rows, [like, *_] = {name: rows for name, (rows, _) in part.items()}, [file for _, file in part.values()]
        deletes.append(_vectors.write_positions(f"{table.location()}/{path}", there, rows, like))
        applied.bytes_out += os.path.getsize(there)
        place.publish([path])
    return deletes


class _Files:
    """The files of a table below its location, as `Store` reaches them."""

    def __init__(self, table):
        self._table, self._io = table, table.io

    def open_output_stream(self, name):
        return self._io.new_output(f"{self._table.location()}/{name}").create()

    def delete_file(self, name):
        self._io.delete(f"{self._table.location()}/{name}")


def _place(table, options):
    location = _plain(table.location())
    return Store(location, _Files(table), options) if "://" in location else Local(location)


def _fields(table):
    """The fields of a table's partitions."""
    return [field for field in table.spec().fields if str(field.transform) != "void"]


def _data_file(table, name, path):
    """The entry of a new file in a manifest, as pyiceberg makes it for tables whose partitions statistics tell."""
    import pyarrow.parquet as pq  # type: ignore[import-untyped]
    from pyiceberg.io import pyarrow as io
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.partitioning import partition_record_value
    from pyiceberg.typedef import Record

    schema = table.schema()
    with pq.ParquetFile(path) as file:
        columns = io.compute_statistics_plan(schema, table.metadata.properties)
        numbers = io.parquet_path_to_id_mapping(schema)
        figures = io.data_file_statistics_from_parquet_metadata(file.metadata, columns, numbers)
        names = {field.source_id: schema.find_column_name(field.source_id) for field in _fields(table)}
        order = _order(table, file.metadata)
        first = next(file.iter_batches(1, columns=list(names.values())), None) if names else None
    values = []
    for field in table.spec().fields:
        value = None
        if field.source_id in names and first is not None:
            value = partition_record_value(field, first.column(names[field.source_id])[0].as_py(), schema)
            value = field.transform.transform(schema.find_field(field.source_id).field_type)(value)
        values.append(value)
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{table.location()}/{name}",
        file_format=FileFormat.PARQUET,
        partition=Record(*values),
        file_size_in_bytes=os.path.getsize(path),
        sort_order_id=order,
        spec_id=table.spec().spec_id,
        equality_ids=None,
        key_metadata=None,
        **figures.to_serialized_dict(),
    )


def _order(table, metadata):
    """The number of the table's order if a file declares to be in it."""
    order, names = table.sort_order(), [column.path for column in metadata.schema]
    declared = metadata.row_group(0).sorting_columns if metadata.num_row_groups else ()
    found = [(names[column.column_index], column.descending, column.nulls_first) for column in declared]
    asked = [
        (table.schema().find_column_name(field.source_id), field.direction.name == "DESC", field.null_order.name == "NULLS_FIRST")
        for field in order.fields
        if str(field.transform) == "identity"
    ]
    is_it = asked and len(asked) == len(order.fields) and found[: len(asked)] == asked
    return order.order_id if is_it else None


def refuse(table, name):
    """Refuses a table that asks for what is not served."""
    metadata = table.metadata
    asked = ["a partition by a member of a struct"] * any("." in metadata.schema().find_column_name(field.source_id) for field in _fields(table))
    asked += ["row lineage (version 3 of the format)"] * (metadata.format_version > 2)
    # Files are read by the names of columns, and Iceberg knows columns by their numbers.
    names, numbers = {}, {}
    for schema in metadata.schemas:
        for number in schema.field_ids:
            column = schema.find_column_name(number)
            if names.setdefault(number, column) != column or numbers.setdefault(column, number) != number:
                asked.append(f"the column {column}, which was renamed, or dropped and added again")
    if asked:
        raise UsageError(f"{name}: the table has {', '.join(sorted(set(asked)))}; `apply` does not serve that yet")


def _files(table, name):
    """The data files, and the hidden rows of each by its path."""
    from pyiceberg.manifest import DataFileContent

    files, deletes = [], {}
    for task in table.scan().plan_files():
        for file in task.delete_files:
            if file.content != DataFileContent.POSITION_DELETES or not str(file.file_format).upper().endswith("PARQUET"):
                raise UsageError(f"{name}: the table has delete files that are no position deletes; `apply` does not serve that yet: rewrite the table's files first")
            deletes[file.file_path] = file
        if str(task.file.file_format).rpartition(".")[2].upper() != "PARQUET":
            raise UsageError(f"{task.file.file_path}: changes are applied to Parquet files")
        if task.file.spec_id != table.spec().spec_id:
            raise UsageError(f"{name}: the table has files of an earlier partition spec; rewrite them first")
        if any(task.file.value_counts and field.source_id not in task.file.value_counts for field in _fields(table)):
            raise UsageError(f"{task.file.file_path}: lacks a column of the table's partitions; rewrite it first")
        files.append(task.file)
    return files, _vectors.positions(deletes.values(), table.io) if deletes else {}


def _empty(schema):
    """A table without rows that has the columns of a schema."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    return _small(schema_to_pyarrow(schema)).empty_table()


def _small(schema):
    """A schema of pyarrow with offsets as in files."""
    import pyarrow as pa  # type: ignore[import-untyped]

    def kind(of):
        if pa.types.is_large_string(of):
            return pa.string()
        if pa.types.is_large_binary(of):
            return pa.binary()
        if pa.types.is_list(of) or pa.types.is_large_list(of):
            return pa.list_(field(of.value_field))
        if pa.types.is_map(of):
            return pa.map_(field(of.key_field), field(of.item_field))
        if pa.types.is_struct(of):
            return pa.struct([field(member) for member in of])
        return of

    def field(of):
        return of.with_type(kind(of.type))

    return pa.schema([field(of) for of in schema])


def _check_nulls(schema, files):
    required = {field.name for field in schema.fields if field.required}
    for file in files:
        for column in file["columns"]:
            if column["name"] in required and column["nulls"]:
                name = column["name"]
                raise UsageError(f"column {name!r} is null in a row of the changes, and the table allows no nulls in it")
