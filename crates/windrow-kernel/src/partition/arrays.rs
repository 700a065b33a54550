//! Makes arrays of moved values that were valid before, without checking them again.
//!
//! Besides `strings` and `views`, the only part of the kernel with Arrow types: skipping the check
//! that strings are UTF-8 and keys in range needs `unsafe`, and a proof by their origin. The check
//! costs about as much as the move (utf8, 12 bytes on average: 40 % of the split).

use arrow_array::types::{ArrowDictionaryKeyType, ByteArrayType, ByteViewType};
use arrow_array::{Array, DictionaryArray, GenericByteArray, GenericByteViewArray, PrimitiveArray};
use arrow_buffer::{ArrowNativeType, NullBuffer, OffsetBuffer, ScalarBuffer};

use super::order::{PAD, Planned};
use super::slot::Supply;
use super::views::{self, copy_out, outside_bytes};

/// Views are copied out if their buffers hold more than this many times the bytes in use.
const PINNED: usize = 2;

/// Returns the strings of `array` in order, with `nulls`.
///
/// # Panics
/// If the array has another number of rows than the order.
pub fn byte_array<T: ByteArrayType>(
    order: &mut Planned<'_>,
    memory: &mut impl Supply,
    array: &GenericByteArray<T>,
    nulls: Option<NullBuffer>,
) -> GenericByteArray<T> {
    let rows = array.len();
    assert!(rows == order.rows() && nulls.as_ref().is_none_or(|nulls| nulls.len() == rows));
    let offsets = array.value_offsets();
    let total = offsets[rows].as_usize() - offsets[0].as_usize();
    let mut out_offsets = memory.take((rows + 1) * size_of::<T::Offset>());
    let mut out = memory.take(total + PAD);
    order.text(offsets, array.value_data(), out_offsets.as_mut(), out.as_mut());
    let out_offsets = memory.freeze(out_offsets, (rows + 1) * size_of::<T::Offset>());
    let out = memory.freeze(out, total);
    // SAFETY: `text` writes offsets that ascend from 0 to `total`, the length of `out`. Between two
    // offsets lies a whole value of `array`, which is valid. `nulls` has a bit for each row, as
    // asserted.
    unsafe {
        let offsets = OffsetBuffer::new_unchecked(ScalarBuffer::from(out_offsets));
        GenericByteArray::new_unchecked(offsets, out, nulls)
    }
}

/// Returns the views of `array` in order, with `nulls`. The views refer to the same buffers, or to
/// a copy of the used bytes if the buffers have more than [`PINNED`] times as many and the views are
/// not `is_pinning`.
///
/// # Panics
/// If the array has another number of rows than the order.
pub fn byte_views<T: ByteViewType>(
    order: &mut Planned<'_>,
    memory: &mut impl Supply,
    array: &GenericByteViewArray<T>,
    nulls: Option<NullBuffer>,
    is_pinning: bool,
) -> GenericByteViewArray<T> {
    let rows = array.len();
    assert!(rows == order.rows() && nulls.as_ref().is_none_or(|nulls| nulls.len() == rows));
    let mut piece = memory.take(rows * 16 + PAD);
    order.fixed(16, array.views().inner(), piece.as_mut());
    let views = &mut piece.as_mut::<u128>()[..rows];
    let mut buffers = array.data_buffers().to_vec();
    let pinned: usize = buffers.iter().map(|buffer| buffer.len()).sum();
    // If the buffers are smaller than the views themselves, a copy is not worth the search.
    if !is_pinning && pinned > rows * size_of::<u128>() {
        let used = outside_bytes(views);
        if used < pinned / PINNED && i32::try_from(used).is_ok() {
            let mut out = memory.take(used + views::PAD);
            copy_out(views, &buffers, out.as_mut());
            buffers = vec![memory.freeze(out, used)];
        }
    }
    let views = ScalarBuffer::from(memory.freeze(piece, rows * 16));
    // SAFETY: every view is a view of `array` over the same buffers, or `copy_out` pointed it to a
    // copy of the same bytes, or made an invalid view an empty string. `nulls` has a bit for each
    // row, as asserted.
    unsafe { GenericByteViewArray::new_unchecked(views, buffers, nulls) }
}

/// Returns the keys of `array` in order, over the same values, with `nulls`.
///
/// # Panics
/// If the array has another number of rows than the order.
pub fn dictionary<K: ArrowDictionaryKeyType>(
    order: &mut Planned<'_>,
    memory: &mut impl Supply,
    array: &DictionaryArray<K>,
    nulls: Option<NullBuffer>,
) -> DictionaryArray<K> {
    let rows = array.len();
    let width = size_of::<K::Native>();
    assert!(rows == order.rows() && nulls.as_ref().is_none_or(|nulls| nulls.len() == rows));
    let mut keys = memory.take(rows * width + PAD);
    order.fixed(width, array.keys().values().inner(), keys.as_mut());
    let keys = ScalarBuffer::from(memory.freeze(keys, rows * width));
    let keys = PrimitiveArray::new(keys, nulls);
    if array.null_count() > 0 {
        // A key at a null row may be out of range, and only the caller knows where the nulls are
        // now.
        return DictionaryArray::new(keys, array.values().clone());
    }
    // SAFETY: every key is a key of `array`, which has no nulls, so all keys are in range of the
    // same values.
    unsafe { DictionaryArray::new_unchecked(keys, array.values().clone()) }
}
