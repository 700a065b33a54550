"""Whether an output is right, whichever engine wrote it.

Facts of an output: its rows, the sum of a hash over all values of each row, and, by job, how many
rows are behind a smaller one in the file, or how many partitions there are and how many keys are in
more than one. Values are first cast to the types of the input, so that a time that one engine left
as text, or a column that is the name of a directory, counts as what it is.

Facts expected are read from the input; the latest rows by DuckDB's window function, which none of
its measured runs use. Order is looked at by Arrow, which no engine here is built on.
"""

from pathlib import Path

from .jobs import JOBS, PARTITIONS, TABLES, TEMP


def connect():
    import duckdb

    db = duckdb.connect()
    TEMP.mkdir(parents=True, exist_ok=True)
    db.execute(f"SET temp_directory = '{TEMP}'")
    db.execute("SET TimeZone = 'UTC'")
    return db


def reader(path, form, columns):
    """A FROM clause. Text is read with the types that the table has."""
    path = Path(path)
    files = f"{path}/**/*.{form}" if path.is_dir() else path
    if form == "parquet":
        return f"read_parquet('{files}', filename = true, hive_partitioning = {str(path.is_dir()).lower()})"
    types = ", ".join(f"'{name}': '{kind}'" for name, kind in columns.items())
    if form == "csv":
        return f"read_csv('{files}', header = true, columns = {{{types}}})"
    return f"read_ndjson('{files}', columns = {{{types}}})"


def types_of(db, job, source):
    """Names and types of the columns of every right answer."""
    table = TABLES[job.table]
    columns = table.columns
    if not columns:
        described = db.sql(f"DESCRIBE SELECT * EXCLUDE (filename) FROM {reader(source, 'parquet', None)}").fetchall()
        columns = {name: kind for name, kind, *_ in described}
    return {name: kind for name, kind in columns.items() if name != job.op}


def facts_of(db, rows, types):
    values = ", ".join(f'CAST("{name}" AS {kind})' for name, kind in types.items())
    return [int(fact or 0) for fact in db.sql(f"SELECT count(*), sum(hash({values})::HUGEINT) FROM {rows}").fetchall()[0]]


def expect(name, source):
    """What is true of every right answer."""
    job, db = JOBS[name], connect()
    rows = reader(source, TABLES[job.table].format, TABLES[job.table].columns)
    types = types_of(db, job, source)
    if job.verb == "latest":
        key, order = job.by
        live = f"WHERE {job.op} <> 'D'" if job.op else ""
        latest = f"SELECT * FROM {rows} QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY {order} DESC) = 1"
        rows = f"(SELECT * FROM ({latest}) {live})"
    facts = facts_of(db, rows, types)
    if job.ordered:
        return [*facts, 0]
    if job.directory:
        distinct = db.sql(f"SELECT count(DISTINCT ({', '.join(job.by)})) FROM {rows}").fetchall()[0][0]
        return [*facts, min(distinct, PARTITIONS) if job.verb == "into" else distinct, 0]
    return facts


def verify(name, source, out):
    """The same facts of an output."""
    job, db = JOBS[name], connect()
    rows = reader(out, job.out, TABLES[job.table].columns)
    facts = facts_of(db, rows, types_of(db, job, source))
    if job.ordered:
        return [*facts, rows_behind(out, job)]
    if job.directory:
        return [*facts, *partitions_of(db, rows, job, out)]
    return facts


def partitions_of(db, rows, job, out):
    """How many partitions have rows, and how many keys are in two. A partition is a directory, or
    a file of the output directory itself."""
    partition = f"CASE WHEN parse_dirpath(filename) = '{out}' THEN filename ELSE parse_dirpath(filename) END"
    keys = f"(SELECT DISTINCT {', '.join(job.by)}, {partition} AS place FROM {rows})"
    places = db.sql(f"SELECT count(DISTINCT place) FROM {keys}").fetchall()[0][0]
    twice = db.sql(f"SELECT count(*) FROM (SELECT 1 FROM {keys} GROUP BY {', '.join(job.by)} HAVING count(*) > 1)")
    return [places, twice.fetchall()[0][0]]


def key_batches(out, job):
    """The ordered columns of a file, batch by batch, in the order of the file."""
    if job.out == "parquet":
        import pyarrow.parquet

        yield from pyarrow.parquet.ParquetFile(out).iter_batches(columns=list(job.by))
    elif job.out == "csv":
        from pyarrow import csv

        yield from csv.open_csv(out, convert_options=csv.ConvertOptions(include_columns=list(job.by)))
    else:
        import pyarrow.json

        for batch in pyarrow.json.open_json(out):
            yield batch.select(list(job.by))


def rows_behind(out, job):
    import pyarrow as pa
    import pyarrow.compute as pc

    behind, last = 0, None
    for batch in key_batches(out, job):
        table = pa.Table.from_batches([batch])
        keys = table if last is None else pa.concat_tables([last, table])
        if keys.num_rows == 0:
            continue
        less = equal = None
        for column in keys.combine_chunks().columns:
            a, b = column.slice(0, len(column) - 1), column.slice(1)
            smaller = pc.less(b, a)
            less = smaller if less is None else pc.or_(less, pc.and_(equal, smaller))
            same = pc.equal(b, a)
            equal = same if equal is None else pc.and_(equal, same)
        behind += pc.sum(less).as_py() or 0
        last = keys.slice(keys.num_rows - 1)
    return behind


def count(name, out):
    """Rows of an output, from footers and line ends."""
    job, out = JOBS[name], Path(out)
    if job.out == "parquet":
        import pyarrow.parquet

        files = out.glob("**/*.parquet") if out.is_dir() else [out]
        return sum(pyarrow.parquet.read_metadata(file).num_rows for file in files)
    lines = 0
    with open(out, "rb") as file:
        while chunk := file.read(1 << 20):
            lines += chunk.count(b"\n")
    return lines - (job.out == "csv")
