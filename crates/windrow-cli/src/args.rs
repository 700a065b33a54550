//! The parsed command line. No file is opened and no option is interpreted here: see
//! [`crate::spec`].

mod apply;
mod csv;
mod rows;

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use windrow_files::{
    Charset, Columns, Compression, Format, Limit, Names, OpMap, OrderBy, Preset, Size,
};

pub(crate) use apply::{Apply, NO_OUTPUT};
pub(crate) use csv::{Csv, Decimal, Quote};
pub(crate) use rows::{Dedupe, Diff, FloatOrder, Head, Kept, Rows, Shown};

use crate::texts;
use crate::values::{self, Completion};

#[derive(Debug, Parser)]
#[command(name = "windrow", version, about = texts::ABOUT, max_term_width = 100)]
#[command(disable_help_subcommand = true, subcommand_value_name = "VERB")]
#[command(help_template = texts::OVERVIEW)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Sort rows by columns; equal rows keep their order
    #[command(help_template = texts::VERB)]
    #[command(before_help = texts::SORT, after_help = texts::SORT_NOTES)]
    Sort(Sort),
    /// Reduce a change log to the latest row of each key
    #[command(help_template = texts::VERB)]
    #[command(before_help = texts::COMPACT, after_help = texts::COMPACT_NOTES)]
    Compact(Compact),
    /// Apply a change log to a directory of Parquet files
    #[command(help_template = texts::VERB)]
    #[command(before_help = texts::APPLY, after_help = texts::APPLY_NOTES)]
    Apply(Apply),
    /// Merge files that are sorted already
    #[command(help_template = texts::VERB)]
    #[command(before_help = texts::MERGE, after_help = texts::MERGE_NOTES)]
    Merge(Merge),
    /// Split rows into files by hash, range or value
    #[command(help_template = texts::VERB)]
    #[command(before_help = texts::PARTITION, after_help = texts::PARTITION_NOTES)]
    Partition(Partition),
    /// Keep one row of each key
    #[command(help_template = texts::VERB)]
    #[command(before_help = texts::DEDUPE, after_help = texts::DEDUPE_NOTES)]
    Dedupe(Dedupe),
    /// Write the rows that two sides do not share
    #[command(help_template = texts::VERB)]
    #[command(before_help = texts::DIFF, after_help = texts::DIFF_NOTES)]
    Diff(Diff),
    /// Write the first rows
    #[command(help_template = texts::VERB)]
    #[command(before_help = texts::HEAD, after_help = texts::HEAD_NOTES)]
    Head(Head),
    /// Check that files are sorted
    #[command(help_template = texts::VERB)]
    #[command(before_help = texts::CHECK, after_help = texts::CHECK_NOTES)]
    Check(Check),
    /// Show schema, row groups, sizes and statistics
    #[command(help_template = texts::VERB)]
    #[command(before_help = texts::INSPECT, after_help = texts::INSPECT_NOTES)]
    Inspect(Inspect),
    /// Print shell completions or the man page
    #[command(help_template = texts::VERB, before_help = texts::COMPLETIONS)]
    Completions {
        /// The shell, or `man` for a man page in roff.
        shell: Completion,
    },
    /// Explain a verb, `examples` (ten recipes) or `exit-codes`
    #[command(help_template = texts::VERB, before_help = texts::HELP)]
    Help {
        /// What to explain; the overview unless given.
        #[arg(value_name = "TOPIC", value_parser = PossibleValuesParser::new(values::TOPICS))]
        topic: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Sort {
    /// Columns to sort by: COL[:asc|desc][:nulls-first|nulls-last],...
    #[arg(long, value_name = "COLS", required = true)]
    pub(crate) by: Columns,
    /// Which floats are equal in --by, and where they stand.
    #[arg(long, value_enum, default_value_t = FloatOrder::Total)]
    pub(crate) float_order: FloatOrder,
    /// The most rows to write: the first in the order. Others are dropped as they are read.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    #[command(flatten)]
    pub(crate) input: Input,
    #[command(flatten)]
    pub(crate) rows: Rows,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) limits: Limits,
    #[command(flatten)]
    pub(crate) report: Report,
}

#[derive(Debug, Args)]
pub(crate) struct Compact {
    /// Columns that tell rows apart; with --diff, columns to sort by first.
    #[arg(long, value_name = "COLS", required_unless_present = "diff")]
    pub(crate) key: Option<Columns>,
    /// Columns that say which change of a key is the latest, the greatest last:
    /// COL[:asc|desc][:nulls-first|nulls-last][:KIND],... Input order decides between equals. A null
    /// is the latest unless :nulls-first says otherwise. KIND says what text stands for: number, lsn
    /// (PostgreSQL's 0/16B2D80), time, hex, uuid-time (version 1), or text for the order of bytes.
    #[arg(long, value_name = "COLS", conflicts_with = "diff")]
    pub(crate) order_by: Option<OrderBy>,
    /// Count only what happened at or before this time (or first --order-by column).
    #[arg(long, value_name = "T", allow_hyphen_values = true)]
    pub(crate) as_of: Option<String>,
    /// What to write.
    #[arg(long, value_enum, default_value_t = Mode::Snapshot)]
    pub(crate) mode: Mode,
    /// Keep the op, envelope and diff columns in a snapshot.
    #[arg(long)]
    pub(crate) keep_bookkeeping: bool,
    #[command(flatten)]
    pub(crate) changes: Changes,
    /// Column with how often a row was added, negative if removed.
    #[arg(long, value_name = "COL", help_heading = "Logs of (row, time, diff)")]
    #[arg(conflicts_with_all = ["op_preset", "op_column", "op_map", "table"])]
    pub(crate) diff: Option<String>,
    /// Column with the time of a change.
    #[arg(long, value_name = "COL", requires = "diff", help_heading = "Logs of (row, time, diff)")]
    pub(crate) time: Option<String>,
    #[command(flatten)]
    pub(crate) input: Input,
    #[command(flatten)]
    pub(crate) rows: Rows,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) limits: Limits,
    #[command(flatten)]
    pub(crate) report: Report,
}

/// The heading of the options for change logs.
const CHANGE_LOGS: &str = "Change logs";

/// What a change log looks like.
#[derive(Debug, Args)]
pub(crate) struct Changes {
    /// What wrote the log: how its operations read, and where the row is.
    #[arg(long, help_heading = CHANGE_LOGS, value_name = "FORMAT")]
    #[arg(value_parser = values::preset())]
    pub(crate) op_preset: Option<Preset>,
    /// Column that says what a change does: insert, update, delete, ...
    #[arg(long, help_heading = CHANGE_LOGS, value_name = "COL")]
    pub(crate) op_column: Option<String>,
    /// What words in it mean: I=insert,REFRESH=snapshot,... (insert, update, delete, snapshot,
    /// ignore); an empty word stands for null, * for any other value.
    #[arg(long, help_heading = CHANGE_LOGS, value_name = "WORD=MEANING,...")]
    pub(crate) op_map: Option<OpMap>,
    /// A table that is wanted of a log of several: NAME or SCHEMA.NAME, in which * and ? stand for what
    /// may be anything. May be given more than once; all that are wanted are taken as one table.
    #[arg(long, help_heading = CHANGE_LOGS, value_name = "NAME")]
    pub(crate) table: Vec<String>,
    /// What to do with updates that do not have all columns of their row.
    #[arg(long, help_heading = CHANGE_LOGS, value_enum, default_value_t = Unchanged::Last)]
    pub(crate) unchanged: Unchanged,
}

/// Treatment of an update without all columns of its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Unchanged {
    /// Fill in what was known last of the columns that they leave out; where that is nothing, it is an
    /// error.
    Last,
    /// Refuse them: what their rows hold is not known.
    Error,
    /// Take them as they are: a column that is not there is null, a placeholder is a value.
    Keep,
}

/// The form of a compaction's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// The live rows, sorted by key.
    Snapshot,
    /// The last change of each key, deletes included; or the summed changes.
    Log,
}

#[derive(Debug, Args)]
pub(crate) struct Merge {
    /// Columns that every input is sorted by: COL[:asc|desc][:nulls-first|nulls-last],...
    #[arg(long, value_name = "COLS", required = true)]
    pub(crate) by: Columns,
    /// Which floats are equal in --by, and where they stand.
    #[arg(long, value_enum, default_value_t = FloatOrder::Total)]
    pub(crate) float_order: FloatOrder,
    /// Of rows equal in --by, keep the last. Floats are then equal as in SQL, and written as 0.0 and as
    /// one NaN.
    #[arg(long, conflicts_with_all = ["consolidate", "float_order"])]
    pub(crate) unique: bool,
    /// Sum the diffs of equal rows and drop zeros; needs --diff. Inputs are then sorted by --by and
    /// all other columns, as `compact --mode log` writes them.
    #[arg(long, requires = "diff")]
    pub(crate) consolidate: bool,
    /// Column with the time of a change, for --consolidate.
    #[arg(long, value_name = "COL", requires = "consolidate")]
    pub(crate) time: Option<String>,
    /// Column with how often a row was added, for --consolidate.
    #[arg(long, value_name = "COL", requires = "consolidate")]
    pub(crate) diff: Option<String>,
    #[command(flatten)]
    pub(crate) input: Input,
    #[command(flatten)]
    pub(crate) rows: Rows,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) limits: Limits,
    #[command(flatten)]
    pub(crate) report: Report,
}

#[derive(Debug, Args)]
#[command(mut_arg("output", |arg| arg.value_name("DIR").help("Directory to write; new, or empty")))]
#[command(mut_arg("output_format", |arg| arg.help("Format of the files; Parquet unless given")))]
#[command(mut_arg("max_file_size", |arg| arg.hide(true)))]
pub(crate) struct Partition {
    /// Columns that decide where a row goes; for ranges COL[:asc|desc][:nulls-first|nulls-last],...
    #[arg(long, value_name = "COLS", required = true)]
    pub(crate) by: Columns,
    /// How many partitions, by a hash of --by that is the same everywhere and in every release.
    #[arg(long, value_name = "N", required_unless_present_any = ["range_at", "hive"])]
    pub(crate) into: Option<std::num::NonZeroU32>,
    /// With --into: by ranges of --by with about as many rows each. Reads the input twice.
    #[arg(long, alias = "by-range", requires = "into")]
    pub(crate) range: bool,
    /// Start a new range at this value, or comma-separated values of all --by columns; repeat it,
    /// in the order of --by.
    #[arg(long, value_name = "VALUE", conflicts_with_all = ["into", "hive"], allow_hyphen_values = true)]
    pub(crate) range_at: Vec<String>,
    /// A directory for each value of --by.
    #[arg(long, conflicts_with = "into")]
    pub(crate) hive: bool,
    /// Sort every file: COL[:asc|desc][:nulls-first|nulls-last],...
    #[arg(long, value_name = "COLS")]
    pub(crate) sort: Option<Columns>,
    #[command(flatten)]
    pub(crate) input: Input,
    #[command(flatten)]
    pub(crate) rows: Rows,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) limits: Limits,
    #[command(flatten)]
    pub(crate) report: Report,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Columns that every input is to be sorted by: COL[:asc|desc][:nulls-first|nulls-last],...
    #[arg(long, value_name = "COLS", required = true)]
    pub(crate) by: Columns,
    /// Which floats are equal in --by, and where they stand.
    #[arg(long, value_enum, default_value_t = FloatOrder::Total)]
    pub(crate) float_order: FloatOrder,
    /// Also fail when two rows are equal in --by; floats are as in SQL.
    #[arg(long, conflicts_with = "float_order")]
    pub(crate) unique: bool,
    /// Say nothing; the exit code tells.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) input: Input,
    #[command(flatten)]
    pub(crate) rows: Rows,
}

#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// One JSON object per file.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) input: Input,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct Input {
    /// Files, directories, globs, or - for standard input; in builds with the feature `cloud` also addresses
    /// of objects and globs of them: s3://, gs://, az://, abfss://, https://; a directory of these ends
    /// with a slash.
    #[arg(value_name = "FILES", required = true)]
    pub(crate) files: Vec<OsString>,
    /// Format of all inputs.
    #[arg(long, value_name = "FORMAT", value_parser = values::format())]
    pub(crate) input_format: Option<Format>,
    /// Schema of CSV and NDJSON inputs: name:type,... (int64, utf8, float64, bool, date32,
    /// timestamp_us, decimal128(12,2), ...); inferred from the first rows otherwise.
    #[arg(long, value_name = "SCHEMA")]
    pub(crate) schema: Option<String>,
    /// Types of columns in names of directories, day=2026-01-31: name:type,...; integers, dates or text
    /// otherwise.
    #[arg(long, value_name = "TYPES")]
    pub(crate) hive_types: Option<String>,
    /// Inputs may have other columns than the first, which are null where they are missing; numbers,
    /// decimals, times and structs get types that hold the values of all.
    #[arg(long)]
    pub(crate) union_by_name: bool,
    /// Encoding of CSV and NDJSON inputs: utf-8, utf-16le, utf-16be, latin1 (which is windows-1252),
    /// shift_jis, gbk, ...; UTF-8, or UTF-16 with a byte order mark, otherwise. Output is UTF-8.
    #[arg(long, value_name = "NAME")]
    pub(crate) charset: Option<Charset>,
    /// How stores are reached, as region=eu-west-1; repeat it. Names are those of the variables AWS_*,
    /// GOOGLE_* and AZURE_*, which are read first, in lower case; skip_signature=true is anonymous
    /// access, max_retries=N and retry_timeout=30s say how often requests are sent again.
    #[arg(long = "store-option", value_name = "KEY=VALUE")]
    pub(crate) store_options: Vec<String>,
    #[command(flatten)]
    pub(crate) csv: Csv,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Output {
    /// File to write, the address of an object, or - for standard output.
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// Format of the output.
    #[arg(long, value_name = "FORMAT", value_parser = values::output_format())]
    pub(crate) output_format: Option<Format>,
    /// Columns to write, in this order.
    #[arg(long, value_name = "COLS")]
    pub(crate) select: Option<Names>,
    /// none, snappy, lz4, zstd[:LEVEL], gzip[:LEVEL], brotli[:LEVEL]; zstd:2 for Parquet. For text none, lz4,
    /// zstd, gzip, bzip2[:LEVEL], xz[:LEVEL], told by the name: .csv.gz, .ndjson.zst, ...
    #[arg(long, value_name = "CODEC")]
    pub(crate) compression: Option<Compression>,
    /// Bytes of a file: -o then names a directory, new or empty, for part-00000.parquet and on, which follow
    /// from one another; --output-format says what they are. Rows that are equal in the order stay in one
    /// file, which may be larger for them. At least 64KiB.
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_file_size: Option<Size>,
    /// Row bytes of a Parquet row group, before encoding; at least 64KiB. Row groups end at 122,880 rows,
    /// and are not cut below 8192 rows or 2 MiB.
    #[arg(help_heading = "Parquet", long, value_name = "SIZE", default_value = "16MiB")]
    pub(crate) row_group_size: Size,
    /// Bytes of a Parquet page, before compression; at least 4KiB.
    #[arg(help_heading = "Parquet", long, value_name = "SIZE", default_value = "512KiB")]
    pub(crate) page_size: Size,
    /// Encodings of columns.
    #[arg(help_heading = "Parquet", long, value_enum, default_value_t = Encoding::Delta)]
    pub(crate) encoding: Encoding,
    /// Write no Parquet statistics.
    #[arg(help_heading = "Parquet", long)]
    pub(crate) no_statistics: bool,
    /// Write no checksums of Parquet pages.
    #[arg(help_heading = "Parquet", long)]
    pub(crate) no_checksums: bool,
}

/// Encodings of Parquet columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Encoding {
    /// Small files: DELTA encodings and dictionaries.
    Delta,
    /// PLAIN and dictionaries, for readers that do not know DELTA encodings.
    Plain,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Memory, temporary files, threads")]
pub(crate) struct Limits {
    /// Peak memory of the process: bytes (256MiB, 2GB), a share of what there is (50%), or `unlimited`.
    #[arg(long, value_name = "SIZE|PERCENT", default_value = "60%")]
    pub(crate) memory_limit: Limit,
    /// Directory for temporary files; repeat it to use several side by side.
    #[arg(long, value_name = "DIR")]
    pub(crate) temp_dir: Vec<PathBuf>,
    /// Bytes that temporary files may take.
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_temp_size: Option<Size>,
    /// Threads; as many as there are cores unless given.
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Compression of what is spilled.
    #[arg(long, value_enum, default_value_t = SpillCompression::None)]
    pub(crate) spill_compression: SpillCompression,
    /// Where rows go that do not fit the memory limit.
    #[arg(long, value_enum, default_value_t = SpillTo::Disk)]
    pub(crate) spill_to: SpillTo,
    /// Pass the page cache by with temporary files: slower, but it is left to others, and a container's
    /// memory limit counts it
    #[arg(long)]
    pub(crate) spill_direct: bool,
}

/// Maximum of `--threads`, above the cores of any machine: a larger number is a mistake, and
/// planning for so many threads would take memory and time.
const MOST_THREADS: usize = 4096;

fn threads(text: &str) -> Result<NonZeroUsize, String> {
    let threads: NonZeroUsize = text.parse().map_err(|error| format!("{error}"))?;
    match threads.get() {
        ..=MOST_THREADS => Ok(threads),
        _ => Err(format!("takes {MOST_THREADS} at the most")),
    }
}

/// The destination of rows that exceed the memory limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpillTo {
    /// Temporary files in --temp-dir.
    Disk,
    /// Memory outside of the process that the system may swap out; for machines without a disk to
    /// spare. A cgroup counts it.
    Memory,
}

/// Compression of temporary files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpillCompression {
    /// Fastest, unless the disk is slow or short.
    None,
    /// About half the space.
    Lz4,
    /// About a third of the space.
    Zstd,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "What is said")]
pub(crate) struct Report {
    /// Say nothing but errors.
    #[arg(long, short, conflicts_with = "progress")]
    pub(crate) quiet: bool,
    /// Show progress even if standard error is no terminal.
    #[arg(long)]
    pub(crate) progress: bool,
    /// Write figures of the run as JSON: `json` to standard error, anything else to that file; to one
    /// that ends in .prom as gauges for Prometheus.
    #[arg(long, value_name = "json|FILE")]
    pub(crate) stats: Option<String>,
    /// Print the plan - key, workers, memory, limits - and do nothing.
    #[arg(long)]
    pub(crate) explain: bool,
}
