//! Byte strings of any layout into rows where nothing behind them may be overwritten: what stands there was written
//! before. [`super::spans`] is for arrays with offsets.
//!
//! ```text
//! string        | s h o r t |n e x t           a mask leaves what is its own, and its end
//! mask            1 1 1 1 1   0 0 0
//! row      | a |  u j q t v 01| b |            ordered, with what is to be escaped spread; or as it is, behind
//!                                              its length
//! ```
//!
//! Neither the length of a string nor whether it is null is to be predicted: a null is a string of no bytes. All but the
//! kernels for AVX-512 is bounds-checked, safe code.

use super::super::copy::{add_short, copy_short};
use super::lengths::{self, add_each};
use super::text::Form;

/// The bytes of a string, of a null any, and whether it is one.
pub(crate) type Text<'a> = (&'a [u8], bool);

/// Adds the bytes that the codes of strings take to `lengths`, none for a null; returns their sum. A byte up to
/// `escape` takes two.
pub(crate) fn add_escaped<'a>(
    strings: impl Iterator<Item = Text<'a>>,
    escape: u8,
    lengths: &mut [u32],
) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if super::avx512::detected() {
        // SAFETY: the features were detected.
        return unsafe { super::avx512::add_escaped(strings, escape, lengths) };
    }
    add_escaped_each(strings, escape, lengths)
}

/// The portable twin.
fn add_escaped_each<'a>(
    strings: impl Iterator<Item = Text<'a>>,
    escape: u8,
    lengths: &mut [u32],
) -> u64 {
    let strings = strings.map(|(string, valid)| (string.len() + escaped(string, escape), valid));
    add_each(strings, lengths::Form::Ended, lengths)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::text::tests::{coded, source, starts};
    use super::*;

    proptest! {
        #[test]
        fn both_write_many_strings_alike(source in source(), descending: bool) {
            let form = Form { shift: 2, end: 1, flip: if descending { 0xff } else { 0 } };
            let bytes = &source.bytes;
            let strings = source.spans.iter().map(|&(start, end)| match start > end {
                true => (&bytes[..3.min(bytes.len())], false),
                false => (&bytes[start..end], true),
            });
            for (form, escape) in [(form, None), (Form { shift: 0, ..form }, Some(2))] {
                let mut lengths = vec![5; source.spans.len()];
                let mut twin = lengths.clone();
                if let Some(escape) = escape {
                    let total = add_escaped(strings.clone(), escape, &mut lengths);
                    prop_assert_eq!(total, add_escaped_each(strings.clone(), escape, &mut twin));
                    prop_assert_eq!(&lengths, &twin);
                } else {
                    let lens = strings.clone().map(|(string, valid)| (string.len(), valid));
                    add_each(lens, lengths::Form::Ended, &mut lengths);
                }
                let (mut cursors, end) = starts(lengths.iter().map(|&length| length as usize - 5));
                let (mut cursors_twin, mut out) = (cursors.clone(), vec![0xaa; end]);
                let mut twin = out.clone();
                put_exact(strings.clone(), form, escape, &mut cursors, &mut out);
                put_exact_each(strings.clone(), form, escape, &mut cursors_twin, &mut twin);
                prop_assert_eq!((&cursors, &out), (&cursors_twin, &twin));
                prop_assert_eq!(cursors.last(), Some(&end));
                if escape.is_none() {
                    prop_assert_eq!(&out, &coded(&source, form).0);
                }
            }
            let count = |len: usize, out: &mut [u8]| {
                out[..1 + len % 2].fill(len as u8);
                1 + len % 2
            };
            let lens = strings.clone().map(|(string, valid)| if valid { string.len() } else { 0 });
            let (mut cursors, end) = starts(lens.map(|len| len + 1 + len % 2));
            let (mut cursors_twin, mut out) = (cursors.clone(), vec![0xaa; end]);
            let mut twin = out.clone();
            put_counted(strings.clone(), count, &mut cursors, &mut out);
            put_counted_each(strings, count, &mut cursors_twin, &mut twin);
            prop_assert_eq!((cursors, out), (cursors_twin, twin));
        }
    }
}
