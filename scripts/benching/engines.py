"""How each engine does each job: programs as an argv, libraries as a child of this script.

What is given to whom:
- windrow      --memory-limit; it syncs what it writes, which none of the others do, and its
               compact writes rows in the order of the key.
- duckdb       as it comes (zstd level 3). Latest rows: max and arg_max per column, the fastest of
               its idioms that is right for any log (others tried: row_number, distinct on, arg_max
               of the row). memory_limit is the limit.
- duckdb-l1    the same, COMPRESSION_LEVEL 1. (Windrow's own default is zstd level 2.)
- duckdb-join  latest rows by joining the log to max(lsn) per id. Faster, but it reads the input
               twice and returns a row twice where its (id, lsn) was delivered twice.
- polars       streaming sink; POLARS_OOC_MEMORY_BUDGET_MB is the limit.
- polars-merge a tree of merge_sorted over the files in place of a sort.
- datafusion   fair spill pool of the limit, as many partitions as threads.
- gnu-sort     LC_ALL=C, stable, behind the header; -S is the limit. It knows no quotes; the files
               have none before the key.
- xan          parallel sort in memory; under a limit its external sort, --memory-limit.

All infer the types of text for themselves. Partitions are by a hash in windrow, by the remainder
of the key in the others, which have no such verb.
"""

import os
from pathlib import Path

from .jobs import JOBS, MIB, PARTITIONS, BUILT, RUST_CSV, TABLES

GNU_SORT = """in=$1; out=$2; shift 2; head -n 1 "$in" >"$out"; tail -n +2 "$in" | LC_ALL=C sort "$@" >>"$out" """


def command(engine, job, limit, threads, python, script, source, out, temp):
    """The argv of one run."""
    if engine == "windrow":
        return windrow(job, limit, threads, source, out, temp)
    if engine == "gnu-sort":
        place = 1 + list(TABLES[job.table].columns).index(job.by[0])
        number = "n" if TABLES[job.table].columns[job.by[0]] == "BIGINT" else ""
        size = ["-S", f"{limit}M"] if limit else []
        options = ["-s", "-t", ",", f"-k{place},{place}{number}", f"--parallel={threads}", "-T", temp, *size]
        return ["/bin/sh", "-c", GNU_SORT, "sh", source, out, *options]
    if engine == "xan":
        number = ["-N"] if TABLES[job.table].columns[job.by[0]] == "BIGINT" else []
        how = ["-e", "-m", str(limit), "--tmp-dir", temp] if limit else ["-p"]
        return [RUST_CSV / "bin" / "xan", "sort", "-s", job.by[0], *number, *how, source, "-o", out]
    return [python, script, "--child", "run", engine, job.name, str(limit or 0), str(threads), source, out, temp]


def windrow(job, limit, threads, source, out, temp):
    by = ",".join(job.by)
    op = ["--op-column", job.op] if job.op else []
    verb = {
        "sort": ["sort", source, "--by", by],
        "merge": ["merge", source, "--by", by],
        "latest": ["compact", source, "--key", job.by[0], "--order-by", job.by[-1], *op],
        "into": ["partition", source, "--by", by, "--into", str(PARTITIONS)],
        "hive": ["partition", source, "--by", by, "--hive"],
    }[job.verb]
    limit = f"{limit}MiB" if limit else "unlimited"
    return [BUILT / "windrow", *verb, "-o", out, "--memory-limit", limit, "--threads", str(threads),
            "--temp-dir", temp, "--quiet"]


def environment(threads):
    """For programs that take threads from it."""
    return os.environ | {"RAYON_NUM_THREADS": str(threads)}


def run(engine, name, limit, threads, source, out, temp):
    """In the child: one job in one library."""
    library = {"duckdb": run_duckdb, "polars": run_polars, "datafusion": run_datafusion}[engine.split("-")[0]]
    library(engine, JOBS[name], int(limit), int(threads), source, out, temp)


def query(engine, job):
    """The job in SQL, over a view or table `input`."""
    by = ", ".join(job.by)
    if job.ordered:
        return f"SELECT * FROM input ORDER BY {by}"
    if job.verb == "into":
        return f"SELECT *, {by} % {PARTITIONS} AS part FROM input"
    if job.verb == "hive":
        return "SELECT * FROM input"
    key, order = job.by
    live = f"WHERE {job.op} <> 'D'" if job.op else ""
    table = TABLES[job.table]
    kept = ", ".join(column for column in table.columns if column != job.op)
    if engine == "duckdb-join":
        without = f" EXCLUDE ({job.op})" if job.op else ""
        return f"""SELECT input.*{without} FROM input
            JOIN (SELECT {key}, max({order}) {order} FROM input GROUP BY {key}) USING ({key}, {order}) {live}"""
    if engine == "datafusion":
        return f"""SELECT {kept} FROM (SELECT *, row_number() OVER (PARTITION BY {key} ORDER BY {order} DESC) AS place
            FROM input) WHERE place = 1 {live.replace("WHERE", "AND")}"""
    latest = [f"arg_max{'_null' * (column in table.nullable)}({column}, {order}) AS {column}"
              for column in table.columns if column not in job.by]
    grouped = f"SELECT {key}, max({order}) AS {order}, {', '.join(latest)} FROM input GROUP BY {key}"
    return f"SELECT {kept} FROM ({grouped}) {live}" if job.op else grouped


def partition_columns(job):
    return ", ".join({"into": ("part",), "hive": job.by}[job.verb])


def run_duckdb(engine, job, limit, threads, source, out, temp):
    import duckdb

    db = duckdb.connect()
    db.execute(f"SET threads = {threads}")
    db.execute(f"SET temp_directory = '{temp}'")
    if limit:
        db.execute(f"SET memory_limit = '{limit}MiB'")
    table = TABLES[job.table]
    files = f"{source}/*.{table.format}" if table.files > 1 else source
    reader = {"parquet": "read_parquet", "csv": "read_csv", "ndjson": "read_ndjson"}[table.format]
    db.execute(f"CREATE VIEW input AS SELECT * FROM {reader}('{files}')")
    how = {"parquet": "FORMAT parquet, COMPRESSION zstd", "csv": "FORMAT csv, HEADER", "ndjson": "FORMAT json"}[job.out]
    if engine == "duckdb-l1":
        how += ", COMPRESSION_LEVEL 1"
    if job.directory:
        how += f", PARTITION_BY ({partition_columns(job)})"
    db.execute(f"COPY ({query(engine, job)}) TO '{out}' ({how})")


def run_polars(engine, job, limit, threads, source, out, temp):
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    os.environ["POLARS_TEMP_DIR"] = temp
    if limit:
        os.environ["POLARS_OOC_MEMORY_BUDGET_MB"] = str(limit)
    import polars as pl

    table = TABLES[job.table]
    files = f"{source}/*.{table.format}" if table.files > 1 else source
    rows = {"parquet": pl.scan_parquet, "csv": pl.scan_csv, "ndjson": pl.scan_ndjson}[table.format](files)
    if engine == "polars-merge":
        inputs = [pl.scan_parquet(file) for file in sorted(Path(source).iterdir())]
        while len(inputs) > 1:
            pairs = zip(inputs[::2], inputs[1::2])
            inputs = [a.merge_sorted(b, job.by) for a, b in pairs] + inputs[len(inputs) & ~1:]
        rows = inputs[0]
    elif job.ordered:
        rows = rows.sort(*job.by)
    elif job.verb == "latest":
        key, order = job.by
        rows = rows.group_by(key).agg(pl.all().exclude(key).sort_by(order).last())
        if job.op:
            rows = rows.filter(pl.col(job.op) != "D").drop(job.op)
    if job.directory:
        key = list(job.by) if job.verb == "hive" else (pl.col(job.by[0]) % PARTITIONS).alias("part")
        out = pl.PartitionBy(out, key=key, include_key=False)
    if job.out == "parquet":
        rows.sink_parquet(out, compression="zstd", engine="streaming")
    else:
        {"csv": rows.sink_csv, "ndjson": rows.sink_ndjson}[job.out](out, engine="streaming")


def run_datafusion(engine, job, limit, threads, source, out, temp):
    os.environ["TOKIO_WORKER_THREADS"] = str(threads)
    import datafusion

    runtime = datafusion.RuntimeEnvBuilder().with_disk_manager_specified(temp)
    if limit:
        runtime = runtime.with_fair_spill_pool(limit * MIB)
    config = datafusion.SessionConfig().with_target_partitions(threads)
    context = datafusion.SessionContext(config, runtime)
    table = TABLES[job.table]
    if table.format == "parquet":
        context.register_parquet("input", source)
    elif table.format == "csv":
        context.register_csv("input", source)
    else:
        context.register_json("input", source, file_extension=".ndjson")
    rows = context.sql(query(engine, job))
    if job.directory:
        options = datafusion.DataFrameWriteOptions(partition_by=partition_columns(job).split(", "))
        rows.write_parquet(out, compression="zstd", write_options=options)
    elif job.out == "parquet":
        rows.write_parquet(out, compression="zstd")
    elif job.out == "csv":
        rows.write_csv(out, with_header=True)
    else:
        rows.write_json(out)
