//! Texts out of rows, 32 or 64 bytes at a time.

use std::arch::x86_64::*;

use arrow_array::OffsetSizeTrait;

use super::super::take_text::{Taken, Texts};
use super::super::text::Form;
use super::text::{AHEAD, STEP};
use crate::kernel::prefetch::prefetch_written;

/// As `take_texts` of the module, `N` bytes at a time, for whole words of rows that are followed by a step that may be
/// read; nothing if one of them does not end within its row.
///
/// Benefit: its forerunner, which was told the ends, was 1.5x the portable twin for texts of up to 31 bytes; half steps
/// are worth a tenth for short ones. To see on the way that all is ASCII spares those of 64 to 128 bytes a fifth.
///
/// # Safety
/// The CPU has AVX-512 F, BW and VL, BMI1 and BMI2; `N` is a step or half of it; there are as many ends, of rows and of
/// texts, as cursors; no cursor is behind the end of its row, which is within the bytes; `data` has room for what is left
/// of all rows, and a step.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2")]
pub(in crate::kernel::rows) unsafe fn take_texts<O: OffsetSizeTrait, const N: usize>(
    texts: &Texts<'_>,
    cursors: &mut [usize],
    data: &mut Vec<u8>,
    text_ends: &mut [O],
    valid: &mut Vec<u64>,
) -> Option<Taken> {
    // SAFETY: as this function's.
    unsafe {
        match texts.null {
            Some(null) => take_texts_of::<O, N, true>(texts, null, cursors, data, text_ends, valid),
            None => take_texts_of::<O, N, false>(texts, 0, cursors, data, text_ends, valid),
        }
    }
}

/// # Safety
/// As [`take_texts`]; `MARKED` if a byte in front says whether there is a text.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2")]
unsafe fn take_texts_of<O: OffsetSizeTrait, const N: usize, const MARKED: bool>(
    texts: &Texts<'_>,
    null: u8,
    cursors: &mut [usize],
    data: &mut Vec<u8>,
    text_ends: &mut [O],
    valid: &mut Vec<u64>,
) -> Option<Taken> {
    let Texts { bytes, ends, form, .. } = *texts;
    let with = Back::of(form);
    let marker = usize::from(MARKED);
    let whole = u64::MAX >> (64 - N);
    let (mut len, target) = (data.len(), data.as_mut_ptr());
    let mut most = _mm512_setzero_si512();
    let last = bytes.len().checked_sub(N + marker);
    let mut done = 0;
    let words = cursors.chunks_mut(64).zip(ends.chunks(64)).zip(text_ends.chunks_mut(64));
    for ((cursors, ends), text_ends) in words {
        if last.is_none_or(|last| cursors.iter().any(|&cursor| cursor > last)) {
            break;
        }
        let mut word = 0u64;
        let rows = cursors.iter_mut().zip(ends).zip(text_ends).enumerate();
        for (row, ((cursor, &end), text_end)) in rows {
            let start = *cursor + marker;
            // SAFETY: a marker and a step behind it lie within the bytes, since this cursor is not beyond the last one.
            let is_valid = !MARKED || unsafe { *bytes.get_unchecked(*cursor) } != null;
            // SAFETY: as above; the step that is written begins where the texts so far end, which are as long as what
            // their rows had left at the most: there is room for a step more.
            let mut found = unsafe {
                with.step::<N>(
                    bytes.as_ptr().add(start),
                    whole,
                    target.add(len),
                    &mut most,
                    !is_valid,
                )
            };
            let mut at = 0;
            while found == 0 {
                at += N;
                if start + at >= end {
                    return None;
                }
                let own = _bzhi_u64(whole, (bytes.len() - start - at).min(N) as u32);
                // SAFETY: the mask leaves what lies within the bytes; the step that is written begins in front of the
                // end of the row, so that there is room for it.
                found = unsafe {
                    prefetch_written(target.wrapping_add(len + at + AHEAD));
                    let from = bytes.as_ptr().add(start + at);
                    with.step::<N>(from, own, target.add(len + at), &mut most, false)
                };
            }
            let text = at + found.trailing_zeros() as usize;
            *cursor = start + text + usize::from(is_valid);
            if *cursor > end {
                return None;
            }
            len += text;
            *text_end = O::usize_as(len);
            word |= u64::from(is_valid) << row;
        }
        if MARKED {
            valid.push(word);
        }
        done += cursors.len();
    }
    // SAFETY: the texts so far were written.
    unsafe { data.set_len(len) };
    let greatest = _mm512_set1_epi8(0x7fu8.wrapping_add(form.shift).cast_signed());
    let ascii = _mm512_cmpgt_epu8_mask(most, greatest) == 0;
    Some(Taken { texts: done, ascii })
}

/// What makes texts of their codes.
struct Back {
    flip: __m512i,
    add: __m512i,
}

impl Back {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn of(form: Form) -> Self {
        Self {
            flip: _mm512_set1_epi8(form.flip.cast_signed()),
            add: _mm512_set1_epi8(form.back().cast_signed()),
        }
    }

    /// Writes `N` bytes at `to` of the codes at `from` that are `own`, all of them in a whole step. Returns which of
    /// these codes end a text, or that the first does if the text `is_null`; `most` is the greatest of those in front,
    /// byte by byte.
    ///
    /// # Safety
    /// As [`take_texts`]; `own` are bytes that may be read at `from`, and `N` may be written at `to`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1")]
    unsafe fn step<const N: usize>(
        &self,
        from: *const u8,
        own: u64,
        to: *mut u8,
        most: &mut __m512i,
        is_null: bool,
    ) -> u64 {
        let (flip, add, two) = (self.flip, self.add, _mm512_set1_epi8(2));
        // SAFETY: as this function's.
        unsafe {
            if N == STEP {
                let v = _mm512_maskz_loadu_epi8(own, from.cast());
                _mm512_storeu_si512(to.cast(), _mm512_xor_si512(_mm512_add_epi8(v, add), flip));
                let code = _mm512_xor_si512(v, flip);
                let found = _mm512_mask_cmplt_epu8_mask(own, code, two) | u64::from(is_null);
                *most = _mm512_mask_max_epu8(*most, in_front(found) & own, *most, code);
                return found;
            }
            let (flip, add) = (_mm512_castsi512_si256(flip), _mm512_castsi512_si256(add));
            let v = _mm256_maskz_loadu_epi8(own as u32, from.cast());
            _mm256_storeu_si256(to.cast(), _mm256_xor_si256(_mm256_add_epi8(v, add), flip));
            let code = _mm256_xor_si256(v, flip);
            let two = _mm512_castsi512_si256(two);
            let found = _mm256_mask_cmplt_epu8_mask(own as u32, code, two);
            let found = u64::from(found) | u64::from(is_null);
            let code = _mm512_castsi256_si512(code);
            *most = _mm512_mask_max_epu8(*most, in_front(found) & own, *most, code);
            found
        }
    }
}

/// The bytes in front of the first of `found`; all of them if there is none.
#[inline(always)]
fn in_front(found: u64) -> u64 {
    found.wrapping_sub(1) & !found
}
