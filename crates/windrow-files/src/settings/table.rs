//! The table of all settings. A setting has its name, kind and group; each list of verbs that take the setting has a
//! default and a sentence. The sentence is the documentation in front of the list, and names other settings in back
//! quotes.

use super::choices::{
    Decimal, Encodings, Existing, FloatOrder, Format, Group, Kept, Mode, Preset, Shown,
    SpillCompression, SpillPlace, Unchanged, Verb,
};
use super::kind::Kind;
use super::rules::{RULES, Rule};

/// A setting as some verbs take it.
#[derive(Debug)]
struct Use {
    verbs: &'static [Verb],
    sentence: &'static str,
    default: &'static [&'static str],
}

macro_rules! settings {
    ($(
        $(#[doc = $sentence:literal])+
        $variant:ident $name:literal, $kind:expr, $group:ident, $verbs:expr $(=> $default:literal)?
        $(, $(#[doc = $other:literal])+ [$($others:ident),+] $(=> $others_default:literal)?)*;
    )+) => {
        /// A setting of a job, of its inputs or of its output.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Setting {
            $(#[doc = concat!("The setting `", $name, "`; [`about`](Self::about) has its sentences.")] $variant,)+
        }

        impl Setting {
            /// Every setting.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];
            const TABLE: &'static [(&'static str, Kind, Group, &'static [Use])] = &[$((
                $name,
                $kind,
                Group::$group,
                &[
                    Use {
                        verbs: &$verbs,
                        sentence: concat!($($sentence),+).trim_ascii_start(),
                        default: &[$($default)?],
                    },
                    $(Use {
                        verbs: &[$($others),+],
                        sentence: concat!($($other),+).trim_ascii_start(),
                        default: &[$($others_default)?],
                    },)*
                ],
            )),+];
        }
    };
}

impl Setting {
    /// Returns the setting's name in this library.
    pub fn name(self) -> &'static str {
        Self::TABLE[self as usize].0
    }

    /// Returns the kind of the values.
    pub fn kind(self) -> Kind {
        Self::TABLE[self as usize].1
    }

    /// Returns the settings that this one belongs to.
    pub fn group(self) -> Group {
        Self::TABLE[self as usize].2
    }

    fn of(self, verb: Verb) -> Option<&'static Use> {
        Self::TABLE[self as usize].3.iter().find(|of| of.verbs.contains(&verb))
    }

    /// Returns true if `verb` takes the setting.
    pub fn is_of(self, verb: Verb) -> bool {
        self.of(verb).is_some()
    }

    /// Returns true if `verb` always needs the setting.
    pub fn is_required(self, verb: Verb) -> bool {
        let is_needed = |rule: &Rule| matches!(rule, Rule::OneOf([setting]) if *setting == self);
        RULES.iter().any(|(verbs, rule)| verbs.contains(&verb) && is_needed(rule))
    }

    /// Returns the value that the setting has for `verb` unless set, as text.
    pub fn default_of(self, verb: Verb) -> Option<&'static str> {
        self.of(verb)?.default.first().copied()
    }

    /// Returns the sentences about the setting for `verb`, with an interface's names of settings.
    pub fn about(self, verb: Verb, word: &dyn Fn(Self) -> String) -> String {
        super::worded(self.of(verb).map_or("", |of| of.sentence), word)
    }
}

impl Verb {
    /// Iterates over the settings that the verb takes.
    pub fn settings(self) -> impl Iterator<Item = Setting> {
        Setting::ALL.iter().copied().filter(move |setting| setting.is_of(self))
    }

    /// Returns true if the verb writes an output, or changes a table.
    pub fn writes(self) -> bool {
        Setting::MemoryLimit.is_of(self)
    }
}

use Kind::*;
use Verb::{Apply, Check, Compact, Dedupe, Diff, Head, Inspect, Merge, Partition, Sort};

const READING: [Verb; 10] = Verb::ALL;
const ROWS: [Verb; 8] = [Sort, Compact, Merge, Partition, Dedupe, Diff, Head, Check];
const LIMITED: [Verb; 8] = [Sort, Compact, Apply, Merge, Partition, Dedupe, Diff, Head];
const LOGS: [Verb; 2] = [Compact, Apply];
/// The greatest number of threads, above the cores of any machine: planning for more would take memory and time.
const MOST_THREADS: u64 = 4096;

settings! {
    /// Columns to sort by, the most significant first: COL[:asc|desc][:nulls-first|nulls-last],...
    By "by", Columns, Own, [Sort],
    /// Columns that every input is sorted by: COL[:asc|desc][:nulls-first|nulls-last],...
    [Merge, Check],
    /// Columns that decide where a row goes. For ranges: COL[:asc|desc][:nulls-first|nulls-last],...
    [Partition];

    /// Columns that tell rows apart. With `diff`, the columns to sort by first.
    Key "key", Columns, Own, [Compact],
    /// Columns that identify a row of the table.
    [Apply],
    /// Columns that are equal in duplicates; all columns unless given.
    [Dedupe],
    /// Columns that tell rows apart.
    [Diff];

    /// Columns that say which change of a key is the latest, the greatest last:
    /// COL[:asc|desc][:nulls-first|nulls-last][:KIND],... Input order decides between equals. A null is the latest unless
    /// :nulls-first says otherwise. KIND says what text stands for: number, lsn (PostgreSQL's 0/16B2D80), time, hex,
    /// uuid-time (version 1), or text for the order of bytes.
    OrderBy "order_by", Order, Own, [Compact],
    /// Columns that say which change of a key is the latest, as for `compact`. If the table has these columns, a change
    /// that is older than its row loses.
    [Apply];

    /// Equality and order of floats in `by`.
    FloatOrder "float_order", Choice(FloatOrder::CHOICES), Own, [Sort, Merge, Check] => "total";

    /// The most rows to write: the first rows of the order. Other rows are dropped while the inputs are read.
    Limit "limit", Number(0, u64::MAX), Own, [Sort];

    /// The number of rows.
    Rows "rows", Number(0, u64::MAX), Own, [Head] => "10";

    /// The row of a key that stays, in the order of the inputs.
    Keep "keep", Choice(Kept::CHOICES), Own, [Dedupe] => "first";

    /// The last of the rows that are equal in `by` stays. Floats are then equal as in SQL, and are written as 0.0 and as
    /// one NaN.
    Unique "unique", Off, Own, [Merge],
    /// Two rows that are equal in `by` are a failure, too. Floats are then equal as in SQL.
    [Check];

    /// The number of partitions. A hash of `by` decides, which is the same everywhere and in every release.
    Into "into", Number(1, u32::MAX as u64), Own, [Partition];

    /// With `into`: ranges of `by` with about as many rows each. The inputs are read twice.
    Range "range", Off, Own, [Partition];

    /// A new range starts at this value, or at comma-separated values of all `by` columns. Ranges are in the order of `by`.
    RangeAt "range_at", Values, Own, [Partition];

    /// A directory for each value of `by`.
    Hive "hive", Off, Own, [Partition];

    /// Columns to sort every file by: COL[:asc|desc][:nulls-first|nulls-last],...
    Sort "sort", Columns, Own, [Partition];

    /// The time of the last change that counts, a value of `time` or of the first column of `order_by`.
    AsOf "as_of", Value, Own, [Compact],
    /// The time of the last change that counts, a value of the first column of `order_by`.
    [Apply];

    /// Waiting for another job that changes the directory. A job that does not wait fails.
    Wait "wait", On, Own, [Apply];

    /// The changes are read and counted, and nothing is changed.
    DryRun "dry_run", Off, Own, [Apply];

    /// The form of the output.
    Mode "mode", Choice(Mode::CHOICES), Own, [Compact] => "snapshot";

    /// The form of the output.
    Format "format", Choice(Shown::CHOICES), Own, [Diff] => "changes";

    /// A snapshot keeps the columns of the operation, of the envelope and of `diff`.
    KeepBookkeeping "keep_bookkeeping", Off, Own, [Compact];

    /// The format of the log by its producer: how operations read, and where the row is.
    OpPreset "op_preset", Choice(Preset::CHOICES), ChangeLog, LOGS;

    /// The column that says what a change does: insert, update, delete, ...
    OpColumn "op_column", Column, ChangeLog, LOGS,
    /// The name of the column that says what a change does: insert, update or delete.
    [Diff] => "op";

    /// The meanings of words in `op_column`: I=insert,REFRESH=snapshot,... A meaning is insert, update, delete, snapshot or
    /// ignore. An empty word stands for null, and * for any other value.
    OpMap "op_map", Words, ChangeLog, LOGS;

    /// The wanted table of a log of several: NAME or SCHEMA.NAME. In a name * stands for any characters, and ? for one.
    /// All wanted tables are taken as one table.
    Table "table", Texts, ChangeLog, LOGS;

    /// Treatment of updates that lack columns of their row.
    Unchanged "unchanged", Choice(Unchanged::CHOICES), ChangeLog, LOGS => "last";

    /// The column that says how often a row was added; negative if removed.
    Diff "diff", Column, Diffs, [Compact],
    /// The column that says how often a row was added, for `consolidate`.
    [Merge];

    /// The column with the time of a change.
    Time "time", Column, Diffs, [Compact],
    /// The column with the time of a change, for `consolidate`.
    [Merge];

    /// The diffs of equal rows are summed, and rows with a sum of zero are dropped. Inputs are then sorted by `by` and all
    /// other columns, as `compact` writes them with `mode` log.
    Consolidate "consolidate", Off, Diffs, [Merge];

    /// The format of all inputs.
    InputFormat "input_format", Choice(Format::CHOICES), Input, READING;

    /// The types of columns of CSV and NDJSON inputs: name:type,... (int64, utf8, float64, bool, date32, timestamp_us,
    /// decimal128(12,2), ...). Other types are inferred from the first rows.
    Schema "schema", Schema, Input, READING;

    /// The types of columns in names of directories, day=2026-01-31: name:type,... Other such columns are integers, dates
    /// or text.
    HiveTypes "hive_types", Schema, Input, READING;

    /// Inputs may have other columns than the first. A missing column is null; numbers, decimals, times and structs get
    /// types that hold the values of all inputs.
    UnionByName "union_by_name", Off, Input, [Sort, Compact, Merge, Partition, Dedupe, Diff, Head, Check, Inspect],
    /// Inputs may have other columns than the first, and may lack columns of the table. A missing column is null.
    [Apply];

    /// The encoding of CSV and NDJSON inputs: utf-8, utf-16le, utf-16be, latin1 (which is windows-1252), shift_jis, gbk,
    /// ...; UTF-8, or UTF-16 with a byte order mark, unless given. Output is UTF-8.
    Charset "charset", Charset, Input, READING;

    /// Access to object stores, as region=eu-west-1. The names are those of the variables AWS_*,
    /// GOOGLE_* and AZURE_*, which are read first, in lower case. skip_signature=true is anonymous access; max_retries=N
    /// and retry_timeout=30s say how often requests are sent again.
    StoreOption "store_option", Pairs, Input, READING;

    /// The condition that rows meet: `COL = VALUE`, `!=`, `<`, `<=`, `>`, `>=`, `COL [not] in (A, B)`, `COL [not] between A and B`,
    /// `COL [not] like 'a%'`, `COL is [not] null`, joined by `and`, `or`, `not` and brackets. Parquet row groups and pages
    /// without such rows are not read.
    Where "where", Filter, Input, ROWS;

    /// The separator of fields, in inputs and in the output: a character, or `tab`. In files that end in .tsv a tab; the
    /// first records tell it otherwise.
    CsvDelimiter "csv_delimiter", Character, Csv, READING;

    /// Header line with the names of the columns, in inputs and in the output.
    CsvHeader "csv_header", On, Csv, READING;

    /// The text for null, in inputs and in the output, as \N. The first of several is written. An empty field
    /// is then an empty string in columns of text, and null in others. In quotes the text is no null. Without this setting
    /// an empty field is null, and "" an empty string.
    CsvNull "csv_null", Values, Csv, READING;

    /// The sign in front of fractions, in inputs and in the output.
    CsvDecimal "csv_decimal", Choice(Decimal::CHOICES), Csv, READING => "point";

    /// The quote around fields, in inputs and in the output: a character, or `none`.
    CsvQuote "csv_quote", Character, Csv, READING => "\"";

    /// The character in front of quotes within quotes, in inputs. Doubled quotes are known anyway.
    CsvEscape "csv_escape", Character, Csv, READING;

    /// The character in front of comment lines, in inputs.
    CsvComment "csv_comment", Character, Csv, READING;

    /// The number of lines to leave out in front of all else, in inputs.
    CsvSkipLines "csv_skip_lines", Number(0, u64::MAX), Csv, READING => "0";

    /// The file to write, or the address of an object.
    Output "output", Path, Output, [Sort, Compact, Merge, Dedupe, Diff, Head],
    /// The directory to write; new, or empty, unless `if_exists` says otherwise.
    [Partition];

    /// The format of the output.
    OutputFormat "output_format", Choice(Format::WRITTEN_CHOICES), Output, [Sort, Compact, Merge, Dedupe, Diff, Head],
    /// The format of the files; Parquet unless given.
    [Partition];

    /// The columns to write, in this order.
    Select "select", Names, Output, [Sort, Compact, Merge, Partition, Dedupe, Head],
    /// The columns to compare and to write, beside those of `key`.
    [Diff],
    /// The columns to take from the changes.
    [Apply];

    /// For Parquet none, snappy, lz4, zstd[:LEVEL], gzip[:LEVEL] or brotli[:LEVEL]; zstd:2 unless given. For text none, lz4,
    /// zstd, gzip, bzip2[:LEVEL] or xz[:LEVEL]; the name tells it unless given: .csv.gz, .ndjson.zst, ...
    Compression "compression", Compression, Output, [Sort, Compact, Merge, Partition, Dedupe, Diff, Head],
    /// The codec of new files; the codec of the old file unless given.
    [Apply];

    /// The bytes of a file, at least 64KiB. `output` then names a directory of files part-00000.parquet and
    /// on, which follow from one another; `output_format` is their format. Rows that are equal in the order stay in one
    /// file, which may be larger for them.
    MaxFileSize "max_file_size", Size, Output, [Sort, Compact, Merge, Dedupe, Diff, Head],
    /// Not for partitions: the files of a partition have any size.
    [Partition],
    /// The bytes of a file, at least 64KiB. Larger new files are split.
    [Apply];

    /// What becomes of the files in the directory of an output of several files. The change is seen whole or not at all.
    IfExists "if_exists", Choice(Existing::CHOICES), Output, [Sort, Compact, Merge, Partition, Dedupe, Diff, Head] => "error";

    /// Row bytes of a Parquet row group, before encoding; at least 64KiB. Row groups end at 122,880 rows, and are not cut
    /// below 8192 rows or 2 MiB.
    RowGroupSize "row_group_size", Size, Parquet, LIMITED => "16MiB";

    /// Bytes of a Parquet page, before compression; at least 4KiB.
    PageSize "page_size", Size, Parquet, LIMITED => "512KiB";

    /// The encodings of Parquet columns.
    Encoding "encoding", Choice(Encodings::CHOICES), Parquet, LIMITED => "delta";

    /// Statistics of Parquet pages and column chunks.
    Statistics "statistics", On, Parquet, LIMITED;

    /// Checksums of Parquet pages.
    Checksums "checksums", On, Parquet, LIMITED;

    /// Peak memory of the process: bytes (256MiB, 2GB), a share of the memory there is (50%), or `unlimited`.
    MemoryLimit "memory_limit", Limit, Limits, LIMITED => "60%";

    /// A directory for temporary files. Several are used side by side.
    TempDir "temp_dir", Paths, Limits, LIMITED;

    /// The bytes that temporary files may take.
    MaxTempSize "max_temp_size", Size, Limits, LIMITED;

    /// The number of threads; as many as there are cores unless given.
    Threads "threads", Number(1, MOST_THREADS), Limits, LIMITED;

    /// The compression of temporary files.
    SpillCompression "spill_compression", Choice(SpillCompression::CHOICES), Limits, LIMITED => "none";

    /// The place of rows that exceed the memory limit.
    SpillTo "spill_to", Choice(SpillPlace::CHOICES), Limits, LIMITED => "disk";

    /// Temporary files pass the page cache by. The job is slower; the cache is left to others, and a container's memory
    /// limit counts it.
    SpillDirect "spill_direct", Off, Limits, LIMITED;
}
