//! Text of any length into rows and back: a constant added to every byte, on the way.
//!
//! Lengths of strings are hard to predict, and a wrong guess costs as much as copying 100 bytes. So
//! short strings move 32 bytes or more whatever their length, where that much may be read and written:
//!
//! ```text
//! source  | s h o r t|n e x t   s t r  |         32 bytes are read from the start of the string,
//! target  | u j q t v 01| . . . . . .  |         and written: what is behind the end is to be
//!                                                written yet, and comes later
//! ```
//!
//! Where what is behind the end was written before, the end is written under a mask ([`put_exact`]), or read and
//! written back ([`add_exact`]).
//! Everything here but [`append_text`], and what says that it is ASCII, is bounds-checked, safe code.

use super::super::copy::{add_short, copy_short};
use super::block::{self, BLOCK, Block};
use super::lane::Span;
use crate::kernel::strings::StringData;

/// Bytes that are read at once.
const SHORT: usize = 2 * BLOCK;
/// Bytes of a longer text that are read at once.
const LONG: usize = 6 * BLOCK;

/// How text is coded: `shift` is added to every byte, then the bits of `flip` are complemented; `end`, also
/// complemented, follows the last one. It is below 2, and no code of a byte is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) shift: u8,
    pub(crate) end: u8,
    pub(crate) flip: u8,
}

impl Form {
    /// What is added to a code before the bits of `flip` are complemented: both directions are an addition
    /// and a flip, since (b ^ ff) - 2 = (b + 2) ^ ff.
    #[inline(always)]
    pub(super) fn back(self) -> u8 {
        if self.flip == 0 { 0u8.wrapping_sub(self.shift) } else { self.shift }
    }
}

/// Writes texts of `source`, each with its end at its cursor, and moves the cursors behind them; nothing for a
/// null. Up to 127 bytes behind are overwritten too.
pub(crate) fn put_texts(
    source: &[u8],
    spans: impl ExactSizeIterator<Item = Span> + Clone,
    form: Form,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    #[cfg(target_arch = "x86_64")]
    if super::avx512::detected() {
        // SAFETY: the features were detected.
        return unsafe { super::avx512::put_texts(source, spans, form, cursors, out) };
    }
    put_each(source, spans, form, cursors, out);
}

/// The portable twin.
fn put_each(
    source: &[u8],
    spans: impl ExactSizeIterator<Item = Span> + Clone,
    form: Form,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    let lens = spans.clone().map(|(start, end)| end.saturating_sub(start));
    // As many bytes at once as most strings take.
    match lens.sum::<usize>() / spans.len().max(1) {
        0..=20 => put_each_of::<32>(source, spans, form, cursors, out),
        21..=44 => put_each_of::<64>(source, spans, form, cursors, out),
        _ => put_each_of::<128>(source, spans, form, cursors, out),
    }
}

fn put_each_of<const N: usize>(
    source: &[u8],
    spans: impl Iterator<Item = Span>,
    form: Form,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    for ((start, end), cursor) in spans.zip(cursors) {
        if start > end {
            continue;
        }
        add_over::<N>(out, *cursor, source, (start, end), form.shift, form.flip);
        *cursor += end - start;
        out[*cursor] = form.end ^ form.flip;
        *cursor += 1;
    }
}

/// The bytes of a string, of a null any, and whether it is one.
pub(crate) type Text<'a> = (&'a [u8], bool);

/// Adds the bytes that the codes of strings take to `lengths`, none for a null; returns their sum. A byte up to
/// `escape` takes two.
pub(crate) fn add_lengths<'a>(
    strings: impl Iterator<Item = Text<'a>>,
    escape: Option<u8>,
    lengths: &mut [u32],
) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if let Some(escape) = escape
        && super::avx512::detected()
    {
        // SAFETY: the features were detected.
        return unsafe { super::avx512::add_lengths(strings, escape, lengths) };
    }
    add_lengths_each(strings, escape, lengths)
}

/// The portable twin.
fn add_lengths_each<'a>(
    strings: impl Iterator<Item = Text<'a>>,
    escape: Option<u8>,
    lengths: &mut [u32],
) -> u64 {
    let mut total = 0;
    for ((string, valid), length) in strings.zip(lengths) {
        let escaped = escape.map_or(0, |escape| escaped(string, escape));
        let own = (string.len() + escaped + 1) * usize::from(valid);
        total += own as u64;
        *length = length.wrapping_add(own as u32);
    }
    total
}

/// How many bytes of `string` are up to `escape`.
#[inline(always)]
pub(crate) fn escaped(string: &[u8], escape: u8) -> usize {
    string.iter().filter(|&&byte| byte <= escape).count()
}

/// Writes strings, each with its end at its cursor, and moves the cursors behind them; nothing for a null. Bytes
/// behind them are as they were. A byte up to `escape`, which is written in front of it, becomes one more.
///
/// # Panics
/// If there is no room.
pub(crate) fn put_exact<'a>(
    strings: impl Iterator<Item = Text<'a>> + Clone,
    form: Form,
    escape: Option<u8>,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    #[cfg(target_arch = "x86_64")]
    if super::avx512::detected() {
        // SAFETY: the features were detected.
        return unsafe {
            match escape {
                Some(escape) => super::avx512::put_escaped(strings, form, escape, cursors, out),
                None => super::avx512::put_exact(strings, form, cursors, out),
            }
        };
    }
    put_exact_each(strings, form, escape, cursors, out);
}

/// The portable twin.
fn put_exact_each<'a>(
    strings: impl Iterator<Item = Text<'a>>,
    form: Form,
    escape: Option<u8>,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    for ((string, valid), cursor) in strings.zip(cursors) {
        if !valid {
            continue;
        }
        let target = &mut out[*cursor..];
        *cursor += match escape {
            Some(escape) => put_escaped(string, form, escape, target),
            None => {
                add_short(&mut target[..string.len()], string, form.shift, form.flip);
                target[string.len()] = form.end ^ form.flip;
                string.len() + 1
            }
        };
    }
}

/// Writes strings as they are, each behind its length at its cursor, and moves the cursors behind them; a null is
/// an empty one. Bytes behind them are as they were. `count` writes a length to the start of what it is given,
/// and returns its bytes there.
///
/// # Panics
/// If there is no room.
pub(crate) fn put_counted<'a>(
    strings: impl Iterator<Item = Text<'a>> + Clone,
    count: impl Fn(usize, &mut [u8]) -> usize,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    #[cfg(target_arch = "x86_64")]
    if super::avx512::detected() {
        // SAFETY: the features were detected.
        return unsafe { super::avx512::put_counted(strings, count, cursors, out) };
    }
    put_counted_each(strings, count, cursors, out);
}

/// The portable twin.
fn put_counted_each<'a>(
    strings: impl Iterator<Item = Text<'a>>,
    count: impl Fn(usize, &mut [u8]) -> usize,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    for ((string, valid), cursor) in strings.zip(cursors) {
        let string = if valid { string } else { &[] };
        *cursor += count(string.len(), &mut out[*cursor..]);
        copy_short(&mut out[*cursor..], string);
        *cursor += string.len();
    }
}

/// Writes one string, as [`put_exact`], to the start of `out`; returns the bytes written.
pub(crate) fn put_escaped(string: &[u8], form: Form, escape: u8, out: &mut [u8]) -> usize {
    let mut at = 0;
    for &byte in string {
        if byte <= escape {
            out[at] = escape ^ form.flip;
            out[at + 1] = (byte + 1) ^ form.flip;
            at += 2;
        } else {
            out[at] = byte ^ form.flip;
            at += 1;
        }
    }
    out[at] = form.end ^ form.flip;
    at + 1
}

/// Where a text ends: 32 bits, which wrap around, or 64.
pub(crate) trait Offset: Copy {
    /// The low bits of `end`.
    fn of(end: usize) -> Self;
    /// Where it is; one below zero is beyond all bytes.
    fn at(self) -> usize;
}

impl Offset for i32 {
    #[inline(always)]
    fn of(end: usize) -> Self {
        end as Self
    }

    #[inline(always)]
    fn at(self) -> usize {
        self as usize
    }
}

impl Offset for i64 {
    #[inline(always)]
    fn of(end: usize) -> Self {
        end as Self
    }

    #[inline(always)]
    fn at(self) -> usize {
        self as usize
    }
}

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
pub(crate) fn take_texts<O: Offset>(
    texts: &Texts<'_>,
    cursors: &mut [usize],
    data: &mut StringData,
    text_ends: &mut [O],
    valid: &mut Vec<u64>,
) -> bool {
    assert_eq!(text_ends.len(), cursors.len(), "an end for each cursor");
    let Some(room) = room_of(texts, cursors) else { return false };
    let add = |data: &mut Vec<u8>| {
        data.reserve(room);
        let before = data.len();
        let mut first = Taken { texts: 0, ascii: false };
        #[cfg(target_arch = "x86_64")]
        if super::avx512::detected() {
            // SAFETY: the features were detected; there is an end for each cursor, none of them outside of the
            // bytes, and room for all that the rows have.
            let taken = unsafe {
                match are_short(texts, cursors) {
                    true => {
                        super::avx512::take_texts::<O, 32>(texts, cursors, data, text_ends, valid)
                    }
                    false => {
                        super::avx512::take_texts::<O, 64>(texts, cursors, data, text_ends, valid)
                    }
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

/// Bytes of what is left of all rows, and of a step; nothing if a cursor is behind the end of its row, or that outside of
/// the bytes.
///
/// # Panics
/// If there are not as many cursors as ends.
pub(super) fn room_of(texts: &Texts<'_>, cursors: &[usize]) -> Option<usize> {
    assert_eq!(texts.ends.len(), cursors.len(), "an end for each cursor");
    // No way out in the middle: several at a time. Lengths have no highest bit.
    let (mut room, mut wrong) = (STEPS, 0);
    for (&cursor, &end) in cursors.iter().zip(texts.ends) {
        let left = end.wrapping_sub(cursor);
        room = room.wrapping_add(left);
        wrong |= cursor | end | left | texts.bytes.len().wrapping_sub(end);
    }
    // The sum did not wrap around either.
    cursors.len().checked_mul(texts.bytes.len())?.checked_add(STEPS)?;
    (wrong.cast_signed() >= 0).then_some(room)
}

/// Whether most texts are of half a step: a store of a whole one nearly always crosses from one cache line to the
/// next. Some of them are looked at.
#[cfg(target_arch = "x86_64")]
fn are_short(texts: &Texts<'_>, cursors: &[usize]) -> bool {
    const LOOKS: usize = 16;
    let rows = cursors.iter().zip(texts.ends).step_by(cursors.len() / LOOKS + 1);
    let len = |(&cursor, &end): (&usize, &usize)| {
        let code = texts.bytes.get(cursor + usize::from(texts.null.is_some())..end);
        code.and_then(|code| find_end(code, texts.form.flip)).unwrap_or(0)
    };
    rows.clone().map(len).sum::<usize>() <= LOOKS * rows.len()
}

/// The portable twin, and the last few: those from the one at `done` on, a multiple of 64.
fn take_texts_each<O: Offset>(
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
        *text_end = O::of(data.len());
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

/// Writes the bytes `start..end` of `source`, plus `add` and then with the bits of `flip`
/// complemented, to `target` from `at` on, `N` bytes at once. Up to `N - 1` bytes behind them are
/// overwritten too.
#[inline(always)]
pub(super) fn add_over<const N: usize>(
    target: &mut [u8],
    at: usize,
    source: &[u8],
    (start, end): (usize, usize),
    add: u8,
    flip: u8,
) {
    let len = end - start;
    if len <= N
        && let (Some(from), Some(to)) = (source.get(start..start + N), target.get_mut(at..at + N))
    {
        return sums::<N>(to, from, add, flip);
    }
    let moved = len.next_multiple_of(N);
    let (Some(from), Some(to)) = (source.get(start..start + moved), target.get_mut(at..at + moved))
    else {
        return add_short(&mut target[at..at + len], &source[start..end], add, flip);
    };
    let blocks = from.chunks_exact(N).zip(to.chunks_exact_mut(N));
    blocks.for_each(|(from, to)| sums::<N>(to, from, add, flip));
}

/// As [`add_over`], and the bytes behind are as they were.
#[inline(always)]
pub(crate) fn add_exact(
    target: &mut [u8],
    at: usize,
    source: &[u8],
    (start, end): (usize, usize),
    add: u8,
    flip: u8,
) {
    let len = end - start;
    if len <= BLOCK
        && let (Some(from), Some(to)) =
            (source.get(start..start + BLOCK), target.get_mut(at..at + BLOCK))
    {
        let behind = block_at(to, 0);
        to.copy_from_slice(&block::first(block::sum(block_at(from, 0), add, flip), behind, len));
        return;
    }
    add_short(&mut target[at..at + len], &source[start..end], add, flip);
}

#[inline(always)]
fn block_at(bytes: &[u8], at: usize) -> Block {
    let mut block = [0; BLOCK];
    block.copy_from_slice(&bytes[at..at + BLOCK]);
    block
}

/// `N` bytes.
#[inline(always)]
fn sums<const N: usize>(to: &mut [u8], from: &[u8], add: u8, flip: u8) {
    let (from, to) = (&from[..N], &mut to[..N]);
    for at in (0..N).step_by(BLOCK) {
        to[at..at + BLOCK].copy_from_slice(&block::sum(block_at(from, at), add, flip));
    }
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

    use super::super::lane::NULL;
    use super::*;

    proptest! {
        #[test]
        fn text_is_moved_found_and_read_back(
            text in prop::collection::vec(0u8..254, 0..200),
            behind in prop::collection::vec(any::<u8>(), 0..140),
            room in 0usize..140,
            descending: bool,
        ) {
            let flip = if descending { 0xff } else { 0 };
            let source = [&text[..], &behind].concat();
            let mut target = vec![0xaa; 3 + text.len() + room];
            add_over::<32>(&mut target, 3, &source, (0, text.len()), 2, flip);
            let expected: Vec<u8> = text.iter().map(|byte| (byte + 2) ^ flip).collect();
            prop_assert_eq!(&target[3..3 + text.len()], &expected[..]);
            prop_assert_eq!(&target[..3], &[0xaa; 3]);
            target.fill(0xaa);
            add_over::<128>(&mut target, 3, &source, (0, text.len()), 2, flip);
            prop_assert_eq!(&target[3..3 + text.len()], &expected[..]);
            target.fill(0xaa);
            add_exact(&mut target, 3, &source, (0, text.len()), 2, flip);
            prop_assert_eq!(&target[3..3 + text.len()], &expected[..]);
            prop_assert!(target[3 + text.len()..].iter().all(|&byte| byte == 0xaa));
            let coded = [&expected[..], &[1 ^ flip], &behind].concat();
            prop_assert_eq!(find_end(&coded, flip), Some(text.len()));
            prop_assert_eq!(find_end(&expected, flip), None);
            let mut back = vec![9];
            prop_assert_eq!(append_text(&coded, 2, flip, &mut back), Some(text.len() + 1));
            prop_assert_eq!(&back[1..], &text[..]);
            prop_assert_eq!(append_text(&expected, 2, flip, &mut back), None);
        }
    }

    proptest! {
        #[test]
        fn both_move_many_texts_alike(
            texts in prop::collection::vec(
                prop::option::of(prop::collection::vec(0u8..254, 0..200)), 1..200),
            short: bool,
            descending: bool,
            cut in 0usize..3,
        ) {
            let flip = if descending { 0xff } else { 0 };
            let form = Form { shift: 2, end: 1, flip };
            let (mut source, mut spans, mut cursors) = (vec![], vec![], vec![]);
            let mut end = 0;
            for text in &texts {
                let bytes = text.as_deref().unwrap_or_default();
                let bytes = &bytes[..if short { bytes.len() % 20 } else { bytes.len() }];
                cursors.push(end);
                let span = (source.len(), source.len() + bytes.len());
                spans.push(if text.is_some() { span } else { NULL });
                source.extend_from_slice(bytes);
                end += text.as_ref().map_or(0, |_| bytes.len() + 1);
            }
            let (mut out, mut twin) = (vec![0xaa; end], vec![0xaa; end]);
            let (mut moved, mut moved_twin) = (cursors.clone(), cursors.clone());
            put_texts(&source, spans.iter().copied(), form, &mut moved, &mut out);
            put_each(&source, spans.iter().copied(), form, &mut moved_twin, &mut twin);
            prop_assert_eq!(&moved, &moved_twin);
            prop_assert_eq!(&out, &twin);
            let texts_twin = twin;
            let strings = spans.iter().map(|&(start, end)| match start > end {
                true => (&source[..3.min(source.len())], false),
                false => (&source[start..end], true),
            });
            for (form, escape) in [(form, None), (Form { shift: 0, ..form }, Some(2))] {
                let (mut lengths, mut lengths_twin) = (vec![5; texts.len()], vec![5; texts.len()]);
                let total = add_lengths(strings.clone(), escape, &mut lengths);
                prop_assert_eq!(total, add_lengths_each(strings.clone(), escape, &mut lengths_twin));
                prop_assert_eq!(&lengths, &lengths_twin);
                let mut end = 0;
                let mut moved: Vec<usize> = Vec::new();
                for length in &lengths {
                    moved.push(end);
                    end += *length as usize - 5;
                }
                let (mut moved_twin, mut out) = (moved.clone(), vec![0xaa; end]);
                let mut twin = out.clone();
                put_exact(strings.clone(), form, escape, &mut moved, &mut out);
                put_exact_each(strings.clone(), form, escape, &mut moved_twin, &mut twin);
                prop_assert_eq!((&moved, &out), (&moved_twin, &twin));
                prop_assert_eq!(moved.last(), Some(&end));
                if escape.is_none() {
                    prop_assert_eq!(&out, &texts_twin);
                }
            }
            let count = |len: usize, out: &mut [u8]| {
                out[..1 + len % 2].fill(len as u8);
                1 + len % 2
            };
            let mut out = vec![0xaa; end + texts.len()];
            let (mut twin, mut moved_twin) = (out.clone(), vec![]);
            let mut next = 0;
            for (string, valid) in strings.clone() {
                moved_twin.push(next);
                let len = if valid { string.len() } else { 0 };
                next += len + 1 + len % 2;
            }
            out.truncate(next);
            twin.truncate(next);
            let mut counted = moved_twin.clone();
            put_counted(strings.clone(), count, &mut counted, &mut out);
            put_counted_each(strings, count, &mut moved_twin, &mut twin);
            prop_assert_eq!((counted, out), (moved_twin, twin));
            let out = texts_twin;
            let codes: Vec<Span> = cursors
                .iter()
                .zip(&moved)
                .map(|(&start, &end)| if start == end { NULL } else { (start, end) })
                .collect();
            let (mut ends, mut ends_twin) = (vec![0; codes.len()], vec![0; codes.len()]);
            // The same texts, each behind a byte that says whether there is one, and ends known of rows alone.
            let (mut rows, mut row_starts, mut row_ends) = (vec![], vec![], vec![]);
            for &(start, end) in &codes {
                row_starts.push(rows.len());
                rows.push(if start <= end { 1 } else { 0 });
                rows.extend_from_slice(out.get(start..end).unwrap_or(&[]));
                row_ends.push(rows.len());
                rows.extend([9, 1].iter().take(cut));
                *row_ends.last_mut().unwrap() += cut;
            }
            fn codes_of<'a>(bytes: &'a [u8], ends: &'a [usize], form: Form) -> Texts<'a> {
                Texts { bytes, ends, form, null: Some(0) }
            }
            let (mut at, mut at_twin) = (row_starts.clone(), row_starts.clone());
            let (mut valid, mut valid_twin) = (vec![], vec![]);
            let mut data = StringData::default();
            let mut data_twin = vec![];
            let fits = take_texts(&codes_of(&rows, &row_ends, form), &mut at, &mut data, &mut ends, &mut valid);
            prop_assert!(fits);
            let fits = take_texts_each(
                &codes_of(&rows, &row_ends, form), 0, &mut at_twin, &mut data_twin, &mut ends_twin, &mut valid_twin);
            prop_assert!(fits);
            prop_assert_eq!((&at, &valid, &ends), (&at_twin, &valid_twin, &ends_twin));
            prop_assert_eq!((&*data.bytes_mut(), &data_twin), (&source, &source));
            prop_assert!(at.iter().zip(&row_ends).all(|(at, end)| at + cut == *end));
            for (row, text) in texts.iter().enumerate() {
                prop_assert_eq!(valid[row / 64] >> (row % 64) & 1 == 1, text.is_some());
            }
            let mut plain = StringData::default();
            let mut at = row_starts.clone();
            let fits = take_texts(
                &codes_of(&rows, &row_ends, form), &mut at, &mut plain, &mut ends, &mut valid);
            prop_assert!(fits);
            prop_assert_eq!(plain.is_ascii(), source.is_ascii());
            if let (Some(last), true) = (texts.last().unwrap(), cut == 0) {
                // The last one does not end.
                *rows.last_mut().unwrap() = 99;
                let mut at = row_starts.clone();
                let texts = codes_of(&rows, &row_ends, form);
                prop_assert!(!take_texts(&texts, &mut at, &mut data, &mut ends, &mut valid), "{last:?}");
            }
        }
    }
}
