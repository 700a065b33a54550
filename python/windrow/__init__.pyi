import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, NoReturn, Protocol, TypeAlias, overload, type_check_only

import duckdb
import pandas  # type: ignore[import-untyped]
import polars
import pyarrow.compute  # type: ignore[import-untyped]
from typing_extensions import Self

from windrow import explain as explain
from windrow._windrow import Column, RecordBatch, Schema, __version__, col

__all__ = [
    "AccessError",
    "Applied",
    "ChangeLog",
    "Check",
    "Column",
    "CorruptError",
    "Csv",
    "DataError",
    "Details",
    "Explain",
    "InputNotFoundError",
    "Inspect",
    "MemoryFloorError",
    "Parquet",
    "Progress",
    "Read",
    "Reader",
    "RecordBatch",
    "Schema",
    "SpaceError",
    "Spill",
    "Stats",
    "StoreError",
    "Table",
    "UnsortedError",
    "UsageError",
    "WindrowError",
    "Write",
    "__version__",
    "apply",
    "check",
    "col",
    "compact",
    "dedupe",
    "diff",
    "explain",
    "head",
    "inspect",
    "merge",
    "partition",
    "sort",
]

@type_check_only
class ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@type_check_only
class ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@type_check_only
class ArrowSchema(Protocol):
    def __arrow_c_schema__(self) -> object: ...

_Path: TypeAlias = str | os.PathLike[str]
_Paths: TypeAlias = _Path | Sequence[_Path]
@type_check_only
class BinaryReader(Protocol):
    def read(self, size: int = ..., /) -> Any: ...

@type_check_only
class BinaryWriter(Protocol):
    def write(self, data: Any, /) -> Any: ...

@type_check_only
class Scanned(Protocol):
    """A scanner of pyarrow."""

    def to_reader(self) -> Any: ...

@type_check_only
class DataSet(Protocol):
    """A data set of pyarrow."""

    def scanner(self) -> Any: ...

# A directory, a `deltalake.DeltaTable`, or a `pyiceberg.table.Table`.
_Target: TypeAlias = _Path | Any
_Rows: TypeAlias = ArrowStream | ArrowArray | Mapping[str, Any] | Sequence[Mapping[str, Any]]
_Input: TypeAlias = _Path | _Rows | polars.LazyFrame | Scanned | DataSet | BinaryReader | Iterator[Any]
_Inputs: TypeAlias = _Input | Sequence[_Input]
_Output: TypeAlias = _Path | BinaryWriter
_Where: TypeAlias = str | polars.Expr | pyarrow.compute.Expression | Sequence[tuple[str, str, Any]] | Sequence[Sequence[tuple[str, str, Any]]]
_Columns: TypeAlias = str | Column | Sequence[str | Column | tuple[str, str]]
_Names: TypeAlias = str | Sequence[str]
_Size: TypeAlias = int | str
_TextSchema: TypeAlias = str | Mapping[str, str] | ArrowSchema
# A value, a tuple of one for each column, or a list of these.
_Keys: TypeAlias = ArrowStream | ArrowArray | object
_InputFormat: TypeAlias = Literal["parquet", "arrow", "arrow-stream", "csv", "ndjson", "avro"]

# generated: groups
class Read(dict[str, Any]):
    def __init__(
        self,
        *,
        format: Literal["parquet", "arrow", "arrow-stream", "csv", "ndjson", "avro"] | None = None,
        schema: _TextSchema | None = None,
        hive_types: _TextSchema | None = None,
        union_by_name: bool | None = None,
        charset: str | None = None,
    ) -> None: ...

class Csv(dict[str, Any]):
    def __init__(
        self,
        *,
        delimiter: str | None = None,
        header: bool | None = None,
        null: object = None,
        decimal: Literal["point", "comma"] | None = None,
        quote: str | None = None,
        escape: str | None = None,
        comment: str | None = None,
        skip_lines: int | None = None,
    ) -> None: ...

class ChangeLog(dict[str, Any]):
    def __init__(
        self,
        *,
        as_of: object = None,
        mode: Literal["snapshot", "log"] | None = None,
        keep_bookkeeping: bool | None = None,
        op_map: str | Mapping[str | None, str] | None = None,
        table: _Names | None = None,
        unchanged: Literal["last", "error", "keep"] | None = None,
        diff: str | None = None,
        time: str | None = None,
    ) -> None: ...

class Write(dict[str, Any]):
    def __init__(
        self,
        *,
        format: Literal["parquet", "arrow", "arrow-stream", "csv", "ndjson"] | None = None,
        compression: str | None = None,
        max_file_size: _Size | None = None,
        mode: Literal["error", "overwrite", "append", "replace_partitions"] | None = None,
        wait: bool | None = None,
    ) -> None: ...

class Parquet(dict[str, Any]):
    def __init__(
        self,
        *,
        row_group_size: _Size | None = None,
        page_size: _Size | None = None,
        encoding: Literal["delta", "plain"] | None = None,
        statistics: bool | None = None,
        checksums: bool | None = None,
    ) -> None: ...

class Spill(dict[str, Any]):
    def __init__(
        self,
        *,
        temp_dir: _Paths | None = None,
        max_temp_size: _Size | None = None,
        compression: Literal["none", "lz4", "zstd"] | None = None,
        to: Literal["disk", "memory"] | None = None,
        direct: bool | None = None,
    ) -> None: ...

# end

# generated: calls
@overload
def sort(
    inputs: _Inputs,
    by: _Columns,
    *,
    float_order: Literal["total", "sql"] | None = None,
    limit: int | None = None,
    read: Read | Mapping[str, Any] | None = None,
    storage_options: Mapping[str, object] | None = None,
    where: _Where | None = None,
    csv: Csv | Mapping[str, Any] | None = None,
    output: _Output,
    write: Write | Mapping[str, Any] | None = None,
    select: _Names | None = None,
    parquet: Parquet | Mapping[str, Any] | None = None,
    memory: _Size | None = None,
    spill: Spill | Mapping[str, Any] | None = None,
    threads: int | None = None,
    descending: bool | Sequence[bool] | None = None,
    nulls_last: bool | Sequence[bool] | None = None,
    progress: bool | Callable[[Progress], object] | None = None,
) -> Stats: ...
@overload
def sort(
    inputs: _Inputs,
    by: _Columns,
    *,
    float_order: Literal["total", "sql"] | None = None,
    limit: int | None = None,
    read: Read | Mapping[str, Any] | None = None,
    storage_options: Mapping[str, object] | None = None,
    where: _Where | None = None,
    csv: Csv | Mapping[str, Any] | None = None,
    output: None = None,
    write: Write | Mapping[str, Any] | None = None,
    select: _Names | None = None,
    parquet: Parquet | Mapping[str, Any] | None = None,
    memory: _Size | None = None,
    spill: Spill | Mapping[str, Any] | None = None,
    threads: int | None = None,
    descending: bool | Sequence[bool] | None = None,
    nulls_last: bool | Sequence[bool] | None = None,
    progress: bool | Callable[[Progress], object] | None = None,
) -> Reader: ...
@overload
def compact(
    inputs: _Inputs,
    key: _Columns | None = None,
    *,
    order_by: _Columns | None = None,
    changes: ChangeLog | Mapping[str, Any] | None = None,
    preset: Literal["generic", "auto", "debezium", "delta-cdf", "iceberg", "wal2json", "paimon", "maxwell", "canal", "cockroach", "goldengate", "sqlserver", "dms", "snowflake", "hudi", "airbyte", "qlik"] | None = None,
    op: str | None = None,
    read: Read | Mapping[str, Any] | None = None,
    storage_options: Mapping[str, object] | None = None,
    where: _Where | None = None,
    csv: Csv | Mapping[str, Any] | None = None,
    output: _Output,
    write: Write | Mapping[str, Any] | None = None,
    select: _Names | None = None,
    parquet: Parquet | Mapping[str, Any] | None = None,
    memory: _Size | None = None,
    spill: Spill | Mapping[str, Any] | None = None,
    threads: int | None = None,
    progress: bool | Callable[[Progress], object] | None = None,
) -> Stats: ...
@overload
def compact(
    inputs: _Inputs,
    key: _Columns | None = None,
    *,
    order_by: _Columns | None = None,
    changes: ChangeLog | Mapping[str, Any] | None = None,
    preset: Literal["generic", "auto", "debezium", "delta-cdf", "iceberg", "wal2json", "paimon", "maxwell", "canal", "cockroach", "goldengate", "sqlserver", "dms", "snowflake", "hudi", "airbyte", "qlik"] | None = None,
    op: str | None = None,
    read: Read | Mapping[str, Any] | None = None,
    storage_options: Mapping[str, object] | None = None,
    where: _Where | None = None,
    csv: Csv | Mapping[str, Any] | None = None,
    output: None = None,
    write: Write | Mapping[str, Any] | None = None,
    select: _Names | None = None,
    parquet: Parquet | Mapping[str, Any] | None = None,
    memory: _Size | None = None,
    spill: Spill | Mapping[str, Any] | None = None,
    threads: int | None = None,
    progress: bool | Callable[[Progress], object] | None = None,
) -> Reader: ...
def apply(
    target: _Target,
    inputs: _Inputs,
    key: _Columns,
    order_by: _Columns | None = None,
    *,
    changes: ChangeLog | Mapping[str, Any] | None = None,
    write: Write | Mapping[str, Any] | None = None,
    dry_run: bool | None = None,
    preset: Literal["generic", "auto", "debezium", "delta-cdf", "iceberg", "wal2json", "paimon", "maxwell", "canal", "cockroach", "goldengate", "sqlserver", "dms", "snowflake", "hudi", "airbyte", "qlik"] | None = None,
    op: str | None = None,
    read: Read | Mapping[str, Any] | None = None,
    storage_options: Mapping[str, object] | None = None,
    csv: Csv | Mapping[str, Any] | None = None,
    select: _Names | None = None,
    parquet: Parquet | Mapping[str, Any] | None = None,
    memory: _Size | None = None,
    spill: Spill | Mapping[str, Any] | None = None,
    threads: int | None = None,
    transaction: tuple[str, int] | None = None,
    write_mode: Literal["copy", "vectors", "auto"] | None = None,
    progress: bool | Callable[[Progress], object] | None = None,
) -> Applied: ...
@overload
def merge(
    inputs: _Inputs,
    by: _Columns,
    *,
    float_order: Literal["total", "sql"] | None = None,
    unique: bool | None = None,
    changes: ChangeLog | Mapping[str, Any] | None = None,
    read: Read | Mapping[str, Any] | None = None,
    storage_options: Mapping[str, object] | None = None,
    where: _Where | None = None,
    csv: Csv | Mapping[str, Any] | None = None,
    output: _Output,
    write: Write | Mapping[str, Any] | None = None,
    select: _Names | None = None,
    parquet: Parquet | Mapping[str, Any] | None = None,
    memory: _Size | None = None,
    spill: Spill | Mapping[str, Any] | None = None,
    threads: int | None = None,
    progress: bool | Callable[[Progress], object] | None = None,
) -> Stats: ...
@overload
def merge(
    inputs: _Inputs,
    by: _Columns,
    *,
    float_order: Literal["total", "sql"] | None = None,
    unique: bool | None = None,
    changes: ChangeLog | Mapping[str, Any] | None = None,
    read: Read | Mapping[str, Any] | None = None,
    storage_options: Mapping[str, object] | None = None,
    where: _Where | None = None,
    csv: Csv | Mapping[str, Any] | None = None,
    output: None = None,
    write: Write | Mapping[str, Any] | None = None,
    select: _Names | None = None,
    parquet: Parquet | Mapping[str, Any] | None = None,
    memory: _Size | None = None,
    spill: Spill | Mapping[str, Any] | None = None,
    threads: int | None = None,
    progress: bool | Callable[[Progress], object] | None = None,
) -> Reader: ...
def partition(
    inputs: _Inputs,
    by: _Columns,
    output: _Path,
    *,
    into: int | None = None,
    ranges: object = None,
    hive: bool | None = None,
    sort: _Columns | None = None,
    read: Read | Mapping[str, Any] | None = None,
    storage_options: Mapping[str, object] | None = None,
    where: _Where | None = None,
    csv: Csv | Mapping[str, Any] | None = None,
    write: Write | Mapping[str, Any] | None = None,
    select: _Names | None = None,
    parquet: Parquet | Mapping[str, Any] | None = None,
    memory: _Size | None = None,
    spill: Spill | Mapping[str, Any] | None = None,
    threads: int | None = None,
    mode: Literal["error", "overwrite", "append", "replace_partitions"] | None = None,
    progress: bool | Callable[[Progress], object] | None = None,
) -> Stats: ...
@overload
def dedupe(
    inputs: _Inputs,
    key: _Columns | None = None,
    *,
    keep: Literal["first", "last", "none", "last-known"] | None = None,
    read: Read | Mapping[str, Any] | None = None,
    storage_options: Mapping[str, object] | None = None,
    where: _Where | None = None,
    csv: Csv | Mapping[str, Any] | None = None,
    output: _Output,
    write: Write | Mapping[str, Any] | None = None,
    select: _Names | None = None,
    parquet: Parquet | Mapping[str, Any] | None = None,
    memory: _Size | None = None,
    spill: Spill | Mapping[str, Any] | None = None,
    threads: int | None = None,
    progress: bool | Callable[[Progress], object] | None = None,
) -> Stats: ...
@overload
def dedupe(
    inputs: _Inputs,
    key: _Columns | None = None,
    *,
    keep: Literal["first", "last", "none", "last-known"] | None = None,
    read: Read | Mapping[str, Any] | None = None,
    storage_options: Mapping[str, object] | None = None,
    where: _Where | None = None,
    csv: Csv | Mapping[str, Any] | None = None,
    output: None = None,
    write: Write | Mapping[str, Any] | None = None,
    select: _Names | None = None,
    parquet: Parquet | Mapping[str, Any] | None = None,
    memory: _Size | None = None,
    spill: Spill | Mapping[str, Any] | None = None,
    threads: int | None = None,
    progress: bool | Callable[[Progress], object] | None = None,
) -> Reader: ...
@overload
def diff(
    old: _Inputs,
    new: _Inputs,
    key: _Columns,
    *,
    format: Literal["changes", "summary"] | None = None,
    op: str | None = None,
    read: Read | Mapping[str, Any] | None = None,
    storage_options: Mapping[str, object] | None = None,
    where: _Where | None = None,
    csv: Csv | Mapping[str, Any] | None = None,
    output: _Output,
    write: Write | Mapping[str, Any] | None = None,
    select: _Names | None = None,
    parquet: Parquet | Mapping[str, Any] | None = None,
    memory: _Size | None = None,
    spill: Spill | Mapping[str, Any] | None = None,
    threads: int | None = None,
    progress: bool | Callable[[Progress], object] | None = None,
) -> Stats: ...
@overload
def diff(
    old: _Inputs,
    new: _Inputs,
    key: _Columns,
    *,
    format: Literal["changes", "summary"] | None = None,
    op: str | None = None,
    read: Read | Mapping[str, Any] | None = None,
    storage_options: Mapping[str, object] | None = None,
    where: _Where | None = None,
    csv: Csv | Mapping[str, Any] | None = None,
    output: None = None,
    write: Write | Mapping[str, Any] | None = None,
    select: _Names | None = None,
    parquet: Parquet | Mapping[str, Any] | None = None,
    memory: _Size | None = None,
    spill: Spill | Mapping[str, Any] | None = None,
    threads: int | None = None,
    progress: bool | Callable[[Progress], object] | None = None,
) -> Reader: ...
@overload
def head(
    inputs: _Inputs,
    rows: int | None = None,
    *,
    read: Read | Mapping[str, Any] | None = None,
    storage_options: Mapping[str, object] | None = None,
    where: _Where | None = None,
    csv: Csv | Mapping[str, Any] | None = None,
    output: _Output,
    write: Write | Mapping[str, Any] | None = None,
    select: _Names | None = None,
    parquet: Parquet | Mapping[str, Any] | None = None,
    memory: _Size | None = None,
    spill: Spill | Mapping[str, Any] | None = None,
    threads: int | None = None,
    progress: bool | Callable[[Progress], object] | None = None,
) -> Stats: ...
@overload
def head(
    inputs: _Inputs,
    rows: int | None = None,
    *,
    read: Read | Mapping[str, Any] | None = None,
    storage_options: Mapping[str, object] | None = None,
    where: _Where | None = None,
    csv: Csv | Mapping[str, Any] | None = None,
    output: None = None,
    write: Write | Mapping[str, Any] | None = None,
    select: _Names | None = None,
    parquet: Parquet | Mapping[str, Any] | None = None,
    memory: _Size | None = None,
    spill: Spill | Mapping[str, Any] | None = None,
    threads: int | None = None,
    progress: bool | Callable[[Progress], object] | None = None,
) -> Reader: ...
def check(
    inputs: _Inputs,
    by: _Columns,
    *,
    float_order: Literal["total", "sql"] | None = None,
    unique: bool | None = None,
    read: Read | Mapping[str, Any] | None = None,
    storage_options: Mapping[str, object] | None = None,
    where: _Where | None = None,
    csv: Csv | Mapping[str, Any] | None = None,
) -> Check: ...
@overload
def inspect(
    inputs: _Input,
    *,
    read: Read | Mapping[str, Any] | None = None,
    storage_options: Mapping[str, object] | None = None,
    csv: Csv | Mapping[str, Any] | None = None,
) -> Any: ...
@overload
def inspect(
    inputs: Sequence[_Input],
    *,
    read: Read | Mapping[str, Any] | None = None,
    storage_options: Mapping[str, object] | None = None,
    csv: Csv | Mapping[str, Any] | None = None,
) -> list[Inspect]: ...
# end

class Progress(NamedTuple):
    phase: Literal["read", "settle", "write"]
    rows: int
    total_rows: int | None
    spilled_bytes: int

@type_check_only
class _Result:
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __eq__(self, other: object, /) -> bool: ...
    def to_dict(self) -> dict[str, Any]: ...
    def _repr_html_(self) -> str: ...

class Details(_Result):
    keys_renewed: int
    bloom_filters_dropped: bool
    row_groups_passed: int
    runs: int
    stored_bytes: int
    spills: int
    loads: int
    loaded_bytes: int
    read_ahead: int
    read_ahead_hits: int
    chunks_kept: int
    writes_elided: int
    writes_cancelled: int
    evicted: dict[str, int]
    released_clean: int
    buffers_mapped: int
    buffers_recycled: int
    released_bytes: int
    temp_bytes: int
    budget_bytes: int
    peak_leased_bytes: int
    network: dict[str, int] | None
    memory_limit_bytes: int | None
    planning_seconds: float
    phase_seconds: dict[str, float]
    serial_seconds: dict[str, float]
    phase_spilled_bytes: dict[str, int]
    phase_loaded_bytes: dict[str, int]

class Stats(_Result):
    def __init__(self, *, ended: bool = True, **figures: Any) -> None: ...
    rows_in: int
    rows_out: int
    rows_dropped: int
    keys_deleted: int
    bytes_in: int | None
    bytes_out: int
    partitions: dict[str, int] | None
    spilled_bytes: int
    peak_rss_bytes: int
    seconds: float
    details: Details
    def __getattr__(self, name: str) -> NoReturn: ...
class Applied(_Result):
    rows_in: int
    dry_run: bool
    write_mode: Literal["copy", "vectors"]
    keys: int
    inserted: int
    updated: int
    deleted: int
    unchanged: int
    stale: int
    absent: int
    rows_out: int
    files_removed: list[str]
    files_added: list[dict[str, Any]]
    files_left: list[str]
    vectors: list[dict[str, Any]]
    row_groups_rewritten: int
    row_groups_copied: int
    row_groups_left: int
    bytes_out: int
    bytes_of_changes: int
    spilled_bytes: int
    peak_rss_bytes: int
    memory_limit_bytes: int | None
    seconds: float
    version: int | None
    def _repr_html_(self) -> str: ...

class Check(_Result):
    ok: bool
    file: str | None
    row: int | None
    sorted_by: str | None
    files: int | None
    rows: int | None
    message: str
    def __bool__(self) -> bool: ...

class Inspect(_Result):
    def __init__(self, text: str, fields: dict[str, Any]) -> None: ...
    file: str
    format: _InputFormat
    bytes: int | None
    rows: int | None
    schema: list[dict[str, Any]]
    metadata_keys: list[str]
    parquet: dict[str, Any] | None

class Explain(_Result):
    lines: list[tuple[str, str]]
    floor: int
    limit: int | None

class Reader:
    def __init__(self, rows: object) -> None: ...
    @property
    def schema(self) -> Schema: ...
    @property
    def stats(self) -> Stats: ...
    def to_arrow(self) -> pyarrow.Table: ...
    def read_all(self) -> pyarrow.Table: ...
    def to_polars(self) -> polars.DataFrame: ...
    def to_pandas(self, **options: Any) -> pandas.DataFrame: ...
    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation: ...
    def to_pylist(self) -> list[dict[str, Any]]: ...
    def fetchmany(self, size: int | None = 1) -> list[tuple[Any, ...]]: ...
    def fetchone(self) -> tuple[Any, ...] | None: ...
    def fetchall(self) -> list[tuple[Any, ...]]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, error: object, value: object, trace: object) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> RecordBatch: ...
    def __getattr__(self, name: str) -> NoReturn: ...
    def __getitem__(self, name: object) -> NoReturn: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn: ...
    def _repr_html_(self) -> str: ...

class Table:
    def __init__(
        self,
        schema: _TextSchema,
        *,
        key: _Columns,
        memory: _Size | None = None,
        spill: Spill | Mapping[str, Any] | None = None,
    ) -> None: ...
    @classmethod
    def open(
        cls,
        path: _Path,
        *,
        key: _Columns | None = None,
        memory: _Size | None = None,
        spill: Spill | Mapping[str, Any] | None = None,
    ) -> Self: ...
    def save(self, path: _Path, *, at: int | None = None, **options: Any) -> Stats: ...
    def checkpoint(self, directory: _Path) -> None: ...
    @property
    def schema(self) -> Schema: ...
    @property
    def key(self) -> list[str]: ...
    @property
    def now(self) -> int: ...
    @property
    def memory_used(self) -> int: ...
    @property
    def temp_bytes(self) -> int: ...
    def upsert(self, rows: _Input) -> int: ...
    def apply(
        self,
        changes: _Input,
        *,
        op: str = "op",
        op_map: str | Mapping[str | None, str] | None = None,
        order_by: _Columns | None = None,
    ) -> int: ...
    def delete(self, keys: _Keys) -> int: ...
    def get(self, keys: _Keys, *, at: int | None = None) -> RecordBatch: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __contains__(self, key: object) -> bool: ...
    def __getitem__(self, key: object) -> dict[str, Any]: ...
    def __iter__(self) -> NoReturn: ...
    def scan(
        self,
        start: object | None = None,
        stop: object | None = None,
        *,
        at: int | None = None,
        columns: _Names | None = None,
        where: _Where | None = None,
        limit: int | None = None,
    ) -> Reader: ...
    def forget_before(self, time: int) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, error: object, value: object, trace: object) -> None: ...

class WindrowError(Exception):
    file: str | None
    row: int | None
    line: int | None
    column: str | None

class UsageError(WindrowError, ValueError): ...
class DataError(WindrowError, ValueError): ...
class UnsortedError(DataError): ...
class InputNotFoundError(WindrowError, FileNotFoundError): ...
class AccessError(WindrowError, PermissionError): ...
class StoreError(WindrowError, ConnectionError): ...

class MemoryFloorError(WindrowError, MemoryError):
    floor: int | None
    limit: int | None

class SpaceError(WindrowError, OSError): ...
class CorruptError(WindrowError): ...
