//! Byte strings out of rows: an escape stands in front of bytes below 3, to which one was added.

use arrow_array::OffsetSizeTrait;

#[cfg(target_arch = "x86_64")]
use super::take_text::Ends;
use super::take_text::{Texts, room_of};

/// What stands in front of a byte that would be an escape, an end, or less.
pub(crate) const ESCAPE: u8 = 2;

/// As [`take_texts`](super::take_text::take_texts), of byte strings.
///
/// # Panics
/// If there are not as many cursors as ends, of rows or of values.
pub(crate) fn take_binaries<O: OffsetSizeTrait>(
    texts: &Texts<'_>,
    cursors: &mut [usize],
    data: &mut Vec<u8>,
    value_ends: &mut [O],
    valid: &mut Vec<u64>,
) -> bool {
    assert_eq!(value_ends.len(), cursors.len(), "an end for each cursor");
    let Some(room) = room_of(texts.bytes, cursors, texts.ends) else { return false };
    data.reserve(room);
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if super::avx512::detected() {
        let ends = &mut Ends(&mut *value_ends);
        // SAFETY: the features were detected; there is an end for each cursor, which are in front of those of their rows,
        // none of them outside of the bytes; and room for all that the rows have.
        match unsafe { super::avx512::take_binaries(texts, cursors, data, ends, valid) } {
            Some(count) => done = count,
            None => return false,
        }
    }
    take_each(texts, done, cursors, data, value_ends, valid)
}

/// The portable twin, and the last few: those from the one at `done` on, a multiple of 64.
fn take_each<O: OffsetSizeTrait>(
    texts: &Texts<'_>,
    done: usize,
    cursors: &mut [usize],
    data: &mut Vec<u8>,
    value_ends: &mut [O],
    valid: &mut Vec<u64>,
) -> bool {
    let Texts { bytes, ends, form, null } = *texts;
    let (mut word, rows) = (0, cursors.len());
    let each = cursors.iter_mut().zip(ends).zip(value_ends).enumerate().skip(done);
    for (row, ((cursor, &end), value_end)) in each {
        let mut codes =
            bytes[..end].get(*cursor..).unwrap_or(&[]).iter().map(|byte| byte ^ form.flip);
        let before = codes.len();
        let mut is_valid = true;
        if let Some(null) = null {
            let Some(marker) = codes.next() else { return false };
            is_valid = marker ^ form.flip != null;
        }
        if is_valid && !take_one(&mut codes, data) {
            return false;
        }
        *cursor += before - codes.len();
        *value_end = O::usize_as(data.len());
        word |= u64::from(is_valid) << (row % 64);
        if null.is_some() && (row % 64 == 63 || row + 1 == rows) {
            valid.push(std::mem::take(&mut word));
        }
    }
    true
}

/// Appends one value; false if its code does not end.
pub(super) fn take_one(codes: &mut impl Iterator<Item = u8>, data: &mut Vec<u8>) -> bool {
    while let Some(code) = codes.next() {
        match code {
            ESCAPE => match codes.next() {
                Some(code) => data.push(code.wrapping_sub(1)),
                None => return false,
            },
            code if code > ESCAPE => data.push(code),
            _ => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::text::Form;
    use super::*;

    proptest! {
        #[test]
        fn both_read_what_was_escaped(
            values in prop::collection::vec(
                prop::option::of(prop::collection::vec(0u8..6, 0..160)), 1..200),
            few: bool,
            descending: bool,
            marked: bool,
            broken: Option<u16>,
        ) {
            let flip = if descending { 0xff } else { 0 };
            let form = Form { shift: 0, end: 1, flip };
            let (mut rows, mut starts, mut ends) = (vec![], vec![], vec![]);
            let mut expected = vec![];
            for value in &values {
                let value: Vec<u8> = value
                    .iter()
                    .flatten()
                    .map(|&byte| if few { byte.wrapping_mul(50) } else { byte })
                    .collect();
                let is_valid = !marked || !value.is_empty();
                starts.push(rows.len());
                rows.extend(marked.then_some(u8::from(is_valid)));
                if is_valid {
                    for &byte in &value {
                        rows.extend((byte <= ESCAPE).then_some(ESCAPE ^ flip));
                        rows.push((if byte <= ESCAPE { byte + 1 } else { byte }) ^ flip);
                    }
                    rows.push(1 ^ flip);
                }
                ends.push(rows.len());
                expected.extend(value);
            }
            if let Some(at) = broken {
                let at = usize::from(at) % rows.len().max(1);
                if let Some(byte) = rows.get_mut(at) {
                    *byte ^= 3;
                }
            }
            let texts = Texts { bytes: &rows, ends: &ends, form, null: marked.then_some(0) };
            let (mut at, mut at_twin) = (starts.clone(), starts);
            let (mut data, mut data_twin) = (vec![], vec![]);
            let (mut valid, mut valid_twin) = (vec![], vec![]);
            let (mut own, mut twin) = (vec![0i32; ends.len()], vec![0i32; ends.len()]);
            let fits = take_binaries(&texts, &mut at, &mut data, &mut own, &mut valid);
            let fits_twin = take_each(&texts, 0, &mut at_twin, &mut data_twin, &mut twin, &mut valid_twin);
            prop_assert_eq!(fits, fits_twin);
            if fits {
                prop_assert_eq!((&at, &data, &own, &valid), (&at_twin, &data_twin, &twin, &valid_twin));
            }
            if broken.is_none() {
                prop_assert!(fits);
                prop_assert_eq!((&at, &data), (&ends, &expected));
            }
        }
    }
}
