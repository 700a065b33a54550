//! Parquet files: a part is a row group. One worker [encodes](super::row_group) its column chunks,
//! another copies them into the file.
//!
//! Every type is read back as it was [stored](super::storable), because the footer has the Arrow
//! schema. Pages, their statistics and their index do not depend on the division of rows into
//! batches.
//!
//! Known limits. A file has at most 32,767 row groups. The footer and the page index of all row
//! groups are held until the end, see [`super::parquet_memory`]. Types without a counterpart in
//! Parquet (unions, list views, binary of zero bytes) are errors.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, IntervalUnit, Schema, SchemaRef};
use parquet::arrow::ArrowSchemaConverter;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor};

use super::compression::Compression;
use super::options::OutputOptions;
use super::part::{Appender, Encoder, Part, Payload, Written, foreign_part};
use super::properties::{CREATED_BY, properties};
use super::row_group::{RowGroupEncoder, rows_a_call};
use super::sink::Sink;
use super::storable::storable;
use super::target::Destination;
use crate::error::{Error, Result};
use crate::input::widen::with_wide_keys;
use crate::input::{Footer, annotated, common_order};
use crate::nested::child_fields;
use crate::settings::Format;

/// Returns an error for columns without a counterpart in Parquet.
pub(super) fn check(schema: &Schema) -> Result<()> {
    fn holds(data_type: &DataType) -> bool {
        match data_type {
            DataType::Union(..)
            | DataType::ListView(_)
            | DataType::LargeListView(_)
            | DataType::FixedSizeBinary(0)
            | DataType::Interval(IntervalUnit::MonthDayNano) => false,
            DataType::Dictionary(_, values) => holds(values),
            other => child_fields(other).iter().all(|field| holds(field.data_type())),
        }
    }
    match schema.fields().iter().find(|field| !holds(field.data_type())) {
        None => Ok(()),
        Some(field) => Err(Error::usage(format!(
            "Parquet cannot hold the column {:?} ({}); write Arrow, or leave it out with `select`",
            field.name(),
            field.data_type()
        ))),
    }
}

/// Opens a file that can take row groups of the file with the footer `like`, if it is given.
pub(crate) fn open_like(
    target: &Destination,
    schema: &SchemaRef,
    sample: &RecordBatch,
    options: &OutputOptions,
    like: Option<&Footer>,
) -> Result<(Arc<dyn Encoder>, Box<dyn Appender>)> {
    let unsupported =
        |error: ParquetError| Error::usage(format!("Parquet cannot hold these columns: {error}"));
    check(schema)?;
    let schema = &storable(schema);
    let descriptor = match like {
        // Names of list items, field ids and annotations stay those of the file.
        Some(footer) => SchemaDescriptor::new(
            footer.metadata().file_metadata().schema_descr().root_schema_ptr(),
        ),
        None => descriptor(schema).map_err(unsupported)?,
    };
    let properties = Arc::new(properties(schema, &descriptor, sample, options)?);
    let sink = Sink::open(target, options)?;
    let label = sink.label.to_owned();
    let root = descriptor.root_schema_ptr();
    let encoder = RowGroupEncoder {
        schema: Arc::clone(schema),
        root: Arc::clone(&root),
        properties: Arc::clone(&properties),
        rows_a_call: rows_a_call(sample),
        in_turn: options.columns_in_turn,
        checked: options.write.checksums,
        watch: options.watch.clone(),
    };
    if sample.num_rows() == 0 {
        // Finds errors before any work is done.
        encoder.check().map_err(unsupported)?;
    }
    let writer =
        SerializedFileWriter::new(sink, root, properties).map_err(|error| failed(&label, error))?;
    Ok((Arc::new(encoder), Box::new(RowGroupAppender(writer))))
}

/// Returns the Parquet schema of a file with these columns, which must be [storable].
fn descriptor(schema: &Schema) -> Result<SchemaDescriptor, ParquetError> {
    let plain = ArrowSchemaConverter::new().convert(schema)?;
    annotated(plain.root_schema(), schema).map(SchemaDescriptor::new)
}

/// Returns true if rows of `schema` are encoded to the same leaves as in the file of `footer`, so
/// that the file's row groups can stand beside new ones.
pub(crate) fn takes_row_groups(footer: &Footer, schema: &SchemaRef) -> bool {
    let stored = storable(schema);
    let Ok(ours) = descriptor(&stored) else { return false };
    let theirs = footer.metadata().file_metadata().schema_descr();
    let leaf = |column: &ColumnDescPtr| {
        let kind = (column.physical_type(), column.type_length());
        (kind, column.max_def_level(), column.max_rep_level(), column.path().parts()[0].clone())
    };
    let leaves = |schema: &SchemaDescriptor| schema.columns().iter().map(leaf).collect::<Vec<_>>();
    let fields = footer.schema().fields().iter().map(|field| {
        // Files do not state the width of dictionary keys.
        let kind = with_wide_keys(field.data_type());
        field.as_ref().clone().with_data_type(kind)
    });
    fields.eq(stored.fields().iter().map(|field| field.as_ref().clone()))
        && leaves(&ours) == leaves(theirs)
}

pub(super) fn is_alike(footer: &Footer, schema: &SchemaRef, options: &OutputOptions) -> bool {
    let usual = Compression::PARQUET_DEFAULT.parquet();
    let metadata = footer.metadata();
    let of_file = metadata.file_metadata();
    let stored = storable(schema);
    let root = descriptor(&stored).map(|parquet| parquet.root_schema_ptr());
    let codec = |chunk: &ColumnChunkMetaData| std::mem::discriminant(&chunk.compression());
    let mut chunks = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
    options.as_usual
        && !options.long_rows
        && of_file.created_by() == Some(CREATED_BY)
        && footer.schema().fields() == stored.fields()
        && root.is_ok_and(|root| *root == *of_file.schema_descr().root_schema())
        && (metadata.num_row_groups() == 0 || common_order(metadata).starts_with(&options.sorting))
        && usual
            .is_ok_and(|usual| chunks.all(|chunk| codec(chunk) == std::mem::discriminant(&usual)))
}

/// Returns true if readers take the row groups of another writer's file as well as new ones: the same
/// leaves, compressed, and not many small row groups.
pub(crate) fn are_passable(footer: &Footer, schema: &SchemaRef, options: &OutputOptions) -> bool {
    use parquet::basic::Compression as Codec;
    let groups = footer.metadata().row_groups();
    let bytes: i64 = groups.iter().map(RowGroupMetaData::compressed_size).sum();
    let mut chunks =
        groups.iter().flat_map(RowGroupMetaData::columns).map(|chunk| chunk.compression());
    let is_common = |codec: Codec| {
        matches!(codec, Codec::SNAPPY | Codec::ZSTD(_) | Codec::GZIP(_) | Codec::LZ4_RAW)
    };
    options.format == Format::Parquet
        && options.as_usual
        && !options.long_rows
        && (groups.len() == 1 || bytes >= LEAST_GROUP_BYTES * groups.len() as i64)
        && chunks.all(is_common)
        && takes_row_groups(footer, schema)
}

/// Bytes of a row group, in the mean of a file, below which readers would pay for many of them.
const LEAST_GROUP_BYTES: i64 = 1 << 20;

struct RowGroupAppender(SerializedFileWriter<Sink>);

impl Appender for RowGroupAppender {
    fn append(&mut self, part: Part) -> Result<()> {
        if part.rows == 0 {
            return Ok(());
        }
        let writer = &mut self.0;
        let label = writer.inner().label.to_owned();
        let mut splice = |payload| {
            let mut group = writer.next_row_group()?;
            match payload {
                Payload::Columns(chunks) => chunks
                    .into_iter()
                    .try_for_each(|chunk| chunk.append_to_row_group(&mut group))?,
                Payload::RowGroup(groups, index) => {
                    groups.announce(index);
                    groups
                        .chunks(index)
                        .try_for_each(|chunk| group.append_column(groups.bytes(), chunk?))?;
                }
                _ => return Ok(false),
            }
            group.close().map(|_| true)
        };
        if !splice(part.payload).map_err(|error| failed(&label, error))? {
            return Err(foreign_part());
        }
        self.0.inner_mut().appended(part.rows);
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Written> {
        let label = self.0.inner().label.to_owned();
        // Not `into_inner`, which loses the kind of an error of the last write.
        self.0.finish().map_err(|error| failed(&label, error))?;
        self.0.inner_mut().finish()
    }
}

/// Returns an error of the file; a system error keeps its cause.
fn failed(label: &std::path::Path, error: ParquetError) -> Error {
    let cause = match &error {
        ParquetError::External(cause) => cause.downcast_ref::<std::io::Error>(),
        _ => None,
    };
    let other = || Error::data(format!("{}: {error}", label.display()));
    cause.map_or_else(other, |cause| Error::output(label, cause))
}
