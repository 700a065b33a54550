"""The calls: arguments go to the library as they are, under their names.

Every default is the library's own: ``None`` is not given.
"""

import functools
import json

from windrow import _windrow
from windrow._progress import watching
from windrow._reader import Reader
from windrow._results import Check, Explain, Inspect


def sort(
    inputs,
    *,
    by,
    float_order=None,
    limit=None,
    output=None,
    select=None,
    where=None,
    memory=None,
    threads=None,
    temp_dir=None,
    max_temp_size=None,
    spill_compression=None,
    spill_to=None,
    spill_direct=None,
    progress=None,
    input_format=None,
    schema=None,
    hive_types=None,
    union_by_name=None,
    store_options=None,
    csv_delimiter=None,
    csv_header=None,
    csv_null=None,
    csv_decimal=None,
    csv_quote=None,
    csv_escape=None,
    csv_comment=None,
    csv_skip_lines=None,
    charset=None,
    output_format=None,
    compression=None,
    max_file_size=None,
    row_group_size=None,
    page_size=None,
    statistics=None,
    checksums=None,
    encoding=None,
):
    """Sorts rows by columns; equal rows keep their order.

    Parameters
    ----------
    inputs
        Paths, directories, glob patterns, Arrow objects, or a list of these.
    by
        Columns, most significant first: ``"a,b:desc:nulls-first"``, a list of such, or of `col`.
    float_order
        ``"total"``, where all floats differ, or ``"sql"``: one zero and one NaN, as DuckDB and Polars sort.
    limit
        The most rows to write: the first in the order. Others are dropped as they are read.
    output
        The file to write; it appears whole or not at all, and may be an input. A `Reader` is returned if there
        is none.
    select
        The columns to write, in this order. Of a struct, a member by its path: ``"user.id"``.
    where
        Which rows count: ``"amount > 100 and country in (nl, 'de')"``. Row groups of Parquet and directories without
        such rows are not read.
    memory
        What the call may add to the resident memory of the process: bytes, ``"256MiB"``, a share of what is free
        (``"50%"``), or ``"unlimited"``; a quarter of what is free unless given.
    threads
        Threads at the most; as many as there are cores unless given.
    temp_dir, max_temp_size
        A directory for temporary files, or a list of them, and the bytes they may take.
    spill_compression, spill_to, spill_direct
        ``"none"``, ``"lz4"`` or ``"zstd"``; ``"disk"`` or ``"memory"``; whether the page cache is passed by.
    progress
        ``True`` for a bar, or a function of a `Progress`; what it raises stops the job.
    union_by_name
        Whether inputs may have other columns than the first, which are null where they are missing, and wider types.
    input_format, schema, hive_types, csv_delimiter, csv_header
        How inputs are read: ``"parquet"``, ``"arrow"``, ``"arrow-stream"``, ``"csv"``, ``"ndjson"``, ``"avro"``; types of
        columns of text as ``"id:int64,at:date32"``, a dict, or an Arrow schema, and of those in names of directories; what
        separates fields, which is told by looking unless given; whether a first line names the columns. Text may be
        compressed.
    csv_null, csv_decimal, csv_quote
        How CSV is written down, in and out: what stands for null, as ``"\\N"``, or a list of such, of which the first
        is written; ``"point"`` or ``"comma"``; the quote, or ``"none"``.
    csv_escape, csv_comment, csv_skip_lines, charset
        The same of inputs: what stands in front of quotes within quotes, and in front of lines that are comments; how
        many lines stand in front of all else; the encoding of text, ``"latin1"``, ``"utf-16le"``, ...
    store_options
        How stores are reached where a path is an address - ``s3://``, ``gs://``, ``az://``, ``abfss://``,
        ``https://`` - beside ``AWS_*``, ``GOOGLE_*`` and ``AZURE_*`` variables: a dict such as
        ``{"region": "eu-west-1"}``; ``{"skip_signature": True}`` is anonymous access.
    max_file_size
        Bytes of a file: ``output`` is then a directory, new or empty, of ``part-00000.parquet`` and on, which follow
        from one another. Rows that are equal in the order stay in one file, which may be larger for them.
    output_format, compression, row_group_size, page_size, statistics, checksums, encoding
        How the output is written: a format; ``"none"``, ``"snappy"``, ``"lz4"``, ``"zstd:3"``, ``"gzip"``, ``"brotli"``;
        sizes, as of ``memory``; whether Parquet has minima and maxima, and whether its pages have checksums;
        ``"plain"`` for readers of Parquet that do not know the delta encodings.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import windrow as wr
    >>> rows = pa.table({"id": [2, 1, 3], "name": ["b", None, "c"]})
    >>> pa.table(wr.sort(rows, by="id:desc"))["id"].to_pylist()
    [3, 2, 1]
    >>> pa.table(wr.sort(rows, by=wr.col("name", nulls="first"), select=["name"]))["name"].to_pylist()
    [None, 'b', 'c']
    >>> pa.table(wr.sort(rows, by="id:desc", where="name is not null", limit=1))["id"].to_pylist()
    [3]
    """
    return _run("sort", inputs, output, locals())


def compact(
    inputs,
    *,
    key=None,
    order_by=None,
    op=None,
    preset=None,
    op_map=None,
    table=None,
    unchanged=None,
    time=None,
    diff=None,
    as_of=None,
    mode=None,
    keep_bookkeeping=None,
    output=None,
    select=None,
    where=None,
    memory=None,
    threads=None,
    temp_dir=None,
    max_temp_size=None,
    spill_compression=None,
    spill_to=None,
    spill_direct=None,
    progress=None,
    input_format=None,
    schema=None,
    hive_types=None,
    union_by_name=None,
    store_options=None,
    csv_delimiter=None,
    csv_header=None,
    csv_null=None,
    csv_decimal=None,
    csv_quote=None,
    csv_escape=None,
    csv_comment=None,
    csv_skip_lines=None,
    charset=None,
    output_format=None,
    compression=None,
    max_file_size=None,
    row_group_size=None,
    page_size=None,
    statistics=None,
    checksums=None,
    encoding=None,
):
    """Reduces a change log to the latest state of each key, or sums (row, time, diff) changes.

    Of the rows of one ``key`` the greatest by ``order_by`` wins; of equals, the later in the input. A winning delete
    removes the key from a snapshot.

    Parameters
    ----------
    inputs
        As of `sort`.
    key
        Columns that tell rows apart; with ``diff``, columns to sort by first.
    order_by
        Columns that say which change of a key is the latest; what text in them stands for is told as
        ``"scn:number"``, ``"pos:lsn"``, ``"at:time"``, ``"seq:hex"``, ``"id:uuid-time"`` or ``"code:text"``.
    op
        The column that says what a change does: insert, update, delete, ...
    preset
        The format of the log by its producer's name: ``"wal2json"``, ``"debezium"``, ``"maxwell"``, ``"dms"``, and the
        others that ``windrow help compact`` lists; ``"auto"`` tells it by the first records.
    op_map
        What words of ``op`` mean: ``"I=insert,REFRESH=insert"``, or a dict. An empty word, or None, stands for null, ``"*"``
        for any other value.
    table
        The table that is wanted of a log of several: ``"NAME"`` or ``"SCHEMA.NAME"``, in which ``*`` and ``?`` stand for what
        may be anything; or a list of them, which are taken as one table.
    unchanged
        What becomes of an update that does not have all columns of its row: ``"last"`` fills in what was known last,
        ``"error"`` refuses it, ``"keep"`` takes it as it is.
    time, diff
        The columns with the time of a change and with how often a row was added, negative if removed.
    as_of
        Counts only what happened at or before this time, or first ``order_by`` column.
    mode
        ``"snapshot"``: the live rows; ``"log"``: the last change of each key, or the summed changes.
    keep_bookkeeping
        Whether a snapshot has the op, envelope and diff columns.

    The rest is as of `sort`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import windrow as wr
    >>> changes = pa.table({"id": [1, 2, 1, 2], "lsn": [1, 2, 3, 4], "op": ["I", "I", "U", "D"], "name": list("abcd")})
    >>> pa.table(wr.compact(changes, key="id", order_by="lsn", op="op")).to_pylist()
    [{'id': 1, 'lsn': 3, 'name': 'c'}]
    """
    return _run("compact", inputs, output, locals())


def merge(
    inputs,
    *,
    by,
    float_order=None,
    unique=None,
    time=None,
    diff=None,
    output=None,
    select=None,
    where=None,
    memory=None,
    threads=None,
    temp_dir=None,
    max_temp_size=None,
    spill_compression=None,
    spill_to=None,
    spill_direct=None,
    progress=None,
    input_format=None,
    schema=None,
    hive_types=None,
    union_by_name=None,
    store_options=None,
    csv_delimiter=None,
    csv_header=None,
    csv_null=None,
    csv_decimal=None,
    csv_quote=None,
    csv_escape=None,
    csv_comment=None,
    csv_skip_lines=None,
    charset=None,
    output_format=None,
    compression=None,
    max_file_size=None,
    row_group_size=None,
    page_size=None,
    statistics=None,
    checksums=None,
    encoding=None,
):
    """Merges inputs that are sorted already; one that is not is an `UnsortedError` that names the row.

    Parameters
    ----------
    inputs, by
        As of `sort`. Equal rows come in the order of the inputs.
    unique
        Whether of rows equal in ``by`` only the last is kept.
    time, diff
        Sums the diffs of equal rows, and drops zeros. Inputs are then sorted by ``by`` and all other columns.

    The rest is as of `sort`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import windrow as wr
    >>> evens, odds = pa.table({"id": [0, 2, 4]}), pa.table({"id": [1, 3]})
    >>> pa.table(wr.merge([evens, odds], by="id"))["id"].to_pylist()
    [0, 1, 2, 3, 4]
    """
    return _run("merge", inputs, output, locals())


def dedupe(
    inputs,
    *,
    key=None,
    keep=None,
    output=None,
    select=None,
    where=None,
    memory=None,
    threads=None,
    temp_dir=None,
    max_temp_size=None,
    spill_compression=None,
    spill_to=None,
    spill_direct=None,
    progress=None,
    input_format=None,
    schema=None,
    hive_types=None,
    union_by_name=None,
    store_options=None,
    csv_delimiter=None,
    csv_header=None,
    csv_null=None,
    csv_decimal=None,
    csv_quote=None,
    csv_escape=None,
    csv_comment=None,
    csv_skip_lines=None,
    charset=None,
    output_format=None,
    compression=None,
    max_file_size=None,
    row_group_size=None,
    page_size=None,
    statistics=None,
    checksums=None,
    encoding=None,
):
    """Leaves one row of each key, sorted by it.

    Keys are equal as in SQL: nulls are one key, and so are -0.0 and 0.0, and all NaN.

    Parameters
    ----------
    inputs
        As of `sort`.
    key
        The columns that are equal in duplicates; all unless given.
    keep
        Which of them stays: the ``"first"`` or the ``"last"`` of the inputs, ``"none"`` where there are several, or
        ``"last-known"``: the last, with the last value of each column that is not null.

    The rest is as of `sort`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import windrow as wr
    >>> rows = pa.table({"id": [2, 1, 2], "name": ["a", "b", "c"]})
    >>> pa.table(wr.dedupe(rows, key="id", keep="last"))["name"].to_pylist()
    ['b', 'c']
    """
    return _run("dedupe", inputs, output, locals())


def diff(
    old,
    new,
    *,
    key,
    format=None,
    op=None,
    output=None,
    select=None,
    where=None,
    memory=None,
    threads=None,
    temp_dir=None,
    max_temp_size=None,
    spill_compression=None,
    spill_to=None,
    spill_direct=None,
    progress=None,
    input_format=None,
    schema=None,
    hive_types=None,
    union_by_name=None,
    store_options=None,
    csv_delimiter=None,
    csv_header=None,
    csv_null=None,
    csv_decimal=None,
    csv_quote=None,
    csv_escape=None,
    csv_comment=None,
    csv_skip_lines=None,
    charset=None,
    output_format=None,
    compression=None,
    max_file_size=None,
    row_group_size=None,
    page_size=None,
    statistics=None,
    checksums=None,
    encoding=None,
):
    """The changes that make ``new`` of ``old``, sorted by the key: a change log that `compact` takes.

    Either side may be in any order; one that has a key twice is an error. The first column says what a change does:
    ``"insert"``, ``"update"`` or ``"delete"``; the others are the new row, or the old one that is gone.

    Parameters
    ----------
    old, new
        As the inputs of `sort`.
    key
        The columns that tell rows apart.
    format
        ``"changes"``, or ``"summary"``: how many rows were inserted, updated and deleted, and are the same, and of the
        updated ones how many differ in each column.
    op
        The name of the first column, ``"op"`` unless given.
    select
        The columns to compare and to write; all unless given.

    The rest is as of `sort`.

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
    """
    return _run("diff", (old, new), output, locals())


def head(
    inputs,
    *,
    rows=None,
    output=None,
    select=None,
    where=None,
    memory=None,
    threads=None,
    temp_dir=None,
    max_temp_size=None,
    spill_compression=None,
    spill_to=None,
    spill_direct=None,
    progress=None,
    input_format=None,
    schema=None,
    hive_types=None,
    union_by_name=None,
    store_options=None,
    csv_delimiter=None,
    csv_header=None,
    csv_null=None,
    csv_decimal=None,
    csv_quote=None,
    csv_escape=None,
    csv_comment=None,
    csv_skip_lines=None,
    charset=None,
    output_format=None,
    compression=None,
    max_file_size=None,
    row_group_size=None,
    page_size=None,
    statistics=None,
    checksums=None,
    encoding=None,
):
    """The first rows of the inputs, as they come: ten unless ``rows`` says how many.

    The rest is as of `sort`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import windrow as wr
    >>> pa.table(wr.head(pa.table({"id": [3, 1, 2]}), rows=2))["id"].to_pylist()
    [3, 1]
    """
    return _run("head", inputs, output, locals())


def partition(
    inputs,
    *,
    by,
    output,
    into=None,
    range=None,
    range_at=None,
    hive=None,
    sort=None,
    select=None,
    where=None,
    memory=None,
    threads=None,
    temp_dir=None,
    max_temp_size=None,
    spill_compression=None,
    spill_to=None,
    spill_direct=None,
    progress=None,
    input_format=None,
    schema=None,
    hive_types=None,
    union_by_name=None,
    store_options=None,
    csv_delimiter=None,
    csv_header=None,
    csv_null=None,
    csv_decimal=None,
    csv_quote=None,
    csv_escape=None,
    csv_comment=None,
    csv_skip_lines=None,
    charset=None,
    output_format=None,
    compression=None,
    row_group_size=None,
    page_size=None,
    statistics=None,
    checksums=None,
    encoding=None,
):
    """Splits rows into files of a directory; rows with equal ``by`` go to the same one.

    Parameters
    ----------
    inputs
        As of `sort`.
    by
        Columns that decide where a row goes.
    output
        The directory, new or empty; it appears whole or not at all.
    into
        How many files, by a hash that is the same everywhere and in every release.
    range
        With ``into``: by ranges of ``by`` with about as many rows each.
    range_at
        Values at which ranges start, in the order of ``by``; of more columns, tuples of them.
    hive
        Whether there is a directory for each value of ``by``.
    sort
        What every file is sorted by.

    The rest is as of `sort`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import windrow as wr
    >>> events = pa.table({"user": [1, 2, 3, 1], "at": [4, 3, 2, 1]})
    >>> wr.partition(events, by="user", into=2, sort="at", output="events").partitions["files"]
    2
    >>> wr.merge("events", by="at", output="events.parquet").rows_out
    4
    """
    return _run("partition", inputs, output, locals())


def check(
    inputs,
    *,
    by,
    float_order=None,
    unique=None,
    where=None,
    input_format=None,
    schema=None,
    hive_types=None,
    union_by_name=None,
    store_options=None,
    csv_delimiter=None,
    csv_header=None,
    csv_null=None,
    csv_decimal=None,
    csv_quote=None,
    csv_escape=None,
    csv_comment=None,
    csv_skip_lines=None,
    charset=None,
):
    """Whether every input is sorted by these columns, each by itself.

    ``unique`` also asks that no two rows are equal in them, as in SQL; ``float_order`` is as of `sort`. The result is true or false, and has the first
    offending ``file`` and ``row``.

    >>> import pyarrow as pa
    >>> import windrow as wr
    >>> wr.check(pa.table({"id": [1, 2, 2]}), by="id", unique=True).row
    2
    """
    return Check(**json.loads(_windrow.check(inputs, locals())))


def inspect(
    inputs,
    *,
    input_format=None,
    schema=None,
    store_options=None,
    csv_delimiter=None,
    csv_header=None,
    csv_null=None,
    csv_decimal=None,
    csv_quote=None,
    csv_escape=None,
    csv_comment=None,
    csv_skip_lines=None,
    charset=None,
):
    """Schema, rows, row groups, sizes and statistics of a file, and whether a declared order holds.

    A list of these where ``inputs`` is a list, a directory or a pattern.

    >>> import pyarrow as pa
    >>> import windrow as wr
    >>> stats = wr.sort(pa.table({"id": [2, 1]}), by="id", output="sorted.parquet")
    >>> facts = wr.inspect("sorted.parquet")
    >>> facts.rows, facts.parquet["order"]["holds"]
    (2, True)
    """
    many, files = _windrow.inspect(inputs, locals())
    found = [Inspect(text, json.loads(facts)) for text, facts in files]
    return found if many else found[0]


def explaining(verb):
    """The call that only explains what ``verb`` would do."""

    @functools.wraps(verb)
    def explain(*inputs, **options):
        inputs = inputs if verb is diff else inputs[0]
        return Explain(**json.loads(_windrow.explain(verb.__name__, inputs, options)))

    return explain


def _run(verb, inputs, output, options):
    with watching(options["progress"]) as progress:
        result = _windrow.run(verb, inputs, progress, options)
    return result if output is not None else Reader(result)
