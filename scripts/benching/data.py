"""The tables, made once: functions of the row's number, so that they are the same everywhere.

Runs in a child with the libraries of the bench. A table appears whole: it is made under another
name and renamed.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from .jobs import DATA, LOG_COLUMNS, BUILT, TABLES, TEMP

# u: in [0, 1), n: a number below `end`, pick: one of a list; each its own for each salt.
MACROS = """
CREATE MACRO u(i, salt) AS hash(i, salt) / 18446744073709551616.0;
CREATE MACRO n(i, salt, ends) AS CAST(hash(i, salt) % ends AS BIGINT);
CREATE MACRO pick(i, salt, list) AS list[1 + n(i, salt, len(list))];
"""
COUNTRIES = "['nl', 'be', 'de', 'fr', 'gb', 'pl', 'cz', 'se', 'no', 'it', 'es', 'pt', 'us', 'ca', 'br', 'jp']"
WORDS = "['amber', 'birch', 'cedar', 'delta', 'ember', 'fjord', 'grove', 'heath', 'inlet', 'juniper', 'knoll', 'larch']"
TITLES = "['Новости дня', 'Погода на неделю', 'Купить билеты', 'Видео', 'Работа в городе', 'Форум', 'Карта', 'News']"

EVENTS = f"""
SELECT n(i, 1, greatest(1, {{rows}} // 4)) AS id, i AS seq, pick(i, 2, ['view', 'click', 'order', 'leave']) AS kind,
       strftime(TIMESTAMP '2026-01-01' + to_milliseconds(i * 37), '%Y-%m-%dT%H:%M:%S.%gZ') AS ts,
       {{{{name: 'user-' || n(i, 3, 100000), country: pick(i, 4, {COUNTRIES})}}}} AS actor,
       n(i, 5, 1000000) / 100 AS amount,
       '/' || pick(i, 6, {WORDS}) || '/' || pick(i, 7, {WORDS}) || '?page=' || n(i, 8, 1000) AS path
FROM range({{rows}}) AS t(i)"""
# The only quotes are in the last column, and no record has a line end: GNU sort knows neither.
ORDERS = f"""
SELECT n(i, 1, 1000000000) AS id, DATE '2020-01-01' + CAST(n(i, 2, 2000) AS INTEGER) AS day,
       pick(i, 3, {WORDS}) || ' ' || pick(i, 4, {WORDS}) || ' ' || n(i, 5, 100000) AS name,
       pick(i, 6, {COUNTRIES}) || '-' || n(i, 7, 500) AS city, n(i, 8, 10000000) / 100 AS amount,
       pick(i, 9, {WORDS}) || ', ' || pick(i, 10, {WORDS}) || ' and ' || pick(i, 11, {WORDS}) AS note
FROM range({{rows}}) AS t(i)"""
# Few hosts and pages have most of the rows; most searches are empty.
CLICKS = f"""
SELECT i AS id, TIMESTAMP '2026-03-01' + to_milliseconds(n(i, 1, 864000000)) AS ts, n(i, 2, 200000) AS visitor,
       'https://' || pick(i, 3, {WORDS}) || CAST(pow(u(i, 4), 3) * 400 AS INTEGER) || '.example/' || pick(i, 5, {WORDS})
           || '/' || pick(i, 6, {WORDS}) || '?id=' || CAST(pow(u(i, 7), 4) * 100000 AS INTEGER) AS url,
       CASE WHEN u(i, 8) < 0.4 THEN '' ELSE 'https://search.example/?q=' || pick(i, 9, {WORDS}) END AS referer,
       pick(i, 10, {TITLES}) || ' ' || n(i, 11, 5000) AS title,
       CASE WHEN u(i, 12) < 0.87 THEN '' ELSE pick(i, 13, {WORDS}) || ' ' || pick(i, 14, {WORDS}) END AS phrase,
       'Mozilla/5.0 (' || pick(i, 15, {WORDS}) || ') Release/' || n(i, 16, 40) AS agent,
       CAST(n(i, 17, 5000) AS INTEGER) AS region, CAST(n(i, 18, 2) AS BOOLEAN) AS mobile
FROM range({{rows}}) AS t(i)"""
# One row in a hundred is up to a minute late.
LATE = f"""
SELECT i AS id, TIMESTAMP '2026-05-01' + to_milliseconds(i * 10 + 60000
           - CASE WHEN u(i, 1) < 0.01 THEN n(i, 2, 60000) ELSE 0 END) AS ts,
       n(i, 3, 5000) AS device, u(i, 4) * 100 AS value, 'reading ' || pick(i, 5, {WORDS}) || ' ' || n(i, 6, 100000) AS message
FROM range({{rows}}) AS t(i)"""


def wide():
    """A random key, then 33 columns each of text, floats and integers, one value in twenty null."""
    kinds = ["pick(i, {c}, " + WORDS + ") || n(i, {c}, 10000)", "u(i, {c}) * 1000", "n(i, {c}, 1000000)"]
    columns = [f"CASE WHEN u(i, {500 + c}) < 0.05 THEN NULL ELSE {kinds[c % 3].format(c=c)} END AS c{c}" for c in range(99)]
    return f"SELECT n(i, 999, 1000000000) AS id, {', '.join(columns)} FROM range({{rows}}) AS t(i)"


QUERIES = {"events": EVENTS, "orders": ORDERS, "clicks": CLICKS, "late": LATE, "wide": wide()}
FORMATS = {"parquet": "FORMAT parquet, COMPRESSION zstd", "ndjson": "FORMAT json", "csv": "FORMAT csv, HEADER"}


def make_query(table, rows, out):
    import duckdb

    db = duckdb.connect()
    db.execute(MACROS)
    db.execute(f"COPY ({QUERIES[table.name].format(rows=rows)}) TO '{out}' ({FORMATS[table.format]})")


def make_lineitem(factor, out):
    folder = TEMP / "tpch"
    tool = Path(sys.executable).parent / "tpchgen-cli"
    what = ["-s", f"{factor:g}", "--tables=lineitem", f"--output-dir={folder}", "--quiet", "--no-progress"]
    subprocess.run([tool, "parquet", *what], check=True)
    (folder / "lineitem.parquet").rename(out)


def make_log(rows, out):
    keys = max(1, rows // 4)
    tool = BUILT / "windrow-testdata"
    subprocess.run([tool, "gen-log", "--rows", str(rows), "--keys", str(keys), "-o", out], check=True)


def make_pieces(table, log, rows, out):
    """The log in as many files as the table has, each sorted if they are runs."""
    import pyarrow.parquet

    out.mkdir()
    whole = pyarrow.parquet.read_table(log).slice(0, rows)
    for piece in range(table.files):
        start, end = (rows * place // table.files for place in (piece, piece + 1))
        part = whole.slice(start, end - start)
        if table.name == "log-runs":
            part = part.sort_by([("id", "ascending"), ("lsn", "ascending")])
        pyarrow.parquet.write_table(part, out / f"{piece:04}.parquet", compression="zstd")


def make(name, options):
    """Makes the table if it is not there. What windrow wrote is made anew: its writer changes."""
    table = TABLES[name]
    target = table.source(options)
    if name == "lineitem-declared":
        target.unlink(missing_ok=True)
    if target.exists():
        return
    rows = None if name.startswith("lineitem") else int(table.size(options))
    unfinished = target.with_name(target.name + ".tmp")
    for left_over in (TEMP, unfinished):
        shutil.rmtree(left_over, ignore_errors=True)
    TEMP.mkdir(parents=True)
    DATA.mkdir(exist_ok=True)
    if name == "lineitem":
        make_lineitem(options.sf * options.scale, unfinished)
    elif name == "lineitem-declared":
        make("lineitem", options)
        subprocess.run([BUILT / "windrow", "sort", TABLES["lineitem"].source(options), "--by", "l_orderkey,l_linenumber",
                        "-o", unfinished, "--output-format", "parquet", "--quiet"], check=True)
    elif name == "log":
        make_log(rows, unfinished)
    elif table.columns is LOG_COLUMNS:
        make("log", options)
        make_pieces(table, TABLES["log"].source(options), rows, unfinished)
    else:
        make_query(table, rows, unfinished)
    unfinished.rename(target)
