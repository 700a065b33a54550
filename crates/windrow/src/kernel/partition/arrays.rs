//! Arrays whose values cannot have become invalid by being moved, made without checking them again.
//!
//! With `strings` the place of the kernel that knows Arrow's types: to say that strings are still UTF-8 and
//! keys still in range needs `unsafe`, and to be sure of it needs to see where they came from.
//! Checking costs about as much as moving (utf8, 12 bytes on average: 40 % of the split).

use arrow_array::types::{ArrowDictionaryKeyType, ByteArrayType, ByteViewType};
use arrow_array::{Array, DictionaryArray, GenericByteArray, GenericByteViewArray, PrimitiveArray};
use arrow_buffer::{ArrowNativeType, NullBuffer, OffsetBuffer, ScalarBuffer};

use super::order::{PAD, Planned};
use super::slot::Supply;
use super::views::{self, copy_out, outside_bytes};

/// Views that pin more than this many times the bytes they use are copied out.
const PINNED: usize = 2;

/// The strings of `array` in order, with `nulls`.
///
/// # Panics
/// If the array has another number of rows than the order.
pub(crate) fn byte_array<T: ByteArrayType>(
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
    // SAFETY: `text` writes offsets that ascend from 0 to `total`, which is the length of `out`;
    // between two of them lies a value of `array`, whole, and those are valid.
    unsafe {
        let offsets = OffsetBuffer::new_unchecked(ScalarBuffer::from(out_offsets));
        GenericByteArray::new_unchecked(offsets, out, nulls)
    }
}

/// The views of `array` in order, with `nulls`: over the same bytes, or, if these are more than
/// [`PINNED`] times what the views refer to, over a copy of what they do.
///
/// # Panics
/// As [`byte_array`].
pub(crate) fn byte_views<T: ByteViewType>(
    order: &mut Planned<'_>,
    memory: &mut impl Supply,
    array: &GenericByteViewArray<T>,
    nulls: Option<NullBuffer>,
) -> GenericByteViewArray<T> {
    let rows = array.len();
    assert!(rows == order.rows() && nulls.as_ref().is_none_or(|nulls| nulls.len() == rows));
    let mut piece = memory.take(rows * 16 + PAD);
    order.fixed(16, array.views().inner(), piece.as_mut());
    let views = &mut piece.as_mut::<u128>()[..rows];
    let mut buffers = array.data_buffers().to_vec();
    let pinned: usize = buffers.iter().map(|buffer| buffer.len()).sum();
    // Fewer bytes than the views themselves take are not worth the search.
    if pinned > rows * size_of::<u128>() {
        let used = outside_bytes(views);
        if used < pinned / PINNED && i32::try_from(used).is_ok() {
            let mut out = memory.take(used + views::PAD);
            copy_out(views, &buffers, out.as_mut());
            buffers = vec![memory.freeze(out, used)];
        }
    }
    let views = ScalarBuffer::from(memory.freeze(piece, rows * 16));
    // SAFETY: every view is one of `array` over the same buffers, or has been made to point to a copy
    // of the same bytes; or it pointed nowhere, and is an empty string.
    unsafe { GenericByteViewArray::new_unchecked(views, buffers, nulls) }
}

/// The keys of `array` in order, over the same values, with `nulls`.
///
/// # Panics
/// As [`byte_array`].
pub(crate) fn dictionary<K: ArrowDictionaryKeyType>(
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
        // A key under a null may be anything, and only the caller knows where nulls went.
        return DictionaryArray::new(keys, array.values().clone());
    }
    // SAFETY: every key is one of `array`, where none is null, and the values are the same.
    unsafe { DictionaryArray::new_unchecked(keys, array.values().clone()) }
}
