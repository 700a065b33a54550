//! Strings that kernels read, beside those that were written.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use proptest::prelude::*;

use super::super::blocks::{encoded_len, put_block_string};
use super::*;
use crate::rows::text::Form;

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
}

/// Returns rows of `strings`, each after a marker and with `behind` more bytes, and their
/// starts and ends.
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

/// Texts of up to `most` characters, some of them not ASCII.
fn texts(most: usize) -> impl Strategy<Value = Vec<u8>> {
    let text =
        prop::collection::vec(prop_oneof![8 => Just('a'), 8 => Just('~'), 1 => Just('é')], 0..most);
    text.prop_map(|text| text.into_iter().collect::<String>().into_bytes())
}

proptest! {
    #[test]
    fn both_read_what_was_written(
        strings in prop::collection::vec(
            prop::option::weighted(0.9, prop_oneof![8 => texts(16), 2 => texts(40), 1 => texts(200)]),
            0..200,
        ),
        bytes in prop::collection::vec((0u8..12, prop_oneof![Just(1u8), Just(50)]), 0..100),
        is_text: bool,
        in_blocks: bool,
        descending: bool,
        behind in 0usize..3,
        // Larger than all strings, than one, or than a few.
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
        let bytes: Vec<u8> = bytes.iter().map(|(byte, by)| byte.wrapping_mul(*by)).collect();
        if !is_text {
            strings.push(Some(bytes.clone()));
            strings.insert(strings.len() / 2, Some(bytes));
        }
        let (mut rows, starts, ends) = rows_of(coded, &strings, form, behind);
        if let (Some(at), len @ 1..) = (broken, rows.len()) {
            rows[usize::from(at) % len] ^= 0x83;
        }
        let read = Texts { bytes: &rows, ends: &ends, form, null: Some(0) };
        let (mut at, mut at_twin) = (starts.clone(), starts.clone());
        let (mut valid, mut valid_twin) = (vec![], vec![]);
        let (mut views, mut twin) =
            (Views::in_buffers_of(most, is_text), Views::in_buffers_of(most, is_text));
        // After an existing string.
        prop_assert!(views.push(b"in front of the others") && twin.push(b"in front of the others"));
        let fits = take_views(coded, &read, &mut at, &mut views, &mut valid);
        let target = &mut InViews { views: &mut twin, string: vec![] };
        let fits_twin = take_each(coded, &read, 0, &mut at_twin, target, &mut valid_twin);
        prop_assert_eq!(fits, fits_twin);
        let (mut data, mut data_twin) = (StringData::default(), vec![]);
        let (mut own, mut own_twin) = (vec![0i32; ends.len()], vec![0i32; ends.len()]);
        let (mut data_at, mut data_valid) = (starts.clone(), vec![]);
        let is_read =
            take_strings(coded, &read, &mut data_at, &mut data, &mut own, &mut data_valid);
        let (mut at_data_twin, mut valid_data_twin) = (starts.clone(), vec![]);
        let target = &mut InData { data: &mut data_twin, ends: &mut own_twin };
        let is_read_twin =
            take_each(coded, &read, 0, &mut at_data_twin, target, &mut valid_data_twin);
        prop_assert_eq!(is_read, is_read_twin);
        if is_read {
            prop_assert_eq!(data.is_ascii(), data_twin.is_ascii());
            prop_assert_eq!((data.bytes_mut(), own), (&mut data_twin, own_twin));
            prop_assert_eq!((data_at, data_valid), (at_data_twin, valid_data_twin));
        }
        let (array, twin) = (views.finish(None).unwrap(), twin.finish(None).unwrap());
        // Whatever was read, the array is valid.
        array.to_data().validate_full().expect("views of strings");
        if fits {
            prop_assert_eq!((&at, &valid), (&at_twin, &valid_twin));
            prop_assert_eq!(&array, &twin);
        }
        if broken.is_none() {
            prop_assert!(fits && is_read);
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
