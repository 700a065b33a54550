//! Strings of arrays with offsets into rows where nothing behind them may be overwritten: what stands there was written
//! before.
//!
//! ```text
//! source    | s h o r t|n e x t|            offsets  0   5   9
//! code      | u j q t v 01 |                bytes coded as a `Form` says, and the end; of a null nothing
//! row       | a | code | b |                 ^ cursor, which is moved behind the code
//! ```
//!
//! Where strings are and where their codes go is looked at for many of them at once; neither the length of one nor
//! whether it is null is then asked for by a branch. [`super::exact`] is for strings of any other layout.

use arrow_array::OffsetSizeTrait;

use super::super::copy::add_short;
use super::exact::Text;
use super::lane::Bits;
use super::text::Form;

/// Strings that are looked at before they are written.
pub(super) const BLOCK: usize = 64;

/// Strings one behind the other: string `i` is what stands between offset `i` and the next one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spans<'a, O> {
    source: &'a [u8],
    offsets: &'a [O],
    valid: Option<Bits<'a>>,
}

impl<'a, O: OffsetSizeTrait> Spans<'a, O> {
    /// The strings between `offsets`; the first bit of `valid` is that of the first.
    ///
    /// # Panics
    /// If there are no offsets, or fewer bits than strings.
    pub(crate) fn new(source: &'a [u8], offsets: &'a [O], valid: Option<Bits<'a>>) -> Self {
        let strings = offsets.len().checked_sub(1).expect("where the first string begins");
        assert!(valid.is_none_or(|valid| valid.holds(strings)), "a bit for each string");
        Self { source, offsets, valid }
    }

    pub(super) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    pub(crate) fn source(&self) -> &'a [u8] {
        self.source
    }

    /// The bytes of all strings, which were found to be one behind the other within the source.
    ///
    /// # Panics
    /// If they are not.
    #[inline(always)]
    pub(super) fn checked_bytes(&self) -> &'a [u8] {
        // No way out in the middle: several at a time. Neither offsets nor lengths have a highest bit.
        let mut wrong = self.offsets[0].as_usize();
        for (start, end) in self.offsets.iter().zip(&self.offsets[1..]) {
            wrong |= end.as_usize() | end.as_usize().wrapping_sub(start.as_usize());
        }
        assert!(wrong.cast_signed() >= 0, "strings are one behind the other");
        &self.source[self.offsets[0].as_usize()..self.offsets[self.len()].as_usize()]
    }

    pub(crate) fn offsets(&self) -> &'a [O] {
        self.offsets
    }

    pub(crate) fn valid(&self) -> Option<Bits<'a>> {
        self.valid
    }

    /// The bits of up to 64 strings from `row` on; ones where there are none.
    #[inline(always)]
    pub(super) fn word(&self, row: usize) -> u64 {
        self.valid.map_or(u64::MAX, |valid| valid.word(row))
    }

    /// All of them.
    pub(super) fn iter(self) -> impl Iterator<Item = Text<'a>> + Clone {
        let ends = self.offsets.windows(2).zip(0..);
        ends.map(move |(ends, row)| {
            let string = &self.source[ends[0].as_usize()..ends[1].as_usize()];
            (string, self.valid.is_none_or(|valid| valid.get(row)))
        })
    }
}

/// Writes strings, each with its end at its cursor, and moves the cursors behind them; nothing for a null. Bytes
/// behind them are as they were.
///
/// # Panics
/// If there are not as many cursors as strings, or a string lies outside of its source, or its code of `out`.
pub(crate) fn put_spans<O: OffsetSizeTrait>(
    spans: Spans<'_, O>,
    form: Form,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    assert_eq!(spans.len(), cursors.len(), "a cursor for each string");
    #[cfg(target_arch = "x86_64")]
    if super::avx512::detected() {
        // SAFETY: the features were detected; there are as many cursors.
        return unsafe { super::avx512::put_spans(spans, form, cursors, out) };
    }
    put_each(spans, form, cursors, out);
}

/// The portable twin.
fn put_each<O: OffsetSizeTrait>(
    spans: Spans<'_, O>,
    form: Form,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    for ((string, valid), cursor) in spans.iter().zip(cursors) {
        if valid {
            let target = &mut out[*cursor..][..string.len() + 1];
            add_short(&mut target[..string.len()], string, form.shift, form.flip);
            target[string.len()] = form.end ^ form.flip;
            *cursor += target.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::text::tests::{source, starts};
    use super::*;

    proptest! {
        #[test]
        fn both_write_the_same_and_nothing_else(
            source in source(),
            bits in prop::collection::vec(any::<u8>(), 28),
            first in 0usize..8,
            nullable: bool,
            descending: bool,
            shift in prop_oneof![Just(0u8), Just(2)],
        ) {
            let form = Form { shift, end: 1, flip: if descending { 0xff } else { 0 } };
            // What is null there is an empty string here.
            let mut offsets = vec![0i32];
            offsets.extend(source.spans.iter().scan(0, |end, &(start, stop)| {
                *end = if start < stop { stop as i32 } else { *end };
                Some(*end)
            }));
            let valid = nullable.then_some(Bits { bytes: &bits, first });
            let spans = Spans::new(&source.bytes, &offsets, valid);
            let wide: Vec<i64> = offsets.iter().map(|&offset| offset.into()).collect();
            let wide = Spans::new(&source.bytes, &wide, valid);
            let own = |(string, valid): Text<'_>| if valid { string.len() + 1 } else { 0 };
            // A byte between codes is nobody's.
            let (mut cursors, end) = starts(spans.iter().map(|text| own(text) + 1));
            let (mut cursors_wide, mut cursors_twin) = (cursors.clone(), cursors.clone());
            let mut out = vec![0xaa; end];
            let (mut out_wide, mut twin) = (out.clone(), out.clone());
            put_spans(spans, form, &mut cursors, &mut out);
            put_spans(wide, form, &mut cursors_wide, &mut out_wide);
            put_each(spans, form, &mut cursors_twin, &mut twin);
            prop_assert_eq!((&cursors, &out), (&cursors_twin, &twin));
            prop_assert_eq!((&cursors_wide, &out_wide), (&cursors_twin, &twin));
        }

        #[test]
        fn what_has_no_room_is_not_written(
            lens in prop::collection::vec(0i64..100, 1..70),
            at in any::<prop::sample::Index>(),
            off in any::<prop::sample::Index>(),
            to in prop_oneof![Just(usize::MAX), Just(usize::MAX / 2 + 1), 0usize..10_000],
            offset in prop_oneof![Just(-1i64), Just(i64::MAX), Just(i64::MIN), 0i64..10_000],
            source: bool,
        ) {
            let mut offsets = vec![0];
            offsets.extend(lens.iter().scan(0, |end, len| { *end += len; Some(*end) }));
            let bytes = vec![7; *offsets.last().expect("one") as usize];
            let (mut cursors, end) = starts(lens.iter().map(|&len| len as usize + 1));
            if source {
                let at = off.index(offsets.len());
                offsets[at] = offset;
            } else {
                let at = at.index(cursors.len());
                cursors[at] = to;
            }
            let form = Form { shift: 2, end: 1, flip: 0 };
            let mut out = vec![0; end];
            // All that lies within its bytes is written, and nothing that does not: else the run would end here.
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                put_spans(Spans::new(&bytes, &offsets, None), form, &mut cursors, &mut out);
            }));
            let ascend = offsets.is_sorted() && offsets[0] >= 0 && offsets[offsets.len() - 1] <= bytes.len() as i64;
            prop_assert!(done.is_err() || ascend);
        }
    }
}
