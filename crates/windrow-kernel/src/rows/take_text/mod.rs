//! Reads strings out of rows, at any place in them: text with a constant added to every byte,
//! escaped byte strings, and the blocks of arrow-row.
//!
//! ```text
//! row      | a | 1 | u j q t v 01 | b |      marker, text, end; then the next part
//!            cursor ^               ^
//! data     | s h o r t|. . . . . .           all bytes read are written; the next text
//! ends               ^                       overwrites the bytes after the end
//! views    | 5, short |                      a text inside its view is overwritten as a whole
//! ```
//!
//! Strings appended to `StringData` are known to be UTF-8 if all of them were seen to be ASCII.
//! Strings of views are checked as they are read.

use arrow_array::OffsetSizeTrait;

use super::block::{self, BLOCK, Block, block_at};
#[cfg(target_arch = "x86_64")]
use super::take_blocks::are_long;
use super::take_blocks::{BEHIND, append_blocks};
use super::text::ESCAPE;
pub use super::texts::Texts;
#[cfg(target_arch = "x86_64")]
use super::texts::{Sink, Taken};
use crate::strings::StringData;
#[cfg(target_arch = "x86_64")]
use crate::views::Room;
use crate::views::Views;

/// Bytes read at once.
const SHORT: usize = 2 * BLOCK;
/// Bytes of a longer text read at once.
const LONG: usize = 6 * BLOCK;

/// Bytes after the texts that reads may overwrite.
const STEPS: usize = 64;

/// Encoding of strings in rows.
#[derive(Clone, Copy, Debug)]
pub enum Coded {
    /// A constant added to each byte, and an end.
    Text,
    /// Escaped, and an end.
    Binary,
    /// In blocks, as in arrow-row.
    Blocks,
}

/// Appends the strings at `cursors` to `data`, moves the cursors past them, and writes the end of
/// each to `string_ends`; a null is empty. If a byte marks nulls, appends validity bits to `valid`,
/// 64 rows a word. Returns false if a string does not end within its row; the appended data are
/// then useless.
///
/// # Panics
/// If the number of cursors differs from the number of row ends or of string ends.
pub fn take_strings<O: OffsetSizeTrait>(
    coded: Coded,
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
        let mut first = Taken { texts: 0, ascii: false };
        #[cfg(target_arch = "x86_64")]
        if super::avx512::detected() {
            let ends = &mut Ends(&mut *string_ends);
            // SAFETY: the features were detected. Each cursor has a row end and a string end, as
            // asserted. `room_of` checked that no cursor is after the end of its row, and no end
            // after the bytes. `data` has space for the rest of all rows and for `BEHIND` bytes.
            match unsafe { take_wide(coded, texts, cursors, data, ends, valid) } {
                Some(taken) => first = taken,
                None => return (0, false),
            }
        }
        let seen = if first.ascii { data.len() - before } else { 0 };
        let target = &mut InData { data, ends: string_ends };
        (seen, take_each(coded, texts, first.texts, cursors, target, valid))
    };
    // SAFETY: `add` only appends bytes. `seen` covers the strings of the kernel only if it saw that
    // all of them are ASCII.
    unsafe { data.add(add) }
}

/// Reads strings as [`take_strings`] does, into views. Also returns false if a text is not UTF-8.
///
/// # Panics
/// If the number of cursors differs from the number of row ends.
pub fn take_views(
    coded: Coded,
    texts: &Texts<'_>,
    cursors: &mut [usize],
    views: &mut Views,
    valid: &mut Vec<u64>,
) -> bool {
    let Some(room) = room_of(texts.bytes, cursors, texts.ends) else { return false };
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if super::avx512::detected() {
        // Strings that may exceed a buffer are added one by one.
        if let Some((mut sink, data)) = views.room(cursors.len(), room + BEHIND) {
            // SAFETY: the features were detected. Each cursor has a row end, and `room_of` checked
            // both. `data` has space for the rest of all rows and for `BEHIND` bytes, and `sink`
            // for a view of each row.
            match unsafe { take_wide(coded, texts, cursors, data, &mut sink, valid) } {
                Some(taken) => done = taken.texts,
                None => return false,
            }
            // SAFETY: the kernel read `done` strings and put a view of each.
            unsafe { views.grow(done) };
        }
    }
    let _ = room;
    take_each(coded, texts, done, cursors, &mut InViews { views, string: Vec::new() }, valid)
}

/// Reads as many strings as possible with the kernel of their encoding. Blocks have two kernels,
/// for long and for short strings.
///
/// # Safety
/// - The CPU has the features of `avx512::detected`.
/// - Each cursor has an end. No cursor is after the end of its row, and no end after the bytes.
/// - `data` has space for the rest of all rows and for [`BEHIND`] bytes.
/// - `sink` has as many rows as cursors.
#[cfg(target_arch = "x86_64")]
unsafe fn take_wide<S: Sink>(
    coded: Coded,
    texts: &Texts<'_>,
    cursors: &mut [usize],
    data: &mut Vec<u8>,
    sink: &mut S,
    valid: &mut Vec<u64>,
) -> Option<Taken> {
    use super::avx512::binary::take_binaries;
    use super::avx512::take_blocks::take_blocks;
    use super::avx512::take_text::take_texts;
    // SAFETY: the caller keeps the conditions of all kernels.
    unsafe {
        match coded {
            Coded::Text => take_texts(texts, cursors, data, sink, valid),
            Coded::Blocks if are_long(texts, cursors) => {
                take_blocks::<_, true>(texts, cursors, data, sink, valid)
            }
            Coded::Blocks => take_blocks::<_, false>(texts, cursors, data, sink, valid),
            Coded::Binary => take_binaries(texts, cursors, data, sink, valid)
                .map(|texts| Taken { texts, ascii: false }),
        }
    }
}

/// Keeps all strings, one after the other, and writes the end of each.
#[cfg(target_arch = "x86_64")]
struct Ends<'a, O>(&'a mut [O]);

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
        // SAFETY: the caller promises that the row exists.
        unsafe { *self.0.get_unchecked_mut(row) = O::usize_as(at + len) };
        Some(len)
    }
}

#[cfg(target_arch = "x86_64")]
impl Sink for Room {
    const ASKS: bool = true;

    #[inline(always)]
    unsafe fn put(
        &mut self,
        row: usize,
        data: *const u8,
        at: usize,
        len: usize,
        ascii: bool,
    ) -> Option<usize> {
        // SAFETY: the caller promises an existing row, readable bytes, and ASCII if `ascii`. A
        // buffer of views is no longer than Arrow allows.
        unsafe { self.put(row, data, at, len, ascii) }
    }
}

/// Returns the bytes left in all rows, and a step more. Returns `None` if a cursor is after the end
/// of its row, or an end after the bytes.
///
/// # Panics
/// If the number of cursors differs from the number of ends.
fn room_of(bytes: &[u8], cursors: &[usize], ends: &[usize]) -> Option<usize> {
    assert_eq!(ends.len(), cursors.len(), "an end for each cursor");
    // No early return, so that the loop vectorises. Valid lengths have no highest bit.
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

/// A destination of strings that are read one by one.
trait Target {
    /// Returns where the next string is appended.
    fn bytes(&mut self) -> &mut Vec<u8>;
    /// Ends the string of `row`. Returns false if the string is invalid.
    fn end(&mut self, row: usize) -> bool;
}

/// Keeps all strings, one after the other.
struct InData<'a, O> {
    data: &'a mut Vec<u8>,
    ends: &'a mut [O],
}

impl<O: OffsetSizeTrait> Target for InData<'_, O> {
    #[inline(always)]
    fn bytes(&mut self) -> &mut Vec<u8> {
        self.data
    }

    #[inline(always)]
    fn end(&mut self, row: usize) -> bool {
        self.ends[row] = O::usize_as(self.data.len());
        true
    }
}

/// Turns each string into a view.
struct InViews<'a> {
    views: &'a mut Views,
    string: Vec<u8>,
}

impl Target for InViews<'_> {
    #[inline(always)]
    fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.string
    }

    #[inline(always)]
    fn end(&mut self, _row: usize) -> bool {
        let len = self.string.len();
        // Lets the view be made of whole numbers.
        self.string.extend_from_slice(&[0; BLOCK]);
        let is_put = self.views.push_beyond(&self.string, len);
        self.string.clear();
        is_put
    }
}

/// Reads the strings from number `done` on, a multiple of 64: the portable twin, and the last few.
fn take_each(
    coded: Coded,
    texts: &Texts<'_>,
    done: usize,
    cursors: &mut [usize],
    target: &mut impl Target,
    valid: &mut Vec<u64>,
) -> bool {
    let Texts { bytes, ends, form, null } = *texts;
    let (mut word, rows) = (0, cursors.len());
    // The first byte of blocks is part of their code.
    let marker = usize::from(null.is_some() && !matches!(coded, Coded::Blocks));
    for (row, (cursor, &end)) in cursors.iter_mut().zip(ends).enumerate().skip(done) {
        // Steps may reach a little beyond the row.
        let near = bytes.len().min(end + LONG);
        let code = bytes.get(*cursor..near).unwrap_or(&[]);
        let is_valid = match (null, code.first()) {
            (Some(_), None) => return false,
            (Some(null), Some(&first)) => first != null,
            (None, _) => true,
        };
        let len = if is_valid {
            let code = &code[marker..];
            let len = match coded {
                Coded::Text => append_text(code, form.shift, form.flip, target.bytes()),
                Coded::Binary => append_binary(code, form.flip, target.bytes()),
                Coded::Blocks => {
                    let mut left = code;
                    let is_read = append_blocks(&mut left, form.flip, target.bytes());
                    is_read.map(|_| code.len() - left.len())
                }
            };
            let Some(len) = len else { return false };
            marker + len
        } else {
            1
        };
        *cursor += len;
        if *cursor > end || !target.end(row) {
            return false;
        }
        word |= u64::from(is_valid) << (row % 64);
        if null.is_some() && (row % 64 == 63 || row + 1 == rows) {
            valid.push(std::mem::take(&mut word));
        }
    }
    true
}

/// Returns how many bytes are before the first one that, XORed with `flip`, is below 2.
#[inline(always)]
pub fn find_end(bytes: &[u8], flip: u8) -> Option<usize> {
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

/// Returns how many of `bytes` are before the first one that, XORed with `flip`, is below 2; all of
/// them if there is no such byte.
#[inline(always)]
fn first_end(bytes: &[u8; SHORT], flip: u8) -> usize {
    let ends = [0, BLOCK].map(|at| u64::from(block::ends(block_at(bytes, at), flip)));
    (ends[0] | ends[1] << BLOCK | 1 << SHORT).trailing_zeros() as usize
}

/// Appends the decoded bytes of `from` before the end of the text, or all of them if the end is not
/// among them. Returns their number.
#[inline(always)]
fn append_block<const N: usize>(from: &[u8; N], add: u8, flip: u8, out: &mut Vec<u8>) -> usize {
    let mut ends = 0u128;
    out.reserve(N);
    let end = out.len();
    for at in (0..N).step_by(BLOCK) {
        let block = block_at(from, at);
        ends |= u128::from(block::ends(block, flip)) << at;
        // SAFETY: `out` has capacity for `N` more bytes, and `at + BLOCK <= N`.
        unsafe {
            let to = out.as_mut_ptr().add(end + at);
            to.cast::<Block>().write(block::sum(block, add, flip));
        }
    }
    let len = (ends.trailing_zeros() as usize).min(N);
    // SAFETY: the capacity covers these bytes, and all of them were written.
    unsafe { out.set_len(end + len) };
    len
}

/// Appends the text whose code is at the start of `bytes`: `shift` was added to each of its bytes,
/// then `flip` complemented them, and a byte below 2, also complemented, ends it. Returns the
/// length of the code with its end, or `None` if it does not end; a part may have been appended
/// then.
///
/// Benefit: no second pass for the length, and no capacity checks for each string; twice as fast
/// for strings of up to 31 bytes.
#[inline(always)]
pub(crate) fn append_text(bytes: &[u8], shift: u8, flip: u8, out: &mut Vec<u8>) -> Option<usize> {
    // (b ^ ff) - 2 = (b + 2) ^ ff, so both directions are an addition and a flip.
    let add = if flip == 0 { 0u8.wrapping_sub(shift) } else { shift };
    let mut at = 0;
    // Most texts are short. Most longer ones need one more step, so the number of steps is
    // predictable.
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

/// Appends a byte string as [`append_text`] does; bytes up to [`ESCAPE`] are escaped.
#[inline(always)]
fn append_binary(bytes: &[u8], flip: u8, out: &mut Vec<u8>) -> Option<usize> {
    // Most short strings have no escape before their end.
    if let Some(from) = bytes.first_chunk::<SHORT>() {
        let low = [0, BLOCK]
            .map(|at| u64::from(block::up_to(block::sum(block_at(from, at), 0, flip), ESCAPE)));
        let low = (low[0] | low[1] << BLOCK).trailing_zeros() as usize;
        if low < SHORT && from[low] ^ flip != ESCAPE {
            return Some(append_block(from, 0, flip, out) + 1);
        }
    }
    let mut at = 0;
    loop {
        let byte = bytes.get(at)? ^ flip;
        at += 1;
        if byte < ESCAPE {
            return Some(at);
        }
        if byte > ESCAPE {
            out.push(byte);
            continue;
        }
        let escaped = bytes.get(at)? ^ flip;
        at += 1;
        out.push(escaped.wrapping_sub(1));
    }
}

#[cfg(test)]
mod tests;
