//! Text into rows, 64 bytes at a time.

use std::arch::x86_64::*;

use arrow_array::OffsetSizeTrait;

use super::super::text::Form;
use crate::kernel::prefetch::prefetch_written;

/// Bytes of a step.
pub(super) const STEP: usize = 64;
/// Bytes of a text, on average, up to which steps of half the length are faster: a store of 64 bytes nearly
/// always crosses from one cache line to the next.
pub(super) const SHORT: usize = 24;

/// Bytes from what is written to the line that is asked for meanwhile: 5 % of either way for texts of 64 to 128
/// bytes, where the second-level cache is nearly full of them.
pub(super) const AHEAD: usize = 512;

/// As `put_texts` of the module.
///
/// Benefit: where texts are and where they go is looked at once for all of them, not one by one: 8,192 texts of 4 to 12
/// bytes are encoded in 20 us in place of 28, of 1 to 31 in 21 of 35, of 64 to 128 in 38 of 44.
///
/// # Safety
/// The CPU has AVX-512 F, BW and VL, and BMI2.
///
/// # Panics
/// As that.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
pub(in crate::kernel::rows) unsafe fn put_texts(
    source: &[u8],
    offsets: &[i32],
    form: Form,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    let [first, ends @ ..] = offsets else { return };
    let (Some(last), starts) = (ends.last(), &offsets[..ends.len()]) else { return };
    assert_eq!(ends.len(), cursors.len(), "a cursor for each text");
    // No way out in the middle: several at a time. Lengths have no highest bit, nor have places.
    let (mut wrong, mut far, mut furthest) = (*first, 0, 0);
    for ((&start, &end), cursor) in starts.iter().zip(ends).zip(&mut *cursors) {
        let len = end.wrapping_sub(start);
        let behind = cursor.wrapping_add(len as usize).wrapping_add(1);
        wrong |= end | len;
        far |= *cursor | behind;
        furthest = furthest.max(behind);
        *cursor = behind;
    }
    let is_within = wrong >= 0 && *last as usize <= source.len();
    assert!(is_within, "texts lie within their bytes");
    assert!(far.cast_signed() >= 0 && furthest <= out.len(), "codes lie within their bytes");
    let place = |behind: usize, len: usize| behind - 1 - len;
    // SAFETY: the features are there; the texts lie within the source, one behind the other, and the code of each ends
    // at its cursor within `out`, none of them behind the furthest.
    unsafe { put_all(source, offsets, form, cursors, place, Some(furthest), out) }
}

/// Writes texts between offsets, each to the `place` that its cursor and its length make. If it is said how far the
/// `furthest` code reaches, up to 63 bytes behind a code may be overwritten, else none are.
///
/// # Safety
/// The CPU has the features of [`put_texts`]. Offsets ascend from 0 or above to a place within `source`; there are as many
/// cursors as texts, and each code lies within `out`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
pub(super) unsafe fn put_all<O: OffsetSizeTrait, C: Copy>(
    source: &[u8],
    offsets: &[O],
    form: Form,
    cursors: &[C],
    place: impl Fn(C, usize) -> usize,
    furthest: Option<usize>,
    out: &mut [u8],
) {
    let bytes = offsets[offsets.len() - 1].as_usize() - offsets[0].as_usize();
    // SAFETY: as this function's.
    unsafe {
        match bytes <= SHORT * cursors.len() {
            true => put::<O, C, { STEP / 2 }>(source, offsets, form, cursors, place, furthest, out),
            false => put::<O, C, STEP>(source, offsets, form, cursors, place, furthest, out),
        }
    }
}

/// # Safety
/// As [`put_all`]; `N` is a step or half of it.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
unsafe fn put<O: OffsetSizeTrait, C: Copy, const N: usize>(
    source: &[u8],
    offsets: &[O],
    form: Form,
    cursors: &[C],
    place: impl Fn(C, usize) -> usize,
    furthest: Option<usize>,
    out: &mut [u8],
) {
    let (add, flip) = (_mm512_set1_epi8(form.shift as i8), _mm512_set1_epi8(form.flip as i8));
    let coded = |v| _mm512_xor_si512(_mm512_add_epi8(v, add), flip);
    let end_byte = form.end ^ form.flip;
    // Whole steps, if what is behind may be read and overwritten.
    let is_free = furthest.is_some_and(|furthest| furthest + N <= out.len());
    let whole = if is_free { source.len().saturating_sub(N) } else { 0 };
    let free = offsets[1..].partition_point(|end| end.as_usize() <= whole);
    let (source, out) = (source.as_ptr(), out.as_mut_ptr());
    let mut end = offsets[0].as_usize();
    let text = |end: &mut usize, offset: O| {
        let start = std::mem::replace(end, offset.as_usize());
        (start, *end - start)
    };
    let ((free, rest), (front, back)) = (offsets[1..].split_at(free), cursors.split_at(free));
    for (&offset, &cursor) in free.iter().zip(front) {
        let (start, len) = text(&mut end, offset);
        // SAFETY: whole steps from within the text on lie within `source`, and those from within its code on within
        // `out`, as does its end.
        unsafe {
            let (from, target) = (source.add(start), out.add(place(cursor, len)));
            let mut at = 0;
            while at < len {
                let (from, target) = (from.add(at), target.add(at));
                if N == STEP {
                    prefetch_written(target.wrapping_add(AHEAD));
                    _mm512_storeu_si512(target.cast(), coded(_mm512_loadu_si512(from.cast())));
                } else {
                    let (add, flip) = (_mm512_castsi512_si256(add), _mm512_castsi512_si256(flip));
                    let sum = _mm256_add_epi8(_mm256_loadu_si256(from.cast()), add);
                    _mm256_storeu_si256(target.cast(), _mm256_xor_si256(sum, flip));
                }
                at += N;
            }
            target.add(len).write(end_byte);
        }
    }
    for (&offset, &cursor) in rest.iter().zip(back) {
        let (start, len) = text(&mut end, offset);
        // SAFETY: the mask leaves what lies within the text and within its code.
        unsafe {
            let (from, target) = (source.add(start), out.add(place(cursor, len)));
            for at in (0..len).step_by(STEP) {
                let own = _bzhi_u64(u64::MAX, (len - at).min(STEP) as u32);
                let v = coded(_mm512_maskz_loadu_epi8(own, from.add(at).cast()));
                _mm512_mask_storeu_epi8(target.add(at).cast(), own, v);
            }
            target.add(len).write(end_byte);
        }
    }
}
