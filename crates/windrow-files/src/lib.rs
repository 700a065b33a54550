//! Files in, files out: sort, compact, merge and partition Parquet, Arrow, CSV and NDJSON files inside a
//! memory limit that is the peak resident memory of the process.
//!
//! ```text
//! Source --> Inputs --\
//!                      Job --explain--> Explain
//! SortSpec, ... ------/    --write----> a file, or a directory of files, and Stats
//!                          --batches--> RecordBatchReader
//! ```
//!
//! A specification ([`SortSpec`], [`CompactSpec`], [`MergeSpec`], [`PartitionSpec`]) describes the
//! result in terms of column names. A [`Job`] binds the specification to the schema of its
//! [`Inputs`]. Until the job is written, only footers, headers and samples are read.
//!
//! ```
//! use windrow_files::{Columns, Inputs, Job, Limit, Limits, ReadOptions, SortSpec, Target, WriteOptions, expand};
//!
//! # let directory = tempfile::tempdir()?;
//! # let (input, output) = (directory.path().join("a.csv"), directory.path().join("b.parquet"));
//! # std::fs::write(&input, "id,name\n2,b\n1,a\n")?;
//! # let (input, output) = (input.to_str().unwrap(), output.to_str().unwrap());
//! let inputs = Inputs::open(&expand([input])?, &ReadOptions::default())?;
//! let job = Job::sort(inputs, &SortSpec::by("id,name:desc".parse::<Columns>()?))?;
//! let limits = Limits::default().memory(Limit::Bytes(256 << 20));
//! let stats = job.write(&Target::of(output), &WriteOptions::default(), &limits)?;
//! assert_eq!(stats.rows_out, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Memory
//!
//! [`Limits::memory`] limits the whole process. Memory resident when the job is planned counts;
//! memory taken by other threads later is unknown to the job. The allocator keeps freed blocks; a
//! process that runs little else than a job should call `windrow::give_back_large_blocks` when it
//! starts.
//!
//! # Threads and cancellation
//!
//! A call starts threads and returns when they have ended. [`Cancel`] ends the call from outside.
//! Two jobs in one process are independent: the crate has no global state, installs no signal
//! handler, sets a panic hook only in [`silence_caught_panics`], and prints nothing.

#![forbid(unsafe_code)]

mod apply;
mod changelog;
mod columns;
mod derived;
mod equality;
mod error;
mod facts;
mod format;
mod input;
mod inspect;
mod job;
mod limits;
mod lock;
mod longest;
mod names;
mod nested;
mod offset;
mod output;
mod packing;
mod partition;
mod paths;
mod preset;
mod progress;
mod raw;
mod request;
mod rewrite;
mod settings;
mod size;
mod stats;
mod store;
mod system;
mod thrift;
mod verbs;
mod watch;

pub use windrow::{Codec, IntoColumns, SortColumn, SpillTo, asc, desc};

pub use apply::{
    AddedFile, Applied, Apply, ApplySpec, ColumnFigures, Counts, HiddenRows, ListedFile,
    PartitionColumn, PartitionTransform, WriteMode,
};
pub use columns::{Columns, Names, OrderBy, TextAs};
pub use error::{Error, ErrorKind, Place, Result};
pub use input::{
    Charset, CsvOptions, DeclaredColumn, FileInfo, Filter, Inputs, ReadOptions, Reader, Source,
    expand, expand_with, parse_schema, silence_caught_panics,
};
pub use inspect::FileFacts;
pub use job::{Batches, Explain, Job};
pub use limits::Limits;
pub use output::{Compression, Target, WriteOptions};
pub use preset::{Meaning, OpMap};
pub use progress::{Moment, Phase, Progress};
pub use request::{Request, Settings, Spec, Value};
pub use settings::{
    Choice, Decimal, Encodings, Existing, FloatOrder, Format, Group, Kept, Kind, Mode, Preset,
    Setting, Shown, SpillCompression, SpillPlace, Unchanged, Verb, worded,
};
pub use size::{Limit, Size};
pub use stats::{Evicted, PerPhase, Spread, Stats, Traffic};
pub use store::Stores;
pub use verbs::{
    CheckSpec, Checked, CompactSpec, DedupeSpec, DiffSpec, HeadSpec, MergeSpec, PartitionSpec,
    Partitions, SortSpec, check,
};
pub use watch::Cancel;

/// The example in the README, tested along with the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
