"""Changes applied to Iceberg tables: one snapshot that removes and adds files, by pyiceberg's own transactions.

The files are written as for Delta tables, see `windrow._delta`. A transaction of the caller is a property of the table.
"""

import os

from windrow._delta import nothing, repeated, written_beside
from windrow._errors import UsageError

# The property that records the version of an application's changes.
RECORD = "windrow.transaction."


def is_table(target):
    """Whether a target of changes is a table of pyiceberg."""
    return type(target).__module__.partition(".")[0] == "pyiceberg"


def apply(table, changes, transaction, options):
    """Applies changes to a `pyiceberg.table.Table`, which is refreshed."""
    from pyiceberg.exceptions import CommitFailedException

    name = ".".join(table.name())

    def attempt():
        table.refresh()
        return _attempt(table, name, changes, transaction, options)

    return repeated(attempt, CommitFailedException, name, changes, options)


def _attempt(table, name, changes, transaction, options):
    from pyiceberg.exceptions import CommitFailedException
    from pyiceberg.io.pyarrow import parquet_file_to_data_file

    refuse(table, name)
    directory = _local(table.location())
    files = {os.path.relpath(_local(file.file_path), directory): file for file in _files(table, name)}
    if any(path.startswith("..") for path in files):
        raise UsageError(f"{name}: the table has files outside of its directory; rewrite them first")
    if transaction is not None:
        record, version = RECORD + transaction[0], transaction[1]
        if int(table.properties.get(record, version - 1)) >= version:
            done = nothing(files, sum(file.record_count for file in files.values()))
            done.version = table.metadata.current_snapshot_id
            return done
    applied = written_beside(directory, "data", files, _empty(table.schema()), changes, options)
    applied.version = table.metadata.current_snapshot_id
    new = {os.path.join(directory, file["path"]): file for file in applied.files_added}
    if applied.dry_run or not (new or applied.files_removed or transaction):
        return applied
    # Not sent to the catalogue. Without retries: a commit in between may have changed rows that were read here.
    table.metadata.properties["commit.retry.num-retries"] = "0"
    try:
        _check_nulls(table.schema(), applied.files_added)
        with table.transaction() as commit:
            if transaction is not None:
                commit.set_properties({record: str(version)})
            if new or applied.files_removed:
                with commit.update_snapshot(snapshot_properties={"tool": "windrow apply"}).overwrite() as snapshot:
                    for path in applied.files_removed:
                        snapshot.delete_data_file(files[path])
                    for path in new:
                        uri = _uri(table.location(), path)
                        snapshot.append_data_file(parquet_file_to_data_file(table.io, table.metadata, uri))
    except (CommitFailedException, UsageError):
        # After another error nobody knows whether the catalogue has the files.
        for path in new:
            os.remove(path)
        raise
    applied.version = table.metadata.current_snapshot_id
    return applied


def _local(uri):
    if uri.startswith("file:"):
        # Iceberg's paths are not encoded.
        uri = "/" + uri.removeprefix("file:").lstrip("/")
    if "://" in uri:
        raise UsageError(f"{uri}: changes are applied to Iceberg tables on local disks; objects in stores are not served yet")
    return uri


def _uri(location, path):
    return f"file://{path}" if location.startswith("file:") else path


def refuse(table, name):
    """Refuses a table that asks for what is not served."""
    metadata = table.metadata
    asked = ["partitions"] * any(spec.fields for spec in metadata.partition_specs)
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
    files = []
    for task in table.scan().plan_files():
        if task.delete_files:
            raise UsageError(f"{name}: the table has delete files; `apply` does not serve that yet: rewrite the table's files first")
        if str(task.file.file_format).rpartition(".")[2].upper() != "PARQUET":
            raise UsageError(f"{task.file.file_path}: changes are applied to Parquet files")
        files.append(task.file)
    return files


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
