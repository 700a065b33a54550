//! Byte strings back, 64 bytes at a time.
//!
//! ```text
//! codes       7  8 02 01  9 02 02 02 03 01      an escape in front of what it changes, and the end
//! escaped     .  .  .  *  .  .  *  .  *  .      of a run of escapes every other one
//! kept        7  8     00 9    01    02         compressed
//! ```

use std::arch::x86_64::*;

use arrow_array::OffsetSizeTrait;

use super::super::binary::ESCAPE;
use super::super::take_text::Texts;

/// Bytes of a step.
const STEP: usize = 64;

/// As `take_binaries` of the module, for whole words of rows that are followed by a step that may be read. Returns how
/// many; nothing if one of them does not end within its row.
///
/// # Safety
/// The CPU has AVX-512 F, BW, VL and VBMI2, BMI1 and BMI2; there are as many ends, of rows and of values, as cursors; no
/// cursor is behind the end of its row, which is within the bytes; `data` has room for what is left of all rows, and a
/// step.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,bmi1,bmi2,popcnt")]
pub(in crate::kernel::rows) unsafe fn take_binaries<O: OffsetSizeTrait>(
    texts: &Texts<'_>,
    cursors: &mut [usize],
    data: &mut Vec<u8>,
    value_ends: &mut [O],
    valid: &mut Vec<u64>,
) -> Option<usize> {
    let Texts { bytes, ends, form, null } = *texts;
    let flip = _mm512_set1_epi8(form.flip.cast_signed());
    let (one, escape) = (_mm512_set1_epi8(1), _mm512_set1_epi8(ESCAPE.cast_signed()));
    let marker = usize::from(null.is_some());
    let (mut len, target) = (data.len(), data.as_mut_ptr());
    let last = bytes.len().checked_sub(STEP + marker);
    let mut done = 0;
    let words = cursors.chunks_mut(64).zip(ends.chunks(64)).zip(value_ends.chunks_mut(64));
    for ((cursors, ends), value_ends) in words {
        if last.is_none_or(|last| cursors.iter().any(|&cursor| cursor > last)) {
            break;
        }
        let mut word = 0u64;
        let rows = cursors.iter_mut().zip(ends).zip(value_ends).enumerate();
        for (row, ((cursor, &end), value_end)) in rows {
            let start = *cursor + marker;
            // SAFETY: the marker lies within the bytes, since this cursor is not beyond the last one.
            let is_valid = null.is_none_or(|null| unsafe { *bytes.get_unchecked(*cursor) } != null);
            let (mut at, mut carry, before) = (0, 0, len);
            loop {
                let own = _bzhi_u64(u64::MAX, (bytes.len() - start - at).min(STEP) as u32);
                // SAFETY: the mask leaves what lies within the bytes.
                let v =
                    unsafe { _mm512_maskz_loadu_epi8(own, bytes.as_ptr().add(start + at).cast()) };
                let code = _mm512_xor_si512(v, flip);
                let escapes = _mm512_cmpeq_epi8_mask(code, escape);
                let (escaped, behind) = escaped(escapes, carry);
                carry = behind;
                // A null has no value, whatever stands there: it ends at once.
                let found = _mm512_mask_cmplt_epu8_mask(own & !escaped, code, escape);
                let found = found | u64::from(!is_valid);
                let kept = found.wrapping_sub(1) & !found & !(escapes & !escaped);
                let value = _mm512_mask_sub_epi8(code, escaped, code, one);
                // SAFETY: what is written begins where the values so far end, which are not longer than what their rows
                // had left in front of this step, which is not beyond the end of the row: there is room for a step.
                unsafe {
                    let value = _mm512_maskz_compress_epi8(kept, value);
                    _mm512_storeu_si512(target.add(len).cast(), value);
                }
                len += kept.count_ones() as usize;
                if found != 0 {
                    at += found.trailing_zeros() as usize;
                    break;
                }
                at += STEP;
                if start + at >= end {
                    return None;
                }
            }
            *cursor = start + at + usize::from(is_valid);
            if *cursor > end {
                return None;
            }
            debug_assert!(len - before <= at, "no value is longer than its code");
            *value_end = O::usize_as(len);
            word |= u64::from(is_valid) << row;
        }
        if null.is_some() {
            valid.push(word);
        }
        done += cursors.len();
    }
    // SAFETY: the values so far were written.
    unsafe { data.set_len(len) };
    Some(done)
}

/// Which bytes are behind one of `escapes` that is not itself behind one, and whether the byte behind the last is: the
/// first is if `carry` is 1. Of bytes in runs every other one: the sum ends runs that begin at an odd place.
///
/// After Langdale and Lemire, Parsing Gigabytes of JSON per Second, 2019.
#[inline(always)]
fn escaped(escapes: u64, carry: u64) -> (u64, u64) {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let escapes = escapes & !carry;
    let follow = escapes << 1 | carry;
    let odd_starts = escapes & !EVEN & !follow;
    let (sum, behind) = odd_starts.overflowing_add(escapes);
    ((EVEN ^ sum << 1) & follow, u64::from(behind))
}
