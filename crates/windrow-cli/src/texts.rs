//! The text of the help besides the options: the overview, examples, notes, recipes, exit codes.
//!
//! Examples and recipes work as typed in a clone of the repository; a test runs them. The commands
//! below "More examples" name files of a user; a test parses them. Lines of examples have at most
//! 80 columns, so that no terminal breaks them. Headings have the style of clap's own headings.

use windrow_files::Verb;

macro_rules! heading {
    ($title:literal) => {
        concat!("\x1b[1m\x1b[4m", $title, ":\x1b[0m")
    };
}

/// Formats commands below a heading.
macro_rules! commands {
    ($title:literal, $($command:literal),+ $(,)?) => {
        concat!(heading!($title), $("\n  ", $command),+)
    };
}

macro_rules! examples {
    ($($command:literal),+ $(,)?) => { commands!("Examples", $($command),+) };
}

/// Formats commands with files of a user, and notes.
macro_rules! notes {
    ($($command:literal),+; $notes:literal) => {
        concat!(commands!("More examples", $($command),+), "\n\n", $notes)
    };
}

/// The tool's description at the top of the overview.
pub(crate) const ABOUT: &str = "\
Windrow sorts, deduplicates and splits Parquet, Arrow, CSV and JSON files, and never uses more memory than you allow.";

/// The tool's description in the first line of the man page, after the name.
pub(crate) const NAME: &str =
    "sort, deduplicate and split Parquet, Arrow, CSV and JSON files inside a memory limit";

/// The description in the man page.
pub(crate) const DESCRIPTION: &str = "\
Windrow sorts, compacts, merges, compares, deduplicates, partitions and checks files. The memory limit is the peak \
resident memory of the process.

The formats are Parquet, Arrow IPC (file and stream), CSV and NDJSON; Avro is read and not written. The extension of a \
file names its format, or --input-format and --output-format do. An output appears complete or not at all, and may take \
the place of an input.";

/// The overview: 24 lines of 80 columns.
pub(crate) const OVERVIEW: &str = concat!(
    "{about}\n\n{usage-heading} {usage}\n\n",
    heading!("Verbs"),
    "\n{subcommands}\n\n",
    commands!(
        "Examples, in a clone of the repository",
        "windrow inspect examples/data/orders_log.parquet",
        "windrow sort examples/data/orders_log.parquet --by lsn:desc -o sorted.parquet",
        "windrow compact examples/data/orders_log.parquet --key o_orderkey \\
      --order-by lsn --op-column op -o orders.parquet",
    )
);

/// The help of a verb: examples come before the usage.
pub(crate) const VERB: &str =
    "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

/// Returns the examples and the notes of a verb.
pub(crate) fn of(verb: Verb) -> (&'static str, &'static str) {
    match verb {
        Verb::Sort => (SORT, SORT_NOTES),
        Verb::Compact => (COMPACT, COMPACT_NOTES),
        Verb::Apply => (APPLY, APPLY_NOTES),
        Verb::Merge => (MERGE, MERGE_NOTES),
        Verb::Partition => (PARTITION, PARTITION_NOTES),
        Verb::Dedupe => (DEDUPE, DEDUPE_NOTES),
        Verb::Diff => (DIFF, DIFF_NOTES),
        Verb::Head => (HEAD, HEAD_NOTES),
        Verb::Check => (CHECK, CHECK_NOTES),
        Verb::Inspect => (INSPECT, INSPECT_NOTES),
        _ => ("", ""),
    }
}

const SORT: &str = examples!(
    "windrow sort examples/data/orders_log.parquet --by lsn:desc -o sorted.parquet",
    "windrow sort examples/data/orders_log.parquet \\
      --by o_totalprice:desc --limit 10 -o top.csv",
);

const SORT_NOTES: &str = notes!(
    "windrow sort 'logs/*.ndjson' --by ts:desc:nulls-first -o - --output-format csv",
    "windrow sort big.parquet --by id -o big.parquet \\
      --temp-dir /mnt/a --temp-dir /mnt/b",
    "windrow sort events.parquet --by user,ts -o by_user --max-file-size 256MiB",
    "windrow sort events.ndjson --by amount:desc --limit 100 \\
      --where \"user.country = nl\" -o top.csv";
    "Numbers sort by value, strings by bytes, and false sorts before true. Floats sort by IEEE totalOrder (-NaN \
first, -0.0 before 0.0, NaN last), or as DuckDB and Polars sort them (--float-order sql). Nulls come last in either \
direction, unless COL:nulls-first is given."
);

const COMPACT: &str = examples!(
    "windrow compact examples/data/orders_log.parquet --key o_orderkey \\
      --order-by lsn --op-column op -o orders.parquet",
    "windrow compact examples/data/orders_log.parquet --key o_orderkey \\
      --order-by lsn --op-column op --as-of 30000000 -o earlier.parquet",
);

const COMPACT_NOTES: &str = notes!(
    "windrow compact cdc.ndjson --op-preset auto --key id -o state.parquet",
    "windrow compact cdc.ndjson --op-preset debezium --key id \\
      --order-by source.lsn -o state.parquet",
    "windrow compact slot.ndjson --op-preset wal2json --table public.users \\
      --key id --order-by lsn -o users.parquet",
    "windrow compact cdf/*.parquet --op-preset delta-cdf --key id \\
      --order-by _commit_version --mode log -o latest.parquet",
    "windrow compact diffs.parquet --time ts --diff delta \\
      --as-of 2026-01-31T23:59:59.999999 -o january.parquet";
    "Of the rows of a key, the row with the greatest --order-by wins; of equal rows, the later row of the input wins. \
A delete that wins removes the key from a snapshot. Null is the greatest value; --order-by updated_at:nulls-first \
makes it the least. With --diff, compact sums the diffs of equal rows, and drops rows whose sum is zero."
);

const APPLY: &str = examples!(
    "windrow compact examples/data/orders_log.parquet --key o_orderkey \\
      --order-by lsn --op-column op --as-of 30000000 --max-file-size 1MiB \\
      --keep-bookkeeping -o table",
    "windrow apply table examples/data/orders_log.parquet --key o_orderkey \\
      --order-by lsn --op-column op --dry-run",
    "windrow apply table examples/data/orders_log.parquet --key o_orderkey \\
      --order-by lsn --op-column op",
);

const APPLY_NOTES: &str = notes!(
    "windrow apply lake changes.ndjson --key id --op-preset debezium",
    "windrow apply lake changes.ndjson --key id --op-preset debezium --dry-run";
    "Row groups without a changed key are copied as they are, or stay where they are. The directory changes as a \
whole or not at all, and jobs that change the directory wait for one another. A change that is equal to its row \
changes nothing, so a log can be applied twice. Files that are sorted by the key, as `sort --max-file-size` writes \
files, cost what changed. Other files have their key columns read, and files with a change are sorted by the key."
);

const MERGE: &str = examples!(
    "windrow partition examples/data/orders_log.parquet --by o_custkey \\
      --into 4 --sort lsn -o parts",
    "windrow merge parts --by lsn -o merged.parquet",
    "windrow merge parts --by lsn --unique -o unique.parquet",
);

const MERGE_NOTES: &str = notes!(
    "windrow merge a.parquet b.parquet --by id -o ab.parquet",
    "windrow merge 'diffs/*.parquet' --by id --time ts --diff delta \\
      --consolidate -o diffs.parquet";
    "Equal rows come in the order of the files. A file that is not sorted is an error that names the row."
);

const PARTITION: &str = examples!(
    "windrow partition examples/data/orders_log.parquet --by o_custkey \\
      --into 8 -o parts",
    "windrow partition examples/data/orders_log.parquet --by o_orderstatus \\
      --hive --sort lsn -o lake",
);

const PARTITION_NOTES: &str = notes!(
    "windrow partition orders.parquet --by o_orderdate --range --into 16 -o by_date",
    "windrow partition orders.csv --by id --range-at 1000 --range-at 2000 \\
      -o three --output-format csv",
    "windrow partition february.parquet --by day --hive --if-exists append -o lake";
    "Rows with equal keys go to the same file, and keep their order in it unless --sort is given. Numbered files are \
part-00000.parquet and on; a partition without rows has a file, too. --hive makes directories, \
country=nl/part-0.parquet, and leaves the columns out of the files. The output directory must be new or empty, \
unless --if-exists says what becomes of its files; it appears complete or not at all."
);

const DEDUPE: &str = examples!(
    "windrow dedupe examples/data/orders_log.parquet -o distinct.parquet",
    "windrow dedupe examples/data/orders_log.parquet --key o_orderkey \\
      --keep last -o last.parquet",
);

const DEDUPE_NOTES: &str = notes!(
    "windrow dedupe 'days/*.csv' --key user.id --keep last -o latest.csv",
    "windrow dedupe orders.csv --key id --keep none -o alone.csv";
    "Without --key, rows are duplicates if they are equal in all columns. The output is sorted by the key. Keys are \
equal as in SQL: nulls are one key, -0.0 and 0.0 are one key, and all NaN are one key. The tool writes the last two \
as 0.0 and as one NaN."
);

const DIFF: &str = examples!(
    "windrow dedupe examples/data/orders_log.parquet --key o_orderkey \\
      --keep first -o first.parquet",
    "windrow dedupe examples/data/orders_log.parquet --key o_orderkey \\
      --keep last -o last.parquet",
    "windrow diff first.parquet last.parquet --key o_orderkey \\
      --op-column change -o changes.parquet",
    "windrow diff first.parquet last.parquet --key o_orderkey \\
      --format summary -o - --output-format csv",
);

const DIFF_NOTES: &str = notes!(
    "windrow diff 'old/*.csv' 'new/*.csv' --key id,line \\
      --select amount -o changes.csv",
    "windrow compact monday.parquet changes.parquet --union-by-name --key id \\
      --op-column op --op-map =insert -o tuesday.parquet";
    "Each key that differs has one row, and the rows are sorted by the key. The row is the new row (op: insert, update) \
or the old row (delete). compact reads this log. Either side may be in any order; a side that has a key twice is an \
error. Keys are equal as in SQL, and all other values to the last bit. --select names the columns to compare."
);

const HEAD: &str = examples!(
    "windrow head examples/data/orders_log.parquet -o first.csv",
    "windrow head examples/data/orders_log.parquet --rows 100 \\
      --where \"o_orderstatus = F\" -o - --output-format csv",
);

const HEAD_NOTES: &str =
    "The rows come in the order of the inputs. The tool stops reading after the last of them.";

const CHECK: &str = examples!(
    "windrow dedupe examples/data/orders_log.parquet --key lsn -o by_lsn.parquet",
    "windrow check by_lsn.parquet --by lsn",
    "windrow check by_lsn.parquet --by lsn --unique",
);

const CHECK_NOTES: &str = notes!(
    "windrow check 'runs/*.parquet' --by user,ts:desc";
    "Each file is checked by itself. If a file is not sorted, the exit code is 1 and the message names the first row \
that is out of place."
);

const INSPECT: &str = examples!(
    "windrow inspect examples/data/orders_log.parquet",
    "windrow inspect examples/data/orders_log.parquet --json",
);

const INSPECT_NOTES: &str = "\
inspect reads footers, headers and the first rows. If a Parquet file declares an order, inspect also reads the rows and \
says whether they are in this order.";

pub(crate) const COMPLETIONS: &str =
    examples!("windrow completions bash > windrow.bash", "windrow completions man > windrow.1");

pub(crate) const HELP: &str = examples!("windrow help sort", "windrow help examples");

/// `windrow help examples`.
pub(crate) const RECIPES: &str = "\
Eleven recipes. They work as typed, in this order, in a clone of the repository.

Show the columns, row groups, sizes and statistics of a file:
  windrow inspect examples/data/orders_log.parquet

Sort by two columns with at most 128 MiB of memory:
  windrow sort examples/data/orders_log.parquet --by o_custkey,lsn:desc \\
      --memory-limit 128MiB -o sorted.parquet

Check that a file is sorted:
  windrow check sorted.parquet --by o_custkey,lsn:desc

Write the ten rows with the greatest value, two columns only, as CSV:
  windrow sort examples/data/orders_log.parquet --by o_totalprice:desc \\
      --limit 10 --select o_orderkey,o_totalprice -o top.csv

Convert CSV to Parquet, sorted by a column:
  windrow sort top.csv --by o_orderkey -o top.parquet

Reduce a change log to the latest row of each key:
  windrow compact examples/data/orders_log.parquet --key o_orderkey \\
      --order-by lsn --op-column op -o orders.parquet

Split rows into a directory for each value of a column, and sort each file:
  windrow partition orders.parquet --by o_orderstatus --hive \\
      --sort o_orderdate -o lake

Merge sorted files into one:
  windrow merge lake --by o_orderdate -o by_date.parquet

Keep the first row of each key, in a directory of files:
  windrow dedupe examples/data/orders_log.parquet --key o_orderkey \\
      --keep first --max-file-size 1MiB -o first

Write the rows whose status or price differs between two files:
  windrow diff first orders.parquet --key o_orderkey --union-by-name \\
      --select o_orderstatus,o_totalprice -o changes.parquet

Apply the changes of a log to a directory of files, of which few are written:
  windrow apply first examples/data/orders_log.parquet --key o_orderkey \\
      --order-by lsn --op-column op
";

/// `windrow help exit-codes`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
    0  done
    1  check failed
    2  usage
    3  data
    4  memory limit below the floor
    5  output or temporary files cannot be written: no space, no permission
    6  corrupt temporary data
  130  interrupted
  141  nobody reads the standard output
";
