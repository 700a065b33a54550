//! Tests every level against a slow loop, on values around every edge, to codes and back.

use proptest::prelude::*;

use super::level::Level;
use super::put::put_of;
use super::take::take_by;
use super::*;
use crate::values::Values;

/// Returns the constants of a column of `W` bytes.
fn code<const W: usize>(kind: u8, descending: bool, nulls: Option<bool>, big: bool) -> Code {
    let ones = u64::MAX >> (64 - 8 * W);
    let top = 1 << (8 * W - 1);
    let flip = if kind == 0 { 0 } else { top };
    let complement = if descending { ones } else { 0 };
    let code = Code {
        flip: flip ^ complement,
        float: if kind == 2 { ones ^ top } else { 0 },
        big,
        ..Code::RAW
    };
    // Nulls below all values, or above them, before the complement.
    let (delta, null, longer, edge) = match (nulls, descending) {
        (None, _) => return code,
        (Some(true), false) => (1, 0, ones, ones),
        (Some(true), true) => (ones, ones, 0, ones),
        (Some(false), false) => (0, ones, ones - 1, ones - 1),
        (Some(false), true) => (0, 0, 1, 0),
    };
    Code { delta, null, longer, edge, escapes: true, ..code }
}

/// Returns the code of a value by the definition of [`Code`], and whether the value has no code of
/// its width.
fn slow<const W: usize>(lane: &Lane<'_>, row: usize) -> (Vec<u8>, bool) {
    let mut bytes = [0; 16];
    bytes[..W].copy_from_slice(&lane.values[row * W..][..W]);
    let bits = 8 * W as u32;
    let ones = u128::MAX >> (128 - bits);
    let wide = |word: u64| (word as i64 as i128 as u128) & ones;
    let code = &lane.code;
    // For 16 bytes, the constants are for the upper half.
    let flip = match W {
        16 => u128::from(code.flip) << 64 | u128::from(0u64.wrapping_sub(code.flip & 1)),
        _ => code.flip.into(),
    };
    let value = u128::from_le_bytes(bytes);
    let negative = value >> (bits - 1) == 1;
    let value = value ^ if negative { code.float.into() } else { 0 } ^ flip;
    let shifted = value.wrapping_add(wide(code.delta)) & ones;
    let is_valid = lane.valid.is_none_or(|valid| valid.get(row));
    let edge = shifted.wrapping_sub(wide(code.edge)) & ones <= 1;
    let word = if is_valid { shifted } else { wide(code.null) };
    let word = if code.big {
        word.to_be_bytes()[16 - W..].to_vec()
    } else {
        word.to_le_bytes()[..W].to_vec()
    };
    (word, code.escapes && is_valid && edge)
}

fn check<T: Word + PartialEq + std::fmt::Debug, const W: usize>(
    codes: &[Code],
    values: &[Vec<u8>],
    valid: &[Vec<u8>],
    first_bit: usize,
    all_rows: usize,
    scattered: bool,
    nulls: usize,
) {
    let all: Vec<Lane<'_>> = codes
        .iter()
        .zip(values.iter().zip(valid))
        .enumerate()
        .map(|(at, (&code, (values, valid)))| {
            // In no column, in all columns, or in every second one.
            let has_nulls = [false, true, at % 2 == 0][nulls];
            let valid = has_nulls.then_some(Bits { bytes: valid, first: first_bit });
            Lane { values, valid, code }
        })
        .collect();
    let range = all_rows / 5..all_rows;
    let rows = range.len();
    let stride = codes.len() * W + usize::from(scattered) * 5;
    let cursors: Vec<usize> = (0..rows).map(|row| row * stride).collect();
    let strided = Strided { first: 1, stride };
    let places = Scattered { cursors: &cursors, distance: 1 };
    let mut expected = vec![0xaa; rows * stride + 1];
    let mut escaped = false;
    for (at, row) in range.clone().enumerate() {
        for (column, lane) in all.iter().enumerate() {
            let (code, is_edge) = slow::<W>(lane, row);
            expected[strided.place(at) + column * W..][..W].copy_from_slice(&code);
            escaped |= is_edge;
        }
    }
    let lanes = Lanes::new(all.clone(), W, all_rows);
    let mut out = vec![0xaa; expected.len()];
    assert_eq!(put(&lanes, range.clone(), strided, &mut out), escaped);
    assert_eq!(out, expected);
    let anywhere = if scattered { places.anywhere() } else { strided.anywhere() };
    for level in Level::all() {
        let mut out = vec![0xaa; expected.len()];
        let to = out.as_mut_ptr();
        // SAFETY: the level was detected. The places lie within `out`, and the lanes have values of
        // all rows.
        let found = unsafe { put_of::<W>(&all, range.clone(), anywhere, to, level) };
        assert_eq!((found, &out), (escaped, &expected), "{level:?}");
        let mut read: Vec<(Values<T>, Vec<u64>)> =
            codes.iter().map(|_| (Values::with_capacity(0), vec![7; 9])).collect();
        let mut outs: Vec<LaneOut<'_, T>> = read
            .iter_mut()
            .zip(codes)
            .map(|((values, valid), &code)| LaneOut { values, valid, code })
            .collect();
        let fits = take_by(&mut outs, rows, anywhere, &out, level);
        if escaped {
            // An escaped value got the code of another value; only callers of `put` write longer
            // codes.
            continue;
        }
        assert!(fits, "{level:?}");
        for (lane, (got, bits)) in all.iter().zip(&read) {
            for (at, row) in range.clone().enumerate() {
                let valid = lane.valid.is_none_or(|valid| valid.get(row));
                let escapes = lane.code.escapes;
                assert!(!escapes || (bits[at / 64] >> (at % 64) & 1 == 1) == valid, "{level:?}");
                let found = bytes_of(got, at);
                match (valid, escapes) {
                    (true, _) => assert_eq!(found, &lane.values[row * W..][..W], "{level:?}"),
                    (false, true) => assert_eq!(found, vec![0; W], "{level:?}"),
                    (false, false) => {}
                }
            }
        }
    }
}

/// Returns the bytes of a value.
fn bytes_of<T: Word>(values: &Values<T>, at: usize) -> &[u8] {
    let width = size_of::<T>();
    &values.bytes()[at * width..][..width]
}

/// Returns native bytes of `rows` numbers, some at an edge of their type.
fn numbers<const W: usize>(rows: usize, seed: u64, edges: bool) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let top = 1 << (8 * W.min(8) - 1);
    let edge = [0, 1, 2, u64::MAX, u64::MAX - 1, top, top - 1];
    (0..rows)
        .flat_map(|_| {
            let number = match next() % 3 {
                0 if edges => u128::from(edge[next() as usize % edge.len()]),
                1 if edges => u128::MAX - u128::from(next() % 3),
                _ => u128::from(next()) << 64 | u128::from(next()),
            };
            number.to_le_bytes()[..W].to_vec()
        })
        .collect()
}

proptest! {
    #[test]
    fn every_level_writes_and_reads_the_same(
        mut kinds in prop::collection::vec((0u8..3, any::<bool>(), any::<Option<bool>>(), any::<bool>()), 1..24),
        growing in prop_oneof![Just(0), Just(24), 0usize..24],
        rows in prop_oneof![0usize..200, 200usize..500],
        first_bit in 0usize..70,
        seed: u64,
        edges: bool,
        scattered: bool,
        nulls in 0usize..3,
    ) {
        // From some column on, or from the first, all columns are plain.
        for (_, _, nulls, _) in kinds.iter_mut().skip(growing) {
            *nulls = None;
        }
        let bits: Vec<Vec<u8>> =
            (0..kinds.len()).map(|lane| numbers::<8>(72, seed ^ (lane as u64 * 77), false)).collect();
        let codes: Vec<Code> = kinds.iter().map(|&(k, d, n, b)| code::<8>(k, d, n, b)).collect();
        let values: Vec<Vec<u8>> =
            (0..kinds.len()).map(|lane| numbers::<8>(rows, seed ^ lane as u64, edges)).collect();
        check::<u64, 8>(&codes, &values, &bits, first_bit, rows, scattered, nulls);
        let codes: Vec<Code> = kinds.iter().map(|&(k, d, n, b)| code::<4>(k, d, n, b)).collect();
        let values: Vec<Vec<u8>> =
            (0..kinds.len()).map(|lane| numbers::<4>(rows, seed ^ lane as u64, edges)).collect();
        check::<u32, 4>(&codes, &values, &bits, first_bit, rows, scattered, nulls);
        // There are no floats of 16 bytes, whose codes are codes of the upper half.
        let codes: Vec<Code> = kinds.iter().map(|&(k, d, n, b)| code::<8>(k % 2, d, n, b)).collect();
        let values: Vec<Vec<u8>> =
            (0..kinds.len()).map(|lane| numbers::<16>(rows, seed ^ lane as u64, edges)).collect();
        check::<u128, 16>(&codes, &values, &bits, first_bit, rows, scattered, nulls);
    }
}

/// Reads rows of plain codes; if `stands`, one of them is the longer code of its column.
fn fits<T: Word, const W: usize>(rows: usize, columns: usize, stands: Option<(usize, usize)>) {
    let code = Code { longer: u64::MAX - 1, null: u64::MAX, big: true, escapes: true, ..Code::RAW };
    let stride = columns * W + 1;
    let mut bytes = vec![0x11; rows * stride];
    // Next to it is a code that differs in one byte.
    let mut put = |(row, column): (usize, usize), low: u8| {
        bytes[row * stride + column * W..][..W].fill(0xff);
        bytes[row * stride + column * W + W - 1] = low;
    };
    stands.into_iter().for_each(|at| put(at, 0xfe));
    let other = (rows - 1, columns - 1);
    if stands != Some(other) {
        put(other, 0xfd);
    }
    for level in Level::all() {
        let mut read: Vec<_> =
            (0..columns).map(|_| (Values::<T>::with_capacity(0), vec![])).collect();
        let lanes = read.iter_mut().map(|(values, valid)| LaneOut { values, valid, code });
        let mut lanes: Vec<LaneOut<'_, T>> = lanes.collect();
        let places = Strided { first: 0, stride };
        let found = take_by(&mut lanes, rows, places.anywhere(), &bytes, level);
        assert_eq!(
            found,
            stands.is_none(),
            "{rows} rows of {columns} of {W}, {stands:?} {level:?}"
        );
    }
}

#[test]
fn a_longer_code_is_reported_wherever_it_stands() {
    for (rows, columns) in
        [1, 2, 3, 4, 7, 8, 16, 19, 65].into_iter().flat_map(|r| [(r, 1), (r, 5), (r, 8)])
    {
        for stands in (0..rows * columns).step_by(rows / 3 + 1).map(Some).chain([None]) {
            let stands = stands.map(|at| (at / columns, at % columns));
            fits::<u32, 4>(rows, columns, stands);
            fits::<u64, 8>(rows, columns, stands);
            fits::<u128, 16>(rows, columns, stands);
        }
    }
}
