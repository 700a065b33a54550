//! Reads byte strings in blocks out of rows: up to 128 bytes without a branch on their length.
//!
//! ```text
//! 64 bytes of a row   | 2 aaaaaaaa FF bbb00000 3 | other columns, other rows ...
//! permuted            | aaaaaaaa bbb00000 ........ ........ |          the small blocks: 32 bytes
//! marks of blocks     |          FF            3  ...    |    the first other than FF: the length
//! ```

use std::arch::x86_64::*;

use super::super::blocks::{EMPTY, FULL, LARGE, MORE, SMALL};
use super::super::take_blocks::{SMALL_BYTES, append_blocks};
use super::super::texts::{Sink, Taken, Texts};

/// Bytes of a register.
const STEP: usize = 64;
/// Large blocks that are always moved, whatever the length.
const AT_ONCE: usize = 3;
/// Bytes of a row that are read if strings may be long.
const FAR: usize = SMALL_BYTES + AT_ONCE * (LARGE + 1);

/// Reads strings in blocks for whole words of rows, as long as enough bytes after each cursor are
/// readable. Returns `None` if one of them is not the code of a string within its row, or the sink
/// rejects it. `LONG` if many may have large blocks.
///
/// # Safety
/// - The CPU has AVX-512 F, BW, VL and VBMI, BMI1 and BMI2.
/// - There are as many ends of rows as cursors, and the sink has as many rows.
/// - No cursor is after the end of its row, and no end is after the bytes.
/// - `data` has space for the rest of all rows, and for four large blocks.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi1,bmi2")]
pub(in crate::rows) unsafe fn take_blocks<S: Sink, const LONG: bool>(
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
            // SAFETY: this cursor is at most `last`, so `FAR` or `STEP` bytes after it are
            // readable. The strings so far are no longer than what their rows had left, so four
            // large blocks fit after them.
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
                // SAFETY: the strings so far were written, within the capacity.
                unsafe { data.set_len(len) };
                let mut code = &bytes[*cursor..end];
                append_blocks(&mut code, flip, data)?;
                *cursor = end - code.len();
                (text, target, is_seen) = (data.len() - len, data.as_mut_ptr(), false);
            } else {
                return None;
            }
            // SAFETY: the string was written at the end of the strings so far, and at least 16
            // bytes are readable there. It is ASCII if no byte is high. The sink has a row for each
            // cursor.
            len += unsafe { sink.put(done + row, target, len, text, ascii) }?;
            word |= u64::from(is_valid) << row;
        }
        valid.push(word);
        done += cursors.len();
    }
    // SAFETY: the strings so far were written, and the sink keeps at most the length of each.
    unsafe { data.set_len(len) };
    Some(Taken { texts: done, ascii: is_seen && _mm256_movepi8_mask(all) == 0 })
}

/// The result of reading a row.
struct Found {
    /// The bytes of a string without large blocks, padded with zeros; zeros if `LONG`.
    own: __m256i,
    /// Lengths of the string and of its code.
    text: usize,
    code: usize,
    /// Whether the string ends here, with valid block lengths.
    fits: bool,
    /// Whether more blocks follow the ones read.
    goes_on: bool,
}

/// Decodes strings.
struct Back {
    flip: u8,
    flips: __m512i,
    /// The byte after a block that is not the last.
    more: __m512i,
    /// Source of each byte of the small blocks.
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

    /// Writes the string whose code is at `from` to `to`. A code that is neither empty nor full
    /// counts as empty.
    ///
    /// # Safety
    /// The CPU has the features of [`take_blocks`]. `STEP` bytes are readable at `from`, or `FAR`
    /// if `LONG`, and four large blocks are writable at `to`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi1,bmi2")]
    unsafe fn take<const LONG: bool>(&self, from: *const u8, to: *mut u8) -> Found {
        const BEHIND: u64 = 1 << 9 | 1 << 18 | 1 << 27 | 1 << 36;
        let flip = self.flip;
        // SAFETY: the caller provides `STEP` or `FAR` bytes at `from` and four large blocks at
        // `to`.
        unsafe {
            let is_full = *from ^ flip == FULL;
            let v = _mm512_loadu_si512(from.cast());
            // A code that is not full ends with its first byte.
            let lasts = _mm512_cmpneq_epi8_mask(v, self.more) & BEHIND | u64::from(!is_full);
            let v = _mm512_xor_si512(_mm512_permutexvar_epi8(self.order, v), self.flips);
            let v = _mm512_castsi512_si256(v);
            _mm256_storeu_si256(to.cast(), v);
            let is_short = lasts != 0;
            let at = (_tzcnt_u64(lasts) as usize).min(SMALL_BYTES - 1);
            let own = usize::from(*from.add(at) ^ flip);
            // A block and the byte after it take nine bytes.
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
