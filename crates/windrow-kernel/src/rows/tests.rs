//! Tests every entry point with places that fit exactly, and with a byte too few. The first
//! succeeds; the second panics or reports damaged rows.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::Array;

use super::blocks::put_blocks;
use super::exact::{Text, put_counted, put_exact};
use super::take_text::{Coded, Texts, take_strings, take_views};
use super::*;
use crate::strings::StringData;
use crate::values::Values;
use crate::views::Views;

const ROWS: usize = 70;
/// Bytes between rows.
const GAP: usize = 3;

/// Calls `f` with places of rows of `width` bytes and exactly as many bytes as needed: `f`
/// succeeds. Calls `f` with a byte less, and with a cursor of the greatest number: `f` panics.
fn bounds_are_kept(name: &str, width: usize, f: &dyn Fn(&[usize], &mut [u8])) {
    let cursors: Vec<usize> = (0..ROWS).rev().map(|row| row * (width + GAP)).collect();
    let len = cursors[0] + width;
    let run = |cursors: &[usize], len: usize| {
        let mut bytes = vec![1; len];
        catch_unwind(AssertUnwindSafe(|| f(cursors, &mut bytes))).is_ok()
    };
    assert!(run(&cursors, len), "{name}: within its bytes");
    for (at, cursor) in [(0, cursors[0] + 1), (ROWS - 1, len), (ROWS / 2, usize::MAX - width + 1)] {
        let mut cursors = cursors.clone();
        cursors[at] = cursor;
        assert!(!run(&cursors, len), "{name}: row {at} at {cursor}");
    }
    assert!(!run(&cursors, len - 1), "{name}: a byte too few");
    assert!(!run(&cursors[..ROWS - 1], len), "{name}: a cursor too few");
}

#[test]
fn rows_outside_of_their_bytes_are_neither_written_nor_read() {
    let values = vec![7; 16 * ROWS];
    for width in [4, 8, 16] {
        for columns in [1, 2, 3, 8] {
            let lane = Lane { values: &values, valid: None, code: Code::RAW };
            bounds_are_kept("put", columns * width, &|cursors, out| {
                put(&Lanes::new(vec![lane; columns], width, ROWS), 0..ROWS, places(cursors), out);
            });
            let take = |cursors: &[usize], bytes: &[u8]| match width {
                4 => taken::<u32>(columns, places(cursors), bytes),
                8 => taken::<u64>(columns, places(cursors), bytes),
                _ => taken::<u128>(columns, places(cursors), bytes),
            };
            bounds_are_kept("take", columns * width, &|cursors, bytes| take(cursors, bytes));
            bounds_are_kept("put_cells", columns * (width + 1), &|cursors, out| {
                let lane = Lane { code: Code { big: true, ..Code::RAW }, ..lane };
                let cells = Cells::new(vec![lane; columns], vec![0; columns], width);
                put_cells(&cells, 0..ROWS, places(cursors), out);
            });
        }
    }
    for columns in 1..20 {
        let lanes = vec![ByteLane::of(Source::Same(5)); columns];
        bounds_are_kept("put_bytes", columns, &|cursors, out| {
            put_bytes(&lanes, 0..ROWS, places(cursors), out);
        });
    }
    for width in 1..=16 {
        let raw = Raw { values: &values, width, valid: None, flip: 0 };
        bounds_are_kept("put_raw", width, &|cursors, out| {
            put_raw(&raw, 0..ROWS, places(cursors), out)
        });
        bounds_are_kept("take_raw", width, &|cursors, bytes| {
            take_raw(width, 0, ROWS, places(cursors), bytes, &mut Values::with_capacity(0));
        });
        bounds_are_kept("take_each", width, &|cursors, bytes| {
            let mut values = Values::<u8>::with_capacity(0);
            take_each(width, ROWS, places(cursors), bytes, &mut values, |value| value[width - 1]);
        });
        bounds_are_kept("take_some", width, &|cursors, bytes| {
            let (mut values, mut valid) = (Values::<u8>::with_capacity(0), vec![]);
            let read = |value: &[u8]| Read { value: value[width - 1], valid: true, fits: true };
            take_some(width, ROWS, places(cursors), bytes, &mut values, &mut valid, read);
        });
    }
    bounds_are_kept("take_flags", 1, &|cursors, bytes| {
        take_flags(&mut [(0, &mut vec![])], ROWS, places(cursors), bytes);
    });
    for held in [Held::Nothing, Held::Bit(0), Held::Byte(0), Held::Number(8, Code::RAW)] {
        let width = Cell::new(held, Some(0), ROWS).bytes();
        bounds_are_kept("take_cell", width, &|cursors, bytes| {
            take_cell(&mut Cell::new(held, Some(0), ROWS), ROWS, places(cursors), bytes);
        });
    }
}

fn places(cursors: &[usize]) -> Scattered<'_> {
    Scattered { cursors, distance: 0 }
}

fn taken<T: Word>(columns: usize, places: Scattered<'_>, bytes: &[u8]) {
    let mut read: Vec<_> = (0..columns).map(|_| (Values::<T>::with_capacity(0), vec![])).collect();
    let lanes = read.iter_mut().map(|(values, valid)| LaneOut { values, valid, code: Code::RAW });
    take(&mut lanes.collect::<Vec<_>>(), ROWS, places, bytes);
}

#[test]
fn lanes_hold_what_they_are_asked_for() {
    let bits = Bits { bytes: &[0xff; 8], first: 1 };
    let values = [7; 1200];
    let lane = |len: usize, valid| Lane { values: &values[..len], valid, code: Code::RAW };
    let fails = |f: &dyn Fn()| catch_unwind(AssertUnwindSafe(f)).is_err();
    for (width, rows) in [(4, 63), (8, 63), (16, 63)] {
        let len = width * rows;
        assert!(!fails(&|| _ = Lanes::new(vec![lane(len, Some(bits))], width, rows)));
        assert!(fails(&|| _ = Lanes::new(vec![lane(len - 1, None)], width, rows)), "a value less");
        assert!(
            fails(&|| _ = Lanes::new(vec![lane(len + 99, Some(bits))], width, rows + 1)),
            "a bit less"
        );
        let lanes = Lanes::new(vec![lane(len, None)], width, rows);
        let places = Strided { first: 0, stride: width };
        assert!(fails(&|| _ = put(&lanes, 0..rows + 1, places, &mut [0; 2000])), "a row more");
    }
    let raw = Raw { values: &[7; 63], width: 1, valid: Some(bits), flip: 0 };
    let places = Strided { first: 0, stride: 1 };
    assert!(!fails(&|| put_raw(&raw, 0..63, places, &mut [0; 99])));
    assert!(fails(&|| put_raw(&raw, 0..64, places, &mut [0; 99])), "a value less");
    let raw = Raw { values: &[7; 99], ..raw };
    assert!(fails(&|| put_raw(&raw, 0..64, places, &mut [0; 99])), "a bit less");
    let lane = ByteLane { valid: Some(bits), ..ByteLane::of(Source::Same(1)) };
    assert!(!fails(&|| put_bytes(&[lane], 0..63, places, &mut [0; 99])));
    assert!(fails(&|| put_bytes(&[lane], 0..64, places, &mut [0; 99])), "a bit less");
    let lane = ByteLane::of(Source::Bits(bits, [0, 1]));
    assert!(fails(&|| put_bytes(&[lane], 0..64, places, &mut [0; 99])), "a bit less");
    let values = Source::Values { values: &[0; 126], width: 2, at: 1, flip: 0, float: 0 };
    assert!(!fails(&|| put_bytes(&[ByteLane::of(values)], 0..63, places, &mut [0; 99])));
    assert!(
        fails(&|| put_bytes(&[ByteLane::of(values)], 0..64, places, &mut [0; 99])),
        "a value less"
    );
}

/// Strings of every length up to a limit, every seventh a null.
fn strings() -> Vec<Option<Vec<u8>>> {
    let string = |len: usize| (0..len).map(|at| (len * 7 + at * 13) as u8 % 120 + 3).collect();
    (0..140).map(|len| (len % 7 != 6).then(|| string(len))).collect()
}

#[test]
fn strings_are_written_to_the_last_byte_and_no_further() {
    let strings = strings();
    let texts =
        || strings.iter().map(|string| (string.as_deref().unwrap_or(&[9; 5]), string.is_some()));
    let (form, mark) = (text::Form { shift: 2, end: 1, flip: 0xff }, 0xaa);
    let count = |len: usize, out: &mut [u8]| {
        out[0] = len as u8;
        1
    };
    for way in 0..4 {
        let len = |(string, valid): (&[u8], bool)| match way {
            _ if !valid => usize::from(way > 1),
            3 => blocks::encoded_len(string.len()),
            _ => string.len() + 1,
        };
        let put = |at: usize, cursor: &mut usize, out: &mut [u8]| {
            let (one, cursor) =
                (texts().skip(at).take(1).map(Text::from), std::slice::from_mut(cursor));
            match way {
                0 => put_exact(one, form, None, cursor, out),
                1 => put_exact(one, text::Form { shift: 0, ..form }, Some(2), cursor, out),
                2 => put_counted(one, count, cursor, out),
                _ => put_blocks(one, 0, 0xff, cursor, out),
            }
        };
        for (at, string) in texts().enumerate() {
            let len = len(string);
            let (mut out, mut cursor) = (vec![mark; 5 + len + 200], 5);
            put(at, &mut cursor, &mut out);
            assert_eq!(cursor, 5 + len, "way {way}, {} bytes", string.0.len());
            assert!(
                out[..5].iter().chain(&out[5 + len..]).all(|&byte| byte == mark),
                "way {way}, {at}"
            );
            let (mut exact, mut cursor) = (vec![mark; 5 + len], 5);
            put(at, &mut cursor, &mut exact);
            assert_eq!(exact, out[..5 + len], "way {way}, {at}");
            if len > 0 {
                let mut short = vec![mark; 4 + len];
                let put = || put(at, &mut 5, &mut short);
                assert!(catch_unwind(AssertUnwindSafe(put)).is_err(), "way {way}, {at}: no room");
            }
        }
    }
}

#[test]
fn strings_that_do_not_end_within_their_rows_are_damage() {
    let flip = 0xff;
    for coded in [Coded::Text, Coded::Binary, Coded::Blocks] {
        for null in [Some(0), None] {
            if matches!((coded, null), (Coded::Blocks, None)) {
                continue;
            }
            let shift = if matches!(coded, Coded::Text) { 2 } else { 0 };
            let form = text::Form { shift, end: 1, flip };
            let mut rows = vec![];
            let (mut starts, mut ends) = (vec![], vec![]);
            let strings = strings().into_iter().filter(|string| null.is_some() || string.is_some());
            let strings: Vec<Option<Vec<u8>>> = strings.collect();
            for string in &strings {
                starts.push(rows.len());
                let marks = null.is_some() && !matches!((coded, string), (Coded::Blocks, Some(_)));
                rows.extend(marks.then_some(u8::from(string.is_some())));
                match (coded, string) {
                    (_, None) => {}
                    (Coded::Blocks, Some(string)) => {
                        let at = rows.len();
                        rows.resize(at + blocks::encoded_len(string.len()), 0);
                        blocks::put_block_string(string, flip, &mut rows[at..]);
                    }
                    (_, Some(string)) => {
                        rows.extend(string.iter().map(|byte| byte.wrapping_add(form.shift) ^ flip));
                        rows.push(form.end ^ flip);
                    }
                }
                ends.push(rows.len());
            }
            // With further readable bytes after the rows, and without.
            for behind in [0, 300] {
                let bytes = [&rows[..], &vec![9; behind]].concat();
                let read = |ends: &[usize]| {
                    let texts = Texts { bytes: &bytes, ends, form, null };
                    let (mut at, mut data, mut valid) =
                        (starts.clone(), StringData::default(), vec![]);
                    let mut string_ends = vec![0i64; ends.len()];
                    let is_read = take_strings(
                        coded,
                        &texts,
                        &mut at,
                        &mut data,
                        &mut string_ends,
                        &mut valid,
                    );
                    let mut views = Views::new(false);
                    let fits =
                        take_views(coded, &texts, &mut starts.clone(), &mut views, &mut vec![]);
                    assert_eq!(is_read, fits, "{coded:?}");
                    is_read.then(|| (at, data.into_bytes(), string_ends, valid))
                };
                let (at, data, string_ends, valid) = read(&ends).expect("whole strings");
                assert_eq!(at, ends);
                let mut from = 0;
                for (row, (string, end)) in strings.iter().zip(string_ends).enumerate() {
                    let string = string.as_deref();
                    assert_eq!(
                        &data[from..end as usize],
                        string.unwrap_or(&[]),
                        "{coded:?}, {row}"
                    );
                    assert!(
                        null.is_none()
                            || (valid[row / 64] >> (row % 64) & 1 == 1) == string.is_some()
                    );
                    from = end as usize;
                }
                assert_eq!(valid.len(), if null.is_some() { ends.len().div_ceil(64) } else { 0 });
                let beyond = [&ends[..ends.len() - 1], &[bytes.len() + 1]].concat();
                assert!(read(&beyond).is_none(), "{coded:?}, a row ends behind all bytes");
                for row in 0..ends.len() {
                    let mut ends = ends.clone();
                    ends[row] -= 1;
                    assert!(read(&ends).is_none(), "{coded:?}, row {row} is cut");
                }
            }
        }
    }
}

#[test]
fn one_character_that_is_not_ascii_is_seen_wherever_it_is() {
    for (coded, other) in [Coded::Text, Coded::Blocks].into_iter().flat_map(|coded| {
        (0..130).step_by(3).map(Some).chain([None]).map(move |other| (coded, other))
    }) {
        let (mut rows, mut starts, mut ends) = (vec![], vec![], vec![]);
        for row in 0..130 {
            let text =
                if other == Some(row) { "abé" } else { &"abcdefghijklmnopqrst"[..row % 20] };
            starts.push(rows.len());
            match coded {
                Coded::Blocks => {
                    let at = rows.len();
                    rows.resize(at + blocks::encoded_len(text.len()), 0);
                    blocks::put_block_string(text.as_bytes(), 0, &mut rows[at..]);
                }
                _ => {
                    rows.push(1);
                    rows.extend(text.bytes().map(|byte| byte + 2).chain([1]));
                }
            }
            ends.push(rows.len());
        }
        let bytes = [&rows[..], &[9; 200]].concat();
        let form = text::Form { shift: 2, end: 1, flip: 0 };
        let texts = Texts { bytes: &bytes, ends: &ends, form, null: Some(0) };
        let (mut data, mut string_ends) = (StringData::default(), vec![0i32; ends.len()]);
        let mut at = starts.clone();
        assert!(take_strings(coded, &texts, &mut at, &mut data, &mut string_ends, &mut vec![]));
        assert_eq!(data.is_ascii(), other.is_none(), "{coded:?}, {other:?}");
        let mut views = Views::new(true);
        assert!(take_views(coded, &texts, &mut starts, &mut views, &mut vec![]));
        let array = views.finish(None).expect("as many views as there are");
        assert!(array.to_data().validate_full().is_ok(), "{coded:?}, {other:?}");
    }
}
