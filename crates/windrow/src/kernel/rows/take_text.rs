//! Texts out of rows, wherever they are in them: a constant taken from every byte, up to a byte that ends them.
//!
//! ```text
//! row      | a | 1 | u j q t v 01 | b |        the marker, the text, its end; then what the cursor moves to
//!            cursor ^               ^
//! data     | s h o r t|. . . . . .             as many bytes as are read are written; the next text overwrites
//! ends               ^                         what is behind the end
//! ```
//!
//! Texts are appended to bytes that are known to be UTF-8 if all of them were seen to be ASCII.

use arrow_array::OffsetSizeTrait;

use super::block::{self, BLOCK, Block};
use super::text::{Form, block_at};
use crate::kernel::strings::StringData;

/// Bytes that are read at once.
const SHORT: usize = 2 * BLOCK;
/// Bytes of a longer text that are read at once.
const LONG: usize = 6 * BLOCK;

/// Bytes behind the texts that reading them may write.
const STEPS: usize = 64;

/// Texts wherever they are in rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Texts<'a> {
    pub(crate) bytes: &'a [u8],
    /// Where the row of each ends: no text reaches further.
    pub(crate) ends: &'a [usize],
    pub(crate) form: Form,
    /// What stands in front of a text and says that there is none; any other byte says that there is. Nothing if
    /// no byte stands there.
    pub(crate) null: Option<u8>,
}

/// Appends the texts at `cursors` to `data`, moves the cursors behind them, writes where each ends to `text_ends`; a
/// null is empty. Appends to `valid` which are not null, 64 rows a word, if a byte says so. False if one of them does
/// not end within its row; what was appended is then of no use.
///
/// # Panics
/// If there are not as many cursors as ends, of rows or of texts.
pub(crate) fn take_texts<O: OffsetSizeTrait>(
    texts: &Texts<'_>,
    cursors: &mut [usize],
    data: &mut StringData,
    text_ends: &mut [O],
    valid: &mut Vec<u64>,
) -> bool {
    assert_eq!(text_ends.len(), cursors.len(), "an end for each cursor");
    let Some(room) = room_of(texts.bytes, cursors, texts.ends) else { return false };
    let add = |data: &mut Vec<u8>| {
        data.reserve(room);
        let before = data.len();
        let mut first = Taken { texts: 0, ascii: false };
        #[cfg(target_arch = "x86_64")]
        if super::avx512::detected() {
            let ends = &mut Ends(&mut *text_ends);
            // SAFETY: the features were detected; there is an end for each cursor, none of them outside of the
            // bytes, and room for all that the rows have.
            let taken = unsafe {
                match are_short(texts, cursors) {
                    true => super::avx512::take_texts::<32>(texts, cursors, data, ends, valid),
                    false => super::avx512::take_texts::<64>(texts, cursors, data, ends, valid),
                }
            };
            match taken {
                Some(taken) => first = taken,
                None => return (0, false),
            }
        }
        let seen = if first.ascii { data.len() - before } else { 0 };
        (seen, take_texts_each(texts, first.texts, cursors, data, text_ends, valid))
    };
    // SAFETY: bytes are appended, and what the first of them are was seen.
    unsafe { data.add(add) }
}

/// How strings stand in rows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Coded {
    /// A constant added to each byte, and an end.
    Text,
    /// Escaped, and an end.
    Binary,
    /// In blocks, as arrow-row has them.
    Blocks,
}

/// What becomes of strings that kernels read.
#[cfg(target_arch = "x86_64")]
pub(super) trait Sink {
    /// Whether it matters which strings are ASCII; else it need not be said.
    const ASKS: bool;

    /// The string of `row` is the `len` bytes at `at` of `data`; `ascii` if all of them are known to be. Returns how many
    /// of them are kept: what is read next takes the place of others. Nothing if the string is not to be had.
    ///
    /// # Safety
    /// There is such a row; the string lies at its place, as sixteen bytes do in any case; it is ASCII if that is said.
    unsafe fn put(
        &mut self,
        row: usize,
        data: *const u8,
        at: usize,
        len: usize,
        ascii: bool,
    ) -> Option<usize>;
}

/// All strings stay one behind the other, and where each ends is written down.
#[cfg(target_arch = "x86_64")]
pub(super) struct Ends<'a, O>(pub(super) &'a mut [O]);

#[cfg(target_arch = "x86_64")]
impl<O: OffsetSizeTrait> Sink for Ends<'_, O> {
    const ASKS: bool = false;

    #[inline(always)]
    unsafe fn put(
        &mut self,
        row: usize,
        _data: *const u8,
        at: usize,
        len: usize,
        _ascii: bool,
    ) -> Option<usize> {
        // SAFETY: there is such a row.
        unsafe { *self.0.get_unchecked_mut(row) = O::usize_as(at + len) };
        Some(len)
    }
}

/// Bytes of what is left of all rows of `bytes`, and of a step; nothing if a cursor is behind the end of its row, or that
/// outside of the bytes.
///
/// # Panics
/// If there are not as many cursors as ends.
pub(super) fn room_of(bytes: &[u8], cursors: &[usize], ends: &[usize]) -> Option<usize> {
    assert_eq!(ends.len(), cursors.len(), "an end for each cursor");
    // No way out in the middle: several at a time. Lengths have no highest bit.
    let (mut room, mut wrong) = (STEPS, 0);
    for (&cursor, &end) in cursors.iter().zip(ends) {
        let left = end.wrapping_sub(cursor);
        room = room.wrapping_add(left);
        wrong |= cursor | end | left | bytes.len().wrapping_sub(end);
    }
    // The sum did not wrap around either.
    cursors.len().checked_mul(bytes.len())?.checked_add(STEPS)?;
    (wrong.cast_signed() >= 0).then_some(room)
}

/// Whether most texts are of half a step: a store of a whole one nearly always crosses from one cache line to the
/// next. Some of them are looked at.
#[cfg(target_arch = "x86_64")]
pub(super) fn are_short(texts: &Texts<'_>, cursors: &[usize]) -> bool {
    const LOOKS: usize = 16;
    let rows = cursors.iter().zip(texts.ends).step_by(cursors.len() / LOOKS + 1);
    let len = |(&cursor, &end): (&usize, &usize)| {
        let code = texts.bytes.get(cursor + usize::from(texts.null.is_some())..end);
        code.and_then(|code| find_end(code, texts.form.flip)).unwrap_or(0)
    };
    rows.clone().map(len).sum::<usize>() <= LOOKS * rows.len()
}

/// The portable twin, and the last few: those from the one at `done` on, a multiple of 64.
fn take_texts_each<O: OffsetSizeTrait>(
    texts: &Texts<'_>,
    done: usize,
    cursors: &mut [usize],
    data: &mut Vec<u8>,
    text_ends: &mut [O],
    valid: &mut Vec<u64>,
) -> bool {
    let Texts { bytes, ends, form, null } = *texts;
    let (mut word, mut fits) = (0, true);
    let rows = cursors.len();
    let each = cursors.iter_mut().zip(ends).zip(text_ends).enumerate().skip(done);
    for (row, ((cursor, &end), text_end)) in each {
        let mut is_valid = true;
        if let Some(null) = null {
            let Some(&marker) = bytes[..end].get(*cursor) else { return false };
            is_valid = marker != null;
            *cursor += 1;
        }
        if is_valid {
            // Steps may reach beyond the row, but not much.
            let near = bytes.len().min(end + LONG);
            let code = bytes.get(*cursor..near).unwrap_or(&[]);
            let Some(len) = append_text(code, form.shift, form.flip, data) else { return false };
            *cursor += len;
            fits &= *cursor <= end;
        }
        *text_end = O::usize_as(data.len());
        word |= u64::from(is_valid) << (row % 64);
        if null.is_some() && (row % 64 == 63 || row + 1 == rows) {
            valid.push(std::mem::take(&mut word));
        }
    }
    fits
}

/// What was read of many texts.
pub(super) struct Taken {
    pub(super) texts: usize,
    /// Whether all of these were seen to be ASCII.
    pub(super) ascii: bool,
}

/// Bytes in front of the first one that is below 2 once the bits of `flip` are complemented.
#[inline(always)]
pub(crate) fn find_end(bytes: &[u8], flip: u8) -> Option<usize> {
    let (blocks, rest) = bytes.as_chunks::<SHORT>();
    for (at, block) in blocks.iter().enumerate() {
        let len = first_end(block, flip);
        if len < SHORT {
            return Some(at * SHORT + len);
        }
    }
    let found = rest.iter().position(|&byte| byte ^ flip < 2);
    found.map(|found| blocks.len() * SHORT + found)
}

/// Bytes of `bytes` in front of the first one that is below 2 once the bits of `flip` are complemented;
/// all of them if there is none.
#[inline(always)]
fn first_end(bytes: &[u8; SHORT], flip: u8) -> usize {
    let ends = [0, BLOCK].map(|at| u64::from(block::ends(block_at(bytes, at), flip)));
    (ends[0] | ends[1] << BLOCK | 1 << SHORT).trailing_zeros() as usize
}

/// Appends the bytes of `from` in front of the end of the text, or all of them if it is not there; returns
/// how many.
#[inline(always)]
fn append_block<const N: usize>(from: &[u8; N], add: u8, flip: u8, out: &mut Vec<u8>) -> usize {
    let mut ends = 0u128;
    out.reserve(N);
    let end = out.len();
    for at in (0..N).step_by(BLOCK) {
        let block = block_at(from, at);
        ends |= u128::from(block::ends(block, flip)) << at;
        // SAFETY: there is room for `N` bytes behind those of `out`.
        unsafe {
            let to = out.as_mut_ptr().add(end + at);
            to.cast::<Block>().write(block::sum(block, add, flip));
        }
    }
    let len = (ends.trailing_zeros() as usize).min(N);
    // SAFETY: there is room for these bytes, and all of them were written.
    unsafe { out.set_len(end + len) };
    len
}

/// Appends the text whose code is at the start of `bytes`: `shift` was added to each of its bytes,
/// then `flip` complemented them, and a byte below 2, complemented too, ends it. Returns the bytes of
/// the code with its end, or nothing if it does not end; some of it was then appended.
///
/// Benefit: no second pass for the length, and no checks of room for each string; twice as fast for
/// strings of up to 31 bytes.
#[inline(always)]
pub(crate) fn append_text(bytes: &[u8], shift: u8, flip: u8, out: &mut Vec<u8>) -> Option<usize> {
    // (b ^ ff) - 2 = (b + 2) ^ ff, so both directions are an addition and a flip.
    let add = if flip == 0 { 0u8.wrapping_sub(shift) } else { shift };
    let mut at = 0;
    // Most are short. Of those that are not most need one step more, so that how many is predicted.
    if let Some(from) = bytes.first_chunk::<SHORT>() {
        at = append_block(from, add, flip, out);
        if at < SHORT {
            return Some(at + 1);
        }
    }
    while let Some(from) = bytes.get(at..).and_then(|rest| rest.first_chunk::<LONG>()) {
        let len = append_block(from, add, flip, out);
        at += len;
        if len < LONG {
            return Some(at + 1);
        }
    }
    while let Some(from) = bytes.get(at..).and_then(|rest| rest.first_chunk::<SHORT>()) {
        let len = append_block(from, add, flip, out);
        at += len;
        if len < SHORT {
            return Some(at + 1);
        }
    }
    // Near the end of all rows.
    let rest = bytes.get(at..).unwrap_or(&[]);
    let len = find_end(rest, flip)?;
    out.extend(rest[..len].iter().map(|byte| byte.wrapping_add(add) ^ flip));
    Some(at + len + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::text::tests::{coded, source};
    use super::*;

    fn codes_of<'a>(bytes: &'a [u8], ends: &'a [usize], form: Form) -> Texts<'a> {
        Texts { bytes, ends, form, null: Some(0) }
    }

    proptest! {
        #[test]
        fn text_is_found_and_read_back(
            text in prop::collection::vec(0u8..254, 0..200),
            behind in prop::collection::vec(any::<u8>(), 0..140),
            descending: bool,
        ) {
            let flip = if descending { 0xff } else { 0 };
            let code: Vec<u8> = text.iter().map(|byte| (byte + 2) ^ flip).collect();
            let coded = [&code[..], &[1 ^ flip], &behind].concat();
            prop_assert_eq!(find_end(&coded, flip), Some(text.len()));
            prop_assert_eq!(find_end(&code, flip), None);
            let mut back = vec![9];
            prop_assert_eq!(append_text(&coded, 2, flip, &mut back), Some(text.len() + 1));
            prop_assert_eq!(&back[1..], &text[..]);
            prop_assert_eq!(append_text(&code, 2, flip, &mut back), None);
        }

        #[test]
        fn both_read_many_texts_alike(source in source(), descending: bool, cut in 0usize..3) {
            let form = Form { shift: 2, end: 1, flip: if descending { 0xff } else { 0 } };
            let (codes, starts) = coded(&source, form);
            // The texts, each behind a byte that says whether there is one, and ends known of rows alone.
            let (mut rows, mut row_starts, mut row_ends) = (vec![], vec![], vec![]);
            for (start, span) in starts.into_iter().zip(&source.spans) {
                let is_text = span.0 <= span.1;
                row_starts.push(rows.len());
                rows.push(u8::from(is_text));
                let end = if is_text { start + span.1 - span.0 + 1 } else { start };
                rows.extend_from_slice(&codes[start..end]);
                rows.extend([9, 1].iter().take(cut));
                row_ends.push(rows.len());
            }
            let count = source.spans.len();
            let (mut at, mut at_twin) = (row_starts.clone(), row_starts.clone());
            let (mut valid, mut valid_twin) = (vec![], vec![]);
            let (mut ends, mut ends_twin) = (vec![0; count], vec![0; count]);
            let (mut data, mut data_twin) = (StringData::default(), vec![]);
            let texts = codes_of(&rows, &row_ends, form);
            prop_assert!(take_texts(&texts, &mut at, &mut data, &mut ends, &mut valid));
            let fits = take_texts_each(
                &texts, 0, &mut at_twin, &mut data_twin, &mut ends_twin, &mut valid_twin);
            prop_assert!(fits);
            prop_assert_eq!((&at, &valid, &ends), (&at_twin, &valid_twin, &ends_twin));
            prop_assert_eq!((&*data.bytes_mut(), &data_twin), (&source.bytes, &source.bytes));
            prop_assert!(at.iter().zip(&row_ends).all(|(at, end)| at + cut == *end));
            for (row, span) in source.spans.iter().enumerate() {
                prop_assert_eq!(valid[row / 64] >> (row % 64) & 1 == 1, span.0 <= span.1);
            }
            let (mut plain, mut at) = (StringData::default(), row_starts.clone());
            prop_assert!(take_texts(&texts, &mut at, &mut plain, &mut ends, &mut valid));
            prop_assert_eq!(plain.is_ascii(), source.bytes.is_ascii());
            let ends_in_text = source.spans.last().is_some_and(|span| span.0 <= span.1);
            if ends_in_text && cut == 0 {
                // The last one does not end.
                *rows.last_mut().unwrap() = 99;
                let texts = codes_of(&rows, &row_ends, form);
                let mut at = row_starts;
                prop_assert!(!take_texts(&texts, &mut at, &mut data, &mut ends, &mut valid));
            }
        }
    }
}
