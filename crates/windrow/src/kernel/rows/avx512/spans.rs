//! Strings of arrays with offsets into rows, 32 or 64 bytes at a time.

use arrow_array::OffsetSizeTrait;

use super::super::spans::{BLOCK, Spans};
use super::super::text::Form;
use super::exact::Coder;
use super::text::{SHORT, STEP};

/// As `put_spans` of the module.
///
/// # Safety
/// The CPU has AVX-512 F, BW and VL, and BMI2; there are as many cursors as strings.
///
/// # Panics
/// As that.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
pub(in crate::kernel::rows) unsafe fn put_spans<O: OffsetSizeTrait>(
    spans: Spans<'_, O>,
    form: Form,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    let (first, last) = (spans.offsets()[0].as_usize(), spans.offsets()[spans.len()].as_usize());
    let is_short = last.saturating_sub(first) <= SHORT * cursors.len();
    // SAFETY: as this function's.
    unsafe {
        match (is_short, spans.valid().is_some()) {
            (true, false) => put::<O, { STEP / 2 }, false>(spans, form, cursors, out),
            (true, true) => put::<O, { STEP / 2 }, true>(spans, form, cursors, out),
            (false, false) => put::<O, STEP, false>(spans, form, cursors, out),
            (false, true) => put::<O, STEP, true>(spans, form, cursors, out),
        }
    }
}

/// # Safety
/// As [`put_spans`]; `N` is a step or half of it, and `NULLS` if some strings may be null.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
unsafe fn put<O: OffsetSizeTrait, const N: usize, const NULLS: bool>(
    spans: Spans<'_, O>,
    form: Form,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    let coder = Coder::new(form);
    let source = spans.source();
    for (block, cursors) in cursors.chunks_mut(BLOCK).enumerate() {
        let first = block * BLOCK;
        let word = spans.word(first);
        let (starts, ends) = (&spans.offsets()[first..], &spans.offsets()[first + 1..]);
        // No way out in the middle: several at a time. Lengths have no highest bit, nor have places.
        let (mut wrong, mut furthest, mut last_end) = (starts[0].as_usize(), 0, 0);
        for (at, ((start, end), cursor)) in starts.iter().zip(ends).zip(&mut *cursors).enumerate() {
            let len = end.as_usize().wrapping_sub(start.as_usize());
            let behind = cursor.wrapping_add(len.wrapping_add(1) & keep::<NULLS>(word, at));
            wrong |= end.as_usize() | len | *cursor | behind;
            (furthest, last_end) = (furthest.max(behind), end.as_usize());
            *cursor = behind;
        }
        let is_within = wrong.cast_signed() >= 0 && last_end <= source.len();
        assert!(is_within && furthest <= out.len(), "strings and codes lie within their bytes");
        for (at, ((start, end), &behind)) in starts.iter().zip(ends).zip(&*cursors).enumerate() {
            let keep = keep::<NULLS>(word, at);
            let len = (end.as_usize() - start.as_usize()) & keep;
            let to = behind - ((len + 1) & keep);
            // SAFETY: a string, which was found to lie within its source, and its code within `out`.
            unsafe {
                let from = source.as_ptr().add(start.as_usize());
                coder.put::<N, NULLS>(from, len, keep, out.as_mut_ptr().add(to));
            }
        }
    }
}

/// All ones for a string, and zero for a null.
#[inline(always)]
fn keep<const NULLS: bool>(word: u64, at: usize) -> usize {
    if NULLS { 0usize.wrapping_sub((word >> at & 1) as usize) } else { usize::MAX }
}
