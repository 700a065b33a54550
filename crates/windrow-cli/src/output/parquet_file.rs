//! Parquet: a part is a row group, whose column chunks are encoded by one worker and spliced in by another.
//!
//! Every type comes back as it was: the footer carries the Arrow schema. Pages, their statistics and their
//! index are the same whatever batches the rows come in, see [`ROWS_A_CALL`].
//!
//! Known limits. A file has at most 32,767 row groups. The footer and the page index of all row groups are
//! held until the end: some 200 bytes a page and 700 a column chunk. Types
//! that Parquet has no name for (unions, views of lists) are refused.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, FieldRef, IntervalUnit, Schema, SchemaRef, TimeUnit};
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;

use super::properties::{DICTIONARY_BYTES, properties};
use super::rebatch::rebatch;
use super::{
    Appender, Compression, Encoder, OutputOptions, Part, Payload, Sink, Target, Written,
    foreign_part,
};
use crate::error::{CliError, Result};

/// Rows of a call of a column writer. It compares its page to the page limit once every so many values of
/// one call, and counts them anew in each, so equal bytes need equal calls.
pub(super) const ROWS_A_CALL: usize = 1024;

/// Bytes of a call, by which those of wide rows have fewer of them: a page is not looked at in between.
const BYTES_A_CALL: usize = 512 << 10;

/// What a compression context takes for however little.
const LEAST_CONTEXT: usize = 64 << 10;

/// Refuses columns that Parquet has no name for.
pub(super) fn check(schema: &Schema) -> Result<()> {
    fn holds(data_type: &DataType) -> bool {
        match data_type {
            DataType::Union(..)
            | DataType::ListView(_)
            | DataType::LargeListView(_)
            | DataType::Interval(IntervalUnit::MonthDayNano) => false,
            DataType::Struct(fields) => fields.iter().all(|field| holds(field.data_type())),
            DataType::List(field)
            | DataType::LargeList(field)
            | DataType::FixedSizeList(field, _)
            | DataType::Map(field, _) => holds(field.data_type()),
            DataType::Dictionary(_, values) => holds(values),
            DataType::RunEndEncoded(_, values) => holds(values.data_type()),
            _ => true,
        }
    }
    match schema.fields().iter().find(|field| !holds(field.data_type())) {
        None => Ok(()),
        Some(field) => Err(CliError::Usage(format!(
            "Parquet cannot hold the column {:?} ({}); write Arrow, or leave it out with --select",
            field.name(),
            field.data_type()
        ))),
    }
}

pub(super) fn open(
    target: &Target,
    schema: &SchemaRef,
    sample: &RecordBatch,
    options: &OutputOptions,
) -> Result<(Arc<dyn Encoder>, Box<dyn Appender>)> {
    let unsupported = |error: ParquetError| {
        CliError::Usage(format!("Parquet cannot hold these columns: {error}"))
    };
    check(schema)?;
    let schema = &storable(schema);
    let descriptor = ArrowSchemaConverter::new().convert(schema).map_err(unsupported)?;
    let properties = Arc::new(properties(schema, &descriptor, sample, options)?);
    let sink = Sink::open(target)?;
    let label = sink.label().to_owned();
    let writer = SerializedFileWriter::new(sink, descriptor.root_schema_ptr(), properties)
        .map_err(|error| failed(&label, error))?;
    let factory = ArrowRowGroupWriterFactory::new(&writer, Arc::clone(schema));
    // What is refused is refused before any work is done.
    factory.create_column_writers(0).map_err(unsupported)?;
    let rows_a_call = rows_a_call(sample);
    let encoder = RowGroupEncoder { factory, schema: Arc::clone(schema), rows_a_call };
    let appender = RowGroupAppender { writer, rows: 0 };
    Ok((Arc::new(encoder), Box::new(appender)))
}

/// See [`super::part_bytes`].
pub(super) fn part_bytes(
    schema: &SchemaRef,
    options: &OutputOptions,
    rows: usize,
    bytes: usize,
) -> usize {
    let converted = ArrowSchemaConverter::new().convert(schema);
    let columns = converted.map_or(schema.fields().len(), |descriptor| descriptor.num_columns());
    let compression = options.compression.unwrap_or(Compression::PARQUET_DEFAULT);
    // Of many columns each has few bytes: what is sized by a page is never filled, and zstd fits its
    // tables to what it gets.
    let average = bytes / columns.max(1);
    let context = compression.context_bytes().min(LEAST_CONTEXT + 4 * average);
    // A page as it is built, and as its values are joined with its levels; compressed it is part of the
    // rows' bytes. A mebibyte that the delta encodings reserve is touched as far as a page is long.
    let pages = 2 * options.page_bytes.min(average);
    let column = context + pages + DICTIONARY_BYTES.min(average);
    // Encoded, rows take no more than they did in Arrow; a page shorter than its limit costs less.
    let row = bytes.checked_div(rows).unwrap_or(0);
    let call = (row * ROWS_A_CALL.min(rows)).min(BYTES_A_CALL + row) * 2;
    columns * column + call + bytes
}

struct RowGroupEncoder {
    factory: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    rows_a_call: usize,
}

/// Rows of a call, from the sample: the same at any limit.
fn rows_a_call(sample: &RecordBatch) -> usize {
    let bytes = |column: &ArrayRef| column.to_data().get_slice_memory_size().unwrap_or(0);
    let bytes: usize = sample.columns().iter().map(bytes).sum();
    let row = bytes / sample.num_rows().max(1);
    ROWS_A_CALL.min(BYTES_A_CALL / row.max(1)).max(1)
}

impl Encoder for RowGroupEncoder {
    fn encode(&self, batches: &mut dyn Iterator<Item = Result<RecordBatch>>) -> Result<Part> {
        // The ordinal of a row group is in its pages only if they are encrypted.
        let writers = self.factory.create_column_writers(0);
        let mut writers = writers.map_err(encoding)?;
        let rows = rebatch(batches, self.rows_a_call, |run| self.write(&mut writers, &run))?;
        let chunks = writers.into_iter().map(ArrowColumnWriter::close);
        let chunks = chunks.collect::<Result<_, _>>().map_err(encoding)?;
        let payload = Payload::Columns(chunks);
        Ok(Part { rows, payload })
    }
}

/// The schema as Parquet can tell it to all readers: it has no dates in milliseconds and no times in
/// seconds, and would store them as plain numbers.
pub(super) fn storable(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let data_type = match field.data_type() {
            DataType::Date64 => DataType::Date32,
            DataType::Time32(TimeUnit::Second) => DataType::Time32(TimeUnit::Millisecond),
            DataType::Timestamp(TimeUnit::Second, zone) => {
                DataType::Timestamp(TimeUnit::Millisecond, zone.clone())
            }
            _ => return Arc::clone(field),
        };
        Arc::new(field.as_ref().clone().with_data_type(data_type))
    });
    let fields: Vec<FieldRef> = fields.collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

impl RowGroupEncoder {
    fn write(&self, writers: &mut [ArrowColumnWriter], run: &RecordBatch) -> Result<()> {
        let mut writers = writers.iter_mut();
        for (field, column) in self.schema.fields().iter().zip(run.columns()) {
            let column = &if field.data_type() == column.data_type() {
                Arc::clone(column)
            } else {
                let options = CastOptions { safe: false, ..CastOptions::default() };
                cast_with_options(column, field.data_type(), &options).map_err(|error| {
                    CliError::Data(format!(
                        "column {:?} is {} in Parquet, which has no {}, and does not hold all of its \
                         values: {error}; write Arrow, or leave it out with --select",
                        field.name(),
                        field.data_type(),
                        column.data_type()
                    ))
                })?
            };
            for leaf in compute_leaves(field, column).map_err(encoding)? {
                if let Some(writer) = writers.next() {
                    writer.write(&leaf).map_err(encoding)?;
                }
            }
        }
        Ok(())
    }
}

struct RowGroupAppender {
    writer: SerializedFileWriter<Sink>,
    rows: u64,
}

impl Appender for RowGroupAppender {
    fn append(&mut self, part: Part) -> Result<()> {
        let Payload::Columns(chunks) = part.payload else {
            return Err(foreign_part());
        };
        if part.rows == 0 {
            return Ok(());
        }
        let writer = &mut self.writer;
        let label = writer.inner().label().to_owned();
        let splice = || {
            let mut group = writer.next_row_group()?;
            for chunk in chunks {
                chunk.append_to_row_group(&mut group)?;
            }
            group.close()
        };
        splice().map_err(|error| failed(&label, error))?;
        self.rows += part.rows;
        self.writer.inner_mut().write_behind();
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Written> {
        let label = self.writer.inner().label().to_owned();
        // Not `into_inner`, which loses the kind of an error of the last write.
        self.writer.finish().map_err(|error| failed(&label, error))?;
        let rows = self.rows;
        let bytes = self.writer.inner_mut().finish()?;
        Ok(Written { rows, bytes })
    }
}

fn encoding(error: ParquetError) -> CliError {
    CliError::Data(format!("Parquet: {error}"))
}

/// An error of the file, with its cause if that is the system's.
fn failed(label: &std::path::Path, error: ParquetError) -> CliError {
    match &error {
        ParquetError::External(cause) => match cause.downcast_ref::<std::io::Error>() {
            Some(cause) => CliError::output(label, cause),
            None => CliError::Data(format!("{}: {error}", label.display())),
        },
        _ => CliError::Data(format!("{}: {error}", label.display())),
    }
}
