//! The paths against each other, on values around every edge, and there and back.

use proptest::prelude::*;

use super::*;
use crate::kernel::values::Values;

/// Constants of a column of `W` bytes.
fn code<const W: usize>(kind: u8, descending: bool, nulls: Option<bool>, big: bool) -> Code {
    let ones = u64::MAX >> (64 - 8 * W);
    let top = 1 << (8 * W - 1);
    let flip = if kind == 0 { 0 } else { top };
    Code {
        flip: if descending { flip ^ ones } else { flip },
        float: if kind == 2 { ones ^ top } else { 0 },
        delta: nulls.map_or(0, |low| if low { 1 } else { ones }),
        null: nulls.map_or(0, |low| if low { 0 } else { ones }),
        big,
        escapes: nulls.is_some(),
    }
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
            // In none of the columns that may have some, in all of them, or in every other one.
            let has_nulls = code.escapes && [false, true, at % 2 == 0][nulls];
            let valid = has_nulls.then_some(Bits { bytes: valid, first: first_bit });
            Lane { values, valid, code }
        })
        .collect();
    let lanes = Lanes::new(all.clone(), W, all_rows);
    let range = all_rows / 5..all_rows;
    let rows = range.len();
    let stride = codes.len() * W + usize::from(scattered) * 5;
    let cursors: Vec<usize> = (0..rows).map(|row| row * stride).collect();
    let mut out = vec![0xaa; rows * stride + 1];
    let mut twin = out.clone();
    let strided = Strided { first: 1, stride };
    let escaped = if scattered {
        put(&lanes, range.clone(), Scattered { cursors: &cursors, distance: 1 }, &mut out)
    } else {
        put(&lanes, range.clone(), strided, &mut out)
    };
    let expected = portable::put::<W, _>(&all, range.clone(), 0, strided, &mut twin);
    assert_eq!(escaped, expected);
    assert_eq!(out, twin);
    // Wider kernels are chosen where there are some: these on their own.
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        let mut narrow = vec![0xaa; out.len()];
        let mut escaped = false;
        for (block, lanes) in all.chunks(BLOCK).enumerate() {
            let places = strided.shifted(block * BLOCK * W);
            // SAFETY: AVX2 was detected; places and values are those of the lanes.
            escaped |= unsafe { avx2::put::<W, _>(lanes, range.clone(), places, &mut narrow) };
        }
        assert_eq!((escaped, &narrow), (expected, &twin));
    }

    let mut read: Vec<(Values<T>, Vec<u64>)> =
        codes.iter().map(|_| (Values::with_capacity(0), vec![7; 9])).collect();
    let words = rows.div_ceil(64);
    let mut read_twin: Vec<(Values<T>, Vec<u64>)> =
        codes.iter().map(|_| (Values::with_capacity(0), vec![7; words])).collect();
    fn outs<'a, T: Word>(
        read: &'a mut [(Values<T>, Vec<u64>)],
        codes: &[Code],
    ) -> Vec<LaneOut<'a, T>> {
        let lanes = read.iter_mut().zip(codes);
        lanes.map(|((values, valid), &code)| LaneOut { values, valid, code }).collect()
    }
    let fits = take(&mut outs(&mut read, codes), rows, strided, &out);
    let twin_fits = portable::take(&mut outs(&mut read_twin, codes), 0, rows, strided, &out);
    assert_eq!(fits, twin_fits);
    assert_eq!(read, read_twin);
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        let mut narrow: Vec<(Values<T>, Vec<u64>)> =
            codes.iter().map(|_| (Values::with_capacity(0), vec![7; words])).collect();
        let mut fits = true;
        for (block, lanes) in outs(&mut narrow, codes).chunks_mut(BLOCK).enumerate() {
            let places = strided.shifted(block * BLOCK * W);
            // SAFETY: AVX2 was detected; places are those of the lanes, which have room for the rows.
            fits &= unsafe { avx2::take::<T, _>(lanes, rows, places, &out) };
        }
        assert_eq!((fits, &narrow), (twin_fits, &read_twin));
    }
    if !escaped {
        assert!(fits);
        for (lane, (got, bits)) in all.iter().zip(&read) {
            for (at, row) in range.clone().enumerate() {
                let valid = lane.valid.is_none_or(|valid| valid.get(row));
                assert_eq!(bits[at / 64] >> (at % 64) & 1 == 1, valid);
                let mut value = [0; 8];
                if valid {
                    value[..W].copy_from_slice(&lane.values[row * W..][..W]);
                }
                assert_eq!(got.as_ref()[at], T::of(u64::from_le_bytes(value)));
            }
        }
    }
}

/// Native bytes of `rows` numbers, some of them at an edge of their type.
fn numbers<const W: usize>(rows: usize, seed: u64, edges: bool) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let edge = [0, 1, 2, u64::MAX, u64::MAX - 1, 1 << (8 * W - 1), (1 << (8 * W - 1)) - 1];
    (0..rows)
        .flat_map(|_| {
            let number = match next() % 3 {
                0 if edges => edge[next() as usize % edge.len()],
                _ => next(),
            };
            number.to_le_bytes()[..W].to_vec()
        })
        .collect()
}

proptest! {
    #[test]
    fn both_paths_write_and_read_the_same(
        mut kinds in prop::collection::vec((0u8..3, any::<bool>(), any::<Option<bool>>(), any::<bool>()), 1..36),
        growing in prop_oneof![Just(0), Just(36), 0usize..36],
        rows in prop_oneof![0usize..200, 200usize..500],
        first_bit in 0usize..70,
        seed: u64,
        edges: bool,
        scattered: bool,
        nulls in 0usize..3,
    ) {
        // Behind some columns there are only plain ones, or from the first on.
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
    }

    #[test]
    fn longer_numbers_are_written_the_same_by_both(
        seeds in prop::collection::vec((any::<u64>(), 0u8..3, any::<bool>(), 0usize..3), 1..40),
        rows in 0usize..200,
        front in 0usize..9,
        first_bit in 0usize..9,
        apart in 0usize..4,
        ascending: bool,
        damage: (u16, u8, u16, i8),
    ) {
        let bytes: Vec<(Vec<u8>, Vec<u8>)> = seeds
            .iter()
            .map(|&(seed, ..)| {
                let mut state = seed | 1;
                let mut next = || {
                    state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e);
                    state >> 33
                };
                let edges = [0, 1, 2, u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1];
                let values = (0..rows).flat_map(|_| match next() % 3 {
                    0 => next().wrapping_mul(next()).to_le_bytes(),
                    _ => edges[next() as usize % edges.len()].to_le_bytes(),
                });
                let values: Vec<u8> = values.collect();
                (values, (0..rows / 8 + 3).map(|_| next() as u8).collect())
            })
            .collect();
        let mut all: Vec<Lane<'_>> = Vec::new();
        for (&(_, kind, descending, nulls), (values, valid)) in seeds.iter().zip(&bytes) {
            let nulls = [None, Some(false), Some(true)][nulls];
            // Integers that ascend have a way of their own, if all columns are of them.
            let (kind, descending) = if ascending { (kind % 2, false) } else { (kind, descending) };
            all.push(Lane {
                values,
                valid: nulls.map(|_| Bits { bytes: valid, first: first_bit }),
                code: code::<8>(kind, descending, nulls, true),
            });
        }
        let middle = apart.min(all.len());
        let runs: Vec<Lanes<'_>> = [&all[..middle], &all[middle..]]
            .into_iter()
            .filter(|lanes| !lanes.is_empty())
            .map(|lanes| Lanes::new(lanes.to_vec(), 8, rows))
            .collect();
        let room = front + rows * all.len() * 9 + 1;
        let (mut out, mut twin) = (vec![0xaa; room], vec![0xaa; room]);
        let (mut ends, mut twin_ends) = (vec![7], vec![7]);
        let end = put_growing(&runs, rows, front, &mut out, &mut ends);
        let expected = growing::put_rows(&runs, 0..rows, front, &mut twin, &mut twin_ends);
        prop_assert_eq!(end, expected);
        prop_assert_eq!(&ends, &twin_ends);
        // Wider kernels are chosen where there are some: this one on its own.
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            let (mut narrow, mut ends) = (vec![0xaa; room], vec![7]);
            // SAFETY: AVX2 was detected; the lanes hold the rows.
            let (done, at) = unsafe { avx2::grow(&all, rows, front, &mut narrow, &mut ends) };
            let end = growing::put_rows(&runs, done..rows, at, &mut narrow, &mut ends);
            prop_assert_eq!((end, &ends), (expected, &twin_ends));
            let end = end.expect("there is room");
            prop_assert_eq!(&narrow[..end], &twin[..end]);
        }
        let end = end.expect("there is room");
        prop_assert_eq!(&out[..end], &twin[..end]);
        let codes: Vec<Code> = all.iter().map(|lane| lane.code).collect();
        let mut values: Vec<_> = codes.iter().map(|_| Values::with_capacity(0)).collect();
        let mut valid = vec![vec![]; codes.len()];
        let bytes = &out[..end];
        prop_assert!(take_growing(&codes, front, &ends[1..], bytes, &mut values, &mut valid));
        for (lane, (values, valid)) in all.iter().zip(values.iter().zip(&valid)) {
            prop_assert_eq!((values.as_ref().len(), valid.len()), (rows, rows.div_ceil(64)));
            for (row, value) in values.as_ref().iter().enumerate() {
                let is_valid = lane.valid.is_none_or(|valid| valid.get(row));
                prop_assert_eq!(valid[row / 64] >> (row % 64) & 1 == 1, is_valid);
                let expected = if is_valid { &lane.values[row * 8..][..8] } else { &[0; 8] };
                prop_assert_eq!(&value.to_le_bytes()[..], expected);
            }
        }
        // Damaged rows are told by both, or read alike.
        let (mut damaged, mut ends) = (bytes.to_vec(), ends[1..].to_vec());
        let (at, flip, row, by) = damage;
        if rows > 0 {
            let at = front + usize::from(at) % (end - front);
            damaged[at] ^= if flip < 200 { flip } else { !damaged[at] };
            let row = usize::from(row) % rows;
            ends[row] = ends[row].saturating_add_signed(i32::from(by) >> 5).min(end as u32);
        }
        let mut values: Vec<_> = codes.iter().map(|_| Values::with_capacity(0)).collect();
        let mut twin = vec![vec![0; rows]; codes.len()];
        let (mut valid, mut twin_valid) = (vec![vec![]; codes.len()], vec![vec![]; codes.len()]);
        let fits = take_growing(&codes, front, &ends, &damaged, &mut values, &mut valid);
        let targets: Vec<*mut u64> = twin.iter_mut().map(|values| values.as_mut_ptr()).collect();
        // SAFETY: there is room for a value of each row.
        let expected = unsafe {
            growing::take_rows(&codes, front, &ends, 0, &damaged, &targets, &mut twin_valid)
        };
        prop_assert_eq!(fits, expected);
        if fits {
            prop_assert_eq!(valid, twin_valid);
            prop_assert!(values.iter().zip(&twin).all(|(own, twin)| own.as_ref() == &twin[..]));
        }
    }
}
