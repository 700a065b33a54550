//! Byte strings of Arrow's views, found without a branch: which of them are short is not to be predicted.
//!
//! ```text
//! view   | length | up to 12 bytes, the string itself |
//! view   | length | its first 4 | buffer | offset     |     of a longer one
//! ```

use std::hint::select_unpredictable;
use std::sync::Arc;

use arrow_array::GenericByteViewArray;
use arrow_array::types::ByteViewType;
use arrow_buffer::{Buffer, ScalarBuffer};

/// Bytes of a string that its view holds.
const INLINE: usize = 12;

/// Bytes of a view in front of the string that it holds.
const PREFIX: usize = 4;

/// The strings of an array.
///
/// Invariant: those that their view does not hold lie within a buffer, of which there is at least one.
pub(crate) struct Viewed {
    views: ScalarBuffer<u128>,
    buffers: Arc<[Buffer]>,
}

impl Viewed {
    /// The strings of `array`, those under nulls too.
    pub(crate) fn of<T: ByteViewType + ?Sized>(array: &GenericByteViewArray<T>) -> Self {
        let buffers = match array.data_buffers() {
            [] => [Buffer::default()].into(),
            buffers => buffers.into(),
        };
        Self { views: array.views().clone(), buffers }
    }

    pub(crate) fn len(&self) -> usize {
        self.views.len()
    }

    /// The string at `row`.
    #[inline(always)]
    pub(crate) fn get(&self, row: usize) -> &[u8] {
        let (beyond, len) = self.get_beyond(row);
        &beyond[..len]
    }

    /// The string at `row` and what may be read behind it; and how long it is.
    ///
    /// Benefit: two thirds of the time of Arrow's `value`, for strings of 1 to 31 bytes.
    #[inline(always)]
    pub(crate) fn get_beyond(&self, row: usize) -> (&[u8], usize) {
        let view = &self.views[row];
        let len = *view as u32 as usize;
        let is_long = len > INLINE;
        let field = |bits: u32| select_unpredictable(is_long, (*view >> bits) as u32 as usize, 0);
        let (buffer, offset) = (field(64), field(96));
        let own = std::ptr::from_ref(view).cast::<u8>().wrapping_add(PREFIX);
        let behind_own = (self.views.len() - row) * size_of::<u128>() - PREFIX;
        // SAFETY: the view of a long string tells a buffer that there is, and where in it the string lies: an array
        // is made of such views only. Of a short one the first buffer is looked up, and not used; it lies in its view,
        // behind the length, and other views behind that.
        unsafe {
            let buffer = self.buffers.get_unchecked(buffer);
            let start = select_unpredictable(is_long, buffer.as_ptr().wrapping_add(offset), own);
            let left = select_unpredictable(is_long, buffer.len().wrapping_sub(offset), behind_own);
            (std::slice::from_raw_parts(start, left), len)
        }
    }

    /// Bytes of the strings from the first to the last of `rows`.
    #[inline(always)]
    pub(crate) fn lens(
        &self,
        rows: std::ops::Range<usize>,
    ) -> impl ExactSizeIterator<Item = usize> + Clone {
        self.views[rows].iter().map(|view| *view as u32 as usize)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Array, BinaryViewArray, StringViewArray};

    use super::*;

    #[test]
    fn views_are_what_their_array_says() {
        let text = |len: usize| (0..len).map(move |at| (b'a' + (len + at) as u8 % 26) as char);
        let texts = (0..60).map(|len| (len % 7 > 0).then(|| text(len).collect::<String>()));
        let all: StringViewArray = texts.collect();
        let short = StringViewArray::from_iter_values(["", "a", "twelve bytes"]);
        let gone = StringViewArray::from_iter_values([text(40).collect::<String>()]).slice(1, 0);
        for array in [all.slice(3, 50), all, short, gone] {
            let views = Viewed::of(&array);
            assert_eq!(views.len(), array.len());
            assert_eq!(views.lens(0..array.len()).len(), array.len());
            for (row, len) in views.lens(0..array.len()).enumerate() {
                assert_eq!(
                    (views.get(row), len),
                    (array.value(row).as_bytes(), array.value(row).len())
                );
            }
        }
        let bytes = BinaryViewArray::from_iter_values([vec![7; 13], vec![], vec![9; 500]]);
        let views = Viewed::of(&bytes);
        (0..3).for_each(|row| assert_eq!(views.get(row), bytes.value(row)));
    }
}
