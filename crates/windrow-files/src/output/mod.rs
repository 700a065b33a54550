//! Output files: many threads encode parts of the sorted output, one thread at a time appends them.
//!
//! ```text
//!  rows --> cut into parts --> Encoder::encode (any thread, any order) --> Appender::append (in order) --> Sink
//! ```
//!
//! Invariant: the bytes of the output are a function of the rows, the boundaries of parts, the
//! first sampled rows and [`OutputOptions`]. The number of encoding threads and the division of a
//! part into batches have no influence. An encoder therefore [cuts](rebatch) its input into runs of
//! a fixed number of rows for writers whose output depends on the rows per call.
//!
//! A file appears complete or not at all ([`atomic`]). The driver chooses the boundaries of parts
//! and the budget; [`part_bytes`] estimates the memory.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, FieldRef, SchemaRef};

use crate::error::{Error, Result};
pub(crate) use crate::input::{DeclaredColumn, Footer};
use crate::nested;
use crate::settings::Format;

mod atomic;
mod checksums;
mod compression;
mod csv;
mod csv_lines;
mod dictionaries;
mod directory;
mod entries;
mod exchange;
mod existing;
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
mod tests;
mod text;
mod views;

pub use compression::Compression;
pub(crate) use directory::{AtomicDirectory, make_within};
pub(crate) use entries::Contents;
pub(crate) use exchange::LockedDirectory;
pub(crate) use folder::Directory;
pub use options::WriteOptions;
pub(crate) use options::{OutputOptions, Uploads, not_written};
pub(crate) use owner::take_over;
pub(crate) use parquet_file::{are_passable, open_like, takes_row_groups};
pub(crate) use parquet_memory::footer_bytes;
pub(crate) use part::{Appender, Encoder, Incoming, Part, PartRows, Written};
pub(crate) use properties::SAMPLE_ROWS;
pub use target::Target;
pub(crate) use target::{Destination, can_be_taken_back};

/// Opens an output of rows of `schema`.
///
/// `sample` is the head of the output; up to [`properties::SAMPLE_ROWS`] of its rows decide which
/// Parquet columns get a dictionary. The sample must not depend on the memory limit, or the
/// output's bytes would. It may be empty.
///
/// # Errors
/// `Usage` if the target cannot be a file, or the format does not support the schema or the
/// compression.
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
    if let Some(field) = schema.fields().iter().find(|field| depth(field.data_type()) > MOST_DEPTH)
    {
        return Err(Error::usage(format!(
            "column {:?} is nested {} deep, and an Arrow schema, which Parquet has too, is read to {MOST_DEPTH}; \
             write NDJSON, or leave it out with `select`",
            field.name(),
            depth(field.data_type())
        )));
    }
    match options.format {
        Format::Parquet => open_like(target, schema, sample, options, None),
        _ => ipc::open(target, schema, options),
    }
}

/// Depth of nested fields supported by Arrow readers.
const MOST_DEPTH: usize = 61;

/// Returns the depth of a type's nested fields, including the column itself.
fn depth(data_type: &DataType) -> usize {
    let deepest = |fields: &[FieldRef]| {
        1 + fields.iter().map(|field| depth(field.data_type())).max().unwrap_or(0)
    };
    match data_type {
        DataType::Dictionary(_, values) => depth(values),
        DataType::Union(fields, _) => {
            deepest(&fields.iter().map(|(_, field)| Arc::clone(field)).collect::<Vec<_>>())
        }
        other => deepest(&nested::child_fields(other)),
    }
}

/// Returns the error of [`open`] in advance, before there are rows to write.
pub(crate) fn check(
    target: &Destination,
    schema: &SchemaRef,
    options: &OutputOptions,
) -> Result<()> {
    // An unfinished output leaves nothing behind, but a pipe or a device would receive its head.
    let nowhere = Destination::Path("/dev/null".into());
    let target = if can_be_taken_back(target) { target } else { &nowhere };
    let sample = RecordBatch::new_empty(Arc::clone(schema));
    open(target, schema, &sample, options).map(drop)
}

/// Returns true if `footer` is from a file that would be written identically with these options:
/// same columns, same order, same version of windrow. The order of the rows is as declared, not
/// checked.
pub(crate) fn is_alike(footer: &Footer, schema: &SchemaRef, options: &OutputOptions) -> bool {
    options.format == Format::Parquet && parquet_file::is_alike(footer, schema, options)
}

/// Returns an error for columns that `format` cannot hold, before the job is planned.
pub(crate) fn check_columns(schema: &SchemaRef, format: Format) -> Result<()> {
    if format == Format::Parquet { parquet_file::check(schema) } else { Ok(()) }
}

/// Returns the bytes of a file without its parts: header and footer.
pub(crate) fn frame_bytes(schema: &SchemaRef, options: &OutputOptions) -> u64 {
    match options.format {
        Format::Parquet | Format::ArrowFile | Format::ArrowStream => {
            properties::frame_bytes(schema)
        }
        Format::Csv | Format::Ndjson => text::head_bytes(schema, options),
        Format::Avro => 0,
    }
}

/// Returns the maximum rows and row bytes of a part. Only a Parquet part is a unit of the file;
/// other formats use small parts, because a part is held in memory until it is written. A file of
/// limited size has at least one part, so the file's limit also limits parts.
pub(crate) fn part_limits(schema: &SchemaRef, options: &OutputOptions) -> (usize, usize) {
    /// Rows of the row groups written by DuckDB, and best for its scans.
    const ROW_GROUP_ROWS: usize = 122_880;
    /// Four messages of an Arrow file.
    const STREAM_ROWS: usize = 32_768;
    const STREAM_BYTES: usize = 4 << 20;
    /// Text without compression is the same in parts of any size.
    const TEXT_ROWS: usize = 8_192;
    const TEXT_BYTES: usize = 1 << 20;
    let (rows, bytes) = match options.format {
        Format::Parquet => (ROW_GROUP_ROWS, options.row_group_bytes.max(1)),
        Format::Csv | Format::Ndjson
            if options.write.compression.is_none() && options.write.max_file_bytes.is_none() =>
        {
            (TEXT_ROWS, TEXT_BYTES)
        }
        Format::ArrowFile | Format::ArrowStream | Format::Csv | Format::Ndjson | Format::Avro => {
            (STREAM_ROWS, STREAM_BYTES)
        }
    };
    let Some(most) = options.write.max_file_bytes else { return (rows, bytes) };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    match options.format {
        // Encoded rows take no more space than rows in memory; 1/8 is for metadata in the footer.
        Format::Parquet | Format::ArrowFile | Format::ArrowStream => {
            (rows, bytes.min(most - most / 8))
        }
        Format::Csv | Format::Ndjson => text::limits_within(schema, options, most, (rows, bytes)),
        Format::Avro => (rows, bytes),
    }
}

/// Returns an upper estimate of the heap bytes for encoding a part, including the finished part.
pub(crate) fn part_bytes(schema: &SchemaRef, options: &OutputOptions, part: PartRows) -> usize {
    match options.format {
        Format::Parquet => parquet_memory::part_bytes(schema, options, part),
        Format::ArrowFile | Format::ArrowStream => ipc::part_bytes(schema, options, part),
        Format::Csv | Format::Ndjson => text::part_bytes(schema, options, part),
        Format::Avro => 0,
    }
}

/// Returns the number of copies in memory of a row longer than a part during its encoding: the
/// array, and the encoded forms.
pub(crate) fn copies_of_a_long_row(schema: &SchemaRef, options: &OutputOptions) -> usize {
    let is_binary = |field: &FieldRef| field.data_type().is_binary();
    match options.format {
        // The page; the page joined with its levels; the compressed page. The array is released by
        // then, unless columns are encoded in turn. A call with a single row also copies it as
        // minimum and maximum.
        Format::Parquet => {
            let bounds = if options.write.statistics && !options.long_rows { 2 } else { 0 };
            3 + usize::from(options.columns_in_turn) + bounds
        }
        // The message.
        Format::ArrowFile | Format::ArrowStream => 2,
        Format::Avro => 0,
        // The line, twice as long if every byte is escaped or binary is written as hex digits.
        Format::Ndjson => 3,
        // The field and the line: the line doubles quotes; binary is already doubled in the field.
        Format::Csv if schema.fields().iter().any(is_binary) => 5,
        Format::Csv => 3,
    }
}

/// Returns the number of additional copies of the row in a part that waits for its turn.
pub(crate) fn copies_of_a_held_row(format: Format) -> usize {
    match format {
        Format::Parquet | Format::ArrowFile | Format::ArrowStream | Format::Avro => 0,
        Format::Csv | Format::Ndjson => 2,
    }
}
