"""Changes applied to Iceberg tables: one snapshot that removes and adds files, by pyiceberg's own transactions.

The files are written as for Delta tables, see `windrow._delta`. A transaction of the caller is a property of the table.
"""

import os
import uuid

from windrow import _vectors
from windrow._delta import Listed, nothing, repeated
from windrow._errors import UsageError

# The property that records the version of an application's changes.
RECORD = "windrow.transaction."


def is_table(target):
    """Whether a target of changes is a table of pyiceberg."""
    return type(target).__module__.partition(".")[0] == "pyiceberg"


def apply(table, changes, transaction, mode, options):
    """Applies changes to a `pyiceberg.table.Table`, which is refreshed."""
    from pyiceberg.exceptions import CommitFailedException

    name = ".".join(table.name())

    def attempt():
        table.refresh()
        return _attempt(table, name, changes, transaction, mode, options)

    return repeated(attempt, CommitFailedException, name, changes, options)


def _attempt(table, name, changes, transaction, mode, options):
    from pyiceberg.exceptions import CommitFailedException

    refuse(table, name)
    directory = _local(table.location())
    files, hidden = _files(table, name)
    files = {os.path.relpath(_local(file.file_path), directory): file for file in files}
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
    listed = Listed(directory, "data", paths, bitmaps, _empty(table.schema()), [], by, "", _mode(table, name, mode))
    applied, bitmaps = listed.apply(changes, options)
    applied.version = table.metadata.current_snapshot_id
    new = {os.path.join(directory, file["path"]): file for file in applied.files_added}
    if applied.dry_run or not (new or applied.files_removed or applied.vectors or transaction):
        return applied
    written = [*new]
    # Not sent to the catalogue. Without retries: a commit in between may have changed rows that were read here.
    table.metadata.properties["commit.retry.num-retries"] = "0"
    try:
        _check_nulls(table.schema(), applied.files_added)
        deletes = _hide(table, directory, applied, files, hidden, bitmaps, written)
        with table.transaction() as commit:
            if transaction is not None:
                commit.set_properties({record: str(version)})
            if new or applied.files_removed or deletes:
                said = {"tool": "windrow apply"}
                update = commit.update_snapshot(snapshot_properties=said)
                with _vectors.overwriting(commit, table.io, said, deletes) if deletes else update.overwrite() as snapshot:
                    for path in applied.files_removed:
                        snapshot.delete_data_file(files[path])
                    for path in new:
                        snapshot.append_data_file(_data_file(table, path))
    except (CommitFailedException, UsageError):
        # After another error nobody knows whether the catalogue has the files.
        for path in written:
            os.remove(path)
        raise
    applied.version = table.metadata.current_snapshot_id
    return applied


def _mode(table, name, mode):
    if table.metadata.format_version == 2 and _vectors.known_version():
        return mode
    if mode == "vectors":
        raise UsageError(f'{name}: write_mode="vectors" is served with pyiceberg 0.12 and tables of version 2 of the format')
    return "copy"


def _hide(table, directory, applied, files, hidden, bitmaps, written):
    """Writes position deletes, a file for each partition. `written` gets their paths."""
    from pyroaring import BitMap64

    parts = {}
    for of, bitmap in zip(applied.vectors, bitmaps):
        file, rows = files[of["path"]], BitMap64.deserialize(bitmap)
        rows -= hidden.get(of["path"], BitMap64())
        parts.setdefault((file.spec_id, file.partition), {})[file.file_path] = (rows, file)
    deletes = []
    for part in parts.values():
        path = os.path.join(directory, "data", f"{uuid.uuid4()}-deletes.parquet")
        written.append(path)
        rows, [like, *_] = {name: rows for name, (rows, _) in part.items()}, [file for _, file in part.values()]
        deletes.append(_vectors.write_positions(_uri(table.location(), path), path, rows, like))
        applied.bytes_out += os.path.getsize(path)
    return deletes


def _local(uri):
    if uri.startswith("file:"):
        # Iceberg's paths are not encoded.
        uri = "/" + uri.removeprefix("file:").lstrip("/")
    if "://" in uri:
        raise UsageError(f"{uri}: changes are applied to Iceberg tables on local disks; objects in stores are not served yet")
    return uri


def _uri(location, path):
    return f"file://{path}" if location.startswith("file:") else path


def _fields(table):
    """The fields of a table's partitions."""
    return [field for field in table.spec().fields if str(field.transform) != "void"]


def _data_file(table, path):
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
        file_path=_uri(table.location(), path),
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
    return files, _vectors.positions(deletes.values(), _local) if deletes else {}


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
