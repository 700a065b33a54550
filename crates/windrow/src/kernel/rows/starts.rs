//! Rows known by where they start, and texts into them from where Arrow has them.
//!
//! ```text
//! starts      s0                                s1                              s2
//! row         | numbers | text         | 01 | numbers | numbers | text    | 01 | numbers |
//!              --ahead-->                   <--back--
//! ```
//!
//! What stands in front of the text is so far ahead of where its row starts, what stands behind it so far
//! back from where the next one does: of one text there is nothing more to know about a row.

use std::ops::Range;

use arrow_array::OffsetSizeTrait;

use super::super::copy::add_short;
#[cfg(target_arch = "x86_64")]
use super::avx512;
use super::lane::Places;
use super::text::{Form, add_over};

/// Bytes that the portable path moves at once.
const STEP: usize = 32;

/// A place in each row: `ahead` of its start, or `back` from it.
///
/// Invariant: starts ascend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Starts<'a> {
    starts: &'a [u32],
    ahead: usize,
    back: usize,
}

impl<'a> Starts<'a> {
    /// The starts of rows.
    ///
    /// # Panics
    /// If they do not ascend.
    pub(crate) fn new(starts: &'a [u32]) -> Self {
        // Without a way out on the way, many at a time are compared.
        let pairs = starts.iter().zip(starts.get(1..).unwrap_or_default());
        assert!(pairs.fold(true, |ascend, (a, b)| ascend & (a <= b)), "starts ascend");
        Self { starts, ahead: 0, back: 0 }
    }

    pub(crate) fn len(self) -> usize {
        self.starts.len()
    }

    /// Those of some of the rows, `back` from each.
    pub(crate) fn part(self, rows: Range<usize>, back: usize) -> Self {
        Self { starts: &self.starts[rows], back: self.back + back, ..self }
    }

    /// Where they are.
    #[inline(always)]
    fn places(self) -> impl Iterator<Item = usize> + 'a {
        let (starts, place) = self.cursors(self.len());
        starts.iter().map(move |&start| place(start))
    }

    /// The starts of the first `count` rows, and the place that each makes; one below zero wraps around.
    #[inline(always)]
    pub(super) fn cursors(self, count: usize) -> (&'a [u32], impl Fn(u32) -> usize + Copy) {
        let Self { starts, ahead, back } = self;
        (&starts[..count], move |start| (start as usize + ahead).wrapping_sub(back))
    }
}

impl Places for Starts<'_> {
    #[inline(always)]
    fn place(self, row: usize) -> usize {
        // Not below zero, as `furthest` makes sure of.
        (self.starts[row] as usize + self.ahead).wrapping_sub(self.back)
    }

    fn furthest(self, rows: usize) -> usize {
        let (first, last) = (self.starts[0] as usize, self.starts[rows - 1] as usize);
        assert!(first + self.ahead >= self.back, "places within the rows");
        last + self.ahead - self.back
    }

    #[inline(always)]
    fn shifted(self, bytes: usize) -> Self {
        Self { ahead: self.ahead + bytes, ..self }
    }

    fn behind(self, rows: usize) -> Self {
        Self { starts: &self.starts[rows..], ..self }
    }

    #[inline(always)]
    fn stride(self) -> Option<usize> {
        None
    }
}

/// Writes texts, each with its end, to their places: text `i` is what stands between `offsets[i]` and the next
/// one in `source`. If it `is_free`, what is behind a text may be overwritten, up to 63 bytes.
///
/// # Panics
/// If there are fewer places than texts, or a text lies outside of `source`, or of `out`.
pub(crate) fn put_texts_at<O: OffsetSizeTrait>(
    source: &[u8],
    offsets: &[O],
    form: Form,
    places: Starts<'_>,
    is_free: bool,
    out: &mut [u8],
) {
    assert!(offsets.len() <= places.len() + 1, "a place for each text");
    #[cfg(target_arch = "x86_64")]
    if avx512::detected() {
        // SAFETY: the features were detected.
        return unsafe { avx512::put_texts_at(source, offsets, form, places, is_free, out) };
    }
    put_each_at(source, offsets, form, places, is_free, out);
}

/// The portable twin.
fn put_each_at<O: OffsetSizeTrait>(
    source: &[u8],
    offsets: &[O],
    form: Form,
    places: Starts<'_>,
    is_free: bool,
    out: &mut [u8],
) {
    for (ends, to) in offsets.windows(2).zip(places.places()) {
        let (start, end) = (ends[0].as_usize(), ends[1].as_usize());
        let len = end.wrapping_sub(start);
        let is_within = start <= end && end <= source.len() && to.saturating_add(len) < out.len();
        assert!(is_within, "a text lies within its bytes");
        if is_free {
            add_over::<STEP>(out, to, source, (start, end), form.shift, form.flip);
        } else {
            add_short(&mut out[to..to + len], &source[start..end], form.shift, form.flip);
        }
        out[to + len] = form.end ^ form.flip;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_written_to_their_places_and_nowhere_else() {
        let source: Vec<u8> = (0..4000u32).map(|at| (at * 7 % 251) as u8).collect();
        for (scale, is_free, back) in [(1, true, 0), (1, false, 3), (9, true, 3), (9, false, 0)] {
            for form in [Form { shift: 2, end: 1, flip: 0 }, Form { shift: 2, end: 1, flip: 0xff }]
            {
                let lens = [0, 3, 16, 31, 0, 7, 15, 32, 1].map(|len| len * scale);
                let (mut offsets, mut starts, mut end) = (vec![5i32], Vec::new(), 20u32);
                for len in lens {
                    offsets.push(offsets.last().copied().unwrap_or(0) + len as i32);
                    starts.push(end);
                    end += len + 1 + 4;
                }
                let places = Starts::new(&starts).part(0..starts.len(), back).shifted(2);
                let room = end as usize + if is_free { 63 } else { 0 };
                let mut expected = vec![0xaa; room];
                for (row, ends) in offsets.windows(2).enumerate() {
                    let text = &source[ends[0] as usize..ends[1] as usize];
                    let to = &mut expected[starts[row] as usize + 2 - back..];
                    to.iter_mut().zip(text).for_each(|(to, byte)| *to = (byte + 2) ^ form.flip);
                    to[text.len()] = form.end ^ form.flip;
                }
                let wide: Vec<i64> = offsets.iter().map(|&end| end.into()).collect();
                let mut outs = vec![vec![0xaa; room]; 3];
                put_texts_at(&source, &offsets, form, places, is_free, &mut outs[0]);
                put_texts_at(&source, &wide, form, places, is_free, &mut outs[1]);
                put_each_at(&source, &offsets, form, places, is_free, &mut outs[2]);
                for out in outs {
                    for (row, ends) in offsets.windows(2).enumerate() {
                        let at = starts[row] as usize + 2 - back;
                        let own = at..at + (ends[1] - ends[0]) as usize + 1;
                        assert_eq!(out[own.clone()], expected[own]);
                    }
                    assert!(is_free || out == expected);
                    assert_eq!(out[..22 - back], expected[..22 - back]);
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "lies within its bytes")]
    fn a_text_that_has_no_room_is_not_written() {
        let places = Starts::new(&[0, 4]);
        put_texts_at(
            &[1; 8],
            &[0i32, 3, 8],
            Form { shift: 2, end: 1, flip: 0 },
            places,
            true,
            &mut [0; 9],
        );
    }
}
