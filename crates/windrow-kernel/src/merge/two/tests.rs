//! Tests the merge of two against a map: any rows, any loop.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Bodies and diffs.
type Side = BTreeMap<Vec<u8>, i64>;

/// Rows and their starts.
struct Encoded {
    bytes: Vec<u8>,
    starts: Vec<u32>,
}

impl Encoded {
    fn new<'a>(rows: impl IntoIterator<Item = (&'a Vec<u8>, &'a i64)>) -> Self {
        let (mut bytes, mut starts) = (Vec::new(), vec![0]);
        for (body, diff) in rows {
            bytes.extend_from_slice(body);
            bytes.extend_from_slice(&diff.to_le_bytes());
            starts.push(bytes.len() as u32);
        }
        Self { bytes, starts }
    }

    fn strided(&self) -> Strided<'_> {
        let stride = self.starts[1] as usize;
        Strided { bytes: &self.bytes, stride, body: stride - 8 }
    }

    fn varying(&self) -> Varying<'_> {
        Varying { bytes: &self.bytes, starts: &self.starts, tail: 8 }
    }
}

/// Returns the expected result for the first rows of both sides.
fn model(sides: [&Side; 2], used: [usize; 2], sums: bool) -> Vec<(Vec<u8>, i64)> {
    let mut all: BTreeMap<(&Vec<u8>, usize), i64> = BTreeMap::new();
    for (number, (side, used)) in sides.into_iter().zip(used).enumerate() {
        for (body, diff) in side.iter().take(used) {
            let sum = all.entry((body, if sums { 0 } else { number })).or_default();
            *sum = sum.wrapping_add(*diff);
        }
    }
    let kept = all.into_iter().filter(|(_, diff)| *diff != 0);
    kept.map(|((body, _), diff)| (body.clone(), diff)).collect()
}

/// Returns whether the remaining rows sort after `last`: with sums, no remaining row equals `last`.
fn are_behind(sides: [&Side; 2], used: [usize; 2], last: &[u8], sums: bool) -> bool {
    let left = sides.into_iter().zip(used).flat_map(|(side, used)| side.keys().skip(used));
    left.min().is_none_or(|row| row[..] > *last || (!sums && row[..] == *last))
}

/// Returns a body of `len` bytes: a common part, a key, and a last byte that also decides.
fn fixed_body(key: u16, len: usize, common: usize) -> Vec<u8> {
    let mut bytes = vec![9; len];
    let at = common.min(len - 2);
    bytes[at..at + 2].copy_from_slice(&key.to_be_bytes());
    bytes[len - 1] = bytes[len - 1].wrapping_add(key as u8 & 1);
    bytes
}

/// Returns a body of varying length, with a text and its end.
fn varying_body(key: u16, text: usize, common: usize) -> Vec<u8> {
    [&vec![9; common][..], &key.to_be_bytes(), &vec![7; text], &[1]].concat()
}

/// Keys in random order, alternating, or in runs; texts from empty to longer than any single move.
fn changes(
    longest: usize,
    diffs: std::ops::Range<i64>,
) -> impl Strategy<Value = Vec<(u16, usize, i64)>> {
    let any = (0u16..900, 0..=longest, diffs.clone());
    let runs = (0u16..40, 1u16..100, 0..=longest, diffs);
    prop_oneof![
        prop::collection::vec(any, 1..700),
        prop::collection::vec(runs, 1..12).prop_map(|runs| {
            let run =
                |(from, len, text, diff)| (0..len).map(move |at| (from * 25 + at, text, diff));
            runs.into_iter().flat_map(run).collect()
        }),
    ]
}

proptest! {
    #[test]
    fn rows_of_one_length_merge_like_a_map(
        (a, b) in (changes(0, 1..3), changes(0, -2..0)),
        body in prop::sample::select(vec![8usize, 12, 16, 24, 25, 40, 56, 72, 88, 120, 130]),
        common in 0usize..90,
        room in 1usize..1500,
        sums in any::<bool>(),
    ) {
        let [a, b] = [a, b].map(|side| -> Side {
            side.iter().map(|&(key, _, diff)| (fixed_body(key, body, common), diff)).collect()
        });
        let (left, right) = (Encoded::new(&a), Encoded::new(&b));
        let stride = body + 8;
        let mut none = |_: &[u8], _: i64| unreachable!("small sums");
        let wrapped: Wrapped<'_> = if sums { Some(&mut none) } else { None };
        let mut out = vec![0; room * stride];
        let merged = merge(left.strided(), right.strided(), &mut out, wrapped);
        out.truncate(merged.out * stride);
        let used = [merged.a, merged.b];
        let expected = model([&a, &b], used, sums);
        prop_assert_eq!(out, Encoded::new(expected.iter().map(|row| (&row.0, &row.1))).bytes);
        if let Some((last, _)) = expected.last() {
            prop_assert!(are_behind([&a, &b], used, last, sums));
        }
        prop_assert!(merged.out == room || merged.a == a.len() || merged.b == b.len());
    }

    #[test]
    fn rows_that_vary_merge_like_a_map(
        (a, b) in prop::sample::select(vec![0usize, 3, 40, 700])
            .prop_flat_map(|longest| (changes(longest, 1..3), changes(longest, -2..0))),
        common in 0usize..90,
        room in 1usize..60_000,
        sums in any::<bool>(),
    ) {
        let [a, b] = [a, b].map(|side| -> Side {
            side.iter().map(|&(key, text, diff)| (varying_body(key, text, common), diff)).collect()
        });
        let (left, right) = (Encoded::new(&a), Encoded::new(&b));
        let (mut bytes, mut ends) = (vec![0; room], vec![0]);
        let mut out = Target { bytes: &mut bytes, used: 0, ends: &mut ends, spare: 4 };
        let mut none = |_: &[u8], _: i64| unreachable!("small sums");
        let wrapped: Wrapped<'_> = if sums { Some(&mut none) } else { None };
        let merged = merge_varying(left.varying(), right.varying(), &mut out, wrapped);
        let used = out.used;
        bytes.truncate(used);
        let used = [merged.a, merged.b];
        let expected = model([&a, &b], used, sums);
        let rows = Encoded::new(expected.iter().map(|row| (&row.0, &row.1)));
        prop_assert_eq!(merged.out, expected.len());
        prop_assert_eq!((&bytes, &ends), (&rows.bytes, &rows.starts));
        if let Some((last, _)) = expected.last() {
            prop_assert!(are_behind([&a, &b], used, last, sums));
        }
        // It stops early only if the next row does not fit.
        if merged.a < a.len() && merged.b < b.len() {
            let next = a.keys().nth(merged.a).min(b.keys().nth(merged.b));
            let next = next.map_or(0, |body| body.len() + 8);
            prop_assert!(bytes.len() + next + 4 * ends.len() > room);
        }
    }

    #[test]
    fn every_loop_merges_any_rows(
        (a, b) in prop::sample::select(vec![0usize, 30])
            .prop_flat_map(|longest| (changes(longest, 1..3), changes(longest, -2..0))),
        common in 0usize..50,
        count in 1usize..900,
        sums in any::<bool>(),
        times in 1u64..4,
    ) {
        // A key, bytes that are equal in most rows, and a time.
        let row = |&(key, text, diff): &(u16, usize, i64)| {
            let (text, time) = (text.saturating_sub(27), u64::from(key) % times);
            let body = varying_body(key / times as u16, text, common + 20);
            ([&body[..], &[0; 16], &time.to_be_bytes()].concat(), diff)
        };
        let [a, b] = [&a, &b].map(|side| side.iter().map(row).collect::<Side>());
        let (left, right) = (Encoded::new(&a), Encoded::new(&b));
        let every = [
            Choice::Led(false), Choice::Led(true), Choice::Streamed(false), Choice::Streamed(true),
            Choice::Summed(false), Choice::Summed(true),
        ];
        for choice in every.into_iter().filter(|one| sums || !matches!(one, Choice::Summed(_))) {
            let both = (left.varying(), right.varying());
            let (used, got) = by_loop::<_, _, u64>(Vary, both, choice, (count, sums));
            let expected = model([&a, &b], used, sums);
            let rows = Encoded::new(expected.iter().map(|row| (&row.0, &row.1)));
            prop_assert!(got == rows.bytes, "{choice:?}");
            prop_assert!(used == [a.len(), used[1]] || used == [used[0], b.len()]
                || used[0] + used[1] >= count);
            if let Some((last, _)) = expected.last() {
                prop_assert!(are_behind([&a, &b], used, last, sums), "{choice:?}");
            }
            let is_fixed = |rows: Varying<'_>| rows.lengths().0 == rows.lengths().1;
            if is_fixed(both.0) && is_fixed(both.1) && both.0.lengths() == both.1.lengths() {
                let both = (left.strided(), right.strided());
                let rows = Fixed::<0>(both.0.stride);
                let how = (count, sums);
                let wide = by_loop::<_, _, u128>(rows, both, choice, how);
                prop_assert!(wide == (used, got), "{choice:?}");
            }
        }
    }
}

/// Runs one loop from the start. Returns the rows consumed of both inputs and the bytes written.
fn by_loop<'a, R: Rows, V: Sorted<'a>, K: Lead>(
    rows: R,
    (a, b): (V, V),
    choice: Choice,
    (count, sums): (usize, bool),
) -> ([usize; 2], Vec<u8>) {
    let stretches = [a.stretch(), b.stretch()];
    let body = a.lengths().0.min(b.lengths().0) - a.tail();
    let at = common(a.ends().0.min(b.ends().0), a.ends().1.max(b.ends().1));
    let mut out = vec![0u8; count * a.lengths().1.max(b.lengths().1)];
    let mut ends = Vec::<u32>::with_capacity(count);
    let pair = Pair {
        rows,
        bytes: stretches.map(|stretch| stretch.bytes),
        ends: stretches.map(|stretch| stretch.last.wrapping_add(rows.step())),
        base: out.as_ptr(),
        at: at.min(body - 8),
        wide_at: at.min(body - size_of::<K>()),
        tail: a.tail(),
    };
    let [first_a, first_b] = stretches.map(|stretch| stretch.first);
    let (to, end) = (out.as_mut_ptr(), ends.as_mut_ptr());
    let heads = Heads { a: first_a, b: first_b, to, end };
    let mut none = |_: &[u8], _: i64| unreachable!("small sums");
    let mut wrapped: Wrapped<'_> = if sums { Some(&mut none) } else { None };
    // SAFETY: the output has space for `count` rows and their ends. Bodies have at least 40 bytes.
    let done = unsafe { run::<R, K>(choice, pair, heads, count, &mut wrapped) };
    let used = out.as_ptr().addr();
    let rows_of = |from: *const u8, to: *const u8| (to.addr() - from.addr()) / rows.step();
    out.truncate(done.to.addr() - used);
    ([rows_of(first_a, done.a), rows_of(first_b, done.b)], out)
}

#[test]
fn sums_that_do_not_fit_are_reported_by_every_loop() {
    let diffs = [i64::MAX, i64::MIN, 5, -3];
    let side = |of: &dyn Fn(i64) -> i64| -> Side {
        (0..64).map(|key| (fixed_body(key, 56, 3), of(diffs[key as usize % 4]))).collect()
    };
    // One more for the greatest, one less for the least; zero sums vanish.
    let (a, b) = (side(&|diff| diff), side(&|diff| if diff == 5 { -5 } else { diff.signum() }));
    let (left, right) = (Encoded::new(&a), Encoded::new(&b));
    let expected = model([&a, &b], [64, 64], true);
    assert_eq!(expected.len(), 48);
    for choice in
        [Choice::Led(true), Choice::Streamed(true), Choice::Summed(false), Choice::Summed(true)]
    {
        let (a, b) = (left.strided(), right.strided());
        let (mut heard, mut out) = (Vec::new(), vec![0u8; 64 * 64]);
        let mut note = |body: &[u8], times: i64| heard.push((body.to_vec(), times));
        let mut wrapped: Wrapped<'_> = Some(&mut note);
        let stretches = [a.stretch(), b.stretch()];
        let rows = Fixed::<0>(64);
        let pair = Pair {
            rows,
            bytes: [std::ptr::null(); 2],
            ends: stretches.map(|stretch| stretch.last.wrapping_add(64)),
            base: out.as_ptr(),
            at: 3,
            wide_at: 3,
            tail: 8,
        };
        let [a, b] = stretches.map(|stretch| stretch.first);
        let heads = Heads { a, b, to: out.as_mut_ptr(), end: std::ptr::null_mut() };
        // SAFETY: the output has space for 64 rows, whose bodies have 56 bytes.
        let done = unsafe { run::<_, u128>(choice, pair, heads, 64, &mut wrapped) };
        out.truncate(done.to.addr() - heads.to.addr());
        assert_eq!(
            out,
            Encoded::new(expected.iter().map(|row| (&row.0, &row.1))).bytes,
            "{choice:?}"
        );
        let wraps = |key: u16| (fixed_body(key, 56, 3), if key.is_multiple_of(4) { 1 } else { -1 });
        let mut expected: Vec<_> = (0..64).filter(|key| key % 4 < 2).map(wraps).collect();
        heard.sort();
        expected.sort();
        assert_eq!(heard, expected, "{choice:?}");
    }
}
