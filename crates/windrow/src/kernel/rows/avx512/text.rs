//! Text into rows, 64 bytes at a time.

use std::arch::x86_64::*;

use super::super::lane::Span;
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
/// Benefit: 10 % of encoding texts of 64 to 128 bytes; little for short ones.
///
/// # Safety
/// The CPU has AVX-512 F, BW and VL, and BMI2.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
pub(in crate::kernel::rows) unsafe fn put_texts(
    source: &[u8],
    spans: impl ExactSizeIterator<Item = Span> + Clone,
    form: Form,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    let bytes: usize = spans.clone().map(|(start, end)| end - start).sum();
    // SAFETY: as this function's.
    unsafe {
        match bytes <= SHORT * spans.len() {
            true => put_texts_of::<{ STEP / 2 }>(source, spans, form, cursors, out),
            false => put_texts_of::<STEP>(source, spans, form, cursors, out),
        }
    }
}

/// # Safety
/// As [`put_texts`]; `N` is a step or half of it.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
unsafe fn put_texts_of<const N: usize>(
    source: &[u8],
    spans: impl Iterator<Item = Span>,
    form: Form,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    let (add, flip) = (_mm512_set1_epi8(form.shift as i8), _mm512_set1_epi8(form.flip as i8));
    let end_byte = form.end ^ form.flip;
    for ((start, end), cursor) in spans.zip(cursors) {
        assert!(start <= end && end <= source.len(), "a text lies within its bytes");
        let (len, to) = (end - start, *cursor);
        *cursor = to + len + 1;
        assert!(to + len < out.len(), "a code lies within its bytes");
        // SAFETY: `source` reaches to `start`, and `out` to `to`.
        let (from, target) = unsafe { (source.as_ptr().add(start), out.as_mut_ptr().add(to)) };
        // Whole steps, if what is behind may be read and overwritten.
        let is_free = start + len + N <= source.len() && to + len + N <= out.len();
        let mut at = 0;
        while at < len {
            // SAFETY: a whole step lies within both, or the mask leaves what does.
            unsafe {
                let (from, target) = (from.add(at), target.add(at));
                if !is_free {
                    let own = _bzhi_u64(u64::MAX, (len - at).min(N) as u32);
                    let sum = _mm512_add_epi8(_mm512_maskz_loadu_epi8(own, from.cast()), add);
                    _mm512_mask_storeu_epi8(target.cast(), own, _mm512_xor_si512(sum, flip));
                } else if N == STEP {
                    prefetch_written(target.wrapping_add(AHEAD));
                    let sum = _mm512_add_epi8(_mm512_loadu_si512(from.cast()), add);
                    _mm512_storeu_si512(target.cast(), _mm512_xor_si512(sum, flip));
                } else {
                    let (add, flip) = (_mm512_castsi512_si256(add), _mm512_castsi512_si256(flip));
                    let sum = _mm256_add_epi8(_mm256_loadu_si256(from.cast()), add);
                    _mm256_storeu_si256(target.cast(), _mm256_xor_si256(sum, flip));
                }
            }
            at += N;
        }
        // SAFETY: the byte behind the text lies within `out`, as was checked.
        unsafe { target.add(len).write(end_byte) };
    }
}
