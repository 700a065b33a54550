"""Random jobs: what is typed, on which files, and what is right."""

import datetime
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import data

from . import files, models, partitions, tables
from .tables import ROW

VERBS = {"sort": 5, "dedupe": 3, "compact": 3, "merge": 2, "diff": 2, "partition": 3, "check": 1, "head": 1, "inspect": 0.5}
SOURCES = {"parquet": 4, "arrow": 2, "arrow-stream": 2, "csv": 3, "ndjson": 3, "avro": 2}
TARGETS = {"parquet": 5, "arrow": 2, "arrow-stream": 1, "csv": 3, "ndjson": 2}
NULL_TEXT = r"\N"
# Names that need care, of files that hold any name.
ODD_NAMES = ["a.b", 'q"x', "\u00fc k", "a,b", "x:y", " lead", "SELECT", "a'b", "\u65e5\u672c", "=", "50%", "a/b", "new\nline"]
# Options that hold columns.
COLUMNS = ("--by", "--key", "--order-by", "--sort", "--select", "--diff", "--op-column")


@dataclass
class Job:
    verb: str
    source: str
    packed: str | None
    inputs: list
    options: list
    target: str | None = None
    null_text: str | None = None
    output: str | None = None
    directory: bool = False
    # Of the right output: raises AssertionError. Of verbs without one: of exit code, standard output and messages.
    judge: Callable | None = None
    code: int = 0
    big: bool = False
    stdin: bool = False
    # The inputs are named by their folder.
    whole_folder: bool = False

    @property
    def limited(self):
        """`check` and `inspect` have no options of memory."""
        return self.target is not None

    def argv(self, binary, inputs, output, knobs=()):
        files = ["-"] if self.stdin else [str(inputs[0].parent)] if self.whole_folder else [str(path) for path in inputs]
        return [str(binary), self.verb, *files, *self.options, *(["-o", str(output)] if output else []), *map(str, knobs)]


def weighted(rng, weights):
    shares = np.array(list(weights.values()), float)
    return list(weights)[int(rng.choice(len(shares), p=shares / shares.sum()))]


def shown(literal):
    """A value as --where has it."""
    if isinstance(literal, str):
        return f"'{literal}'"
    if isinstance(literal, datetime.datetime):
        return literal.isoformat()
    if isinstance(literal, bool):
        return str(literal).lower()
    return "" if literal is None else str(literal)


def keys(rng, names, most=3, directions=True):
    """Some columns, as --by has them."""
    some = [names[i] for i in rng.permutation(len(names))[: int(rng.integers(1, most + 1))]]
    ways = ["", ":desc", ":nulls-first", ":desc:nulls-first"] if directions else [""]
    return ",".join(name + str(rng.choice(ways)) for name in some)


class Maker:
    """A random job, made step by step."""

    def __init__(self, rng, folder, big):
        self.rng, self.folder, self.big = rng, Path(folder), big
        self.verb = weighted(rng, VERBS if not big else {verb: n for verb, n in VERBS.items() if verb not in ("check", "head", "inspect")})
        self.source = weighted(rng, SOURCES if not big else {"parquet": 4, "arrow": 3, "arrow-stream": 1, "csv": 2, "ndjson": 1})
        self.target = weighted(rng, TARGETS)
        text = "csv" in (self.source, self.target)
        self.null_text = NULL_TEXT if text and rng.random() < 0.4 else None
        self.delimiter = str(self.rng.choice([";", "\t", "|"])) if text and self.chance(0.2) else ","
        self.packed = str(rng.choice([*files.PACKERS])) if self.source in ("csv", "ndjson") and rng.random() < 0.4 else None
        self.odd = {}
        self.options = []

    def chance(self, share):
        return self.rng.random() < share

    def kinds(self):
        return tables.kinds_for(self.source, self.target)

    def table(self, kinds=None):
        made = tables.random_table(self.rng, kinds or self.kinds(), self.big)
        if self.source in ("parquet", "arrow", "arrow-stream") and self.chance(0.15):
            names = [name for name in made.column_names if name != ROW and self.chance(0.5)]
            self.odd = dict(zip(names, (ODD_NAMES[i] for i in self.rng.permutation(len(ODD_NAMES)))))
        return tables.as_written(made, self.source, self.null_text)

    def named(self, table):
        """With the names that files have."""
        return table.rename_columns([self.odd.get(name, name) for name in table.column_names])

    def read(self, path, wanted):
        """An output, with the names that the models know."""
        got = files.read(path, self.target, self.named(wanted), self.null_text, self.delimiter)
        back = {odd: name for name, odd in self.odd.items()}
        return got.rename_columns([back.get(name, name) for name in got.column_names])

    def typed(self, options):
        """Options with the names that files have, quoted."""
        if not self.odd:
            return options
        quoted = lambda name: '"' + self.odd[name].replace('"', '""') + '"' if name in self.odd else name
        made = list(options)
        for place, (option, value) in enumerate(zip(options, options[1:]), 1):
            if option in COLUMNS:
                parts = [part.split(":", 1) for part in value.split(",")]
                made[place] = ",".join(":".join([quoted(name), *rest]) for name, *rest in parts)
            elif option == "--where":
                made[place] = re.sub(r"(^|(?<= and ))(\w+)", lambda found: quoted(found[0]), value)
        return made

    def write(self, parts):
        paths = []
        for number, part in enumerate(parts):
            source = self.source if number == 0 or not self.mixed(part) else str(self.rng.choice(["parquet", "arrow", "arrow-stream"]))
            suffix = files.SUFFIX[source] + (f".{self.packed}" if self.packed else "")
            path = self.folder / f"{number:02}.{suffix}"
            files.write(self.rng, self.named(part), path, source, self.null_text, self.packed, self.delimiter)
            paths.append(path)
        return paths

    def mixed(self, part):
        """Whether files of several formats hold these columns alike."""
        alike = all(kind in tables.SCALARS and kind != pa.timestamp("s") for kind in part.schema.types)
        return self.source in ("parquet", "arrow", "arrow-stream") and alike and self.chance(0.2)

    def inferred(self, part):
        """Whether types that are told by looking do: from CSV to CSV, where what is compared are integers, days and words."""
        if (self.source, self.target) != ("csv", "csv") or self.verb not in ("sort", "dedupe", "merge", "head", "partition"):
            return False
        words = " ".join(self.options).replace(",", " ").replace(":", " ").split()
        compared = [name for name in part.column_names if name in words]
        plain = all(part[name].type in (pa.date32(), *data.INTEGERS[:4]) for name in compared)
        return plain and (self.verb != "dedupe" or "--key" in words) and "last-known" not in words

    def reshaped(self, parts):
        """The inputs behind the first, some with columns in another order, or without those that hold nothing."""
        if self.chance(0.3):
            parts = [parts[0], *(tables.shuffled(self.rng, part) for part in parts[1:])]
        if self.chance(0.3):
            empty = lambda part: [name for name in part.column_names if part.num_rows and part[name].null_count == part.num_rows]
            parts = [parts[0], *(part.drop_columns(empty(part)) for part in parts[1:])]
            self.options += ["--union-by-name"]
        return parts

    def job(self, parts, judge, **more):
        """The job of these inputs; `self.options` say the rest."""
        schema = files.schema_option(parts[0])
        paths = self.write(self.reshaped(parts) if len(parts) > 1 else parts)
        options = self.typed(self.options)
        if self.source in ("csv", "ndjson") and not (self.inferred(parts[0]) and self.chance(0.4)):
            options += ["--schema", schema]
        if self.null_text:
            options += ["--csv-null", self.null_text]
        if self.delimiter != ",":
            options += ["--csv-delimiter", "tab" if self.delimiter == "\t" else self.delimiter]
        stdin = len(paths) == 1 and self.chance(0.1) and self.source != "avro" and "--range" not in options
        if stdin:
            options += ["--input-format", self.source]
        whole_folder = not stdin and self.verb not in ("diff", "check") and self.chance(0.1)
        return Job(
            self.verb, self.source, self.packed, paths, options, null_text=self.null_text, judge=judge, big=self.big, stdin=stdin,
            whole_folder=whole_folder, **more,
        )

    def where(self, table):
        """The rows that count, after conditions were added or not."""
        if not self.chance(0.3):
            return table
        texts = []
        for _ in range(int(self.rng.choice([1, 1, 2]))):
            name, operator, literal = self.condition(table)
            text = f"{name} {operator} {shown(literal)}".strip()
            # Linux takes no argument of 128 KiB.
            if len(text.encode()) > 60_000:
                continue
            texts.append(text)
            table = models.selected(table, (name, operator, literal))
        if texts:
            self.options += ["--where", " and ".join(texts)]
        return table

    def condition(self, table):
        name = str(self.rng.choice(table.column_names))
        kind, operator = table[name].type, str(self.rng.choice(["=", "!=", "<", "<=", ">", ">="]))
        exact = pa.types.is_integer(kind) or pa.types.is_decimal128(kind) or kind in (pa.float64(), pa.date32(), pa.bool_(), pa.string())
        if exact or kind in tables.TIMES[:3]:
            values = table[name].drop_null()
            literal = values[int(self.rng.integers(len(values)))].as_py() if len(values) else None
            # A quote has no place within quotes, nor has a zero in an argument.
            if literal is not None and not {"'", "\0"} & set(str(literal)):
                return name, operator, literal
        return name, str(self.rng.choice(["is null", "is not null"])), None

    def select(self, table):
        """Some columns in any order, of which one is the row's number."""
        if not self.chance(0.2):
            return table
        names = [table.column_names[i] for i in self.rng.permutation(table.num_columns)]
        names = [ROW, *[name for name in names if name != ROW][: int(self.rng.integers(1, len(names)))]]
        self.options += ["--select", ",".join(names)]
        return table.select(names)

    def file(self, parts, wanted, directory=False):
        """A job whose output is these rows."""
        target, null_text = self.target, self.null_text
        suffix = files.SUFFIX[target]
        self.output_options()
        name = "out" if directory else f"out.{suffix}"
        if not directory and target in ("csv", "ndjson") and self.chance(0.25):
            name += "." + str(self.rng.choice([*files.PACKERS]))
        if directory:
            self.options += ["--output-format", target]

        def judge(path):
            if directory:
                found = [self.read(part, wanted) for part in sorted(path.iterdir())]
                got = pa.concat_tables(found) if found else wanted.slice(0, 0)
            else:
                got = self.read(path, wanted)
            told = files.difference(got, wanted, target, null_text)
            assert told is None, told

        return self.job(parts, judge, target=target, output=name, directory=directory)

    def output_options(self):
        """How the output is written: nothing of this changes a row."""
        some = []
        if self.target == "parquet" and self.chance(0.4):
            some += ["--compression", str(self.rng.choice(["none", "snappy", "lz4", "zstd", "zstd:1", "gzip", "brotli:3"]))]
        if self.target.startswith("arrow") and self.chance(0.4):
            some += ["--compression", str(self.rng.choice(["none", "lz4", "zstd"]))]
        if self.target == "parquet":
            some += ["--row-group-size", str(self.rng.choice(["64KiB", "1MiB"]))] if self.chance(0.2) else []
            some += ["--page-size", str(self.rng.choice(["4KiB", "64KiB"]))] if self.chance(0.2) else []
            some += ["--encoding", "plain"] if self.chance(0.2) else []
            some += ["--no-checksums"] if self.chance(0.1) else []
        self.options += some

    # ---- verbs --------------------------------------------------------------------------------

    def sort(self):
        table = self.table()
        by = keys(self.rng, [*tables.keys_of(table), ROW])
        sql = self.chance(0.2)
        self.options += ["--by", by, *(["--float-order", "sql"] if sql else [])]
        wanted = models.sort(self.where(table), by, sql)
        directory = self.chance(0.1)
        if directory:
            self.options += ["--max-file-size", "64KiB"]
        elif self.chance(0.2):
            limit = int(self.rng.choice([0, 1, 10, 1000]))
            self.options += ["--limit", str(limit)]
            wanted = wanted.slice(0, limit)
        return self.file(tables.pieces(self.rng, table), self.select(wanted), directory)

    def dedupe(self):
        if self.chance(0.2):
            return self.dedupe_all()
        table = self.table()
        key = keys(self.rng, tables.keys_of(table), 2, directions=False)
        keep = str(self.rng.choice(["first", "last", "none", "last-known"]))
        self.options += ["--key", key, "--keep", keep]
        counted = self.where(table)
        wanted = models.last_known(counted, key) if keep == "last-known" else models.chosen(counted, key, keep)
        return self.file(tables.pieces(self.rng, table), self.select(wanted))

    def dedupe_all(self):
        """Rows that are equal in all columns."""
        rows = tables.row_count(self.rng, self.big)
        kinds = [kind for kind in self.kinds() if tables.is_key(kind)]
        count = int(self.rng.integers(2, 4))
        columns = {f"k{i}": tables.column(self.rng, kinds[int(self.rng.integers(len(kinds)))], rows) for i in range(count)}
        table = tables.as_written(pa.table(columns), self.source, self.null_text)
        wanted = models.chosen(self.where(table), ",".join(table.column_names), "first")
        return self.file(tables.pieces(self.rng, table), wanted)

    def compact(self):
        if self.chance(0.25):
            return self.compact_diffs()
        table = self.table()
        rows = table.num_rows
        words = pa.array(["I", "U", "D"]).take(pa.array(self.rng.choice(3, rows, p=[0.3, 0.5, 0.2])))
        lsn = pa.array(self.rng.integers(0, max(1, rows), rows), mask=self.rng.random(rows) < 0.1)
        table = table.append_column("op", words).append_column("lsn", lsn)
        key = keys(self.rng, tables.keys_of(table.drop_columns(["op", "lsn"])), 2, directions=False)
        order_by = ["", "lsn", "lsn:nulls-first", "lsn:desc"][int(self.rng.integers(4))]
        mode = str(self.rng.choice(["snapshot", "log"]))
        self.options += ["--key", key, "--op-column", "op", "--mode", mode, *(["--order-by", order_by] if order_by else [])]
        wanted = models.compacted(self.where(table), key, order_by, "op", mode)
        return self.file(tables.pieces(self.rng, table), wanted)

    def compact_diffs(self):
        rows = tables.row_count(self.rng, self.big)
        kinds = [kind for kind in self.kinds() if tables.is_key(kind) and not pa.types.is_floating(kind)]
        pick = lambda: kinds[int(self.rng.integers(len(kinds)))]
        columns = {f"k{i}": tables.column(self.rng, pick(), rows) for i in range(int(self.rng.integers(1, 4)))}
        table = pa.table(columns | {"diff": pa.array(self.rng.integers(-1, 3, rows))})
        table = tables.as_written(table, self.source, self.null_text)
        key = keys(self.rng, table.column_names[:-1], 2, directions=False)
        self.options += ["--key", key, "--diff", "diff", "--mode", "log"]
        return self.file(tables.pieces(self.rng, table), models.summed(table, key, "diff"))

    def merge(self):
        table = self.table()
        by = keys(self.rng, tables.keys_of(table))
        unique = self.chance(0.3)
        sql = not unique and self.chance(0.2)
        self.options += ["--by", by, *(["--float-order", "sql"] if sql else []), *(["--unique"] if unique else [])]
        parts = [models.sort(part, by, sql or unique) for part in tables.pieces(self.rng, table, int(self.rng.choice([4, 12, 40])))]
        whole = self.where(pa.concat_tables(parts).combine_chunks())
        wanted = models.chosen(whole, by, "last") if unique else models.sort(whole, by, sql)
        return self.file(parts, self.select(wanted))

    def diff(self):
        """Two sides with each key once, most of which they share."""
        kinds = [kind for kind in self.kinds() if "float" not in str(kind) and "double" not in str(kind)]
        table = self.table(kinds)
        key = keys(self.rng, tables.keys_of(table), 2, directions=False)
        old = models.chosen(table, key, "first")
        rows = old.num_rows
        stays = self.rng.random(rows)
        new = data.take(old, pa.array(np.flatnonzero(stays < 0.8)))
        changed = pc.if_else(pa.array(self.rng.random(new.num_rows) < 0.2), pc.add(new[ROW], 1_000_000), new[ROW])
        new = tables.replaced(new, ROW, changed).combine_chunks()
        old = data.take(old, pa.array(np.flatnonzero((stays < 0.5) | (stays > 0.7))))
        sides = [data.take(side, pa.array(self.rng.permutation(side.num_rows))) for side in (old, new)]
        self.options += ["--key", key]
        return self.file(sides, models.changes(*sides, key, "op"))

    def partition(self):
        return partitions.partition(self)

    def check(self):
        table = self.table()
        by = keys(self.rng, tables.keys_of(table))
        unique = self.chance(0.3)
        sql = not unique and self.chance(0.2)
        self.options += ["--by", by, *(["--unique"] if unique else []), *(["--float-order", "sql"] if sql else [])]
        if self.chance(0.6):
            table = models.sort(table, by, unique or sql)
        broken = models.first_unsorted(table, by, unique, sql)
        told = "" if broken is None else f"row {broken} "

        def judge(stdout, said):
            assert told in said, f"no {told!r}"

        return self.job([table], judge, code=0 if broken is None else 1)

    def head(self):
        table = self.table()
        count = int(self.rng.choice([0, 1, 5, 100, 100_000]))
        self.options += ["--rows", str(count)]
        wanted = self.where(table).slice(0, count)
        return self.file(tables.pieces(self.rng, table), self.select(wanted))

    def inspect(self):
        table = self.table()

        def judge(stdout, said):
            assert self.source != "parquet" or f'"rows":{table.num_rows}' in stdout.replace(" ", ""), "another number of rows"

        self.options += ["--json"]
        return self.job([table], judge)


def random_job(rng, folder, big):
    maker = Maker(rng, folder, big)
    return getattr(maker, maker.verb)()
