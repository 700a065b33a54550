//! Writes byte strings of any layout into rows without overwriting the bytes after them, which may
//! have been written before.
//!
//! ```text
//! string        | s h o r t |n e x t           a mask keeps the string's own bytes and its end
//! mask            1 1 1 1 1   0 0 0
//! row      | a |  u j q t v 01| b |            ordered, with escapes spread; or plain, after its
//!                                              length
//! ```
//!
//! Lengths and nulls are unpredictable: a null counts as a string of no bytes. All code except the
//! AVX-512 kernels is bounds-checked, safe code.

use super::block::{self, BLOCK};
use super::lengths::{self, add_each};
use super::text::Form;
pub use super::text::Text;
use crate::copy::{add_short, copy_short};

/// Adds the encoded lengths of strings to `lengths`, zero for a null. Returns their sum. A byte up
/// to `escape` takes two.
pub fn add_escaped<'a>(
    strings: impl Iterator<Item = Text<'a>>,
    escape: u8,
    lengths: &mut [u32],
) -> u64 {
    let strings = strings.map(|text| {
        let escapes = match text.block() {
            Some(block) if text.len <= BLOCK => {
                (block::up_to(block, escape) & ((1 << text.len) - 1)).count_ones() as usize
            }
            _ => escaped(text.bytes(), escape),
        };
        (text.len + escapes, text.valid)
    });
    add_each(strings, lengths::Form::Ended, lengths)
}

/// Returns how many bytes of `string` are up to `escape`.
#[inline(always)]
pub fn escaped(string: &[u8], escape: u8) -> usize {
    string.iter().filter(|&&byte| byte <= escape).count()
}

/// Writes strings, each with its end at its cursor, and advances the cursors; writes nothing for a
/// null or after a string. Before a byte up to `escape`, the function writes `escape`, and adds one
/// to the byte.
///
/// # Panics
/// If a string does not fit.
pub fn put_exact<'a>(
    strings: impl Iterator<Item = Text<'a>>,
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
                Some(escape) => {
                    super::avx512::exact::put_escaped(strings, form, escape, cursors, out)
                }
                None => super::avx512::exact::put_exact(strings, form, cursors, out),
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
    for (text, cursor) in strings.zip(cursors) {
        if !text.valid {
            continue;
        }
        let target = &mut out[*cursor..];
        let len = match escape {
            Some(escape) if has_escapes(text, escape) => {
                put_escaped(text.bytes(), form, escape, target)
            }
            _ => put_shifted(text, form, target),
        };
        *cursor += len;
    }
}

/// Returns whether a byte of a string is up to `escape`: most strings have no such byte.
#[inline(always)]
fn has_escapes(text: Text<'_>, escape: u8) -> bool {
    match text.block() {
        Some(block) if text.len <= BLOCK => {
            block::up_to(block, escape) & ((1 << text.len) - 1) != 0
        }
        _ => text.bytes().iter().fold(false, |any, &byte| any | (byte <= escape)),
    }
}

/// Writes one string without escapes. Returns the number of bytes written.
#[inline(always)]
fn put_shifted(text: Text<'_>, form: Form, out: &mut [u8]) -> usize {
    let (len, end) = (text.len, form.end ^ form.flip);
    if len < BLOCK
        && let Some(from) = text.block()
    {
        let code = block::first(block::sum(from, form.shift, form.flip), [end; BLOCK], len);
        copy_short(out, &code[..len + 1]);
        return len + 1;
    }
    add_short(&mut out[..len], text.bytes(), form.shift, form.flip);
    out[len] = end;
    len + 1
}

/// Writes strings unchanged, each after its length at its cursor, and advances the cursors; a null
/// is an empty string. Writes nothing after a string. `count` writes a length to the start of the
/// slice and returns the number of its bytes.
///
/// # Panics
/// If a string does not fit.
pub fn put_counted<'a>(
    strings: impl Iterator<Item = Text<'a>>,
    count: impl Fn(usize, &mut [u8]) -> usize,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    for (text, cursor) in strings.zip(cursors) {
        let text = if text.valid { text } else { Text { len: 0, ..text } };
        *cursor += count(text.len, &mut out[*cursor..]);
        copy_short(&mut out[*cursor..], text.bytes());
        *cursor += text.len;
    }
}

/// Writes one string to the start of `out`, as [`put_exact`] does. Returns the number of bytes
/// written.
pub fn put_escaped(string: &[u8], form: Form, escape: u8, out: &mut [u8]) -> usize {
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

    use super::super::text::tests::{source, starts};
    use super::*;

    proptest! {
        #[test]
        fn both_write_many_strings_alike(source in source(), descending: bool) {
            let flip = if descending { 0xff } else { 0 };
            let form = Form { shift: 2, end: 1, flip };
            let bytes = &source.bytes;
            let strings = source.spans.iter().map(|&(start, end)| match start > end {
                true => Text::from((&bytes[..3.min(bytes.len())], false)),
                // Some with readable bytes after them, and some without.
                false if start % 3 == 0 => Text::from((&bytes[start..end], true)),
                false => Text::new(&bytes[start..], end - start, true),
            });
            for (form, escape) in [(form, None), (Form { shift: 0, ..form }, Some(2))] {
                let mut lengths = vec![5; source.spans.len()];
                if let Some(escape) = escape {
                    let total = add_escaped(strings.clone(), escape, &mut lengths);
                    let sum = lengths.iter().map(|&length| u64::from(length - 5)).sum::<u64>();
                    prop_assert_eq!(total, sum);
                } else {
                    add_each(strings.clone().map(|text| (text.len, text.valid)), lengths::Form::Ended, &mut lengths);
                }
                let (mut cursors, end) = starts(lengths.iter().map(|&length| length as usize - 5));
                let (mut cursors_twin, mut out) = (cursors.clone(), vec![0xaa; end]);
                let mut twin = out.clone();
                put_exact(strings.clone(), form, escape, &mut cursors, &mut out);
                put_exact_each(strings.clone(), form, escape, &mut cursors_twin, &mut twin);
                prop_assert_eq!((&cursors, &out), (&cursors_twin, &twin));
                prop_assert_eq!(cursors.last(), Some(&end));
                for (string, (start, len)) in strings.clone().zip(starts(lengths.iter().map(|&length| length as usize - 5)).0.iter().zip(&lengths)) {
                    let mut code = vec![];
                    for &byte in if string.valid { string.bytes() } else { &[] } {
                        code.extend(escape.filter(|&escape| byte <= escape).map(|escape| escape ^ flip));
                        code.push(byte.wrapping_add(form.shift + u8::from(escape.is_some_and(|escape| byte <= escape))) ^ flip);
                    }
                    code.extend(string.valid.then_some(form.end ^ flip));
                    prop_assert_eq!(&out[*start..*start + *len as usize - 5], &code[..]);
                }
            }
            let count = |len: usize, out: &mut [u8]| {
                out[..1 + len % 2].fill(len as u8);
                1 + len % 2
            };
            let values = strings.clone().map(|text| if text.valid { text.bytes() } else { &[] });
            let (mut cursors, end) = starts(values.clone().map(|v| v.len() + 1 + v.len() % 2));
            let (mut out, mut expected) = (vec![0xaa; end], vec![]);
            put_counted(strings, count, &mut cursors, &mut out);
            for value in values {
                expected.resize(expected.len() + 1 + value.len() % 2, value.len() as u8);
                expected.extend_from_slice(value);
            }
            prop_assert_eq!((cursors.last(), out), (Some(&end), expected));
        }
    }
}
