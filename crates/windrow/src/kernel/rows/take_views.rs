//! Strings out of rows, as views: what a view holds goes nowhere else.
//!
//! ```text
//! row      | a | u j q t v 01 | n | z q w m l ... 01 |        two texts
//! data     | (short)           |                             read as any text; the next one takes its place
//!          | x o u k j ...     |                             longer than a view holds: stays
//! views    | 5, short | 20, xouk, buffer, 0 |
//! ```

use super::binary::take_one;
#[cfg(target_arch = "x86_64")]
use super::take_blocks::are_long;
use super::take_blocks::{BEHIND, append_blocks};
use super::take_text::{Coded, Texts, append_text, room_of};
#[cfg(target_arch = "x86_64")]
use super::take_text::{Sink, Taken, are_short};
#[cfg(target_arch = "x86_64")]
use crate::kernel::views::Room;
use crate::kernel::views::Views;

/// As [`take_texts`](super::take_text::take_texts), to views, of texts or byte strings as these are, which are `coded` in
/// some way; false too if a text is not UTF-8. Strings in blocks have a byte that says of a null.
///
/// Benefit: by way of an array with offsets, of which Arrow made views, four columns of texts of 1 to 31 bytes took 360 us
/// in place of 240.
///
/// # Panics
/// If there are not as many cursors as ends.
pub(crate) fn take_views(
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
        // More than a buffer holds are added one by one.
        if let Some((mut sink, data)) = views.room(cursors.len(), room + BEHIND) {
            let sink = &mut sink;
            // SAFETY: the features were detected; there is an end for each cursor, none of them outside of the bytes, and
            // room for all that the rows have and what may be written behind, and for a view of each.
            let taken = unsafe {
                use super::avx512::{take_binaries, take_blocks, take_texts};
                let taken = match coded {
                    Coded::Text if are_short(texts, cursors) => {
                        take_texts::<32>(texts, cursors, data, sink, valid)
                    }
                    Coded::Text => take_texts::<64>(texts, cursors, data, sink, valid),
                    Coded::Blocks if are_long(texts, cursors) => {
                        take_blocks::<_, true>(texts, cursors, data, sink, valid)
                    }
                    Coded::Blocks => take_blocks::<_, false>(texts, cursors, data, sink, valid),
                    Coded::Binary => take_binaries(texts, cursors, data, sink, valid)
                        .map(|texts| Taken { texts, ascii: false }),
                };
                taken.map(|taken| taken.texts)
            };
            match taken {
                Some(taken) => done = taken,
                None => return false,
            }
            // SAFETY: so many were read, each of which was put there.
            unsafe { views.grow(done) };
        }
    }
    take_each(coded, texts, done, cursors, views, valid)
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
        // SAFETY: as the trait's.
        unsafe { self.put(row, data, at, len, ascii) }
    }
}

/// The portable twin, and the last few: those from the one at `done` on, a multiple of 64.
fn take_each(
    coded: Coded,
    texts: &Texts<'_>,
    done: usize,
    cursors: &mut [usize],
    views: &mut Views,
    valid: &mut Vec<u64>,
) -> bool {
    let Texts { bytes, ends, form, null } = *texts;
    let (mut word, rows, mut string) = (0, cursors.len(), Vec::new());
    // What blocks begin with stays in front of them.
    let marker = usize::from(null.is_some() && !matches!(coded, Coded::Blocks));
    for (row, (cursor, &end)) in cursors.iter_mut().zip(ends).enumerate().skip(done) {
        let mut code = bytes[..end].get(*cursor..).unwrap_or(&[]);
        let is_valid = match (null, code.first()) {
            (Some(_), None) => return false,
            (Some(null), Some(&first)) => first != null,
            (None, _) => true,
        };
        string.clear();
        if is_valid {
            code = &code[marker..];
            let is_read = match coded {
                Coded::Text => append_text(code, form.shift, form.flip, &mut string)
                    .map(|len| code = &code[len..])
                    .is_some(),
                Coded::Binary => {
                    let mut codes = code.iter().map(|byte| byte ^ form.flip);
                    let is_read = take_one(&mut codes, &mut string);
                    code = &code[code.len() - codes.len()..];
                    is_read
                }
                Coded::Blocks => append_blocks(&mut code, form.flip, &mut string).is_some(),
            };
            if !is_read {
                return false;
            }
        } else {
            code = &code[1..];
        }
        if !views.push(&string) {
            return false;
        }
        *cursor = end - code.len();
        word |= u64::from(is_valid) << (row % 64);
        if null.is_some() && (row % 64 == 63 || row + 1 == rows) {
            valid.push(std::mem::take(&mut word));
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use proptest::prelude::*;

    use super::super::blocks::{encoded_len, put_block_string};
    use super::super::text::Form;
    use super::*;

    /// Rows of `strings`, each behind a marker and with `behind` more bytes; where they begin and end.
    fn rows_of(
        coded: Coded,
        strings: &[Option<Vec<u8>>],
        form: Form,
        behind: usize,
    ) -> (Vec<u8>, Vec<usize>, Vec<usize>) {
        let (mut rows, mut starts, mut ends) = (vec![], vec![], vec![]);
        for string in strings {
            starts.push(rows.len());
            rows.push(u8::from(string.is_some()));
            if matches!(coded, Coded::Blocks) {
                rows.pop();
                let (len, at) = (string.as_ref().map(Vec::len), rows.len());
                rows.resize(at + len.map_or(1, encoded_len), 0);
                match string {
                    Some(string) => _ = put_block_string(string, form.flip, &mut rows[at..]),
                    None => rows[at] = 0,
                }
                rows.extend([9, 1].iter().take(behind));
                ends.push(rows.len());
                continue;
            }
            for &byte in string.iter().flatten() {
                match form.shift {
                    0 if byte <= 2 => rows.extend([2 ^ form.flip, (byte + 1) ^ form.flip]),
                    shift => rows.push((byte + shift) ^ form.flip),
                }
            }
            rows.extend(string.is_some().then_some(form.end ^ form.flip));
            rows.extend([9, 1].iter().take(behind));
            ends.push(rows.len());
        }
        (rows, starts, ends)
    }

    /// Texts of up to `most` characters, of which some are not ASCII.
    fn texts(most: usize) -> impl Strategy<Value = Vec<u8>> {
        let text = prop::collection::vec(
            prop_oneof![8 => Just('a'), 8 => Just('~'), 1 => Just('é')],
            0..most,
        );
        text.prop_map(|text| text.into_iter().collect::<String>().into_bytes())
    }

    proptest! {
        #[test]
        fn both_make_the_views_of_what_was_written(
            strings in prop::collection::vec(
                prop::option::weighted(0.9, prop_oneof![8 => texts(16), 2 => texts(40), 1 => texts(200)]),
                0..200,
            ),
            bytes in prop::collection::vec(0u8..12, 0..100),
            is_text: bool,
            in_blocks: bool,
            descending: bool,
            behind in 0usize..3,
            // Now larger than all, now than one, now than few.
            most in prop_oneof![Just(1 << 20), Just(1 << 14), Just(900)],
            broken: Option<u16>,
        ) {
            let flip = if descending { 0xff } else { 0 };
            let form = Form { shift: if is_text { 2 } else { 0 }, end: 1, flip };
            let coded = match (in_blocks, is_text) {
                (true, _) => Coded::Blocks,
                (false, true) => Coded::Text,
                (false, false) => Coded::Binary,
            };
            let mut strings = strings;
            if !is_text {
                strings.push(Some(bytes.clone()));
                strings.insert(strings.len() / 2, Some(bytes));
            }
            let (mut rows, starts, ends) = rows_of(coded, &strings, form, behind);
            if let (Some(at), len @ 1..) = (broken, rows.len()) {
                rows[usize::from(at) % len] ^= 0x83;
            }
            let read = Texts { bytes: &rows, ends: &ends, form, null: Some(0) };
            let (mut at, mut at_twin) = (starts.clone(), starts);
            let (mut valid, mut valid_twin) = (vec![], vec![]);
            let (mut views, mut twin) =
                (Views::in_buffers_of(most, is_text), Views::in_buffers_of(most, is_text));
            // Behind one that is there.
            prop_assert!(views.push(b"in front of the others") && twin.push(b"in front of the others"));
            let fits = take_views(coded, &read, &mut at, &mut views, &mut valid);
            let fits_twin = take_each(coded, &read, 0, &mut at_twin, &mut twin, &mut valid_twin);
            prop_assert_eq!(fits, fits_twin);
            let (array, twin) = (views.finish(None).unwrap(), twin.finish(None).unwrap());
            // Whatever was read, it is what its type says.
            array.to_data().validate_full().expect("views of strings");
            if fits {
                prop_assert_eq!((&at, &valid), (&at_twin, &valid_twin));
                prop_assert_eq!(&array, &twin);
            }
            if broken.is_none() {
                prop_assert!(fits);
                prop_assert!(at.iter().zip(&ends).all(|(at, end)| at + behind == *end));
                let views: Vec<&[u8]> = match is_text {
                    true => array.as_string_view().iter().flatten().map(str::as_bytes).collect(),
                    false => array.as_binary_view().iter().flatten().collect(),
                };
                prop_assert_eq!(views.len(), strings.len() + 1);
                for (row, (view, string)) in views[1..].iter().zip(&strings).enumerate() {
                    prop_assert_eq!(view, &string.as_deref().unwrap_or_default());
                    prop_assert_eq!(valid[row / 64] >> (row % 64) & 1 == 1, string.is_some());
                }
            }
        }
    }
}
