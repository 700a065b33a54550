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
    CorruptError,
    DataError,
    InputNotFoundError,
    MemoryFloorError,
    SpaceError,
    UnsortedError,
    UsageError,
    WindrowError,
)
from windrow._groups import ChangeLog, Csv, Parquet, Read, Spill, Write
from windrow._progress import Progress
from windrow._reader import Reader
from windrow._results import Applied, Check, Explain, Inspect, Stats
from windrow._table import Table
from windrow._verbs import apply, check, compact, dedupe, diff, head, inspect, merge, partition, sort
from windrow._windrow import Column, RecordBatch, Schema, __version__, col

__all__ = [
    "Applied",
    "ChangeLog",
    "Check",
    "Column",
    "CorruptError",
    "Csv",
    "DataError",
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
