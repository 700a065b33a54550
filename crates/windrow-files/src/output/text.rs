//! CSV and NDJSON: independent lines.
//!
//! CSV has one header line. By default a null is an empty field. Empty strings are quoted, binary
//! is written as hex digits, and nested types are not supported. NDJSON names every column on every
//! line, including nulls: otherwise a column of nulls would vanish from the file, and readers that
//! infer a schema from the first lines would miss columns with later values.
//!
//! Known limits: text does not preserve types. JSON has no NaN and no infinities; both become null.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use arrow_array::{RecordBatch, new_null_array};
use arrow_json::WriterBuilder as JsonBuilder;
use arrow_json::writer::LineDelimited;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};

use super::compression::Compression;
use super::csv_lines::Lines;
use super::options::OutputOptions;
use super::part::{Appender, Encoder, Incoming, Part, PartRows, Payload, Written, foreign_part};
use super::rope::Rope;
use super::sink::Sink;
use super::target::Destination;
use super::{csv, showable, sink};
use crate::error::{Error, Result};
use crate::input::CsvOptions;
use crate::names::Places;
use crate::nested::child_fields;
use crate::packing::{Packer, Packing};
use crate::settings::Format;

pub(super) fn open(
    target: &Destination,
    schema: &SchemaRef,
    options: &OutputOptions,
) -> Result<(Arc<dyn Encoder>, Box<dyn Appender>)> {
    let packing = options.write.compression.map_or(Ok(None), Compression::text)?;
    let dialect = if options.format == Format::Csv {
        check_csv(schema)?;
        csv::check_names(schema, &options.csv)?;
        Dialect::Csv(Arc::new(options.csv.clone()))
    } else {
        check_json(schema)?;
        Dialect::Json
    };
    let mut sink = BufWriter::new(Sink::open(target, options)?);
    let mut head = Vec::new();
    if options.format == Format::Csv && options.csv.has_header {
        let schema = csv::shown_schema(schema, &options.csv);
        let written = Lines::new(&mut head, &options.csv).header(&schema);
        written.map_err(|error| sink.get_ref().failed(error))?;
    }
    // A compressed file without lines still has a member.
    if packing.is_some() || !head.is_empty() {
        let written = |out: &mut dyn Write| out.write_all(&head).map(|()| 0).map_err(text_fault);
        to_sink(&mut sink, packing, written)?;
    }
    let encoder = LineEncoder { dialect: dialect.clone(), packing };
    let appender = LineAppender { dialect, packing, sink };
    Ok((Arc::new(encoder), Box::new(appender)))
}

/// See [`super::part_bytes`].
pub(super) fn part_bytes(schema: &SchemaRef, options: &OutputOptions, part: PartRows) -> usize {
    let PartRows { rows, bytes, .. } = part;
    let width = |field: &Arc<Field>| field.data_type().primitive_width().unwrap_or(0);
    let numbers: usize = schema.fields().iter().map(width).sum();
    // A part of wide rows ends by its bytes.
    let rows = rows.min(bytes / numbers.max(1) + 1);
    let varying = bytes.saturating_sub(rows * numbers);
    let packing = options.write.compression.and_then(|codec| codec.text().ok().flatten());
    let packer = packing.map_or(0, |(packing, level)| packing.writer_bytes(level));
    // A converted batch exists beside its lines.
    let times = if options.format == Format::Csv && options.csv.decimal_comma { 2 } else { 1 };
    let line = times * line_bytes(schema, options.format) + nulls_bytes(schema, options);
    rows * line + most_stretch(schema) * varying + Rope::PIECE + packer
}

/// See [`super::part_limits`]: parts of a file of at most `most` bytes.
pub(super) fn limits_within(
    schema: &SchemaRef,
    options: &OutputOptions,
    most: usize,
    (rows, bytes): (usize, usize),
) -> (usize, usize) {
    /// Minimum number of parts in a file, if each part has the maximum size.
    const PARTS: usize = 4;
    let line = line_bytes(schema, options.format) + nulls_bytes(schema, options);
    let most = most / PARTS / 2;
    (rows.min(most / line.max(1)).max(1), bytes.min(most / most_stretch(schema).max(1)).max(1))
}

/// Returns the bytes of a line of nulls.
fn nulls_bytes(schema: &Schema, options: &OutputOptions) -> usize {
    let null = if options.format == Format::Csv { options.csv.null_text().len() } else { 0 };
    null * schema.fields().len()
}

fn most_stretch(schema: &Schema) -> usize {
    schema.fields().iter().map(|field| stretch(field.data_type())).max().unwrap_or(1)
}

/// Returns the maximum number of bytes before the lines.
pub(super) fn head_bytes(schema: &SchemaRef, options: &OutputOptions) -> u64 {
    /// Overhead of a member of compressed text in any format: xz and bzip2 have some 60 bytes.
    const MEMBER: usize = 128;
    let name = |field: &Arc<Field>| 2 * field.name().len() + 3;
    let has_head = options.format == Format::Csv && options.csv.has_header;
    let head = if has_head { schema.fields().iter().map(name).sum::<usize>() } else { 0 };
    let member = if options.write.compression.is_some() { MEMBER } else { 0 };
    (head + member) as u64
}

#[derive(Clone)]
enum Dialect {
    Csv(Arc<CsvOptions>),
    Json,
}

impl Dialect {
    /// Writes every batch; returns the number of rows.
    fn write(&self, batches: Incoming<'_>, out: impl Write) -> Result<u64> {
        match self {
            Self::Csv(options) => {
                let mut lines = Lines::new(out, options);
                let shown = &mut batches.map(|batch| csv::shown(&batch?, options));
                drain(shown, |batch| lines.rows(batch))
            }
            Self::Json => {
                let mut writer = json().build::<_, LineDelimited>(out);
                drain(batches, |batch| writer.write(batch))
            }
        }
    }
}

struct LineEncoder {
    dialect: Dialect,
    packing: Option<(Packing, u32)>,
}

impl Encoder for LineEncoder {
    fn encode(&self, batches: Incoming<'_>) -> Result<Part> {
        let mut text = Rope::default();
        let rows = packed(self.packing, &mut text, |out| self.dialect.write(batches, out))?;
        Ok(Part { rows, payload: Payload::Text(text) })
    }
}

struct LineAppender {
    dialect: Dialect,
    packing: Option<(Packing, u32)>,
    sink: BufWriter<Sink>,
}

impl Appender for LineAppender {
    /// Writes the lines as they are encoded.
    fn encode(&mut self, _encoder: &dyn Encoder, batches: Incoming<'_>) -> Result<u64> {
        let dialect = self.dialect.clone();
        let rows = to_sink(&mut self.sink, self.packing, |out| dialect.write(batches, out))?;
        self.sink.get_mut().appended(rows);
        Ok(rows)
    }

    fn append(&mut self, part: Part) -> Result<()> {
        let Payload::Text(text) = part.payload else {
            return Err(foreign_part());
        };
        text.drain(|piece| sink::write(&mut self.sink, piece))?;
        self.sink.get_mut().appended(part.rows);
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Written> {
        sink::finish(&mut self.sink)
    }
}

/// Runs `write` with `out`, or with a compressor into `out`; returns the number of rows.
fn packed<W: Write>(
    packing: Option<(Packing, u32)>,
    mut out: W,
    write: impl FnOnce(&mut dyn Write) -> Result<u64>,
) -> Result<u64> {
    let Some((packing, level)) = packing else { return write(&mut out) };
    let mut packer = Packer::new(packing, level, out).map_err(text_fault)?;
    let rows = write(&mut packer)?;
    packer.finish().map_err(text_fault)?;
    Ok(rows)
}

/// Like `packed` with a sink as output, and returns the errors of the sink.
fn to_sink(
    sink: &mut BufWriter<Sink>,
    packing: Option<(Packing, u32)>,
    write: impl FnOnce(&mut dyn Write) -> Result<u64>,
) -> Result<u64> {
    let mut out = Noting { sink, failed: None };
    let written = packed(packing, &mut out, write);
    match (written, out.failed) {
        (Err(_), Some(error)) => Err(Error::output(&sink.get_ref().label, &error)),
        (written, _) => written,
    }
}

fn text_fault(error: io::Error) -> Error {
    Error::data(error.to_string())
}

/// Keeps the sink's error: the text writers pass on only its message.
struct Noting<'a> {
    sink: &'a mut BufWriter<Sink>,
    failed: Option<io::Error>,
}

impl Noting<'_> {
    fn noted<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|error| {
            let kind = error.kind();
            self.failed = Some(error);
            kind.into()
        })
    }
}

impl Write for Noting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.sink.write(bytes);
        self.noted(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.sink.flush();
        self.noted(done)
    }
}

fn json() -> JsonBuilder {
    JsonBuilder::new().with_explicit_nulls(true)
}

/// Writes every batch with `write`; returns the number of rows.
fn drain(
    batches: Incoming<'_>,
    mut write: impl FnMut(&RecordBatch) -> Result<(), ArrowError>,
) -> Result<u64> {
    let mut rows = 0;
    for batch in batches {
        let batch = batch?;
        showable::check(&batch)?;
        write(&batch).map_err(|error| Error::data(error.to_string()))?;
        rows += batch.num_rows() as u64;
    }
    Ok(rows)
}

fn check_csv(schema: &Schema) -> Result<()> {
    for field in schema.fields() {
        let data_type = match field.data_type() {
            DataType::Dictionary(_, values) => values,
            data_type => data_type,
        };
        if data_type.is_nested() {
            return Err(Error::usage(format!(
                "CSV cannot hold the nested column {:?} ({data_type}); write Parquet or NDJSON",
                field.name()
            )));
        }
    }
    Ok(())
}

/// Checks the types by writing a null of each column; the crate rejects unsupported types.
fn check_json(schema: &Schema) -> Result<()> {
    let places = Places::of(schema.fields());
    for field in schema.fields() {
        if places.only(field.name()).is_none() {
            return Err(Error::usage(format!(
                "NDJSON cannot hold two columns named {:?}; write Parquet, or choose with `select`",
                field.name()
            )));
        }
        let null = new_null_array(field.data_type(), 1);
        let nullable = Field::new(field.name(), field.data_type().clone(), true);
        let written = RecordBatch::try_new(Arc::new(Schema::new(vec![nullable])), vec![null])
            .and_then(|row| json().build::<_, LineDelimited>(io::sink()).write(&row));
        written.map_err(|error| {
            Error::usage(format!(
                "NDJSON cannot hold the column {:?}: {error}; write Parquet",
                field.name()
            ))
        })?;
    }
    Ok(())
}

fn line_bytes(schema: &Schema, format: Format) -> usize {
    let value = |field: &Arc<Field>| {
        // Quotes, colon and delimiter.
        let name = match format {
            Format::Csv => 0,
            _ => field.name().len() + 3,
        };
        name + value_bytes(field.data_type()) + 1
    };
    2 + schema.fields().iter().map(value).sum::<usize>()
}

/// Returns the maximum bytes of a value's text in addition to the value's own bytes.
fn value_bytes(data_type: &DataType) -> usize {
    match data_type {
        DataType::Null | DataType::Boolean => 5,
        DataType::Int8 | DataType::UInt8 | DataType::Int16 | DataType::UInt16 => 6,
        DataType::Int32 | DataType::UInt32 | DataType::Date32 => 12,
        DataType::Timestamp(..) | DataType::Date64 | DataType::Duration(_) => 40,
        DataType::Decimal256(..) => 80,
        DataType::Decimal128(..) | DataType::Interval(_) => 48,
        DataType::Struct(fields) => {
            fields.iter().map(|field| field.name().len() + 4 + value_bytes(field.data_type())).sum()
        }
        DataType::Dictionary(_, values) => value_bytes(values),
        // Quotes, or a null.
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => 4,
        // Brackets: [`stretch`] accounts for the elements.
        data_type if elements(data_type).is_some() => 2,
        _ => 28,
    }
}

/// Returns the maximum bytes of text for one byte of a variable-length value.
fn stretch(data_type: &DataType) -> usize {
    // Binary doubles as hex digits, a string of quotes or line ends as escapes.
    const STRINGS: usize = 2;
    match data_type {
        DataType::Struct(fields) => {
            fields.iter().map(|field| stretch(field.data_type())).max().unwrap_or(STRINGS)
        }
        DataType::Dictionary(_, values) => stretch(values),
        data_type => elements(data_type).map_or(STRINGS, |of| {
            let of = of.data_type();
            // The text around an element, and a comma, per byte of the element in a row.
            let around = (value_bytes(of) + 1).div_ceil(least_bytes(of));
            stretch(of).max(around)
        }),
    }
}

/// Returns the field of a list's elements, or of the only member of a struct.
fn elements(data_type: &DataType) -> Option<FieldRef> {
    <[FieldRef; 1]>::try_from(child_fields(data_type)).ok().map(|[of]| of)
}

/// Returns the minimum bytes of a list element in a row, including its marker.
fn least_bytes(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(fields) => {
            1 + fields.iter().map(|field| least_bytes(field.data_type())).sum::<usize>()
        }
        data_type => 1 + data_type.primitive_width().unwrap_or(1),
    }
}
