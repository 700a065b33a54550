//! Files out: parts of the sorted output are encoded by many threads and appended by one.
//!
//! ```text
//!  rows --> cut into parts --> Encoder::encode (any thread, any order) --> Appender::append (in order) --> Sink
//! ```
//!
//! Invariant: the bytes of the output are a function of the rows, of where the driver cuts parts, of the
//! first sampled rows and of [`OutputOptions`] - never of how many threads encode or how the rows of a
//! part are split into batches. Each encoder therefore [cuts](rebatch) what it gets into runs of a fixed
//! number of rows before it reaches a writer that looks at the clock of its calls.
//!
//! A file appears whole or not at all ([`atomic`]). Left out: where to cut parts, and the budget; the
//! driver asks [`part_bytes`] what to count.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, FieldRef, SchemaRef};

use crate::error::{Error, Result};
use crate::format::Format;
pub(crate) use crate::input::{DeclaredColumn, Footer};

mod atomic;
mod checksums;
mod compression;
mod csv;
mod csv_lines;
mod dictionaries;
mod directory;
mod folder;
mod ipc;
mod options;
mod owner;
mod parquet_file;
mod parquet_memory;
mod part;
mod properties;
mod rebatch;
mod rope;
mod row_group;
mod showable;
mod sink;
mod storable;
mod target;
#[cfg(test)]
mod test_rows;
#[cfg(test)]
mod tests;
mod text;
mod views;

pub use compression::Compression;
pub(crate) use directory::Contents;
pub(crate) use folder::{Directory, Folder};
pub use options::{Encodings, WriteOptions};
pub(crate) use options::{OutputOptions, Uploads, not_written};
pub(crate) use part::{Appender, Encoder, Part, Written};
pub(crate) use properties::SAMPLE_ROWS;
pub use target::Target;
pub(crate) use target::{Destination, can_be_taken_back};

/// Opens an output of rows of `schema`.
///
/// `sample` is the head of the output, of which up to [`properties::SAMPLE_ROWS`] rows decide which Parquet
/// columns get a dictionary. For the same bytes whatever the memory limit, it must hold the same rows
/// whatever the memory limit; it may be empty.
///
/// # Errors
/// `Usage` if the target is no place for a file, or the schema or the compression does not fit the format.
pub(crate) fn open(
    target: &Destination,
    schema: &SchemaRef,
    sample: &RecordBatch,
    options: &OutputOptions,
) -> Result<(Arc<dyn Encoder>, Box<dyn Appender>)> {
    match options.format {
        Format::Csv | Format::Ndjson => return text::open(target, schema, options),
        Format::Avro => return Err(not_written(options.format)),
        Format::Parquet | Format::ArrowFile | Format::ArrowStream => {}
    }
    if let Some(field) = schema.fields().iter().find(|field| depth(field) > MOST_DEPTH) {
        return Err(Error::usage(format!(
            "column {:?} is nested {} deep, and an Arrow schema, which Parquet has too, is read to {MOST_DEPTH}; \
             write NDJSON, or leave it out with `select`",
            field.name(),
            depth(field)
        )));
    }
    match options.format {
        Format::Parquet => parquet_file::open(target, schema, sample, options),
        _ => ipc::open(target, schema, options),
    }
}

/// Fields within each other that readers of Arrow follow.
const MOST_DEPTH: usize = 61;

/// The fields within each other of a column, itself among them.
fn depth(field: &Field) -> usize {
    fn within(data_type: &DataType) -> usize {
        use DataType as D;
        match data_type {
            D::List(of)
            | D::LargeList(of)
            | D::ListView(of)
            | D::LargeListView(of)
            | D::FixedSizeList(of, _)
            | D::Map(of, _)
            | D::RunEndEncoded(_, of) => depth(of),
            D::Struct(fields) => fields.iter().map(|field| depth(field)).max().unwrap_or(0),
            D::Union(fields, _) => fields.iter().map(|(_, field)| depth(field)).max().unwrap_or(0),
            D::Dictionary(_, values) => within(values),
            _ => 0,
        }
    }
    1 + within(field.data_type())
}

/// Refuses what [`open`] would refuse, before there is anything to write.
pub(crate) fn check(
    target: &Destination,
    schema: &SchemaRef,
    options: &OutputOptions,
) -> Result<()> {
    // What is dropped unfinished leaves nothing, but a pipe or a device would get the head of it.
    let nowhere = Destination::Path("/dev/null".into());
    let target = if can_be_taken_back(target) { target } else { &nowhere };
    let sample = RecordBatch::new_empty(Arc::clone(schema));
    open(target, schema, &sample, options).map(drop)
}

/// Whether this is the footer of a file that would be written with these options: of these columns, in this order, by
/// this version. The order of its rows is what it says.
pub(crate) fn is_alike(footer: &Footer, schema: &SchemaRef, options: &OutputOptions) -> bool {
    options.format == Format::Parquet && parquet_file::is_alike(footer, schema, options)
}

/// Refuses columns that `format` cannot hold, before anything is planned.
pub(crate) fn check_columns(schema: &SchemaRef, format: Format) -> Result<()> {
    if format == Format::Parquet { parquet_file::check(schema) } else { Ok(()) }
}

/// Bytes of a file beside its parts: what stands in front of them and behind.
pub(crate) fn frame_bytes(schema: &SchemaRef, options: &OutputOptions) -> u64 {
    match options.format {
        Format::Parquet | Format::ArrowFile | Format::ArrowStream => {
            properties::frame_bytes(schema)
        }
        Format::Csv | Format::Ndjson => text::head_bytes(schema, options),
        Format::Avro => 0,
    }
}

/// The most rows and row bytes that a part should have. Only a Parquet part is a unit of the file; what
/// is written as it comes is best cut small, since a part is held until it is written. A file of limited size
/// has one part at the least, so that no part may be larger.
pub(crate) fn part_limits(
    schema: &SchemaRef,
    options: &OutputOptions,
    row_group_bytes: usize,
) -> (usize, usize) {
    let (rows, bytes) = usual_limits(options.format, row_group_bytes);
    let Some(most) = options.max_file_bytes else { return (rows, bytes) };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    match options.format {
        // Encoded, rows take no more than they did; what is said of them in a footer is the rest.
        Format::Parquet | Format::ArrowFile | Format::ArrowStream => {
            (rows, bytes.min(most - most / 8))
        }
        Format::Csv | Format::Ndjson => text::limits_within(schema, options, most, (rows, bytes)),
        Format::Avro => (rows, bytes),
    }
}

fn usual_limits(format: Format, row_group_bytes: usize) -> (usize, usize) {
    /// Rows of the row groups that DuckDB writes, and scans best.
    const ROW_GROUP_ROWS: usize = 122_880;
    /// Four messages of an Arrow file.
    const STREAM_ROWS: usize = 32_768;
    const STREAM_BYTES: usize = 4 << 20;
    match format {
        Format::Parquet => (ROW_GROUP_ROWS, row_group_bytes.max(1)),
        Format::ArrowFile | Format::ArrowStream | Format::Csv | Format::Ndjson | Format::Avro => {
            (STREAM_ROWS, STREAM_BYTES)
        }
    }
}

/// An upper estimate of the heap bytes that encoding one part takes, the finished part included, if it has
/// at most `rows` rows that take at most `bytes` bytes as Arrow arrays; `longest` is what the longest row takes, if that
/// is known.
pub(crate) fn part_bytes(
    schema: &SchemaRef,
    options: &OutputOptions,
    rows: usize,
    bytes: usize,
    longest: Option<usize>,
) -> usize {
    match options.format {
        Format::Parquet => parquet_memory::part_bytes(schema, options, rows, bytes, longest),
        Format::ArrowFile | Format::ArrowStream => ipc::part_bytes(schema, options, rows, bytes),
        Format::Csv | Format::Ndjson => text::part_bytes(schema, options, rows, bytes),
        Format::Avro => 0,
    }
}

/// What is kept of parts that were written until the file is finished, if there are so many of them, of so
/// many bytes together as Arrow arrays.
pub(crate) fn footer_bytes(
    schema: &SchemaRef,
    options: &OutputOptions,
    parts: usize,
    bytes: usize,
) -> usize {
    match options.format {
        Format::Parquet => parquet_memory::footer_bytes(schema, options, parts, bytes),
        // A place in the file for each message, or nothing.
        _ => 0,
    }
}

/// Times that a row longer than a part is in memory while it is written: as an array, and as what is made
/// of it.
pub(crate) fn copies_of_a_long_row(schema: &SchemaRef, options: &OutputOptions) -> usize {
    let is_binary = |field: &FieldRef| field.data_type().is_binary();
    match options.format {
        // The page, joined with its levels, compressed; the array is gone by then, unless it is held. Of a call that
        // is one row it is the minimum and the maximum too.
        Format::Parquet => {
            let bounds = if options.statistics && !options.long_rows { 2 } else { 0 };
            3 + usize::from(options.columns_in_turn) + bounds
        }
        // The message.
        Format::ArrowFile | Format::ArrowStream => 2,
        Format::Avro => 0,
        // The line, of twice as many bytes if all are escaped, or digits of binary.
        Format::Ndjson => 3,
        // The field and the line: quotes are doubled on the way out, digits of binary are not.
        Format::Csv if schema.fields().iter().any(is_binary) => 5,
        Format::Csv => 3,
    }
}

/// Times that it is there once more as a part that waits for its turn.
pub(crate) fn copies_of_a_held_row(format: Format) -> usize {
    match format {
        Format::Parquet | Format::ArrowFile | Format::ArrowStream | Format::Avro => 0,
        Format::Csv | Format::Ndjson => 2,
    }
}
