//! Reads lists of numbers out of rows, 64 bytes at a time.
//!
//! ```text
//! codes     01 01 a a a a 01 01 b b b b 00 ...    heads at fixed places, if no number is null
//! heads     *  *          *  *          *  *      the first place without a head ends the list
//! numbers   a a a a b b b b                       all of a step in one permutation
//! ```

use std::arch::x86_64::*;

use super::super::take_lists::{END, GOES_ON, HEAD, Lists};

/// Bytes of a step.
const STEP: usize = 64;

/// Reads lists as `take_lists` of the module does, to `target`. Returns the number of lists read,
/// and the bytes of their numbers.
///
/// # Safety
/// - The CPU has AVX-512 F, BW and VBMI, BMI1 and BMI2.
/// - A number has 1 to 32 bytes.
/// - There are as many ends and counts as cursors.
/// - No cursor is after the end of its row, and no end is after the bytes.
/// - `target` is writable for the rest of all rows, and a step.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,bmi1,bmi2")]
pub(in crate::rows) unsafe fn take_lists(
    lists: &Lists<'_>,
    cursors: &mut [usize],
    target: *mut u8,
    counts: &mut [usize],
) -> (usize, usize) {
    let Lists { bytes, ends, width, flip } = *lists;
    let stride = HEAD + width;
    // The numbers of a step, and the positions of their heads and of the next one, as far as these
    // lie in the step.
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
    // SAFETY: `order` has as many bytes as a register.
    let order = unsafe { _mm512_loadu_si512(order.as_ptr().cast()) };
    let flip = _mm512_set1_epi8(flip.cast_signed());
    let goes_on = _mm512_set1_epi8(GOES_ON.cast_signed());
    let end_of_list = _mm512_set1_epi8(END.cast_signed());
    // Divides positions of heads by the stride: exact for all positions in a step.
    let inverse = (1 << 16) / stride + 1;
    let mut len = 0;
    let rows = cursors.iter_mut().zip(ends).zip(counts);
    for (read, ((cursor, &end), count)) in rows.enumerate() {
        let (mut at, mut own) = (*cursor, 0);
        loop {
            let left = _bzhi_u64(u64::MAX, (bytes.len() - at).min(STEP) as u32);
            // SAFETY: the mask limits the load to the bytes.
            let v = unsafe { _mm512_maskz_loadu_epi8(left, bytes.as_ptr().add(at).cast()) };
            let v = _mm512_xor_si512(v, flip);
            let heads = _mm512_cmpeq_epi8_mask(v, goes_on);
            // The first head that does not go on.
            let ended = more & !heads;
            let in_front = ended.wrapping_sub(1) & !ended;
            if values & in_front & !heads != 0 {
                return (read, len);
            }
            let numbers = match ended {
                0 => most,
                _ => (ended.trailing_zeros() as usize * inverse) >> 16,
            };
            // SAFETY: the numbers so far have fewer bytes than their rows up to `at`, which is
            // before the end of this row. A step fits after them.
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
