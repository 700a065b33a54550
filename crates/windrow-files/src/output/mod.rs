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

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::RecordBatch;
use arrow_ipc::writer::EncodedData;
use arrow_schema::{DataType, Field, FieldRef, SchemaRef};

use crate::error::{Error, Result};
use crate::format::Format;
pub(crate) use crate::input::{CsvOptions, DeclaredColumn, Footer, RowGroups};
use crate::store::{Prefix, Stores};
use crate::watch::Watch;

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
mod properties;
mod rebatch;
mod rope;
mod row_group;
mod showable;
mod sink;
mod storable;
#[cfg(test)]
mod test_rows;
#[cfg(test)]
mod tests;
mod text;
mod views;

use checksums::Chunk;
pub use compression::Compression;
pub(crate) use directory::Contents;
pub(crate) use folder::{Directory, Folder};
pub use options::{Encodings, WriteOptions};
pub(crate) use properties::SAMPLE_ROWS;
use rope::Rope;
use sink::Sink;

/// The destination of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A file or the address of an object, replaced as a whole at the end of the job; or a device
    /// or FIFO, written continuously. For partitions, a directory that must be new or empty, or an
    /// unused prefix of object names.
    Path(PathBuf),
    /// The standard output, written continuously.
    Stdout,
}

impl Target {
    /// Returns the target named by a path; `-` is the standard output.
    pub fn of(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let is_stdout = path == Path::new("-") || sink::descriptor(path) == Some(1);
        if is_stdout { Self::Stdout } else { Self::Path(path.to_owned()) }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Stdout => f.write_str("standard output"),
        }
    }
}

/// The destination of one output file.
#[derive(Clone, Debug)]
pub(crate) enum Destination {
    /// A file that appears complete, a device or a FIFO.
    Path(PathBuf),
    /// A new file in an unpublished directory, see [`directory`].
    Within(PathBuf),
    /// An object below a prefix; all objects of the prefix appear together.
    Below(Arc<Prefix>, PathBuf),
    Stdout,
}

impl From<&Target> for Destination {
    fn from(target: &Target) -> Self {
        match target {
            Target::Path(path) => Self::Path(path.clone()),
            Target::Stdout => Self::Stdout,
        }
    }
}

/// Mean length in bytes from which each row is a chunk, a batch and a part of its own.
pub(crate) const LONG_ROW: usize = 1 << 20;

/// Options of one output: [`WriteOptions`] and settings of the job.
#[derive(Clone, Debug)]
pub(crate) struct OutputOptions {
    pub(crate) format: Format,
    /// `None` is the default of the format: zstd level 2 for Parquet, otherwise no compression.
    pub(crate) compression: Option<Compression>,
    /// The order of the rows, as declared by a Parquet footer.
    pub(crate) sorting: Vec<DeclaredColumn>,
    /// Size at which a Parquet page is closed, before compression.
    pub(crate) page_bytes: usize,
    /// Whether Parquet pages and column chunks have minima and maxima.
    pub(crate) statistics: bool,
    /// Whether Parquet pages have checksums.
    pub(crate) checksums: bool,
    /// The encodings of Parquet columns.
    pub(crate) encodings: Encodings,
    /// Whether the columns of a Parquet part are encoded one after the other, which holds the
    /// part's rows and few writers in memory. The bytes are the same.
    pub(crate) columns_in_turn: bool,
    /// Whether the mean row has [`LONG_ROW`] bytes or more.
    pub(crate) long_rows: bool,
    /// Whether all options except the format and the order are the defaults.
    pub(crate) as_usual: bool,
    /// Options of CSV.
    pub(crate) csv: CsvOptions,
    /// Intended maximum bytes of a file, for an output of several files.
    pub(crate) max_file_bytes: Option<u64>,
    /// Access to object stores, and the size of uploads.
    pub(crate) stores: Stores,
    pub(crate) upload: Option<Uploads>,
    /// The checks before large allocations.
    pub(crate) watch: Watch,
}

/// Uploads of an output to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Uploads {
    /// Bytes of a part.
    pub(crate) part: usize,
    /// Whether every writer uploads an object of its own.
    pub(crate) many: bool,
}

impl OutputOptions {
    /// Returns the file name extension, for generated names.
    pub(crate) fn extension(&self) -> String {
        let format = self.format.extension();
        match self.compression.map(Compression::text) {
            Some(Ok(Some((packing, _)))) if matches!(self.format, Format::Csv | Format::Ndjson) => {
                format!("{format}.{}", packing.extension())
            }
            _ => format.to_owned(),
        }
    }
}

#[cfg(test)]
impl OutputOptions {
    /// The defaults of a format.
    pub(crate) fn new(format: Format) -> Self {
        Self {
            format,
            compression: None,
            sorting: Vec::new(),
            // Small enough that a page of every column of a row group is a few MB, large enough that
            // zstd loses about 2 %.
            page_bytes: 512 << 10,
            statistics: true,
            checksums: true,
            encodings: Encodings::default(),
            columns_in_turn: false,
            long_rows: false,
            as_usual: true,
            csv: CsvOptions::default(),
            max_file_bytes: None,
            stores: Stores::default(),
            upload: None,
            watch: Watch::default(),
        }
    }
}

/// Encodes parts; shared by all workers.
pub(crate) trait Encoder: Send + Sync {
    /// Encodes the rows of one part. Batches may be of any size.
    fn encode(&self, batches: &mut dyn Iterator<Item = Result<RecordBatch>>) -> Result<Part>;
}

/// Writes finished parts in the order of the output.
pub(crate) trait Appender: Send {
    /// Writes a part made by the encoder that was opened with this appender.
    fn append(&mut self, part: Part) -> Result<()>;

    /// Encodes the rows of a part with the encoder and writes them; returns the number of rows. To
    /// be called in the part's turn: a format may write while it encodes.
    fn encode(
        &mut self,
        encoder: &dyn Encoder,
        batches: &mut dyn Iterator<Item = Result<RecordBatch>>,
    ) -> Result<u64> {
        let part = encoder.encode(batches)?;
        let rows = part.rows();
        self.append(part)?;
        Ok(rows)
    }

    /// Completes the output and publishes it. Dropping an appender instead leaves no file.
    fn finish(self: Box<Self>) -> Result<Written>;
}

/// Encoded rows of the output.
pub(crate) struct Part {
    rows: u64,
    payload: Payload,
}

impl Part {
    /// Returns a part that is a row group of another Parquet file with the same columns.
    pub(crate) fn of_row_group(groups: &Arc<RowGroups>, index: usize) -> Self {
        let rows = groups.group(index).num_rows().unsigned_abs();
        Self { rows, payload: Payload::RowGroup(Arc::clone(groups), index) }
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the bytes added to a file by the part; for an Arrow file with dictionaries, the
    /// bytes of the part's arrays.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes: usize = match &self.payload {
            Payload::Columns(chunks) => chunks.iter().map(Chunk::bytes).sum(),
            Payload::RowGroup(groups, index) => {
                usize::try_from(groups.group(*index).compressed_size()).unwrap_or(0)
            }
            Payload::Messages(messages) => messages.iter().map(ipc::message_bytes).sum(),
            Payload::Batches(batches) => batches.iter().map(array_bytes).sum(),
            Payload::Text(text) => text.bytes(),
        };
        bytes as u64
    }
}

/// The encoded form of a part in each format.
enum Payload {
    /// Parquet: a closed chunk of each leaf column.
    Columns(Vec<Chunk>),
    /// Parquet: a row group of another file, copied.
    RowGroup(Arc<RowGroups>, usize),
    /// Arrow: encoded messages.
    Messages(Vec<EncodedData>),
    /// Arrow files with dictionaries: rows whose dictionary keys the appender renumbers.
    Batches(Vec<RecordBatch>),
    /// CSV and NDJSON: whole lines.
    Text(Rope),
}

/// The size of a finished output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

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

/// Depth of nested fields supported by Arrow readers.
const MOST_DEPTH: usize = 61;

/// Returns the depth of a column's nested fields, including the column itself.
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

/// Returns true if an output at `target` appears at the end, complete, or not at all.
pub(crate) fn can_be_taken_back(target: &Destination) -> bool {
    match target {
        Destination::Path(path) => {
            let other = path.exists() && !path.is_file() && !path.is_dir();
            !other && sink::descriptor(path).is_none()
        }
        Destination::Within(_) | Destination::Below(..) | Destination::Stdout => false,
    }
}

/// Returns the error of an output in a format that windrow only reads.
pub(crate) fn not_written(format: Format) -> Error {
    let names = Format::WRITTEN.map(Format::name).join(", ");
    Error::usage(format!("{format} is read, and not written; `output_format` is one of {names}"))
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
pub(crate) fn part_limits(
    schema: &SchemaRef,
    options: &OutputOptions,
    row_group_bytes: usize,
) -> (usize, usize) {
    let (rows, bytes) = usual_limits(options.format, row_group_bytes);
    let Some(most) = options.max_file_bytes else { return (rows, bytes) };
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

fn usual_limits(format: Format, row_group_bytes: usize) -> (usize, usize) {
    /// Rows of the row groups written by DuckDB, and best for its scans.
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

/// Returns an upper estimate of the heap bytes for encoding a part, including the finished part.
/// The part has at most `rows` rows, which take at most `bytes` bytes as Arrow arrays; `longest` is
/// the size of the longest row, if known.
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

/// Returns the bytes held until the file is finished, for an output of `parts` parts with `bytes`
/// bytes as Arrow arrays.
pub(crate) fn footer_bytes(
    schema: &SchemaRef,
    options: &OutputOptions,
    parts: usize,
    bytes: usize,
) -> usize {
    match options.format {
        Format::Parquet => parquet_memory::footer_bytes(schema, options, parts, bytes),
        // Arrow holds a few bytes for each message.
        _ => 0,
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
            let bounds = if options.statistics && !options.long_rows { 2 } else { 0 };
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

/// Returns the bytes of a record batch's values; the buffers may hold further values.
fn array_bytes(batch: &RecordBatch) -> usize {
    let bytes = |column: &ArrayRef| column.to_data().get_slice_memory_size().unwrap_or(0);
    batch.columns().iter().map(bytes).sum()
}

/// Returns the error of a part made by the encoder of another format.
fn foreign_part() -> Error {
    Error::data("internal error: a part of another output format was appended")
}
