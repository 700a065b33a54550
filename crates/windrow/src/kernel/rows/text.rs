//! Text of any length into rows: a constant added to every byte, on the way. [`super::take_text`] reads it back.
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
//! Where what is behind the end was written before, the end is written under a mask ([`super::exact`]).
//! Everything here is bounds-checked, safe code.

use super::super::copy::add_short;
use super::block::{self, BLOCK, Block};
use super::lane::Span;

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

/// Writes the texts that stand between offsets of `source`, each with its end at its cursor, and moves the cursors behind
/// them. Up to 127 bytes behind are overwritten too.
///
/// # Panics
/// If there is not one offset more than cursors, or a text lies outside of `source`, or its code of `out`.
pub(crate) fn put_texts(
    source: &[u8],
    offsets: &[i32],
    form: Form,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    #[cfg(target_arch = "x86_64")]
    if super::avx512::detected() {
        // SAFETY: the features were detected.
        return unsafe { super::avx512::put_texts(source, offsets, form, cursors, out) };
    }
    put_each(source, offsets, form, cursors, out);
}

/// The portable twin.
fn put_each(source: &[u8], offsets: &[i32], form: Form, cursors: &mut [usize], out: &mut [u8]) {
    let spans = offsets.windows(2).map(|ends| (ends[0] as usize, ends[1] as usize));
    assert_eq!(spans.len(), cursors.len(), "a cursor for each text");
    let bytes = match offsets {
        [first, .., last] => last.abs_diff(*first) as usize,
        _ => 0,
    };
    // As many bytes at once as most strings take.
    match bytes / spans.len().max(1) {
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
        add_over::<N>(out, *cursor, source, (start, end), form.shift, form.flip);
        *cursor += end - start;
        out[*cursor] = form.end ^ form.flip;
        *cursor += 1;
    }
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

#[inline(always)]
pub(super) fn block_at(bytes: &[u8], at: usize) -> Block {
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

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The span of a null.
    const NULL: Span = (1, 0);

    /// Texts one behind the other, and where each begins and ends.
    #[derive(Debug)]
    pub(in super::super) struct Source {
        pub(in super::super) bytes: Vec<u8>,
        pub(in super::super) spans: Vec<Span>,
    }

    /// Texts of up to 200 bytes or of up to 20, some of them null.
    pub(in super::super) fn source() -> impl Strategy<Value = Source> {
        let text = prop::option::of(prop::collection::vec(0u8..254, 0..200));
        (prop::collection::vec(text, 1..200), any::<bool>()).prop_map(|(texts, short)| {
            let mut bytes = Vec::new();
            let span = |text: Option<Vec<u8>>| {
                let text = text?;
                let start = bytes.len();
                bytes.extend(&text[..if short { text.len() % 20 } else { text.len() }]);
                Some((start, bytes.len()))
            };
            let spans = texts.into_iter().map(span).map(|span| span.unwrap_or(NULL)).collect();
            Source { bytes, spans }
        })
    }

    /// Where each of some codes begins if they follow each other, and where the last one ends.
    pub(in super::super) fn starts(lens: impl Iterator<Item = usize>) -> (Vec<usize>, usize) {
        let mut end = 0;
        let start = |len| {
            end += len;
            end - len
        };
        (lens.map(start).collect(), end)
    }

    /// The codes of the texts, one behind the other, and where each begins.
    pub(in super::super) fn coded(source: &Source, form: Form) -> (Vec<u8>, Vec<usize>) {
        let len = |&(start, end): &Span| if start > end { 0 } else { end - start + 1 };
        let (starts, end) = starts(source.spans.iter().map(len));
        let mut out = vec![0xaa; end];
        for (&start, span) in starts.iter().zip(&source.spans) {
            if let Some(text) = source.bytes.get(span.0..span.1) {
                let code = text.iter().map(|byte| byte.wrapping_add(form.shift)).chain([form.end]);
                out[start..].iter_mut().zip(code).for_each(|(out, byte)| *out = byte ^ form.flip);
            }
        }
        (out, starts)
    }

    proptest! {
        #[test]
        fn text_is_moved(
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
        }

        #[test]
        fn both_move_many_texts_alike(source in source(), descending: bool, room in 0usize..140) {
            let form = Form { shift: 2, end: 1, flip: if descending { 0xff } else { 0 } };
            let spans: Vec<Span> = source.spans.iter().copied().filter(|span| *span != NULL).collect();
            let source = Source { spans, ..source };
            let (expected, starts) = coded(&source, form);
            let ends = source.spans.iter().map(|span| span.1 as i32);
            let offsets: Vec<i32> = std::iter::once(0).chain(ends).collect();
            for put in [put_texts, put_each] {
                // Whole steps where there is room, and not.
                let (mut out, mut cursors) = (vec![0xaa; expected.len() + room], starts.clone());
                put(&source.bytes, &offsets, form, &mut cursors, &mut out);
                prop_assert_eq!(&out[..expected.len()], &expected);
                for ((cursor, start), span) in cursors.iter().zip(&starts).zip(&source.spans) {
                    prop_assert_eq!(*cursor, start + span.1 - span.0 + 1);
                }
            }
        }
    }
}
