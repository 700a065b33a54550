//! Lists of numbers out of rows, 64 bytes at a time.
//!
//! ```text
//! codes     01 01 a a a a 01 01 b b b b 00 ...      heads are where they are if no number is null
//! heads     *  *          *  *          *  *        the first in front of which is none ends the list
//! numbers   a a a a b b b b                         all of a step in one permutation
//! ```

use std::arch::x86_64::*;

use super::super::take_lists::{END, GOES_ON, HEAD, Lists};

/// Bytes of a step.
const STEP: usize = 64;

/// As `take_lists` of the module, to `target`; returns the lists that were read, and the bytes of their numbers.
///
/// # Safety
/// The CPU has AVX-512 F, BW and VBMI, BMI1 and BMI2; a number has 1 to 32 bytes; there are as many ends and counts as
/// cursors; no cursor is behind the end of its row, which is within the bytes; `target` is valid for as many bytes as are
/// left of all rows, and a step.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,bmi1,bmi2")]
pub(in crate::kernel::rows) unsafe fn take_lists(
    lists: &Lists<'_>,
    cursors: &mut [usize],
    target: *mut u8,
    counts: &mut [usize],
) -> (usize, usize) {
    let Lists { bytes, ends, width, flip } = *lists;
    let stride = HEAD + width;
    // Numbers of a step, and where the heads of these and of the next one are, as far as they are in it.
    let most = STEP / stride;
    let (mut more, mut values) = (0u64, 0u64);
    for at in (0..=most).map(|number| number * stride) {
        more |= if at < STEP { 1 << at } else { 0 };
        values |= if at + 1 < STEP { 1 << (at + 1) } else { 0 };
    }
    let mut order = [0u8; STEP];
    for (at, from) in order.iter_mut().enumerate().take(most * width) {
        *from = (at / width * stride + HEAD + width - 1 - at % width) as u8;
    }
    // SAFETY: as many bytes as a register has.
    let order = unsafe { _mm512_loadu_si512(order.as_ptr().cast()) };
    let flip = _mm512_set1_epi8(flip.cast_signed());
    let goes_on = _mm512_set1_epi8(GOES_ON.cast_signed());
    let end_of_list = _mm512_set1_epi8(END.cast_signed());
    // Places of heads are divided by the stride: exact for all in a step.
    let inverse = (1 << 16) / stride + 1;
    let mut len = 0;
    let rows = cursors.iter_mut().zip(ends).zip(counts);
    for (read, ((cursor, &end), count)) in rows.enumerate() {
        let (mut at, mut own) = (*cursor, 0);
        loop {
            let left = _bzhi_u64(u64::MAX, (bytes.len() - at).min(STEP) as u32);
            // SAFETY: the mask leaves what lies within the bytes.
            let v = unsafe { _mm512_maskz_loadu_epi8(left, bytes.as_ptr().add(at).cast()) };
            let v = _mm512_xor_si512(v, flip);
            let heads = _mm512_cmpeq_epi8_mask(v, goes_on);
            // The first head that is none.
            let ended = more & !heads;
            let in_front = ended.wrapping_sub(1) & !ended;
            if values & in_front & !heads != 0 {
                return (read, len);
            }
            let numbers = match ended {
                0 => most,
                _ => (ended.trailing_zeros() as usize * inverse) >> 16,
            };
            // SAFETY: the numbers so far are fewer bytes than their rows had up to here, which is in front of the end of
            // this one, or a step behind it at the most: there is room for a step more.
            unsafe {
                let numbers = _mm512_permutexvar_epi8(order, v);
                _mm512_storeu_si512(target.add(len + own * width).cast(), numbers);
            }
            own += numbers;
            at += numbers * stride;
            if ended != 0 {
                let is_end = _mm512_cmpeq_epi8_mask(v, end_of_list) & left;
                if is_end & ended & ended.wrapping_neg() == 0 || at >= end {
                    return (read, len);
                }
                break;
            }
            if at >= end {
                return (read, len);
            }
        }
        *cursor = at + 1;
        *count = own;
        len += own * width;
    }
    (cursors.len(), len)
}
