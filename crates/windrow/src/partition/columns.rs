//! Columns of all types in the order of their partitions.
//!
//! ```text
//! numbers                 those of one width together
//! views, keys             one buffer of fixed width         views' bytes and
//! text, binary            offsets and bytes                 dictionaries are shared
//! structs                 their children, with the same order
//! bitmaps                 of all columns, eight at a time
//! runs, lists, unions     taken row by row; a single run is the same in any order
//! ```
//!
//! Invariant: types, encodings and values stay; a bitmap without nulls is dropped, and none is made.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    BinaryType, BinaryViewType, Int16Type, Int32Type, Int64Type, LargeBinaryType, LargeUtf8Type,
    RunEndIndexType, StringViewType, Utf8Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, FixedSizeBinaryArray, PrimitiveArray,
    RecordBatch, RecordBatchOptions, RunArray, StructArray, downcast_dictionary_array,
    downcast_primitive_array,
};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::DataType;
use std::array::from_fn;
use std::sync::Arc;
use std::vec::IntoIter;

use super::nested::select;
use crate::error::Result;
use crate::kernel::partition::arrays::{byte_array, byte_views, dictionary};
use crate::kernel::partition::bits::{Bits, GROUP, Scratch};
use crate::kernel::partition::memory::{Memory, Piece};
use crate::kernel::partition::order::{Load, PAD, Planned};

/// The most columns that are moved at once.
const AT_ONCE: usize = 4;

/// Brings columns into an order.
pub(super) struct Columns<'a> {
    pub(super) order: Planned<'a>,
    pub(super) memory: &'a Memory,
    pub(super) scratch: &'a mut Scratch,
    /// The order as rows to take, for types without a kernel of their own.
    pub(super) rows: Option<Vec<u64>>,
}

impl Columns<'_> {
    pub(super) fn record_batch(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let (mut bitmaps, mut numbers) = (Vec::new(), Vec::new());
        batch.columns().iter().for_each(|column| find_bitmaps(column, &mut bitmaps));
        batch.columns().iter().for_each(|column| find_numbers(column, &mut numbers));
        let mut moved = Moved {
            bitmaps: self.bitmaps(&bitmaps).into_iter(),
            numbers: self.numbers(&numbers).into_iter(),
        };
        let columns = batch.columns().iter().map(|column| self.array(column, &mut moved));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(batch.schema(), columns, &options)?)
    }

    fn bitmaps(&mut self, bitmaps: &[&BooleanBuffer]) -> Vec<BooleanBuffer> {
        let rows = self.order.rows();
        let mut done = Vec::with_capacity(bitmaps.len());
        for group in bitmaps.chunks(GROUP) {
            let sources: [Bits<'_>; GROUP] = from_fn(|index| {
                let bits = group.get(index);
                bits.map_or(Bits::NONE, |bits| Bits::new(bits.values(), bits.offset(), bits.len()))
            });
            let mut pieces: [Option<Piece>; GROUP] = from_fn(|index| {
                (index < group.len()).then(|| self.memory.take((rows.div_ceil(64) + 1) * 8))
            });
            let mut targets = targets(&mut pieces);
            let count = group.len();
            self.order.bits(&sources[..count], &mut targets[..count], self.scratch);
            let pieces = pieces.into_iter().flatten();
            done.extend(pieces.map(|p| BooleanBuffer::new(p.freeze(rows.div_ceil(8)), 0, rows)));
        }
        done
    }

    /// Buffers of numbers in order; those of one width are moved as many at once as pays.
    fn numbers(&mut self, numbers: &[Numbers<'_>]) -> Vec<Option<Buffer>> {
        let (mut done, rows) = (vec![None; numbers.len()], self.order.rows());
        for width in [1, 2, 4, 8, 16, 32] {
            let mut left = (0..numbers.len()).filter(|&index| numbers[index].width == width);
            let at_once = self.order.at_once(width).min(AT_ONCE);
            while let Some(first) = left.next() {
                let mut group = [first; AT_ONCE];
                let mut count = 1;
                for (slot, index) in group[1..at_once].iter_mut().zip(&mut left) {
                    *slot = index;
                    count += 1;
                }
                let group = &group[..count];
                let sources: [&[u8]; AT_ONCE] =
                    from_fn(|index| group.get(index).map_or(&[][..], |&i| numbers[i].values));
                let mut pieces: [Option<Piece>; AT_ONCE] =
                    from_fn(|index| (index < count).then(|| self.memory.take(rows * width + PAD)));
                let mut targets = targets(&mut pieces);
                self.order.fixed_columns(width, &sources[..count], &mut targets[..count]);
                for (&index, piece) in group.iter().zip(pieces.into_iter().flatten()) {
                    done[index] = Some(piece.freeze(rows * width));
                }
            }
        }
        done
    }

    /// `array` in order. `moved` has what [`find_bitmaps`] and [`find_numbers`] find in it, in order.
    fn array(&mut self, array: &ArrayRef, moved: &mut Moved) -> Result<ArrayRef> {
        if is_same_in_any_order(array) {
            return Ok(array.clone());
        }
        if let DataType::Boolean = array.data_type() {
            let values = moved.bitmaps.next().expect("every bitmap that was found was moved");
            return Ok(Arc::new(BooleanArray::new(values, nulls(array, &mut moved.bitmaps))));
        }
        if !has_kernel(array.data_type()) {
            return self.select(array);
        }
        let nulls = nulls(array, &mut moved.bitmaps);
        let (order, memory) = (&mut self.order, self.memory);
        let array: &dyn Array = array;
        Ok(downcast_primitive_array! {
            array => Arc::new(primitive(array, &mut moved.numbers, nulls)),
            DataType::Utf8 => {
                Arc::new(byte_array::<Utf8Type>(order, memory, array.as_bytes(), nulls))
            }
            DataType::LargeUtf8 => {
                Arc::new(byte_array::<LargeUtf8Type>(order, memory, array.as_bytes(), nulls))
            }
            DataType::Binary => {
                Arc::new(byte_array::<BinaryType>(order, memory, array.as_bytes(), nulls))
            }
            DataType::LargeBinary => {
                Arc::new(byte_array::<LargeBinaryType>(order, memory, array.as_bytes(), nulls))
            }
            DataType::Utf8View => {
                Arc::new(byte_views::<StringViewType>(order, memory, array.as_byte_view(), nulls))
            }
            DataType::BinaryView => {
                Arc::new(byte_views::<BinaryViewType>(order, memory, array.as_byte_view(), nulls))
            }
            DataType::FixedSizeBinary(width) => {
                let width = *width;
                let values = self.fixed(array.as_fixed_size_binary().value_data(), width as usize);
                let len = self.order.rows();
                Arc::new(FixedSizeBinaryArray::try_new_with_len(width, values, nulls, len)?)
            }
            DataType::Dictionary(_, _) => downcast_dictionary_array! {
                array => Arc::new(dictionary(order, memory, array, nulls)),
                _other => array.slice(0, array.len()),
            },
            DataType::Struct(fields) => {
                let columns = array.as_struct().columns().iter();
                let columns = columns.map(|column| self.array(column, moved));
                let columns = columns.collect::<Result<Vec<_>>>()?;
                let len = self.order.rows();
                Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, len)?)
            }
            _other => array.slice(0, array.len()),
        })
    }

    fn fixed(&mut self, source: &[u8], width: usize) -> Buffer {
        let len = self.order.rows() * width;
        let mut out = self.memory.take(len + PAD);
        self.order.fixed(width, source, out.as_mut());
        out.freeze(len)
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

/// The values of a column of numbers.
struct Numbers<'a> {
    width: usize,
    values: &'a [u8],
}

/// What is in order already, to be taken by the arrays that it is of.
struct Moved {
    bitmaps: IntoIter<BooleanBuffer>,
    numbers: IntoIter<Option<Buffer>>,
}

fn has_kernel(data_type: &DataType) -> bool {
    use DataType as T;
    match data_type {
        T::Boolean | T::FixedSizeBinary(_) | T::Dictionary(_, _) | T::Struct(_) => true,
        T::Utf8 | T::LargeUtf8 | T::Utf8View => true,
        T::Binary | T::LargeBinary | T::BinaryView => true,
        other => other.is_primitive(),
    }
}

/// True if it can be seen at once that all values are the same: none, nulls, one run.
fn is_same_in_any_order(array: &ArrayRef) -> bool {
    fn is_run<R: RunEndIndexType>(array: &RunArray<R>) -> bool {
        let ends = array.run_ends();
        array.is_empty() || ends.get_start_physical_index() == ends.get_end_physical_index()
    }
    match array.data_type() {
        DataType::Null => true,
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => is_run(array.as_run::<Int16Type>()),
            DataType::Int32 => is_run(array.as_run::<Int32Type>()),
            _ => is_run(array.as_run::<Int64Type>()),
        },
        _ => array.is_empty() || array.null_count() == array.len(),
    }
}

/// The bitmaps of `array` that have to be moved.
fn find_bitmaps<'a>(array: &'a ArrayRef, bitmaps: &mut Vec<&'a BooleanBuffer>) {
    if is_same_in_any_order(array) || !has_kernel(array.data_type()) {
        return;
    }
    if let Some(array) = array.as_boolean_opt() {
        bitmaps.push(array.values());
    }
    bitmaps.extend(array.nulls().filter(|nulls| nulls.null_count() > 0).map(NullBuffer::inner));
    if let Some(array) = array.as_struct_opt() {
        array.columns().iter().for_each(|column| find_bitmaps(column, bitmaps));
    }
}

/// The numbers in `array` that have to be moved.
fn find_numbers<'a>(array: &'a ArrayRef, numbers: &mut Vec<Numbers<'a>>) {
    fn of<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> Numbers<'_> {
        Numbers { width: size_of::<T::Native>(), values: array.values().inner() }
    }
    if is_same_in_any_order(array) {
        return;
    }
    let array: &dyn Array = array;
    downcast_primitive_array! {
        array => numbers.push(of(array)),
        DataType::Struct(_) => {
            array.as_struct().columns().iter().for_each(|column| find_numbers(column, numbers));
        }
        _other => {}
    }
}

/// `array` in order, of the next of `numbers`.
fn primitive<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    numbers: &mut IntoIter<Option<Buffer>>,
    nulls: Option<NullBuffer>,
) -> PrimitiveArray<T> {
    let values = numbers.next().flatten().expect("all numbers that were found were moved");
    let moved = PrimitiveArray::new(ScalarBuffer::from(values), nulls);
    moved.with_data_type(array.data_type().clone())
}

/// The nulls of `array` in order, if it has any.
fn nulls(array: &ArrayRef, bitmaps: &mut IntoIter<BooleanBuffer>) -> Option<NullBuffer> {
    let moved = (array.null_count() > 0).then(|| bitmaps.next()).flatten();
    moved.map(NullBuffer::new)
}

/// What there is to move in `batch`.
pub(super) fn load(batch: &RecordBatch) -> Load {
    match batch.columns() {
        [column] if column.null_count() == 0 => match column.data_type() {
            DataType::Boolean => Load::Bits,
            DataType::Utf8View | DataType::BinaryView => Load::Wide,
            other => match other.primitive_width() {
                Some(width @ ..=8) => Load::Fixed(width),
                Some(_) => Load::Wide,
                None => Load::Many,
            },
        },
        columns if columns.iter().any(is_wide) => Load::ManyTargeted,
        columns if columns.iter().any(|column| needs_places(column.data_type())) => Load::ManyTexts,
        columns if columns.iter().filter(|column| is_of_four(column)).nth(1).is_some() => {
            Load::ManyTargeted
        }
        _ => Load::Many,
    }
}

/// Where what there is of `pieces` is written to.
fn targets<T: ArrowNativeType, const N: usize>(pieces: &mut [Option<Piece>; N]) -> [&mut [T]; N] {
    pieces.each_mut().map(|piece| piece.as_mut().map_or(&mut [][..], Piece::as_mut))
}

/// True for values of four bytes, of which several columns are moved at once.
fn is_of_four(column: &ArrayRef) -> bool {
    column.data_type().primitive_width() == Some(4)
}

/// True for what is not of fixed width.
fn needs_places(data_type: &DataType) -> bool {
    use DataType as T;
    match data_type {
        T::Utf8 | T::LargeUtf8 | T::Binary | T::LargeBinary => true,
        T::Struct(fields) => fields.iter().any(|field| needs_places(field.data_type())),
        other => !has_kernel(other),
    }
}

/// True for values of eight bytes or more.
fn is_wide(column: &ArrayRef) -> bool {
    match column.data_type() {
        DataType::Utf8View | DataType::BinaryView => true,
        DataType::FixedSizeBinary(width) => *width >= 8,
        DataType::Struct(_) => column.as_struct().columns().iter().any(is_wide),
        other => other.primitive_width().is_some_and(|width| width >= 8),
    }
}
