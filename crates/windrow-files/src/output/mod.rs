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

/// Where a job writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A file or the address of an object, replaced whole when the job is done, or a device or FIFO, written as it
    /// comes; of partitions the directory, which must be new or empty, or a prefix that no object has.
    Path(PathBuf),
    /// The standard output, written as it comes.
    Stdout,
}

impl Target {
    /// What a path names; `-` is the standard output.
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

/// Where one output file goes.
#[derive(Clone, Debug)]
pub(crate) enum Destination {
    /// A file that appears whole, a device or a FIFO.
    Path(PathBuf),
    /// A new file in a directory that nobody sees yet, see [`directory`].
    Within(PathBuf),
    /// An object below a prefix, which is complete with the others there.
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

/// Rows of this length and longer, on average, are chunks, batches and parts of their own.
pub(crate) const LONG_ROW: usize = 1 << 20;

/// How one output is written: [`WriteOptions`], and what the job knows.
#[derive(Clone, Debug)]
pub(crate) struct OutputOptions {
    pub(crate) format: Format,
    /// None is the default of the format: zstd level 2 for Parquet, nothing for the others.
    pub(crate) compression: Option<Compression>,
    /// The order of the rows, which a Parquet footer tells readers.
    pub(crate) sorting: Vec<DeclaredColumn>,
    /// A Parquet page is closed at this size, before compression.
    pub(crate) page_bytes: usize,
    /// Whether Parquet pages and column chunks carry minima and maxima.
    pub(crate) statistics: bool,
    /// Whether Parquet pages carry checksums.
    pub(crate) checksums: bool,
    /// The encodings of Parquet columns.
    pub(crate) encodings: Encodings,
    /// Whether the columns of a Parquet part are encoded one after the other: its rows are held, and few
    /// writers. The bytes are the same.
    pub(crate) columns_in_turn: bool,
    /// Whether rows are of [`LONG_ROW`] bytes or more.
    pub(crate) long_rows: bool,
    /// Whether nothing but the format and the order is of this job.
    pub(crate) as_usual: bool,
    /// How CSV is written down.
    pub(crate) csv: CsvOptions,
    /// Bytes that a file should have at the most, where there may be several.
    pub(crate) max_file_bytes: Option<u64>,
    /// How addresses are reached, and what goes there at a time.
    pub(crate) stores: Stores,
    pub(crate) upload: Option<Uploads>,
    /// What to look at before large copies are made.
    pub(crate) watch: Watch,
}

/// How an output goes to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Uploads {
    /// Bytes of a part.
    pub(crate) part: usize,
    /// Whether every writer has an object of its own.
    pub(crate) many: bool,
}

impl OutputOptions {
    /// The extension of files that get one.
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

/// Takes finished parts in the order of the output.
pub(crate) trait Appender: Send {
    /// Writes a part made by the encoder that was opened with this appender.
    fn append(&mut self, part: Part) -> Result<()>;

    /// Encodes the rows of a part with that encoder and writes them; returns how many there are. For who
    /// has the turn: a format may write them as it encodes.
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

    /// Completes the output and puts it in place. Dropping an appender instead leaves no file.
    fn finish(self: Box<Self>) -> Result<Written>;
}

/// Some rows of the output, encoded.
pub(crate) struct Part {
    rows: u64,
    payload: Payload,
}

impl Part {
    /// A row group of another file, as it is: of Parquet with the same columns.
    pub(crate) fn of_row_group(groups: &Arc<RowGroups>, index: usize) -> Self {
        let rows = groups.group(index).num_rows().unsigned_abs();
        Self { rows, payload: Payload::RowGroup(Arc::clone(groups), index) }
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes that a file grows by with it; of a part of an Arrow file with dictionaries, those of its arrays.
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

/// What each format makes of a part.
enum Payload {
    /// Parquet: a closed chunk of each leaf column.
    Columns(Vec<Chunk>),
    /// Parquet: this row group of another file, as it is.
    RowGroup(Arc<RowGroups>, usize),
    /// Arrow: encoded messages.
    Messages(Vec<EncodedData>),
    /// Arrow files with dictionaries: rows whose keys the appender has yet to renumber.
    Batches(Vec<RecordBatch>),
    /// CSV and NDJSON: whole lines.
    Text(Rope),
}

/// The outcome of a finished output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

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

/// Whether what is written there appears at the end, whole, or not at all.
pub(crate) fn can_be_taken_back(target: &Destination) -> bool {
    match target {
        Destination::Path(path) => {
            let other = path.exists() && !path.is_file() && !path.is_dir();
            !other && sink::descriptor(path).is_none()
        }
        Destination::Within(_) | Destination::Below(..) | Destination::Stdout => false,
    }
}

/// The error of an output of a format that is only read.
pub(crate) fn not_written(format: Format) -> Error {
    let names = Format::WRITTEN.map(Format::name).join(", ");
    Error::usage(format!("{format} is read, and not written; `output_format` is one of {names}"))
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

/// Bytes of the values of a record batch, of which others may be in the same buffers.
fn array_bytes(batch: &RecordBatch) -> usize {
    let bytes = |column: &ArrayRef| column.to_data().get_slice_memory_size().unwrap_or(0);
    batch.columns().iter().map(bytes).sum()
}

/// The error of a part that another output's encoder made.
fn foreign_part() -> Error {
    Error::data("internal error: a part of another output format was appended")
}
