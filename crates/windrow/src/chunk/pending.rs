//! Small record batches, copied together before encoding.
//!
//! ```text
//! push  [16 rows] [16 rows] [16 rows] ...  -->  [ some thousand rows ]  --> encoder
//! ```
//!
//! Resolving the columns of a record batch takes as long as encoding hundreds of rows; copying its
//! rows costs hardly anything, and leaves the memory of the record batch to its owner. Only plain
//! columns without nulls wait here, so invalid values are refused at once.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, FixedSizeBinaryBuilder, GenericByteBuilder, PrimitiveBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, BinaryType, ByteArrayType, LargeBinaryType, LargeUtf8Type, Utf8Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch, downcast_primitive};
use arrow_buffer::ArrowNativeType;
use arrow_schema::{DataType, SchemaRef};

use windrow_rows::{Layout, Result};

/// Longer record batches are encoded at once.
const MOST_ROWS: usize = 512;
/// Rows encoded together: their columns stay in the second-level cache.
const ROWS: usize = 4096;
/// Most bytes of waiting rows. The budget does not count these bytes.
const BYTES: usize = 256 << 10;
/// Most columns: each takes some hundred bytes beside its values, which the budget does not count.
const COLUMNS: usize = 512;

/// Waiting rows, consecutive in the input.
#[derive(Default)]
pub(super) struct Pending {
    /// The schema of the last record batch.
    schema: Option<SchemaRef>,
    /// The columns of that schema; none if rows of such columns do not wait.
    columns: Vec<Box<dyn Waiting>>,
    rows: usize,
    bytes: usize,
    /// Position of the first row in the input.
    sequence: u64,
}

impl Pending {
    /// Takes the rows of `batch`, whose first row has position `sequence`, if waiting pays and there
    /// is capacity. Returns true if the rows were taken.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`].
    pub(super) fn offer(
        &mut self,
        layout: &Layout,
        batch: &RecordBatch,
        sequence: u64,
    ) -> Result<bool> {
        let rows = batch.num_rows();
        if !(1..=MOST_ROWS).contains(&rows)
            || self.rows + rows > ROWS
            || (self.rows > 0 && self.sequence + self.rows as u64 != sequence)
        {
            return Ok(false);
        }
        let schema = batch.schema_ref();
        if !self.schema.as_ref().is_some_and(|last| Arc::ptr_eq(last, schema)) {
            layout.check_schema(schema)?;
            if self.schema.is_none() && schema.fields().len() <= COLUMNS {
                let columns = schema.fields().iter().map(|field| waiting(field.data_type()));
                self.columns = columns.collect::<Option<_>>().unwrap_or_default();
            }
            self.schema = Some(Arc::clone(schema));
        }
        if self.columns.is_empty() {
            return Ok(false);
        }
        let mut bytes = self.bytes;
        for (waiting, column) in self.columns.iter().zip(batch.columns()) {
            if column.null_count() > 0 {
                return Ok(false);
            }
            bytes += waiting.bytes(column);
        }
        if bytes > BYTES {
            return Ok(false);
        }
        if self.rows == 0 {
            self.sequence = sequence;
        }
        (self.rows, self.bytes) = (self.rows + rows, bytes);
        for (waiting, column) in self.columns.iter_mut().zip(batch.columns()) {
            waiting.append(column)?;
        }
        Ok(true)
    }

    /// Returns all waiting rows as one record batch, and the position of the first row.
    ///
    /// # Errors
    /// [`crate::Error::Arrow`], if the rows are no record batch.
    pub(super) fn take(&mut self) -> Result<Option<(RecordBatch, u64)>> {
        let Some(schema) = self.schema.as_ref().filter(|_| self.rows > 0) else { return Ok(None) };
        (self.rows, self.bytes) = (0, 0);
        let columns = self.columns.iter_mut().map(|waiting| waiting.finish()).collect();
        Ok(Some((RecordBatch::try_new(Arc::clone(schema), columns)?, self.sequence)))
    }
}

shown!(Pending, it => rows: it.rows, bytes: it.bytes);

/// A column of waiting rows. All columns that it is given have its type.
trait Waiting: Send {
    /// Returns the bytes that the values of `column` take here.
    fn bytes(&self, column: &dyn Array) -> usize;

    /// Copies values, none of which is null.
    fn append(&mut self, column: &dyn Array) -> Result<()>;

    /// Returns all values, and starts anew.
    fn finish(&mut self) -> ArrayRef;
}

impl<T: ArrowPrimitiveType> Waiting for PrimitiveBuilder<T> {
    fn bytes(&self, column: &dyn Array) -> usize {
        size_of::<T::Native>() * column.len()
    }

    fn append(&mut self, column: &dyn Array) -> Result<()> {
        self.append_slice(column.as_primitive::<T>().values());
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        ArrayBuilder::finish(self)
    }
}

impl<T: ByteArrayType> Waiting for GenericByteBuilder<T> {
    fn bytes(&self, column: &dyn Array) -> usize {
        let offsets = column.as_bytes::<T>().offsets();
        let bytes = |at: Option<&T::Offset>| at.map_or(0, |at| at.as_usize());
        size_of::<T::Offset>() * column.len() + bytes(offsets.last()) - bytes(offsets.first())
    }

    fn append(&mut self, column: &dyn Array) -> Result<()> {
        Ok(self.append_array(column.as_bytes::<T>())?)
    }

    fn finish(&mut self) -> ArrayRef {
        ArrayBuilder::finish(self)
    }
}

impl Waiting for FixedSizeBinaryBuilder {
    fn bytes(&self, column: &dyn Array) -> usize {
        column.as_fixed_size_binary().value_length() as usize * column.len()
    }

    fn append(&mut self, column: &dyn Array) -> Result<()> {
        Ok(self.append_array(column.as_fixed_size_binary())?)
    }

    fn finish(&mut self) -> ArrayRef {
        ArrayBuilder::finish(self)
    }
}

/// Returns an empty column of a type whose values are copied as bytes.
fn waiting(data_type: &DataType) -> Option<Box<dyn Waiting>> {
    macro_rules! primitive {
        ($type:ty) => {
            Some(Box::new(
                PrimitiveBuilder::<$type>::with_capacity(0).with_data_type(data_type.clone()),
            ))
        };
    }
    macro_rules! bytes {
        ($type:ty) => {
            Some(Box::new(GenericByteBuilder::<$type>::with_capacity(0, 0)))
        };
    }
    downcast_primitive! {
        data_type => (primitive),
        DataType::Utf8 => bytes!(Utf8Type),
        DataType::LargeUtf8 => bytes!(LargeUtf8Type),
        DataType::Binary => bytes!(BinaryType),
        DataType::LargeBinary => bytes!(LargeBinaryType),
        DataType::FixedSizeBinary(width) => {
            Some(Box::new(FixedSizeBinaryBuilder::with_capacity(0, *width)))
        }
        _ => None,
    }
}
