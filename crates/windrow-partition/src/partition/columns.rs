//! Columns of all types, permuted into the order of their partitions.
//!
//! ```text
//! numbers, views, keys    one buffer of fixed width         values, views' bytes and
//! text, binary            offsets and bytes                 dictionaries are shared
//! structs                 their children, with the same order
//! bitmaps                 of all columns, eight at a time
//! runs, lists, unions     taken row by row; a single run is the same in any order
//! ```
//!
//! Invariant: types, encodings and values stay; a bitmap without nulls is dropped, and none is
//! added.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    BinaryType, BinaryViewType, ByteArrayType, ByteViewType, LargeBinaryType, LargeUtf8Type,
    StringViewType, Utf8Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, FixedSizeBinaryArray, PrimitiveArray,
    RecordBatch, RecordBatchOptions, StructArray, downcast_dictionary_array,
    downcast_primitive_array, downcast_run_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::DataType;
use std::array::from_fn;
use std::mem::take;
use std::sync::Arc;
use std::vec::Drain;

use super::memory::Memory;
use super::nested::select;
use windrow_kernel::partition::arrays::{byte_array, byte_views, dictionary};
use windrow_kernel::partition::bits::{GROUP, Scratch};
use windrow_kernel::partition::order::{Load, PAD, Planned};
use windrow_kernel::partition::slot::Supply;
use windrow_kernel::rows::Bits;
use windrow_rows::Result;

/// Words of a cache line.
const LINE: usize = 8;

/// Permutes columns.
pub(super) struct Columns<'a> {
    pub(super) order: Planned<'a>,
    pub(super) memory: &'a mut Memory,
    pub(super) scratch: &'a mut Scratch,
    /// Permuted bitmaps, until their arrays take them; empty between two record batches.
    pub(super) bitmaps: &'a mut Vec<BooleanBuffer>,
    /// The permutation as rows to gather, for types without a kernel.
    pub(super) rows: Option<Vec<u64>>,
    /// Strings of views stay where they are.
    pub(super) is_pinning: bool,
}

impl Columns<'_> {
    /// Permutes `batch`. Drops each column once it is permuted.
    pub(super) fn record_batch(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        self.memory.next_batch();
        let (schema, columns, rows) = batch.into_parts();
        let columns = match &*columns {
            [column] if self.order.moves_one() => vec![self.only(column)?],
            _ => self.all(columns)?,
        };
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
    }

    /// Permutes the only column, of numbers, views or bits without nulls: no search for bitmaps.
    fn only(&mut self, column: &ArrayRef) -> Result<ArrayRef> {
        if let Some(array) = column.as_boolean_opt() {
            let values = self.bits(bits_of(array.values()));
            return Ok(Arc::new(BooleanArray::new(values, None)));
        }
        self.values(column, None)
    }

    fn all(&mut self, columns: Vec<ArrayRef>) -> Result<Vec<ArrayRef>> {
        // A column that is there twice is permuted once.
        let earlier = |at: usize| columns[..at].iter().position(|c| Arc::ptr_eq(c, &columns[at]));
        let earlier: Vec<_> = (0..columns.len()).map(earlier).collect();
        let mut found = Vec::new();
        for (column, _) in columns.iter().zip(&earlier).filter(|(_, earlier)| earlier.is_none()) {
            find_bitmaps(column.as_ref(), &mut found);
        }
        let mut bitmaps = take(self.bitmaps);
        self.move_bitmaps(&found, &mut bitmaps);
        let mut moved = bitmaps.drain(..);
        // Collecting results would grow a vector from nothing: four allocations for ten columns.
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len());
        for (column, earlier) in columns.into_iter().zip(earlier) {
            arrays.push(match earlier {
                Some(earlier) => Arc::clone(&arrays[earlier]),
                None => self.array(&column, &mut moved)?,
            });
        }
        drop(moved);
        *self.bitmaps = bitmaps;
        Ok(arrays)
    }

    /// Permutes bitmaps into `out`. Bitmaps that are moved together share one buffer: taking and
    /// returning a buffer for each costs as much as the move.
    fn move_bitmaps(&mut self, bitmaps: &[Bits<'_>], out: &mut Vec<BooleanBuffer>) {
        if let [one] = bitmaps {
            out.push(self.bits(*one));
            return;
        }
        let (rows, words) = (self.order.rows(), self.words());
        for group in bitmaps.chunks(GROUP) {
            let mut piece = self.memory.take(group.len() * words * 8);
            let mut parts = piece.as_mut().chunks_exact_mut(words);
            let mut targets: [&mut [u64]; GROUP] = from_fn(|_| parts.next().unwrap_or_default());
            self.order.bits(group, &mut targets[..group.len()], self.scratch);
            let moved = self.memory.freeze(piece, group.len() * words * 8);
            out.extend((0..group.len()).map(|index| {
                let bits = moved.slice_with_length(index * words * 8, rows.div_ceil(8));
                BooleanBuffer::new(bits, 0, rows)
            }));
        }
    }

    /// Permutes one bitmap.
    fn bits(&mut self, bitmap: Bits<'_>) -> BooleanBuffer {
        let (rows, words) = (self.order.rows(), self.words());
        let mut piece = self.memory.take(words * 8);
        self.order.bits(&[bitmap], &mut [piece.as_mut()], self.scratch);
        BooleanBuffer::new(self.memory.freeze(piece, rows.div_ceil(8)), 0, rows)
    }

    /// Returns the number of words of a bitmap, and one more, in whole lines.
    fn words(&self) -> usize {
        (self.order.rows().div_ceil(64) + 1).next_multiple_of(LINE)
    }

    /// Permutes `array`. `moved` has its permuted bitmaps, as found by [`find_bitmaps`].
    fn array(&mut self, array: &ArrayRef, moved: &mut Bitmaps<'_>) -> Result<ArrayRef> {
        if is_same_in_any_order(array.as_ref()) {
            return Ok(array.clone());
        }
        if let DataType::Boolean = array.data_type() {
            let values = moved.next().expect("every bitmap that was found was moved");
            return Ok(Arc::new(BooleanArray::new(values, nulls(array, moved))));
        }
        if !has_kernel(array.data_type()) {
            return self.select(array);
        }
        let nulls = nulls(array, moved);
        if let DataType::Struct(fields) = array.data_type() {
            let columns = array.as_struct().columns().iter();
            let columns = columns.map(|column| self.array(column, moved));
            let columns = columns.collect::<Result<_>>()?;
            let (fields, len) = (fields.clone(), self.order.rows());
            return Ok(Arc::new(StructArray::try_new_with_length(fields, columns, nulls, len)?));
        }
        self.values(array, nulls)
    }

    /// Permutes the values of `array`, whose type has a kernel but neither bits nor children, and
    /// adds `nulls`.
    fn values(&mut self, array: &ArrayRef, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let array = array.as_ref();
        Ok(downcast_primitive_array! {
            array => Arc::new(self.primitive(array, nulls)),
            DataType::Utf8 => self.bytes::<Utf8Type>(array, nulls),
            DataType::LargeUtf8 => self.bytes::<LargeUtf8Type>(array, nulls),
            DataType::Binary => self.bytes::<BinaryType>(array, nulls),
            DataType::LargeBinary => self.bytes::<LargeBinaryType>(array, nulls),
            DataType::Utf8View => self.views::<StringViewType>(array, nulls),
            DataType::BinaryView => self.views::<BinaryViewType>(array, nulls),
            DataType::FixedSizeBinary(width) => {
                let width = *width;
                let values = self.fixed(array.as_fixed_size_binary().value_data(), width as usize);
                let len = self.order.rows();
                Arc::new(FixedSizeBinaryArray::try_new_with_len(width, values, nulls, len)?)
            }
            DataType::Dictionary(_, _) => downcast_dictionary_array! {
                array => Arc::new(dictionary(&mut self.order, self.memory, array, nulls)),
                _other => array.slice(0, array.len()),
            },
            _other => array.slice(0, array.len()),
        })
    }

    fn bytes<T: ByteArrayType>(&mut self, of: &dyn Array, nulls: Option<NullBuffer>) -> ArrayRef {
        Arc::new(byte_array::<T>(&mut self.order, self.memory, of.as_bytes(), nulls))
    }

    fn views<T: ByteViewType>(&mut self, of: &dyn Array, nulls: Option<NullBuffer>) -> ArrayRef {
        let of = of.as_byte_view::<T>();
        Arc::new(byte_views(&mut self.order, self.memory, of, nulls, self.is_pinning))
    }

    fn primitive<T: ArrowPrimitiveType>(
        &mut self,
        array: &PrimitiveArray<T>,
        nulls: Option<NullBuffer>,
    ) -> PrimitiveArray<T> {
        let values = self.fixed(array.values().inner(), size_of::<T::Native>());
        let moved = PrimitiveArray::new(ScalarBuffer::from(values), nulls);
        if moved.data_type() == array.data_type() {
            return moved;
        }
        moved.with_data_type(array.data_type().clone())
    }

    fn fixed(&mut self, source: &[u8], width: usize) -> Buffer {
        let len = self.order.rows() * width;
        let mut out = self.memory.take(len + PAD);
        self.order.fixed(width, source, out.as_mut());
        self.memory.freeze(out, len)
    }

    fn select(&mut self, array: &ArrayRef) -> Result<ArrayRef> {
        let order = &mut self.order;
        let rows = self.rows.get_or_insert_with(|| {
            let mut rows = Vec::new();
            order.write_rows(&mut rows);
            rows
        });
        select(array, rows)
    }
}

/// Permuted bitmaps, to be taken by their arrays.
type Bitmaps<'a> = Drain<'a, BooleanBuffer>;

fn has_kernel(data_type: &DataType) -> bool {
    use DataType as T;
    match data_type {
        T::Boolean | T::FixedSizeBinary(_) | T::Dictionary(_, _) | T::Struct(_) => true,
        T::Utf8 | T::LargeUtf8 | T::Utf8View => true,
        T::Binary | T::LargeBinary | T::BinaryView => true,
        other => other.is_primitive(),
    }
}

/// Returns true if all values are evidently equal: no values, only nulls, one run.
fn is_same_in_any_order(array: &dyn Array) -> bool {
    downcast_run_array!(
        array => {
            let ends = array.run_ends();
            array.is_empty() || ends.get_start_physical_index() == ends.get_end_physical_index()
        },
        DataType::Null => true,
        // Empty arrays count as well.
        _ => array.null_count() == array.len(),
    )
}

fn bits_of(buffer: &BooleanBuffer) -> Bits<'_> {
    Bits { bytes: buffer.values(), first: buffer.offset() }
}

/// Adds the bitmaps of `array`, in the sequence in which [`Columns::array`] takes them.
fn find_bitmaps<'a>(array: &'a dyn Array, bitmaps: &mut Vec<Bits<'a>>) {
    let data_type = array.data_type();
    if is_same_in_any_order(array) || !has_kernel(data_type) {
        return;
    }
    if let DataType::Boolean = data_type {
        bitmaps.push(bits_of(array.as_boolean().values()));
    }
    if array.null_count() > 0 {
        bitmaps.extend(array.nulls().map(|nulls| bits_of(nulls.inner())));
    }
    if let DataType::Struct(_) = data_type {
        array.as_struct().columns().iter().for_each(|column| find_bitmaps(column, bitmaps));
    }
}

/// Takes the permuted nulls of `array`, if it has any.
fn nulls(array: &ArrayRef, bitmaps: &mut Bitmaps<'_>) -> Option<NullBuffer> {
    let moved = (array.null_count() > 0).then(|| bitmaps.next()).flatten();
    moved.map(NullBuffer::new)
}

/// Classifies the columns of `batch` for the plan.
pub(super) fn load(batch: &RecordBatch) -> Load {
    match batch.columns() {
        [column] if column.null_count() == 0 => match column.data_type() {
            DataType::Boolean => Load::Bits,
            DataType::Utf8View | DataType::BinaryView => Load::Fixed(16),
            other => other.primitive_width().map_or(Load::Many, Load::Fixed),
        },
        columns if columns.iter().any(is_wide) => Load::ManyWide,
        columns if columns.iter().any(|column| needs_places(column.data_type())) => Load::ManyTexts,
        columns if columns.iter().filter(|column| is_of_four(column)).count() > 1 => Load::ManyWide,
        _ => Load::Many,
    }
}

/// Returns true for values of four bytes: for several columns, scatter indices cost less than they
/// save.
fn is_of_four(column: &ArrayRef) -> bool {
    column.data_type().primitive_width() == Some(4)
}

/// Returns true for types without a fixed width.
fn needs_places(data_type: &DataType) -> bool {
    use DataType as T;
    match data_type {
        T::Utf8 | T::LargeUtf8 | T::Binary | T::LargeBinary => true,
        T::Struct(fields) => fields.iter().any(|field| needs_places(field.data_type())),
        other => !has_kernel(other),
    }
}

/// Returns true for values of eight bytes or more.
fn is_wide(column: &ArrayRef) -> bool {
    match column.data_type() {
        DataType::Utf8View | DataType::BinaryView => true,
        DataType::FixedSizeBinary(width) => *width >= 8,
        DataType::Struct(_) => column.as_struct().columns().iter().any(is_wide),
        other => other.primitive_width().is_some_and(|width| width >= 8),
    }
}
