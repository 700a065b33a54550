//! Words of byte strings: 16 bytes a step, folded.
//!
//! ```text
//! up to 16 bytes             1 to 3    4 to 7        8 to 16
//! first | last    0 | 0      b m | e   abcd | wxyz   abcdefgh | stuvwxyz
//!
//! 17 to 32 bytes: fold the first 16, then the last 16
//! ```
//!
//! Lengths vary from row to row: a branch on them would be mispredicted for every other row, at the
//! price of several words. Strings of up to [`SHORT`] bytes therefore take one path, whatever their
//! length. The path makes both steps and drops the first if there is none. Two loads, at the start
//! and at the end, make `first | last`, arranged by a shuffle that the length selects. No row waits
//! for the row before, so the CPU works at several rows at once.

use std::ops::Deref;

use arrow_array::OffsetSizeTrait;

use super::hash::fold;
use super::views::{INLINE, outside};

/// Constants with as many ones as zeros in every byte (the secret of wyhash, public domain).
pub const SALTS: [u64; 3] = [0x2d35_8dcc_aa6c_78a5, 0x8bb8_4b93_962e_acc9, 0x4b33_a62e_d433_d4a3];

/// Longest string, in bytes, that is hashed in two steps.
#[cfg(target_arch = "x86_64")]
const SHORT: usize = 32;

/// Returns the word of a byte string: 16 bytes a step, the last step overlapping the one before it.
#[inline]
pub fn word(bytes: &[u8]) -> u64 {
    let eight =
        |at: usize| bytes[at..].first_chunk().map_or(0, |word: &[u8; 8]| u64::from_le_bytes(*word));
    let four = |at: usize| {
        bytes[at..].first_chunk().map_or(0, |word: &[u8; 4]| u64::from(u32::from_le_bytes(*word)))
    };
    let len = bytes.len();
    let mut word = SALTS[0] ^ len as u64;
    let mut at = 0;
    while len - at > 16 {
        word = fold(word ^ eight(at), SALTS[1] ^ eight(at + 8));
        at += 16;
    }
    let (first, last) = match len {
        0 => (0, 0),
        1..4 => (u64::from(bytes[0]) << 8 | u64::from(bytes[len / 2]), bytes[len - 1].into()),
        4..8 => (four(0), four(len - 4)),
        8..16 => (eight(0), eight(len - 8)),
        _ => (eight(len - 16), eight(len - 8)),
    };
    fold(word ^ first, SALTS[2] ^ last)
}

/// Writes the words of strings: string `i` is `bytes[offsets[i]..offsets[i + 1]]`.
///
/// # Panics
/// If there are fewer strings than words, or offsets do not ascend or leave `bytes`.
pub fn words<O: OffsetSizeTrait>(offsets: &[O], bytes: &[u8], out: &mut [u64]) {
    assert!(offsets.len() > out.len());
    #[cfg(target_arch = "x86_64")]
    {
        let total = offsets[out.len()].as_usize().wrapping_sub(offsets[0].as_usize());
        if total <= out.len() * SHORT && crate::cpu::detected!("sse4.1", "bmi2") {
            // SAFETY: the CPU has SSE4.1 and BMI2.
            return unsafe { shuffled::words(offsets, bytes, out) };
        }
    }
    words_portable(offsets, bytes, out);
}

/// Writes the words of views. Strings of up to [`INLINE`] bytes lie in the view itself, after the
/// length; longer ones lie in one of `buffers`. An invalid view, allowed only at a null row, counts
/// as an empty string.
///
/// # Panics
/// If there are fewer views than words.
pub fn view_words(views: &[u128], buffers: &[impl Deref<Target = [u8]>], out: &mut [u64]) {
    let views = &views[..out.len()];
    #[cfg(target_arch = "x86_64")]
    if crate::cpu::detected!("sse4.1", "bmi2") {
        // SAFETY: the CPU has SSE4.1 and BMI2.
        return unsafe { shuffled::view_words(views, buffers, out) };
    }
    view_words_portable(views, buffers, out);
}

fn view_words_portable(views: &[u128], buffers: &[impl Deref<Target = [u8]>], out: &mut [u64]) {
    for (view, slot) in views.iter().zip(out) {
        *slot = view_word(view, buffers);
    }
}

fn view_word(view: &u128, buffers: &[impl Deref<Target = [u8]>]) -> u64 {
    let bytes = view.to_le_bytes();
    let len = *view as u32 as usize;
    word(if len <= INLINE { &bytes[4..4 + len] } else { outside(*view, buffers).unwrap_or(&[]) })
}

fn words_portable<O: OffsetSizeTrait>(offsets: &[O], bytes: &[u8], out: &mut [u64]) {
    for (row, slot) in out.iter_mut().enumerate() {
        *slot = word(&bytes[offsets[row].as_usize()..offsets[row + 1].as_usize()]);
    }
}

#[cfg(target_arch = "x86_64")]
mod shuffled {
    use std::arch::x86_64::*;
    use std::ops::Deref;

    use super::{INLINE, OffsetSizeTrait, SALTS, SHORT, fold, view_word, word};

    /// For each length, the source of each byte of `first | last`: 0 to 7 from the eight bytes at
    /// the start, 8 to 15 from the eight at the end, and zero from [`ZERO`] on.
    const PLACES: [[u8; 16]; SHORT + 1] = {
        const ZERO: u8 = 0x80;
        let mut places = [[0; 16]; SHORT + 1];
        let mut len = 0;
        while len <= SHORT {
            let mut byte = 0;
            while byte < 16 {
                let used = match len {
                    0 => 0,
                    1..4 => 1,
                    4..8 => 4,
                    _ => 8,
                };
                places[len][byte] = if byte < 8 {
                    // The first byte of up to three comes second, after the middle one.
                    match (len, byte) {
                        (1..4, 0) => (len / 2) as u8,
                        (1..4, 1) => 0,
                        _ if byte < used => byte as u8,
                        _ => ZERO,
                    }
                } else if byte - 8 < used {
                    (16 - used + byte - 8) as u8
                } else {
                    ZERO
                };
                byte += 1;
            }
            len += 1;
        }
        places
    };

    /// Writes the words of strings as the portable twin does.
    #[target_feature(enable = "sse4.1,bmi2")]
    pub(super) fn words<O: OffsetSizeTrait>(offsets: &[O], bytes: &[u8], out: &mut [u64]) {
        // Strings that start between 8 and `room + 8` have eight bytes before and `SHORT` bytes
        // after their start.
        let room = bytes.len().checked_sub(8 + SHORT);
        let Some(room) = room else { return super::words_portable(offsets, bytes, out) };
        let mut start = offsets[0].as_usize();
        for (slot, end) in out.iter_mut().zip(&offsets[1..]) {
            let end = end.as_usize();
            let len = end.wrapping_sub(start);
            *slot = if len <= SHORT && start.wrapping_sub(8) <= room {
                // SAFETY: `len` is at most `SHORT`. `bytes` has 8 bytes before `start` and `SHORT`
                // after it.
                unsafe { short(bytes.as_ptr().add(start), len) }
            } else {
                word(&bytes[start..end])
            };
            start = end;
        }
    }

    /// Writes the words of views as the portable twin does. Whether a view holds its string is as
    /// unpredictable as the length: the address is selected without a branch.
    #[target_feature(enable = "sse4.1,bmi2")]
    pub(super) fn view_words(
        views: &[u128],
        buffers: &[impl Deref<Target = [u8]>],
        out: &mut [u64],
    ) {
        for (row, (view, slot)) in views.iter().zip(out).enumerate() {
            let len = *view as u32 as usize;
            let long = len > INLINE;
            // For a string inside, the first buffer, which is not read.
            let buffer = (*view >> 64) as u32 as usize & usize::from(long).wrapping_neg();
            let buffer = buffers.get(buffer).map_or(&[][..], Deref::deref);
            let at = (*view >> 96) as usize;
            let outside = buffer.as_ptr().wrapping_add(at);
            let inside = views.as_ptr().wrapping_add(row).cast::<u8>().wrapping_add(4);
            let start = std::hint::select_unpredictable(long, outside, inside);
            // A string in its view has 8 readable bytes before it if there is a view before, and
            // `SHORT` bytes from its start on if there are three views after.
            let outside = (at >= 8) & (at + SHORT <= buffer.len());
            let inside = (row > 0) & (row + 3 < views.len());
            let room = std::hint::select_unpredictable(long, outside, inside);
            *slot = if room && len <= SHORT && cfg!(target_endian = "little") {
                // SAFETY: `len` is at most `SHORT`, and `room` covers both sides of `start`.
                unsafe { short(start, len) }
            } else {
                view_word(view, buffers)
            };
        }
    }

    /// Returns the word of a string of up to [`SHORT`] bytes.
    ///
    /// # Safety
    /// Eight bytes before `start` and [`SHORT`] bytes from `start` on are readable, `len` is at
    /// most [`SHORT`], and the CPU has SSE4.1 and BMI2.
    #[inline]
    #[target_feature(enable = "sse4.1,bmi2")]
    unsafe fn short(start: *const u8, len: usize) -> u64 {
        debug_assert!(len <= SHORT);
        // SAFETY: the caller provides the bytes around `start`. `end - 8` is at or after
        // `start - 8`. The first load begins at `end - 16`, or at `start` if the string is shorter.
        // `len` is an index of `PLACES`.
        unsafe {
            let end = start.add(len);
            let eight = |at: *const u8| u64::from_le(at.cast::<u64>().read_unaligned());
            let plain = SALTS[0] ^ len as u64;
            let folded = fold(plain ^ eight(start), SALTS[1] ^ eight(start.add(8)));
            // All ones from 17 bytes on. The compiler makes no branch of this expression.
            let long = ((16 - len as i64) >> 63) as u64;
            let word = plain ^ ((plain ^ folded) & long);

            let first = start.add(len.saturating_sub(16));
            let both = _mm_loadl_epi64(first.cast());
            let both = _mm_unpacklo_epi64(both, _mm_loadl_epi64(end.sub(8).cast()));
            let places = _mm_loadu_si128(PLACES.get_unchecked(len).as_ptr().cast());
            let both = _mm_shuffle_epi8(both, places);
            let first = _mm_cvtsi128_si64(both) as u64;
            let last = _mm_extract_epi64::<1>(both) as u64;
            fold(word ^ first, SALTS[2] ^ last)
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_data::MAX_INLINE_VIEW_LEN;

    use super::*;

    /// Returns a view in Arrow's layout.
    fn make_view(bytes: &[u8], buffer: u32, at: u32) -> u128 {
        assert_eq!(INLINE, MAX_INLINE_VIEW_LEN as usize);
        let mut view = [0; 16];
        view[..4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        if bytes.len() <= INLINE {
            view[4..4 + bytes.len()].copy_from_slice(bytes);
        } else {
            view[4..8].copy_from_slice(&bytes[..4]);
            view[8..12].copy_from_slice(&buffer.to_le_bytes());
            view[12..].copy_from_slice(&at.to_le_bytes());
        }
        u128::from_le_bytes(view)
    }

    #[test]
    fn words_of_rows_are_the_words_of_their_bytes() {
        let bytes: Vec<u8> = (0..10_000usize).map(|i| (i * i / 5 % 251) as u8).collect();
        for most in [0, 1, 3, 4, 8, 9, 17, 33, 40, 70] {
            for front in [0, 3, 8, 20] {
                let mut offsets = vec![front];
                while offsets.len() < 120 {
                    let last = offsets[offsets.len() - 1];
                    offsets.push(last + (offsets.len() as i32 * 7919) % (most + 1));
                }
                let end = offsets[119] as usize;
                let expected: Vec<u64> = offsets
                    .windows(2)
                    .map(|row| word(&bytes[row[0] as usize..row[1] as usize]))
                    .collect();
                // Bytes after the strings are not used, and need not exist.
                for behind in [0, 5, 100] {
                    let mut found = vec![0; 119];
                    words(&offsets, &bytes[..end + behind], &mut found);
                    assert_eq!(found, expected, "{most} {front} {behind}");
                    words_portable(&offsets, &bytes[..end + behind], &mut found);
                    assert_eq!(found, expected);
                }
            }
        }
    }

    #[test]
    fn no_byte_of_a_string_is_passed_over() {
        let bytes: Vec<u8> = (0..80u8).map(|byte| byte.wrapping_mul(57)).collect();
        let mut all: Vec<u64> = (0..=bytes.len()).map(|len| word(&bytes[..len])).collect();
        for (len, at) in (1..=bytes.len()).flat_map(|len| (0..len).map(move |at| (len, at))) {
            let mut string = bytes[..len].to_vec();
            string[at] ^= 1;
            all.push(word(&string));
        }
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "words of strings that differ");
    }

    #[test]
    fn words_of_views_are_the_words_of_their_bytes() {
        let buffers: Vec<Vec<u8>> =
            (1..4usize).map(|n| (0..900).map(|i| (i * i / n % 251) as u8).collect()).collect();
        let buffers: Vec<&[u8]> = buffers.iter().map(Vec::as_slice).collect();
        let (mut views, mut expected) = (Vec::new(), Vec::new());
        for row in 0..1000usize {
            let (len, at, buffer) = (row * 7919 % 45, row * 613 % 856, row % 3);
            let bytes = &buffers[buffer][at..at + len];
            views.push(make_view(bytes, buffer as u32, at as u32));
            expected.push(word(bytes));
        }
        // An invalid view, as at a null row.
        views[500] = u128::MAX;
        expected[500] = word(&[]);
        for rows in [1, 2, 5, 1000] {
            let mut found = vec![0; rows];
            view_words(&views, &buffers, &mut found);
            assert_eq!(found, expected[..rows]);
            view_words_portable(&views, &buffers, &mut found);
            assert_eq!(found, expected[..rows]);
        }
    }

    #[test]
    #[should_panic(expected = "range")]
    fn offsets_that_leave_the_bytes_panic() {
        words(&[0, 60, 20, 30], &[0; 50], &mut [0; 3]);
    }
}
