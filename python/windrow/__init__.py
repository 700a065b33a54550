"""Sort, compact, merge and partition Parquet, Arrow, CSV and NDJSON inside a memory limit.

Inputs are paths, directories, glob patterns, anything with ``__arrow_c_stream__`` or ``__arrow_c_array__``
(pyarrow, Polars, DuckDB, pandas, Daft), or a list of these. With ``output=`` files are written, and `Stats`
come back; without it a `Reader` does, which every Arrow library takes, once.

>>> import pyarrow as pa
>>> import windrow as wr
>>> orders = pa.table({"id": [3, 1, 2], "price": [30, 10, 20]})
>>> pa.table(wr.sort(orders, by="price:desc"))["id"].to_pylist()
[3, 2, 1]
>>> wr.sort(orders, by="id", output="orders.parquet").rows_out
3

While a call runs, the resident memory of the process grows by at most ``memory``, apart from what other
threads allocate and from record batches that somebody else holds.
"""

from windrow import explain
from windrow._errors import (
    AccessError,
    CorruptError,
    DataError,
    InputNotFoundError,
    MemoryFloorError,
    SpaceError,
    StoreError,
    UnsortedError,
    UsageError,
    WindrowError,
)
from windrow._groups import ChangeLog, Csv, Parquet, Read, Spill, Write
from windrow._reader import Reader
from windrow._results import Applied, Check, Details, Explain, Inspect, Stats
from windrow._table import Table
from windrow._verbs import apply, check, compact, dedupe, diff, head, inspect, merge, partition, sort
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

# What other libraries call it.
_LINES = {
    "concat": "wr.sort([a, b], by), wr.merge([a, b], by) where they are sorted, or wr.head([a, b], rows)",
    "distinct": "wr.dedupe(inputs, key)",
    "drop_duplicates": "wr.dedupe(inputs, key)",
    "latest": "wr.compact(inputs, key, order_by=...)",
    "limit": "wr.head(inputs, rows)",
    "merge_sorted": "wr.merge([a, b], by)",
    "order_by": "wr.sort(inputs, by)",
    "partition_by": "wr.partition(inputs, by, hive=True, output=...)",
    "read_csv": "every call takes paths: wr.head(path)",
    "read_parquet": "every call takes paths: wr.head(path)",
    "scan_parquet": "every call takes paths: wr.sort(path, by)",
    "sort_values": "wr.sort(inputs, by)",
    "unique": "wr.dedupe(inputs, key)",
    "upsert": "wr.apply(target, changes, key, op=...), or wr.Table for rows that change often",
    "write_parquet": "every call writes files: output=path",
}


def __getattr__(name):
    if name == "Progress":
        # A named tuple takes as long to import as all else.
        from windrow._progress import Progress

        return Progress
    text = f"; {_LINES[name]}" if name in _LINES else ""
    raise AttributeError(f"module 'windrow' has no attribute {name!r}{text}")
