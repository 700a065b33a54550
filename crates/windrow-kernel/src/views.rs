//! View arrays made of strings that kernels just read.
//!
//! ```text
//! view     | 5  | h e l l o . . . . . . . |           up to 12 bytes: the string, then zeros
//!          | 40 | t h e _ | buffer | offset |         longer: its first four bytes, its position
//! data     | t h e _ o t h e r s . . . | . . .        the longer strings, one after another, in
//!                                                     buffers that an offset of 31 bits reaches
//! ```
//!
//! No buffer holds inline strings, and each text is checked when it is added: making the array
//! copies and checks nothing.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryViewArray, StringViewArray};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::ArrowError;

use crate::values::Values;

/// Longest string, in bytes, that a view holds.
const HELD: usize = 12;
/// Bytes of a string that making its view reads.
const FIRST: usize = 16;
/// Most bytes of a buffer.
const MOST: usize = i32::MAX as usize;

/// Masks of a view by the length of its string: the string's first four bytes, its next eight, and
/// the place.
const OWN: [[u64; 4]; HELD + 2] = {
    let mut own = [[0; 4]; HELD + 2];
    let mut len = 1;
    while len <= HELD {
        let bits = u128::MAX >> (128 - 8 * len);
        own[len] = [(bits as u32) as u64, (bits >> 32) as u64, 0, 0];
        len += 1;
    }
    own[HELD + 1] = [u32::MAX as u64, 0, u64::MAX, 0];
    own
};

/// A builder of a view array.
///
/// Invariant: each view is valid in Arrow's format and refers to bytes within itself or within a
/// buffer. The buffer of `data` follows those in `full`. Texts are UTF-8.
#[derive(Debug)]
pub struct Views {
    views: Values<u128>,
    data: Vec<u8>,
    full: Vec<Buffer>,
    is_text: bool,
    /// Most bytes of a buffer.
    most: usize,
}

impl Views {
    /// Creates a builder of texts or of byte strings.
    pub fn new(is_text: bool) -> Self {
        let views = Values::with_capacity(0);
        Self { views, data: Vec::new(), full: Vec::new(), is_text, most: MOST }
    }

    /// Creates a builder as [`Views::new`] does, with buffers of at most `most` bytes.
    #[cfg(test)]
    pub(super) fn in_buffers_of(most: usize, is_text: bool) -> Self {
        Self { most, ..Self::new(is_text) }
    }

    /// Reserves capacity for `rows` strings of `bytes` in all.
    pub fn reserve(&mut self, rows: usize, bytes: usize) {
        self.views.reserve(rows);
        self.data.reserve(bytes.min(self.most));
    }

    /// Shrinks the buffer's capacity to `bytes`, or to the bytes in use if more.
    pub fn shrink_to(&mut self, bytes: usize) {
        self.data.shrink_to(bytes);
    }

    /// Adds a string. Returns false if a text is not UTF-8, or the string is longer than a buffer.
    pub fn push(&mut self, string: &[u8]) -> bool {
        let mut first = [0; FIRST];
        let held = string.len().min(FIRST);
        first[..held].copy_from_slice(&string[..held]);
        self.push_first(string, first)
    }

    /// Adds the first `len` bytes of `beyond`, whose further bytes may be read, as [`Views::push`]
    /// does.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline]
    pub fn push_beyond(&mut self, beyond: &[u8], len: usize) -> bool {
        match beyond.first_chunk() {
            Some(first) => self.push_first(&beyond[..len], *first),
            None => self.push(&beyond[..len]),
        }
    }

    /// Adds a string whose first bytes are `first`, padded with any bytes.
    #[inline(always)]
    fn push_first(&mut self, string: &[u8], first: [u8; FIRST]) -> bool {
        let len = string.len();
        // Most texts are ASCII, and most of them are short.
        let high = u128::from_le_bytes(first) & u128::from_le_bytes([0x80; FIRST]);
        let is_ascii = match len {
            0..FIRST => high << (8 * (FIRST - 1 - len)) << 8 == 0,
            _ => string.is_ascii(),
        };
        if self.is_text && !is_ascii && std::str::from_utf8(string).is_err() || len > self.most {
            return false;
        }
        if len > HELD {
            self.open(len);
        }
        let (view, longer) = view(first, len, self.place(self.data.len()));
        self.views.push(view);
        self.data.extend_from_slice(&string[..longer]);
        true
    }

    /// Adds `count` empty strings.
    pub fn push_empty(&mut self, count: usize) {
        (0..count).for_each(|_| self.views.push(0));
    }

    /// Returns the array of all strings and leaves the builder empty.
    ///
    /// # Errors
    /// If `nulls` is not as long as the array.
    pub fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        let is_text = self.is_text;
        let Self { views, data, full: mut buffers, .. } =
            std::mem::replace(self, Self { most: self.most, ..Self::new(is_text) });
        if !data.is_empty() {
            buffers.push(buffer(data));
        }
        let views = ScalarBuffer::from(Buffer::from(views));
        if nulls.as_ref().is_some_and(|nulls| nulls.len() != views.len()) {
            return Ok(Arc::new(BinaryViewArray::try_new(views, buffers, nulls)?));
        }
        // SAFETY: the views refer to bytes within themselves or within the buffers, and are UTF-8
        // if `is_text`. `nulls` has one bit for each view, or is `None`.
        Ok(unsafe {
            match is_text {
                true => Arc::new(StringViewArray::new_unchecked(views, buffers, nulls)),
                false => Arc::new(BinaryViewArray::new_unchecked(views, buffers, nulls)),
            }
        })
    }

    /// Returns where the views of `rows` strings go, and the buffer, with capacity for `bytes`
    /// more. Returns `None` if no buffer holds as many bytes.
    pub(super) fn room(&mut self, rows: usize, bytes: usize) -> Option<(Room, &mut Vec<u8>)> {
        if bytes > self.most {
            return None;
        }
        self.open(bytes);
        self.data.reserve(bytes);
        let (views, buffer) = (self.views.room(rows), self.place(0));
        Some((Room { views, buffer, is_text: self.is_text }, &mut self.data))
    }

    /// Adds `rows` views, which the caller wrote, to the length.
    ///
    /// # Safety
    /// The views were written through [`Views::room`], called for at least `rows` rows.
    pub(super) unsafe fn grow(&mut self, rows: usize) {
        // SAFETY: the caller wrote `rows` views to a reservation of at least as many.
        unsafe { self.views.grow(rows) };
    }

    /// Starts a new buffer if `bytes` more do not fit into this one.
    fn open(&mut self, bytes: usize) {
        if bytes > self.most - self.data.len() && !self.data.is_empty() {
            self.full.push(buffer(std::mem::take(&mut self.data)));
        }
    }

    /// Returns the place of byte `at` of the current buffer, as a view encodes it.
    fn place(&self, at: usize) -> u64 {
        self.full.len() as u64 | (at as u64) << 32
    }
}

/// Reserved space for views.
pub(super) struct Room {
    views: *mut u128,
    /// The place of the buffer's first byte, as a view encodes it.
    buffer: u64,
    is_text: bool,
}

impl Room {
    /// Writes the view of string number `row`, the `len` bytes at `at` of the buffer's bytes
    /// `data`; `ascii` if all of them are known to be ASCII. Returns the number of bytes that the
    /// view does not hold, or `None` if a text is not UTF-8.
    ///
    /// # Safety
    /// `row` is below the reserved number of rows. The `len` bytes at `data.add(at)` are readable,
    /// and so are sixteen bytes there in any case. If `ascii`, the string is ASCII. The buffer is
    /// no longer than Arrow allows.
    #[inline(always)]
    pub(super) unsafe fn put(
        &mut self,
        row: usize,
        data: *const u8,
        at: usize,
        len: usize,
        ascii: bool,
    ) -> Option<usize> {
        // SAFETY: the caller provides a readable string, 16 readable bytes at its start and space
        // for view `row`.
        unsafe {
            let string = data.add(at);
            if self.is_text && !ascii {
                std::str::from_utf8(std::slice::from_raw_parts(string, len)).ok()?;
            }
            let first = string.cast::<[u8; 16]>().read();
            let (view, longer) = view(first, len, self.buffer | (at as u64) << 32);
            self.views.add(row).write(view);
            Some(longer)
        }
    }
}

/// Returns the view of a string of `len` bytes that begins as `first` does and lies at `place` if
/// the view does not hold it; and the number of bytes that the view does not hold, all or none.
///
/// Lengths are unpredictable: with a branch, four columns of texts of 1 to 31 bytes take 335
/// instead of 245 us.
#[inline(always)]
fn view(first: [u8; 16], len: usize, place: u64) -> (u128, usize) {
    let first = u128::from_le_bytes(first);
    let [start, rest, is_longer, _] = OWN[len.min(HELD + 1)];
    let low = (first as u64 & start) << 32 | len as u64;
    let high = (first >> 32) as u64 & rest | place & is_longer;
    (u128::from(low) | u128::from(high) << 64, len & is_longer as usize)
}

/// Makes a buffer of `bytes`, shrunk if less than half of its capacity is in use.
fn buffer(mut bytes: Vec<u8>) -> Buffer {
    if bytes.capacity() / 2 > bytes.len() {
        bytes.shrink_to_fit();
    }
    Buffer::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;

    use super::*;

    #[test]
    fn strings_of_any_length_become_views() {
        let text = "0123456789abcdefghijklmnopqrstuvwxyz";
        let mut views = Views::in_buffers_of(100, true);
        for round in 0..2 {
            for len in 0..text.len() {
                assert!(views.push(&text.as_bytes()[..len]));
            }
            views.push_empty(2);
            let rows = text.len() + 2;
            let nulls = NullBuffer::from_iter((0..rows).map(|row| row != 3));
            let array = views.finish(Some(nulls)).expect("as many nulls");
            array.to_data().validate_full().expect("views of strings");
            let array = array.as_string_view();
            assert_eq!((array.len(), array.is_null(3)), (rows, true), "round {round}");
            for row in 0..rows {
                let expected = text.get(..row).filter(|_| row < text.len()).unwrap_or("");
                assert_eq!(array.value(row), expected);
            }
            // The strings of 13 to 35 bytes.
            assert!(array.data_buffers().len() > 5);
            assert!(array.data_buffers().iter().all(|buffer| (1..=100).contains(&buffer.len())));
        }
        let long = "é".repeat(51);
        assert!(!views.push(long.as_bytes()), "a buffer does not hold it");
        assert!(!views.push(&long.as_bytes()[1..9]) && !views.push(&[b'a', 0xff]), "not UTF-8");
        assert!(views.push(&long.as_bytes()[..20]));
        assert!(views.finish(Some(NullBuffer::new_null(2))).is_err());
        let mut views = Views::new(false);
        assert!(views.push(&[0xff; 12]) && views.push(&[0xfe; 13]));
        let array = views.finish(None).expect("no nulls");
        array.to_data().validate_full().expect("views of strings");
        assert_eq!(array.as_binary_view().value(0), [0xff; 12]);
        assert_eq!(array.as_binary_view().value(1), [0xfe; 13]);
    }
}
