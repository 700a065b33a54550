//! Values that settings choose by name, each with a sentence for help texts.

/// A value of a setting, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// The name, as the parser takes it.
    pub name: &'static str,
    /// A sentence about the value.
    pub about: &'static str,
}

/// Defines enums with named values. The documentation of a value is its sentence in help texts. The value in brackets is
/// the default.
macro_rules! choices {
    ($($(#[$doc:meta])* $kind:ident $([$default:ident])? {
        $($(#[doc = $about:literal])+ $variant:ident = $name:literal,)+
    })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $kind {
            $($(#[doc = $about])+ $variant,)+
        }

        impl $kind {
            /// Every value.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];
            /// The names of all values, with their sentences.
            pub const CHOICES: &'static [Choice] = &[$(Choice {
                name: $name,
                about: concat!($($about),+).trim_ascii_start(),
            }),+];

            /// Returns the name, as the parser takes it.
            pub fn name(self) -> &'static str {
                Self::CHOICES[self as usize].name
            }

            /// Returns a sentence about the value.
            pub fn about(self) -> &'static str {
                Self::CHOICES[self as usize].about
            }
        }

        $(impl Default for $kind {
            fn default() -> Self {
                Self::$default
            }
        })?

        impl std::str::FromStr for $kind {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                Self::ALL.into_iter().find(|value| value.name() == text).ok_or_else(|| none_of(text, Self::CHOICES))
            }
        }

        impl std::fmt::Display for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    )+};
}

/// Returns the message about a value that is no choice.
pub(crate) fn none_of(text: &str, choices: &[Choice]) -> String {
    let names: Vec<&str> = choices.iter().map(|choice| choice.name).collect();
    format!("{text:?} is none of {}", names.join(", "))
}

choices! {
    /// What a job does.
    #[non_exhaustive]
    Verb {
        /// Sort rows by columns; equal rows keep their order
        Sort = "sort",
        /// Reduce a change log to the latest row of each key
        Compact = "compact",
        /// Apply a change log to a directory of Parquet files
        Apply = "apply",
        /// Merge files that are sorted already
        Merge = "merge",
        /// Split rows into files by hash, range or value
        Partition = "partition",
        /// Keep one row of each key
        Dedupe = "dedupe",
        /// Write the rows that two sides do not share
        Diff = "diff",
        /// Write the first rows
        Head = "head",
        /// Check that files are sorted
        Check = "check",
        /// Show schema, row groups, sizes and statistics
        Inspect = "inspect",
    }

    /// Settings that belong together. The name is the heading in help texts.
    #[non_exhaustive]
    Group {
        /// The settings of a verb alone
        Own = "Options",
        /// The format of a change log
        ChangeLog = "Change logs",
        /// Changes as (row, time, diff)
        Diffs = "Logs of (row, time, diff)",
        /// The inputs
        Input = "Input",
        /// The dialect of CSV
        Csv = "CSV",
        /// The output
        Output = "Output",
        /// The layout of Parquet files
        Parquet = "Parquet",
        /// The resources of a job
        Limits = "Memory, temporary files, threads",
    }

    /// A file format. All are read, and all but Avro are written.
    Format {
        /// Apache Parquet
        Parquet = "parquet",
        /// The Arrow IPC file format, also called Feather version 2
        ArrowFile = "arrow",
        /// The Arrow IPC streaming format
        ArrowStream = "arrow-stream",
        /// Delimited text with a record a line
        Csv = "csv",
        /// A JSON object a line
        Ndjson = "ndjson",
        /// Avro object files, of inputs
        Avro = "avro",
    }

    /// The decimal separator of CSV.
    Decimal [Point] {
        /// 1.5
        Point = "point",
        /// 1,5
        Comma = "comma",
    }

    /// Equality and order of floats.
    FloatOrder [Total] {
        /// IEEE 754 totalOrder: all floats differ. -NaN comes first, -0.0 before 0.0, NaN last
        Total = "total",
        /// As in SQL: one zero, and one NaN that is the greatest. The values stay as they are
        Sql = "sql",
    }

    /// The row to keep of several rows with equal keys.
    Kept [First] {
        /// The first row in input order
        First = "first",
        /// The last row in input order
        Last = "last",
        /// None: a key with several rows is removed
        None = "none",
        /// The last row, with the last value of each column that is not null. Such rows merge partial rows, with values in
        /// the changed columns and nulls elsewhere, into whole rows
        LastKnown = "last-known",
    }

    /// The output form of differences.
    Shown [Changes] {
        /// A row for each key with a difference, sorted by the key: a change log that makes the new side of the old side
        Changes = "changes",
        /// The numbers of inserted, updated, deleted and equal rows, and of the updated rows that differ in each column
        Summary = "summary",
    }

    /// The form of a compaction's output.
    Mode [Snapshot] {
        /// The live rows, sorted by the key
        Snapshot = "snapshot",
        /// The last change of each key, deletes included; or the summed changes
        Log = "log",
    }

    /// Treatment of an update without all columns of its row.
    #[non_exhaustive]
    Unchanged [Last] {
        /// A missing column keeps its last known value. Without such a value the update is an error
        Last = "last",
        /// The update is an error, because the values of missing columns are unknown
        Error = "error",
        /// The update is taken unchanged: a missing column is null, a placeholder is a value
        Keep = "keep",
    }

    /// What becomes of the files in a directory that is written to.
    Existing [Error] {
        /// A directory with files is an error
        Error = "error",
        /// All files are replaced
        Overwrite = "overwrite",
        /// Files are added; one whose name is taken gets a number behind its name
        Append = "append",
        /// The files of those partitions are replaced that have new rows, with `hive`
        ReplacePartitions = "replace_partitions",
    }

    /// Encodings of Parquet columns.
    Encodings [Delta] {
        /// Small files: differences of integers and times, lengths and prefixes of text, dictionaries
        Delta = "delta",
        /// Plain values and dictionaries, for readers without support for other encodings. Files are about a fifth larger
        Plain = "plain",
    }

    /// A format of change logs, as named by `op_preset`.
    #[non_exhaustive]
    Preset [Generic] {
        /// Plain rows and an operation column in one of the usual spellings
        Generic = "generic",
        /// Whichever of the others the first records look like
        Auto = "auto",
        /// Debezium events: the row in `after`, of a delete in `before`; flattened ones by `__op`; MongoDB's
        Debezium = "debezium",
        /// Delta Lake change data feed: plain rows and `_change_type`
        DeltaCdf = "delta-cdf",
        /// Apache Iceberg changelog: plain rows, `_change_type` and `_change_ordinal`
        Iceberg = "iceberg",
        /// wal2json of format 1 or 2 as PostgreSQL writes it, or flattened to plain columns and `action`
        Wal2json = "wal2json",
        /// Apache Paimon changelog: plain rows and a row kind (+I -U +U -D, or 0 to 3)
        Paimon = "paimon",
        /// Maxwell's JSON: the row in `data`
        Maxwell = "maxwell",
        /// Canal's JSON: rows in `data`
        Canal = "canal",
        /// CockroachDB's changefeeds: the row in `after`, null where it was deleted
        Cockroach = "cockroach",
        /// Oracle GoldenGate's JSON: `op_type`, the row in `after` and `before`, or plain
        GoldenGate = "goldengate",
        /// SQL Server's change tables: plain rows and `__$operation`
        SqlServer = "sqlserver",
        /// AWS DMS: plain rows and `Op`; without one, or where it is null, rows of the full load
        Dms = "dms",
        /// Snowflake streams: `METADATA$ACTION`, `METADATA$ISUPDATE`
        Snowflake = "snowflake",
        /// Apache Hudi: `_hoodie_is_deleted` or `_hoodie_operation`
        Hudi = "hudi",
        /// Airbyte: deleted where `_ab_cdc_deleted_at` has a value
        Airbyte = "airbyte",
        /// Qlik Replicate: `header__change_oper` (I U D B, REFRESH)
        Qlik = "qlik",
    }

    /// The compression of temporary files, by name.
    SpillCompression [None] {
        /// The fastest, unless the disk is slow or short
        None = "none",
        /// About half the space
        Lz4 = "lz4",
        /// About a third of the space
        Zstd = "zstd",
    }

    /// The place of rows that exceed the memory limit, by name.
    SpillPlace [Disk] {
        /// Temporary files in `temp_dir`
        Disk = "disk",
        /// Memory outside of the process that the system may swap out, for machines without a disk to spare. A cgroup
        /// counts this memory
        Memory = "memory",
    }
}

impl Format {
    /// The names of the formats of outputs.
    pub(crate) const WRITTEN_CHOICES: &'static [Choice] =
        Self::CHOICES.split_at(Self::WRITTEN.len()).0;
    /// Formats of outputs.
    pub const WRITTEN: [Self; 5] =
        [Self::Parquet, Self::ArrowFile, Self::ArrowStream, Self::Csv, Self::Ndjson];
}
