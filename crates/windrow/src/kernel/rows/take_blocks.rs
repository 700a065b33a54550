//! Byte strings of arrow-row out of rows: blocks of eight, then of 32, each followed by a byte.
//!
//! ```text
//! row      | 2 | s h o r t e s t | FF | o n e 0 0 0 0 0 | 3 |       what follows the last block is the length of that
//! data     | s h o r t e s t o n e |. . .                           whole blocks are written; the next string
//! ends                             ^                                overwrites what is behind the end
//! ```
//!
//! What pads the last block is not looked at.

use arrow_array::OffsetSizeTrait;

use super::blocks::{EMPTY, FULL, LARGE, MORE, SMALL, SMALL_BLOCKS};
#[cfg(target_arch = "x86_64")]
use super::take_text::Ends;
use super::take_text::{Texts, room_of};
use crate::kernel::strings::StringData;

/// Bytes behind the strings that reading them may write.
pub(super) const BEHIND: usize = 4 * LARGE;
/// Bytes of the small blocks, and of what is in front of and behind each.
pub(super) const SMALL_BYTES: usize = 1 + SMALL_BLOCKS * (SMALL + 1);

/// As [`take_texts`](super::take_text::take_texts), of byte strings in blocks, whose null is one byte.
///
/// # Panics
/// If there are not as many cursors as ends, of rows or of strings.
pub(crate) fn take_blocks<O: OffsetSizeTrait>(
    texts: &Texts<'_>,
    cursors: &mut [usize],
    data: &mut StringData,
    string_ends: &mut [O],
    valid: &mut Vec<u64>,
) -> bool {
    assert_eq!(string_ends.len(), cursors.len(), "an end for each cursor");
    let Some(room) = room_of(texts.bytes, cursors, texts.ends) else { return false };
    let add = |data: &mut Vec<u8>| {
        data.reserve(room + BEHIND);
        let before = data.len();
        let (mut done, mut ascii) = (0, false);
        #[cfg(target_arch = "x86_64")]
        if super::avx512::detected() {
            // SAFETY: the features were detected; there is an end for each cursor, none of them outside of the
            // bytes, and room for all that the rows have and for what may be written behind.
            let taken = unsafe {
                use super::avx512::take_blocks;
                let ends = &mut Ends(&mut *string_ends);
                match are_long(texts, cursors) {
                    true => take_blocks::<_, true>(texts, cursors, data, ends, valid),
                    false => take_blocks::<_, false>(texts, cursors, data, ends, valid),
                }
            };
            match taken {
                Some(taken) => (done, ascii) = (taken.texts, taken.ascii),
                None => return (0, false),
            }
        }
        let seen = if ascii { data.len() - before } else { 0 };
        (seen, take_each(texts, done, cursors, data, string_ends, valid))
    };
    // SAFETY: bytes are appended, and what the first of them are was seen.
    unsafe { data.add(add) }
}

/// Whether some strings have blocks of 32 bytes. Some are looked at.
#[cfg(target_arch = "x86_64")]
pub(super) fn are_long(texts: &Texts<'_>, cursors: &[usize]) -> bool {
    const LOOKS: usize = 16;
    let Texts { bytes, ends, form, null } = *texts;
    let is_long = |(&cursor, &end): (&usize, &usize)| {
        let mut code = bytes[..end].get(cursor..).unwrap_or(&[]);
        if code.len() <= SMALL_BYTES || Some(code[0]) == null || code[0] ^ form.flip != FULL {
            return false;
        }
        code = &code[1..SMALL_BYTES];
        code.chunks_exact(SMALL + 1).all(|block| block[SMALL] ^ form.flip == MORE)
    };
    let mut rows = cursors.iter().zip(ends).step_by(cursors.len() / LOOKS + 1);
    rows.any(is_long)
}

/// The portable twin, and the last few: those from the one at `done` on, a multiple of 64.
fn take_each<O: OffsetSizeTrait>(
    texts: &Texts<'_>,
    done: usize,
    cursors: &mut [usize],
    data: &mut Vec<u8>,
    string_ends: &mut [O],
    valid: &mut Vec<u64>,
) -> bool {
    let Texts { bytes, ends, form, null } = *texts;
    let (mut word, rows) = (0, cursors.len());
    let each = cursors.iter_mut().zip(ends).zip(string_ends).enumerate().skip(done);
    for (row, ((cursor, &end), string_end)) in each {
        let mut code = bytes[..end].get(*cursor..).unwrap_or(&[]);
        let is_valid = code.first().copied() != null;
        match is_valid {
            true if append_blocks(&mut code, form.flip, data).is_none() => return false,
            true => {}
            false => code = &code[1..],
        }
        *cursor = end - code.len();
        *string_end = O::usize_as(data.len());
        word |= u64::from(is_valid) << (row % 64);
        if row % 64 == 63 || row + 1 == rows {
            valid.push(std::mem::take(&mut word));
        }
    }
    true
}

/// Appends the string whose code is at the start of `code`, which is then behind it; tells if it is not empty.
/// Nothing if it is no such code, or does not end; some of it was then appended.
pub(crate) fn append_blocks(code: &mut &[u8], flip: u8, out: &mut Vec<u8>) -> Option<bool> {
    let (first, rest) = code.split_first()?;
    *code = rest;
    match first ^ flip {
        EMPTY => return Some(false),
        FULL => {}
        _ => return None,
    }
    for block in 0.. {
        let size = if block < SMALL_BLOCKS { SMALL } else { LARGE };
        let (block, rest) = code.split_at_checked(size + 1)?;
        *code = rest;
        let last = block[size] ^ flip;
        let len = if last == MORE { size } else { usize::from(last) };
        let own = block[..size].get(..len)?;
        out.extend(own.iter().map(|byte| byte ^ flip));
        if last != MORE {
            break;
        }
    }
    Some(true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::blocks::{encoded_len, put_block_string};
    use super::super::text::Form;
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn both_read_what_was_written(
            strings in prop::collection::vec(
                prop::option::of(prop::collection::vec(any::<u8>(), 0..300)), 1..200),
            most in prop::sample::select(vec![12usize, 31, 34, 70, 130, 300]),
            ascii: bool,
            descending: bool,
            nulls_first: bool,
            gap in 0usize..3,
            broken in prop::option::of((any::<u16>(), any::<u8>())),
        ) {
            let flip = if descending { 0xff } else { 0 };
            let null = if nulls_first { 0 } else { 0xff };
            let (mut rows, mut starts, mut ends) = (vec![], vec![], vec![]);
            let mut expected = vec![];
            for string in &strings {
                starts.push(rows.len());
                match string {
                    Some(string) => {
                        let string = string.iter().take(string.len() % (most + 1));
                        let string: Vec<u8> =
                            string.map(|byte| if ascii { byte & 0x7f } else { *byte }).collect();
                        let at = rows.len();
                        rows.resize(at + encoded_len(string.len()), 0);
                        put_block_string(&string, flip, &mut rows[at..]);
                        expected.extend(string);
                    }
                    None => rows.push(null),
                }
                rows.resize(rows.len() + gap, 7);
                ends.push(rows.len());
            }
            if let Some((at, byte)) = broken {
                let at = usize::from(at) % rows.len();
                rows[at] = byte;
            }
            let form = Form { shift: 0, end: 0, flip };
            let texts = Texts { bytes: &rows, ends: &ends, form, null: Some(null) };
            let (mut at, mut at_twin) = (starts.clone(), starts);
            let (mut data, mut data_twin) = (StringData::default(), vec![]);
            let (mut valid, mut valid_twin) = (vec![], vec![]);
            let (mut own, mut twin) = (vec![0i32; ends.len()], vec![0i32; ends.len()]);
            let fits = take_blocks(&texts, &mut at, &mut data, &mut own, &mut valid);
            let fits_twin =
                take_each(&texts, 0, &mut at_twin, &mut data_twin, &mut twin, &mut valid_twin);
            prop_assert_eq!(fits, fits_twin);
            if fits {
                prop_assert_eq!(data.is_ascii(), data_twin.is_ascii());
                prop_assert_eq!((&at, data.bytes_mut(), &own), (&at_twin, &mut data_twin, &twin));
                prop_assert_eq!(&valid, &valid_twin);
            }
            if broken.is_none() {
                prop_assert!(fits);
                prop_assert!(at.iter().zip(&ends).all(|(at, end)| at + gap == *end));
                prop_assert_eq!(data.bytes_mut(), &mut expected);
                for (row, string) in strings.iter().enumerate() {
                    prop_assert_eq!(valid[row / 64] >> (row % 64) & 1 == 1, string.is_some());
                }
            }
        }
    }
}
