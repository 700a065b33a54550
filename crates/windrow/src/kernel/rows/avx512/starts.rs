//! Texts into rows that start anywhere, 64 bytes at a time.
//!
//! A loop of its own: one that is shared with `text` takes a third longer there for texts of 4 to 12 bytes.

use std::arch::x86_64::*;

use arrow_array::OffsetSizeTrait;

use super::super::starts::Starts;
use super::super::text::Form;
use super::text::{SHORT, STEP};

/// As `put_texts_at` of the module.
///
/// # Safety
/// The CPU has AVX-512 F, BW and VL, and BMI2.
///
/// # Panics
/// As that.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
pub(in crate::kernel::rows) unsafe fn put_texts_at<O: OffsetSizeTrait>(
    source: &[u8],
    offsets: &[O],
    form: Form,
    places: Starts<'_>,
    is_free: bool,
    out: &mut [u8],
) {
    let [first, rest @ ..] = offsets else { return };
    let bytes = rest.last().map_or(0, |end| end.as_usize().wrapping_sub(first.as_usize()));
    // SAFETY: as this function's.
    unsafe {
        match bytes <= SHORT * rest.len() {
            true => put::<O, { STEP / 2 }>(source, offsets, form, places, is_free, out),
            false => put::<O, STEP>(source, offsets, form, places, is_free, out),
        }
    }
}

/// # Safety
/// As [`put_texts_at`]; `N` is a step or half of it.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
unsafe fn put<O: OffsetSizeTrait, const N: usize>(
    source: &[u8],
    offsets: &[O],
    form: Form,
    places: Starts<'_>,
    is_free: bool,
    out: &mut [u8],
) {
    let (add, flip) = (_mm512_set1_epi8(form.shift as i8), _mm512_set1_epi8(form.flip as i8));
    let end_byte = form.end ^ form.flip;
    // Whole steps are written where what is behind may be overwritten.
    let writable = if is_free { out.len().saturating_sub(N) } else { 0 };
    let (from, target) = (source.as_ptr(), out.as_mut_ptr());
    let mut end = offsets[0].as_usize();
    for (offset, to) in offsets[1..].iter().zip(places.places()) {
        let start = std::mem::replace(&mut end, offset.as_usize());
        let len = end.wrapping_sub(start);
        let behind = to.saturating_add(len);
        let is_within = start <= end && end <= source.len() && behind < out.len();
        assert!(is_within, "a text lies within its bytes");
        let whole = behind <= writable;
        let mut at = 0;
        while at < len {
            let own = _bzhi_u64(u64::MAX, (len - at).min(N) as u32);
            // SAFETY: the mask leaves of a step what lies within `source`, and of one that is not to be written
            // as a whole what lies within `out`.
            unsafe {
                let (from, target) = (from.add(start + at), target.add(to + at));
                if !whole {
                    let v = _mm512_add_epi8(_mm512_maskz_loadu_epi8(own, from.cast()), add);
                    _mm512_mask_storeu_epi8(target.cast(), own, _mm512_xor_si512(v, flip));
                } else if N == STEP {
                    let v = _mm512_add_epi8(_mm512_maskz_loadu_epi8(own, from.cast()), add);
                    _mm512_storeu_si512(target.cast(), _mm512_xor_si512(v, flip));
                } else {
                    let (add, flip) = (_mm512_castsi512_si256(add), _mm512_castsi512_si256(flip));
                    let v = _mm256_maskz_loadu_epi8(own as __mmask32, from.cast());
                    let v = _mm256_xor_si256(_mm256_add_epi8(v, add), flip);
                    _mm256_storeu_si256(target.cast(), v);
                }
            }
            at += N;
        }
        // SAFETY: the byte behind the text lies within `out`, as was checked.
        unsafe { target.add(behind).write(end_byte) };
    }
}
