//! Brings byte strings into a new order: offsets and bytes.
//!
//! If places run from the first to the last, strings of up to [`WIDE`] bytes are copied as one
//! register each, whatever their length: the next string overwrites the surplus. Lengths vary, and
//! a branch on them would be mispredicted every third time. If runs are appended to partitions,
//! copies are exact.

use arrow_array::OffsetSizeTrait;

use super::fixed::Place;
use super::order::{Mover, PAD, Planned};
use crate::copy::copy_short;

/// Bytes of a copy that ignores the length; at most [`PAD`].
const WIDE: usize = 32;

impl Planned<'_> {
    /// Brings strings into order: string `i` is `bytes[offsets[i]..offsets[i + 1]]`. Offsets of the
    /// output start at 0; `out` is [`PAD`] bytes longer than all strings together.
    ///
    /// # Panics
    /// If offsets do not ascend or a slice is too short.
    pub fn text<O: OffsetSizeTrait>(
        &mut self,
        offsets: &[O],
        bytes: &[u8],
        out_offsets: &mut [O],
        out: &mut [u8],
    ) {
        let rows = self.rows();
        assert!(offsets.len() > rows && out_offsets.len() > rows);
        let total = offsets[rows].as_usize() - offsets[0].as_usize();
        assert!(out.len() >= total + PAD);
        out_offsets[0] = O::usize_as(0);
        if self.is_one_run() {
            return self.each_run(&mut Strings { offsets, bytes, out_offsets, out });
        }
        self.each_run(&mut Lengths { offsets, out: &mut out_offsets[1..] });
        let mut end = 0;
        for offset in &mut out_offsets[1..=rows] {
            end += offset.as_usize();
            *offset = O::usize_as(end);
        }
        self.each_run(&mut Appended { offsets, bytes, out_offsets, out });
    }
}

/// Writes strings one after the other.
struct Strings<'a, O> {
    offsets: &'a [O],
    bytes: &'a [u8],
    out_offsets: &'a mut [O],
    out: &'a mut [u8],
}

impl<O: OffsetSizeTrait> Mover for Strings<'_, O> {
    unsafe fn run<P: Place>(&mut self, base: usize, places: &[P], target: usize) {
        debug_assert_eq!((base, target), (0, 0));
        let mut at = 0;
        for (place, out_offset) in places.iter().zip(&mut self.out_offsets[1..]) {
            let (start, end) = bounds(self.offsets, place.row());
            let wide = self.bytes.get(start..).and_then(|bytes| bytes.first_chunk::<WIDE>());
            let len = end.wrapping_sub(start);
            match (wide, self.out[at..].first_chunk_mut::<WIDE>()) {
                (Some(wide), Some(out)) if len <= WIDE => *out = *wide,
                _ => copy_short(&mut self.out[at..], &self.bytes[start..end]),
            }
            at += len;
            *out_offset = O::usize_as(at);
        }
    }
}

struct Lengths<'a, O> {
    offsets: &'a [O],
    out: &'a mut [O],
}

impl<O: OffsetSizeTrait> Mover for Lengths<'_, O> {
    unsafe fn run<P: Place>(&mut self, base: usize, places: &[P], target: usize) {
        for (place, out) in places.iter().zip(&mut self.out[target..]) {
            let (start, end) = bounds(self.offsets, base + place.row());
            *out = O::usize_as(end - start);
        }
    }
}

/// Writes strings to known offsets.
struct Appended<'a, O> {
    offsets: &'a [O],
    bytes: &'a [u8],
    out_offsets: &'a [O],
    out: &'a mut [u8],
}

impl<O: OffsetSizeTrait> Mover for Appended<'_, O> {
    unsafe fn run<P: Place>(&mut self, base: usize, places: &[P], target: usize) {
        let mut at = self.out_offsets[target].as_usize();
        for place in places {
            let (start, end) = bounds(self.offsets, base + place.row());
            copy_short(&mut self.out[at..], &self.bytes[start..end]);
            at += end - start;
        }
    }
}

#[inline(always)]
fn bounds<O: OffsetSizeTrait>(offsets: &[O], row: usize) -> (usize, usize) {
    (offsets[row].as_usize(), offsets[row + 1].as_usize())
}
