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
//! Where what is behind the end was written before, it is read and written back ([`add_exact`]).
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

/// Appends texts to `data`, whose codes are the whole of `spans` of `bytes`, and writes where each ends to
/// `ends`; a null is empty. False if one of them is not a text; what was appended is then of no use.
///
/// # Panics
/// If a span lies outside of `bytes`, or there are not as many ends.
pub(crate) fn take_ended<O: Offset>(
    bytes: &[u8],
    spans: &[Span],
    form: Form,
    data: &mut StringData,
    ends: &mut [O],
) -> bool {
    assert_eq!(spans.len(), ends.len(), "an end for each span");
    let mut room = STEPS;
    for &(start, end) in spans {
        assert!(end <= bytes.len(), "a span within the bytes");
        room += end.saturating_sub(start);
    }
    let add = |data: &mut Vec<u8>| {
        data.reserve(room);
        let before = data.len();
        let mut first = Taken { texts: 0, ascii: false };
        #[cfg(target_arch = "x86_64")]
        if super::avx512::detected() {
            // SAFETY: the features were detected; spans were checked, and room made, above.
            match unsafe { super::avx512::take_ended(bytes, spans, form, data, ends) } {
                Some(taken) => first = taken,
                None => return (0, false),
            }
        }
        let seen = if first.ascii { data.len() - before } else { 0 };
        (seen, take_ended_each(bytes, &spans[first.texts..], form, data, &mut ends[first.texts..]))
    };
    // SAFETY: bytes are appended, and what the first of them are was seen.
    unsafe { data.add(add) }
}

/// What was read of many texts.
pub(super) struct Taken {
    pub(super) texts: usize,
    /// Whether all of these were seen to be ASCII.
    pub(super) ascii: bool,
}

/// The portable twin.
fn take_ended_each<O: Offset>(
    bytes: &[u8],
    spans: &[Span],
    form: Form,
    data: &mut Vec<u8>,
    ends: &mut [O],
) -> bool {
    for (&(start, end), text_end) in spans.iter().zip(ends) {
        if start <= end {
            match append_text(&bytes[start..], form.shift, form.flip, data) {
                Some(len) if len == end - start => {}
                _ => return false,
            }
        }
        *text_end = O::of(data.len());
    }
    true
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
                prop::option::of(prop::collection::vec(0u8..254, 0..200)), 1..20),
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
            let (mut data, mut data_twin) = (StringData::default(), vec![7]);
            data.bytes_mut().push(7);
            prop_assert!(take_ended(&out, &codes, form, &mut data, &mut ends));
            prop_assert!(take_ended_each(&out, &codes, form, &mut data_twin, &mut ends_twin));
            prop_assert_eq!((&*data.bytes_mut(), &ends), (&data_twin, &ends_twin));
            prop_assert_eq!(&data_twin[1..], &source[..]);
            let mut plain = StringData::default();
            prop_assert!(take_ended(&out, &codes, form, &mut plain, &mut ends));
            prop_assert_eq!(plain.is_ascii(), source.is_ascii());
            if end > 0 {
                // Another byte that ends a text, or none.
                let mut broken = out.clone();
                let at = cut * (end - 1) / 2;
                broken[at] = if broken[at] == 1 ^ form.flip { 99 } else { 1 ^ form.flip };
                prop_assert!(!take_ended(&broken, &codes, form, &mut data, &mut ends));
            }
        }
    }
}
