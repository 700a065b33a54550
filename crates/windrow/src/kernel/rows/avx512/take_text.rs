//! Texts out of rows, 64 bytes at a time.

use std::arch::x86_64::*;

use super::super::take_text::{Sink, Taken, Texts};
use super::super::text::Form;
use super::exact::{AHEAD, STEP};
use crate::kernel::prefetch::prefetch_written;

/// As `take_texts` of the module, for whole words of rows that are followed by a step that may be
/// read; nothing if one of them does not end within its row, or the sink does not take it.
///
/// Benefit: its forerunner, which was told the ends, was 1.5x the portable twin for texts of up to 31 bytes. To see on
/// the way that all is ASCII spares those of 64 to 128 bytes a fifth.
///
/// # Safety
/// The CPU has AVX-512 F, BW and VL, BMI1 and BMI2; there are as many ends of rows as
/// cursors, and the sink has as many rows; no cursor is behind the end of its row, which is within the bytes; `data` has
/// room for what is left of all rows, and a step.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2")]
pub(in crate::kernel::rows) unsafe fn take_texts(
    texts: &Texts<'_>,
    cursors: &mut [usize],
    data: &mut Vec<u8>,
    sink: &mut impl Sink,
    valid: &mut Vec<u64>,
) -> Option<Taken> {
    let Texts { bytes, ends, form, null } = *texts;
    let with = Back::of(form);
    let (is_marked, null) = (null.is_some(), null.unwrap_or(0));
    let marker = usize::from(is_marked);
    let (mut len, target) = (data.len(), data.as_mut_ptr());
    let mut all_high = 0;
    let last = bytes.len().checked_sub(STEP + marker);
    let mut done = 0;
    for (cursors, ends) in cursors.chunks_mut(64).zip(ends.chunks(64)) {
        if last.is_none_or(|last| cursors.iter().any(|&cursor| cursor > last)) {
            break;
        }
        let mut word = 0u64;
        for (row, (cursor, &end)) in cursors.iter_mut().zip(ends).enumerate() {
            let start = *cursor + marker;
            // SAFETY: a marker and a step behind it lie within the bytes, since this cursor is not beyond the last one.
            let is_valid = !is_marked || unsafe { *bytes.get_unchecked(*cursor) } != null;
            // SAFETY: as above; the step that is written begins where the texts so far end, which are as long as what
            // their rows had left at the most: there is room for a step more.
            let (mut found, mut high) = unsafe {
                with.step(bytes.as_ptr().add(start), u64::MAX, target.add(len), !is_valid)
            };
            let mut at = 0;
            while found == 0 {
                at += STEP;
                if start + at >= end {
                    return None;
                }
                let own = _bzhi_u64(u64::MAX, (bytes.len() - start - at).min(STEP) as u32);
                // SAFETY: the mask leaves what lies within the bytes; the step that is written begins in front of the
                // end of the row, so that there is room for it.
                let (ends, also_high) = unsafe {
                    prefetch_written(target.wrapping_add(len + at + AHEAD));
                    let from = bytes.as_ptr().add(start + at);
                    with.step(from, own, target.add(len + at), false)
                };
                found = ends;
                high |= also_high;
            }
            let text = at + found.trailing_zeros() as usize;
            *cursor = start + text + usize::from(is_valid);
            if *cursor > end {
                return None;
            }
            all_high |= high;
            // SAFETY: the text was written to where it begins, which is the end of those so far, a step at the least; it
            // is ASCII if no byte is high; the sink has a row for each cursor.
            len += unsafe { sink.put(done + row, target, len, text, high == 0) }?;
            word |= u64::from(is_valid) << row;
        }
        if is_marked {
            valid.push(word);
        }
        done += cursors.len();
    }
    // SAFETY: the texts so far were written, and the sink keeps no more of one than there was.
    unsafe { data.set_len(len) };
    Some(Taken { texts: done, ascii: all_high == 0 })
}

/// What makes texts of their codes.
struct Back {
    flip: __m512i,
    add: __m512i,
    /// The greatest code of an ASCII character.
    ascii: __m512i,
}

impl Back {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn of(form: Form) -> Self {
        Self {
            flip: _mm512_set1_epi8(form.flip.cast_signed()),
            add: _mm512_set1_epi8(form.back().cast_signed()),
            ascii: _mm512_set1_epi8(0x7fu8.wrapping_add(form.shift).cast_signed()),
        }
    }

    /// Writes the codes at `from` that are `own`, all of them in a whole step, to `to`. Returns which of
    /// these codes end a text, or that the first does if the text `is_null`; and which of those in front are not ASCII.
    ///
    /// # Safety
    /// As [`take_texts`]; `own` are bytes that may be read at `from`, and a step may be written at `to`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1")]
    unsafe fn step(&self, from: *const u8, own: u64, to: *mut u8, is_null: bool) -> (u64, u64) {
        // SAFETY: as this function's.
        let code = unsafe {
            let v = _mm512_maskz_loadu_epi8(own, from.cast());
            let text = _mm512_xor_si512(_mm512_add_epi8(v, self.add), self.flip);
            _mm512_storeu_si512(to.cast(), text);
            _mm512_xor_si512(v, self.flip)
        };
        let found = _mm512_mask_cmplt_epu8_mask(own, code, _mm512_set1_epi8(2));
        let high = _mm512_mask_cmpgt_epu8_mask(own, code, self.ascii);
        let found = found | u64::from(is_null);
        (found, in_front(found) & high)
    }
}

/// The bytes in front of the first of `found`; all of them if there is none.
#[inline(always)]
fn in_front(found: u64) -> u64 {
    found.wrapping_sub(1) & !found
}
