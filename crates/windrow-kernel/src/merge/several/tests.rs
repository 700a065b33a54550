//! Tests the merge of several runs against a map, on any level.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::level::Plain;
use super::*;

/// A key and the length of the text after it.
type Key = (u16, usize);
type Run = BTreeMap<Key, i64>;

/// Returns the compared bytes: `common` bytes, the key, and a text, or `length` bytes in all.
fn body((key, text): Key, common: usize, length: Option<usize>) -> Vec<u8> {
    let Some(length) = length else {
        return [&vec![9; common][..], &key.to_be_bytes(), &vec![7; text], &[1; 7]].concat();
    };
    let mut bytes = vec![9; length];
    let at = common.min(length - 2);
    bytes[at..at + 2].copy_from_slice(&key.to_be_bytes());
    // Far from the key, beyond the reach of words, and only for some keys.
    let last = bytes.len() - 1;
    bytes[last] = bytes[last].wrapping_add((text % 3) as u8);
    bytes
}

/// Returns the rows of a run and their starts.
fn rows(run: &Run, common: usize, length: Option<usize>) -> (Vec<u8>, Vec<u32>) {
    let (mut bytes, mut starts) = (Vec::new(), vec![0]);
    let mut sums: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
    for (&key, diff) in run {
        sums.insert(body(key, common, length), *diff);
    }
    for (body, diff) in sums {
        bytes.extend_from_slice(&body);
        bytes.extend_from_slice(&diff.to_le_bytes());
        starts.push(bytes.len() as u32);
    }
    (bytes, starts)
}

/// Returns the expected rows; without `sums`, equal rows keep the order of their runs.
fn expected(all: &[(Vec<u8>, Vec<u32>)], sums: bool) -> Vec<Vec<u8>> {
    let mut model: BTreeMap<Vec<u8>, Vec<i64>> = BTreeMap::new();
    for (bytes, starts) in all {
        for pair in starts.windows(2) {
            let row = &bytes[pair[0] as usize..pair[1] as usize];
            let (body, diff) = row.split_at(row.len() - 8);
            let diff = i64::from_le_bytes(diff.try_into().unwrap());
            model.entry(body.to_vec()).or_default().push(diff);
        }
    }
    let row = |body: &[u8], diff: i64| [body, &diff.to_le_bytes()].concat();
    let mut out = Vec::new();
    for (body, diffs) in model {
        if sums {
            let sum = diffs.iter().fold(0, |sum: i64, diff| sum.wrapping_add(*diff));
            out.extend((sum != 0).then(|| row(&body, sum)));
        } else {
            out.extend(diffs.iter().map(|&diff| row(&body, diff)));
        }
    }
    out
}

/// Merges all rows, `room` bytes at a time. Returns the rows, and the rows of each output.
fn merged(
    all: &[(Vec<u8>, Vec<u32>)],
    cut: usize,
    stride: Option<usize>,
    (room, sums, hints, plain): (usize, bool, Hints, bool),
) -> (Vec<Vec<u8>>, Hints) {
    let mut overflows = |_: &[u8], _: i64| unreachable!("small sums");
    let strided = |stride: usize| {
        let runs: Vec<[Strided<'_>; 2]> = all
            .iter()
            .map(|(bytes, starts)| {
                let cut = cut % (starts.len() - 1) + 1;
                let (a, b) = bytes.split_at(cut * stride);
                [a, b].map(|bytes| Strided { bytes, stride, body: stride - 8 })
            })
            .collect();
        Several::strided(&runs, hints)
    };
    let varying = || {
        let runs: Vec<[Varying<'_>; 2]> = all
            .iter()
            .map(|(bytes, starts)| {
                let cut = cut % (starts.len() - 1) + 1;
                [&starts[..=cut], &starts[cut..]].map(|starts| Varying { bytes, starts, tail: 8 })
            })
            .collect();
        Several::varying(&runs, hints)
    };
    let mut several = stride.map_or_else(varying, strided).expect("long bodies, not too many runs");
    let mut out = Vec::new();
    while !several.is_done() {
        let len = several.next_len();
        let mut bytes = vec![0; room.max(len + 4)];
        let mut ends = vec![0];
        let wrapped: Wrapped<'_> = if sums { Some(&mut overflows) } else { None };
        match stride {
            Some(stride) if plain => {
                let mut none = Vec::new();
                let mut target = Target { bytes: &mut bytes, used: 0, ends: &mut none, spare: 0 };
                let rows = Fixed::<0>(stride);
                if sums {
                    several.rounds::<Plain, _, true>(rows, &mut target, &mut overflows);
                } else {
                    several.rounds::<Plain, _, false>(rows, &mut target, &mut overflows);
                }
                let used = target.used;
                out.extend(bytes[..used].chunks_exact(stride).map(<[u8]>::to_vec));
            }
            Some(stride) => {
                let rows = several.merge(&mut bytes, wrapped);
                out.extend(bytes[..rows * stride].chunks_exact(stride).map(<[u8]>::to_vec));
            }
            None => {
                let mut target = Target { bytes: &mut bytes, used: 0, ends: &mut ends, spare: 4 };
                if plain && sums {
                    several.rounds::<Plain, _, true>(Vary, &mut target, &mut overflows);
                } else if plain {
                    several.rounds::<Plain, _, false>(Vary, &mut target, &mut overflows);
                } else {
                    several.merge_varying(&mut target, wrapped);
                }
                assert!(target.used + 4 * (target.ends.len() - 1) <= target.bytes.len());
                assert_eq!(target.used as u32, *target.ends.last().unwrap());
                let row = |pair: &[u32]| bytes[pair[0] as usize..pair[1] as usize].to_vec();
                out.extend(ends.windows(2).map(row));
            }
        }
    }
    (out, several.hints())
}

fn run(keys: u16, longest: usize) -> impl Strategy<Value = Run> {
    let diff = prop_oneof![-2i64..0, 1i64..3];
    prop::collection::btree_map((0..keys, 0..=longest), diff, 1..200)
}

proptest! {
    #[test]
    fn merges_like_a_map_with_and_without_instructions(
        runs in (prop::sample::select(vec![30u16, 900]), 0usize..40, prop::sample::select(vec![1, 45]))
            .prop_flat_map(|(keys, longest, least)| {
                prop::collection::vec(run(keys, longest), least..least + 19)
            }),
        common in 0usize..60,
        cut in 0usize..300,
        length in prop::sample::select(
            vec![None, Some(8usize), Some(13), Some(24), Some(40), Some(56), Some(88), Some(130)]
        ),
        room in prop_oneof![1usize..300, 1usize..40_000],
        (sums, exact, ties) in any::<(bool, bool, bool)>(),
    ) {
        let all: Vec<_> = runs.iter().map(|run| rows(run, common, length)).collect();
        let expected = expected(&all, sums);
        let stride = length.map(|length| length + 8);
        // Hints of another merge may name fewer bits than vary, or more.
        let (_, other) = merged(&all[..1], cut, stride, (room, sums, Hints::default(), false));
        for (plain, seen) in [(false, None), (true, None), (false, other.seen)] {
            let how = (room, sums, Hints { exact, ties, seen }, plain);
            let (got, _) = merged(&all, cut, stride, how);
            prop_assert!(got == expected, "{} rows, {} expected", got.len(), expected.len());
        }
    }
}

#[test]
fn many_equal_rows_are_expected_again_and_unequal_ones_looked_at() {
    // Words reach sixteen bytes after the common prefix.
    let rows_of = |far: u8| {
        let row = |key: u16| {
            let mut body = [0; 88];
            body[..2].copy_from_slice(&(key / 2).to_be_bytes());
            body[60] = far * (key % 2) as u8;
            [&body[..], &1i64.to_le_bytes()].concat()
        };
        let bytes: Vec<u8> = (0..2000).step_by(2 - far as usize).flat_map(row).collect();
        let starts = (0..=bytes.len() as u32).step_by(96).collect();
        (bytes, starts)
    };
    let how = |hints| (1 << 20, true, hints, false);
    let alike = vec![rows_of(0); 5];
    let (got, hints) = merged(&alike, 77, Some(96), how(Hints::default()));
    assert!(got == expected(&alike, true) && (hints.exact, hints.ties) == (false, true));
    let unlike = vec![rows_of(1); 5];
    let (got, hints) = merged(&unlike, 77, Some(96), how(hints));
    assert!(got == expected(&unlike, true) && (hints.exact, hints.ties) == (true, true));
    let (_, hints) = merged(&unlike, 77, Some(96), how(hints));
    assert!(!hints.exact, "tried again");
}

#[test]
fn sums_that_do_not_fit_are_heard_of_once() {
    let row = |diff: i64| [&[5; 24][..], &diff.to_le_bytes()].concat();
    let runs = [row(i64::MAX), row(2), row(i64::MIN), row(-7)];
    let strided = |bytes| Strided { bytes, stride: 32, body: 24 };
    let runs: Vec<_> = runs.iter().map(|row| [strided(row), strided(&[])]).collect();
    for hints in [Hints::default(), Hints { ties: true, ..Hints::default() }] {
        let (mut out, mut heard) = (vec![0; 64], Vec::new());
        let mut several = Several::strided(&runs, hints).unwrap();
        let mut note = |body: &[u8], times: i64| heard.push((body.to_vec(), times));
        assert_eq!(several.merge(&mut out, Some(&mut note)), 1);
        // MAX + 2 wraps to MIN + 1; adding MIN wraps to 1; less 7 fits.
        assert_eq!(out[24..32], (-6i64).to_le_bytes());
        assert_eq!(heard, [(vec![5; 24], 1), (vec![5; 24], -1)]);
    }
}
