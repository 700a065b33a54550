//! Byte strings in blocks out of rows: of up to 128 bytes without a branch on their length.
//!
//! ```text
//! 64 bytes of a row   | 2 aaaaaaaa FF bbb00000 3 | other columns, other rows ...
//! permuted            | aaaaaaaa bbb00000 ........ ........ |                      the small blocks: 32 bytes
//! what follows these  |          FF            3  ...    |    compared: the first that is not FF is the length
//! ```

use std::arch::x86_64::*;

use super::super::blocks::{EMPTY, FULL, LARGE, MORE, SMALL};
use super::super::take_blocks::{SMALL_BYTES, append_blocks};
use super::super::take_text::{Sink, Taken, Texts};

/// Bytes of a register.
const STEP: usize = 64;
/// Large blocks that are moved whether there are as many or not.
const AT_ONCE: usize = 3;
/// Bytes of a row that are looked at where strings may be long.
const FAR: usize = SMALL_BYTES + AT_ONCE * (LARGE + 1);

/// As `take_blocks` of the module, for whole words of rows of which as much as is looked at may be read; nothing if one of
/// them is not the code of a string within its row, or the sink does not take it. `LONG` if many may have large blocks.
///
/// # Safety
/// The CPU has AVX-512 F, BW, VL and VBMI, BMI1 and BMI2; there are as many ends of rows as cursors, and the sink has as
/// many rows; no cursor is behind the end of its row, which is within the bytes; `data` has room for what is left of all
/// rows, and four large blocks.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi1,bmi2")]
pub(in crate::kernel::rows) unsafe fn take_blocks<S: Sink, const LONG: bool>(
    texts: &Texts<'_>,
    cursors: &mut [usize],
    data: &mut Vec<u8>,
    sink: &mut S,
    valid: &mut Vec<u64>,
) -> Option<Taken> {
    let Texts { bytes, ends, form, null } = *texts;
    let (null, flip) = (null?, form.flip);
    let with = Back::of(flip);
    let (mut len, mut target) = (data.len(), data.as_mut_ptr());
    let mut all = _mm256_setzero_si256();
    let mut is_seen = !LONG;
    let last = bytes.len().checked_sub(if LONG { FAR } else { STEP });
    let mut done = 0;
    for (cursors, ends) in cursors.chunks_mut(64).zip(ends.chunks(64)) {
        if last.is_none_or(|last| cursors.iter().any(|&cursor| cursor > last)) {
            break;
        }
        let mut word = 0u64;
        for (row, (cursor, &end)) in cursors.iter_mut().zip(ends).enumerate() {
            // SAFETY: what is looked at of the bytes behind this cursor is there, since it is not beyond the last one.
            // What is written begins where the strings so far end, which are no longer than what their rows had left:
            // there is room for four large blocks more.
            let (first, found) = unsafe {
                let from = bytes.as_ptr().add(*cursor);
                (*from, with.take::<LONG>(from, target.add(len)))
            };
            let is_valid = first != null;
            let is_known = !is_valid | (first ^ flip == FULL) | (first ^ flip == EMPTY);
            let (mut text, mut ascii) = (found.text, false);
            if found.fits & is_known & (*cursor + found.code <= end) {
                *cursor += found.code;
                if !LONG {
                    all = _mm256_or_si256(all, found.own);
                    ascii = S::ASKS && _mm256_movepi8_mask(found.own) == 0;
                }
            } else if is_known && found.goes_on {
                // SAFETY: the strings so far were written.
                unsafe { data.set_len(len) };
                let mut code = &bytes[*cursor..end];
                append_blocks(&mut code, flip, data)?;
                *cursor = end - code.len();
                (text, target, is_seen) = (data.len() - len, data.as_mut_ptr(), false);
            } else {
                return None;
            }
            // SAFETY: the string was written to where it begins, which is the end of those so far, four blocks at the
            // least; it is ASCII if no byte is high; the sink has a row for each cursor.
            len += unsafe { sink.put(done + row, target, len, text, ascii) }?;
            word |= u64::from(is_valid) << row;
        }
        valid.push(word);
        done += cursors.len();
    }
    // SAFETY: the strings so far were written, and the sink keeps no more of one than there was.
    unsafe { data.set_len(len) };
    Some(Taken { texts: done, ascii: is_seen && _mm256_movepi8_mask(all) == 0 })
}

/// What was read of a row.
struct Found {
    /// The bytes of a string that has no large block, zeros behind them; nothing of those that may have.
    own: __m256i,
    /// Bytes of the string, and of its code.
    text: usize,
    code: usize,
    /// Whether that is all, and no block longer than blocks are.
    fits: bool,
    /// Whether there are more blocks than were looked at.
    goes_on: bool,
}

/// What makes strings of their codes.
struct Back {
    flip: u8,
    flips: __m512i,
    /// What follows a block that is not the last.
    more: __m512i,
    /// Where the bytes of the small blocks come from.
    order: __m512i,
}

impl Back {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn of(flip: u8) -> Self {
        let order: [u8; STEP] = std::array::from_fn(|at| (1 + at + at / SMALL).min(STEP - 1) as u8);
        Self {
            flip,
            flips: _mm512_set1_epi8(flip.cast_signed()),
            more: _mm512_set1_epi8((MORE ^ flip).cast_signed()),
            // SAFETY: the array has 64 bytes.
            order: unsafe { _mm512_loadu_si512(order.as_ptr().cast()) },
        }
    }

    /// Writes the string whose code is at `from` to `to`; nothing counts of what is neither empty nor full.
    ///
    /// # Safety
    /// As [`take_blocks`]; a step may be read at `from`, or as far as is looked at if `LONG`, and four large blocks
    /// written at `to`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi1,bmi2")]
    unsafe fn take<const LONG: bool>(&self, from: *const u8, to: *mut u8) -> Found {
        const BEHIND: u64 = 1 << 9 | 1 << 18 | 1 << 27 | 1 << 36;
        let flip = self.flip;
        // SAFETY: as this function's.
        unsafe {
            let is_full = *from ^ flip == FULL;
            let v = _mm512_loadu_si512(from.cast());
            // What is not full ends with its first byte.
            let lasts = _mm512_cmpneq_epi8_mask(v, self.more) & BEHIND | u64::from(!is_full);
            let v = _mm512_xor_si512(_mm512_permutexvar_epi8(self.order, v), self.flips);
            let v = _mm512_castsi512_si256(v);
            _mm256_storeu_si256(to.cast(), v);
            let is_short = lasts != 0;
            let at = (_tzcnt_u64(lasts) as usize).min(SMALL_BYTES - 1);
            let own = usize::from(*from.add(at) ^ flip);
            // A block and what follows are nine bytes.
            let text = (((at * 57) >> 9) * SMALL + own).wrapping_sub(SMALL);
            let text = if is_full { text } else { 0 };
            let fits = !is_full | (own <= SMALL);
            if !LONG {
                let mask = _bzhi_u32(u32::MAX, text as u32);
                let own = _mm256_maskz_mov_epi8(mask, v);
                return Found {
                    own,
                    text,
                    code: at + 1,
                    fits: is_short & fits,
                    goes_on: !is_short,
                };
            }
            let mut lasts = 0;
            for block in 0..AT_ONCE {
                let from = from.add(SMALL_BYTES + block * (LARGE + 1));
                let v = _mm256_loadu_si256(from.cast());
                let v = _mm256_xor_si256(v, _mm512_castsi512_si256(self.flips));
                _mm256_storeu_si256(to.add((block + 1) * LARGE).cast(), v);
                lasts |= u32::from(*from.add(LARGE) ^ flip != MORE) << block;
            }
            let goes_on = !is_short & (lasts == 0);
            let blocks = (_tzcnt_u32(lasts) as usize).min(AT_ONCE - 1);
            let far = SMALL_BYTES + blocks * (LARGE + 1) + LARGE;
            let rest = usize::from(*from.add(far) ^ flip);
            Found {
                own: _mm256_setzero_si256(),
                text: if is_short { text } else { (1 + blocks) * LARGE + rest },
                code: if is_short { at + 1 } else { far + 1 },
                fits: if is_short { fits } else { rest <= LARGE },
                goes_on,
            }
        }
    }
}
