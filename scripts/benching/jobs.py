"""What is measured: tables, jobs over them, and the engines that can do each.

    Table --source--> Job (verb, columns) --engine--> one file or one directory

A cell of the bench is a job at a memory limit. Nothing here imports an engine.
"""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TARGET = ROOT / "target"
DATA = TARGET / "bench-data"
# What one run writes; empty when it starts.
OUT = DATA / "jobs-out"
TEMP = DATA / "jobs-temp"
RESULTS = TARGET / "windrow-bench"
# The profile of packages.
BUILT = TARGET / "dist"
RUST_CSV = TARGET / "rust-csv"
MIB = 1 << 20

# In the order of tables and plots. A rival with a dash is another way of the same engine.
ENGINES = ["windrow", "duckdb", "duckdb-l1", "duckdb-join", "polars", "polars-merge", "datafusion", "gnu-sort", "xan"]


@dataclass(frozen=True)
class Table:
    """Rows in one file, or in a directory of `files` of them. `columns` are the types of text and
    of logs in DuckDB's words; those of other Parquet files are read from the file."""

    name: str
    rows: int  # at scale 1; of lineitem in a unit of its scale factor
    format: str = "parquet"
    files: int = 1
    columns: dict | None = None
    nullable: tuple = ()

    def size(self, options):
        if self.name.startswith("lineitem"):
            return f"sf{options.sf * options.scale:g}"
        return str(max(self.files, round(self.rows * options.scale)))

    def source(self, options):
        """The file, or the directory. Its name has its size: other sizes stay beside it."""
        name = f"{self.name}-{self.size(options)}"
        return DATA / (name if self.files > 1 else f"{name}.{self.format}")


LOG_COLUMNS = {"id": "BIGINT", "lsn": "BIGINT", "op": "VARCHAR", "payload": "VARCHAR", "amount": "DOUBLE", "ts": "TIMESTAMP"}
EVENTS_COLUMNS = {
    "id": "BIGINT", "seq": "BIGINT", "kind": "VARCHAR", "ts": "TIMESTAMPTZ",
    "actor": "STRUCT(name VARCHAR, country VARCHAR)", "amount": "DOUBLE", "path": "VARCHAR",
}
ORDERS_COLUMNS = {
    "id": "BIGINT", "day": "DATE", "name": "VARCHAR", "city": "VARCHAR", "amount": "DOUBLE", "note": "VARCHAR",
}
TABLES = {table.name: table for table in [
    Table("lineitem", 6_000_000),
    # lineitem as windrow writes it: it declares its order.
    Table("lineitem-declared", 6_000_000),
    Table("log", 6_000_000, columns=LOG_COLUMNS, nullable=("payload", "amount")),
    Table("log-runs", 6_000_000, files=32, columns=LOG_COLUMNS),
    Table("log-small", 2_000_000, files=1000, columns=LOG_COLUMNS),
    Table("wide", 500_000),
    Table("clicks", 2_000_000),
    Table("late", 6_000_000),
    Table("events", 3_000_000, "ndjson", columns=EVENTS_COLUMNS),
    Table("orders", 3_000_000, "csv", columns=ORDERS_COLUMNS),
]}


@dataclass(frozen=True)
class Job:
    """`verb` is sort, merge, latest, into (64 partitions) or hive. `bar` is what windrow's wall time
    may be of the fastest rival's, or of `bar_rival`'s if that ended well."""

    name: str
    title: str
    verb: str
    table: str
    by: tuple  # of latest: key and what orders its rows
    engines: tuple
    out: str = "parquet"
    op: str | None = None  # latest: the column of a deletion, 'D', which goes too
    bar: float = 1.0
    bar_rival: str | None = None

    @property
    def directory(self):
        return self.verb in ("into", "hive")

    @property
    def ordered(self):
        return self.verb in ("sort", "merge")


LIBRARIES = ("windrow", "duckdb", "polars", "datafusion")
OF_LOG = ("windrow", "duckdb", "duckdb-l1", "polars", "datafusion")
OF_CSV = (*LIBRARIES, "gnu-sort", "xan")
PARTITIONS = 64

JOBS = {job.name: job for job in [
    Job("lineitem", "lineitem by date and number", "sort", "lineitem", ("l_shipdate", "l_orderkey"), LIBRARIES),
    Job("lineitem-text", "lineitem by comment", "sort", "lineitem", ("l_comment",), LIBRARIES),
    Job("lineitem-few", "lineitem by 21 values", "sort", "lineitem", ("l_returnflag", "l_shipmode"), LIBRARIES),
    Job("sorted", "lineitem, sorted already", "sort", "lineitem", ("l_orderkey", "l_linenumber"), LIBRARIES, bar=0.5),
    Job("sorted-declared", "lineitem, declared sorted", "sort", "lineitem-declared",
        ("l_orderkey", "l_linenumber"), LIBRARIES, bar=0.5),
    Job("late", "1 % of the rows late", "sort", "late", ("ts", "id"), LIBRARIES),
    Job("wide", "100 columns", "sort", "wide", ("id",), LIBRARIES),
    Job("clicks", "web addresses", "sort", "clicks", ("url", "ts"), LIBRARIES),
    Job("merge", "32 sorted files", "merge", "log-runs", ("id", "lsn"), (*LIBRARIES, "polars-merge")),
    Job("small-files", "1,000 small files", "sort", "log-small", ("id", "lsn"), LIBRARIES),
    Job("ndjson-latest", "NDJSON, latest of each key, to Parquet", "latest", "events", ("id", "seq"), LIBRARIES, bar=0.7),
    Job("ndjson-sort", "NDJSON to NDJSON by two numbers", "sort", "events", ("id", "seq"), LIBRARIES, "ndjson", bar=0.7),
    Job("csv-number", "CSV to CSV by a number", "sort", "orders", ("id",), OF_CSV, "csv", bar=0.7),
    Job("csv-text", "CSV to CSV by a name", "sort", "orders", ("name",), OF_CSV, "csv", bar=0.7),
    Job("partition", "lineitem into 64 by part", "into", "lineitem", ("l_partkey",), LIBRARIES, bar=0.8),
    Job("hive", "lineitem into 21 hive directories", "hive", "lineitem", ("l_returnflag", "l_shipmode"), LIBRARIES, bar=0.8),
    Job("log-sort", "change log by id and lsn", "sort", "log", ("id", "lsn"), OF_LOG, bar=0.62, bar_rival="duckdb"),
    Job("log-compact", "change log, latest of each id", "latest", "log", ("id", "lsn"), (*OF_LOG, "duckdb-join"), op="op",
        bar=0.45, bar_rival="duckdb"),
]}
