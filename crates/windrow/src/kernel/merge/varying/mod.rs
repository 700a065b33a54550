//! The two-way merge of rows of varying length, a block at a time.
//!
//! ```text
//! 1. blocks  of BLOCK rows of output: look at the first few, choose a loop. It stops by itself, and needs
//!            room for whatever it may come to; where that is scarce the block is cut first (merge path):
//!            then it is known how many bytes it takes
//! 2. word    the eight bytes in which rows of the block may differ first; what follows is looked
//!            at if they agree
//! 3. sum     equal neighbours of a block become one, if any words agreed
//! ```
//!
//! Rows are prefix-free without their tails: two that differ do so within both.

mod block;
mod led;
mod level;
mod place;
mod steps;
mod sum;

use super::Wrapped;
use super::level::Plain;
#[cfg(target_arch = "x86_64")]
use super::level::{Avx2, has_avx2};
use super::shape::common;
use super::steps::gallop;
use super::two::Merged;
use block::Block;
use level::Loops;

/// Rows of output in a block: its rows and those merged into it stay in the second-level cache.
const BLOCK: usize = 1024;
/// Rows that a loop has room for, or the block is cut.
const LEAST: usize = 64;
/// Rows looked at to choose a loop.
const SAMPLE: usize = 32;

/// Rows, and where they start; the last entry is the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Varying<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) starts: &'a [u32],
    /// Bytes at the end of rows that are not compared.
    pub(crate) tail: usize,
}

impl<'a> Varying<'a> {
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    fn row(&self, index: usize) -> &'a [u8] {
        &self.bytes[self.starts[index] as usize..self.starts[index + 1] as usize]
    }

    pub(super) fn body(&self, index: usize) -> &'a [u8] {
        let row = self.row(index);
        &row[..row.len() - self.tail]
    }

    /// Bytes of all rows.
    fn span(&self) -> usize {
        (self.starts[self.len()] - self.starts[0]) as usize
    }

    /// The rows from `from` on, `rows` of them.
    fn part(&self, from: usize, rows: usize) -> Self {
        Self { starts: &self.starts[from..=from + rows], ..*self }
    }

    /// The first rows, `rows` at the most.
    fn first(&self, rows: usize) -> Self {
        self.part(0, rows.min(self.len()))
    }

    /// Bytes of the shortest row, and of the longest. Makes sure that the rows lie within the bytes.
    pub(super) fn lengths(&self) -> (usize, usize) {
        let (mut ordered, mut shortest, mut longest) = (true, u32::MAX, 0);
        for (start, end) in self.starts.iter().zip(&self.starts[1..]) {
            ordered &= start <= end;
            shortest = shortest.min(end.wrapping_sub(*start));
            longest = longest.max(end.wrapping_sub(*start));
        }
        assert!(ordered && self.starts[self.len()] as usize <= self.bytes.len(), "rows in bytes");
        (shortest as usize, longest as usize)
    }
}

/// Rows that are being written, and where they end.
pub(crate) struct Target<'a> {
    pub(crate) bytes: &'a mut [u8],
    /// Bytes that are written.
    pub(crate) used: usize,
    pub(crate) ends: &'a mut Vec<u32>,
    /// Bytes at the end of `bytes` to be left for each row; `ends` has one entry more than rows.
    pub(crate) spare: usize,
}

impl Target<'_> {
    /// True if there is room for `rows` rows that take `bytes`.
    fn fits(&self, rows: usize, bytes: usize) -> bool {
        let spare = (self.ends.len() - 1 + rows) * self.spare;
        self.used + bytes + spare <= self.bytes.len().min(u32::MAX as usize)
    }

    /// How many rows of as many bytes have room.
    fn room(&self, bytes: usize) -> usize {
        let spare = (self.ends.len() - 1) * self.spare;
        let left = self.bytes.len().min(u32::MAX as usize).saturating_sub(self.used + spare);
        left / (bytes + self.spare).max(1)
    }

    fn push(&mut self, row: &[u8]) {
        let used = self.used + row.len();
        self.bytes[self.used..used].copy_from_slice(row);
        self.used = used;
        self.ends.push(used as u32);
    }
}

/// Merges `a` and `b` into `out` until one of them is used up, or `out` has no room for the next row.
/// With `wrapped` equal rows become one, as in [`super::merge`]; without, `a`'s come first.
pub(crate) fn merge_varying(
    a: Varying<'_>,
    b: Varying<'_>,
    out: &mut Target<'_>,
    wrapped: Wrapped<'_>,
) -> Merged {
    if a.len() == 0 || b.len() == 0 {
        return Merged::default();
    }
    let least = a.body(0).min(b.body(0));
    let at = common(least, a.body(a.len() - 1).max(b.body(b.len() - 1)));
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // SAFETY: the instructions were detected.
        return unsafe { with_avx2(a, b, at, out, wrapped) };
    }
    // SAFETY: any processor.
    unsafe { blocks::<Plain>(a, b, at, out, wrapped) }
}

/// [`blocks`], compiled for newer processors: rows move by 32 bytes, words are loaded in their order.
///
/// # Safety
/// The processor has these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,movbe,bmi1,bmi2")]
unsafe fn with_avx2(
    a: Varying<'_>,
    b: Varying<'_>,
    at: usize,
    out: &mut Target<'_>,
    wrapped: Wrapped<'_>,
) -> Merged {
    // SAFETY: as the function's.
    unsafe { blocks::<Avx2>(a, b, at, out, wrapped) }
}

/// Merges rows that agree in their first `at` bytes.
///
/// # Safety
/// The processor has the instructions of `L`.
#[inline(always)]
unsafe fn blocks<L: Loops>(
    a: Varying<'_>,
    b: Varying<'_>,
    at: usize,
    out: &mut Target<'_>,
    mut wrapped: Wrapped<'_>,
) -> Merged {
    let mut done = Merged::default();
    while done.a < a.len() && done.b < b.len() {
        let left = (a.part(done.a, a.len() - done.a), b.part(done.b, b.len() - done.b));
        let rows = BLOCK.min(left.0.len() + left.1.len());
        let before = out.ends.len();
        // What a loop may come to: it stops by itself.
        let ahead = (left.0.first(rows), left.1.first(rows));
        let block = Block::new(ahead.0, ahead.1, at);
        let choice = block.map(|block| block.choose(SAMPLE.min(rows)));
        // Rows that have room whichever they are; one more may follow that is equal to the last.
        let sure = if out.fits(rows + 1, ahead.0.span() + ahead.1.span()) {
            rows
        } else {
            let longest = block.map_or(0, |block| block.longest);
            out.room(longest).saturating_sub(1).min(rows)
        };
        let (a_rows, b_rows) = match (block, choice) {
            (Some(block), Some(choice)) if sure >= LEAST.min(rows) => {
                // SAFETY: the caller's promise.
                unsafe { block.merge::<L>(choice, sure, out, &mut wrapped) }
            }
            _ => {
                let (a_rows, b_rows) = fitting(left.0, left.1, out, wrapped.is_some());
                if a_rows + b_rows == 0 {
                    break;
                }
                match (block, choice) {
                    // The loops have nothing to do without a row of both, and need room for both.
                    (Some(block), Some(choice))
                        if a_rows.min(b_rows) > 0 && a_rows + b_rows > 2 =>
                    {
                        let block = block.part(a_rows, b_rows);
                        // SAFETY: the caller's promise.
                        unsafe { block.merge::<L>(choice, a_rows + b_rows, out, &mut wrapped) }
                    }
                    _ => {
                        let parts = (left.0.part(0, a_rows), left.1.part(0, b_rows));
                        plainly(parts.0, parts.1, out, &mut wrapped);
                        (a_rows, b_rows)
                    }
                }
            }
        };
        done.a += a_rows;
        done.b += b_rows;
        done.out += out.ends.len() - before;
    }
    done
}

/// How many rows of `a` and `b` are the next block, or as many as there are before one of them is
/// used up, or as there is room for. With `sums`, of rows that are equal both or none.
#[inline(always)]
fn fitting(a: Varying<'_>, b: Varying<'_>, out: &Target<'_>, sums: bool) -> (usize, usize) {
    let mut rows = BLOCK.min(a.len() + b.len());
    while rows > 0 {
        let (mut a_rows, mut b_rows) = split(a, b, rows);
        // Behind the last row of an input come rows that are not here yet; of `a` they may be equal to it,
        // and come before those of `b`, unless equal rows are added up.
        if a_rows == a.len() {
            let last = a.body(a_rows - 1);
            let is_behind = |row: &[u8]| if sums { last < row } else { last <= row };
            b_rows -= gallop(b_rows, |back| is_behind(b.body(b_rows - 1 - back)));
        }
        if b_rows == b.len() {
            let last = b.body(b_rows - 1);
            a_rows -= gallop(a_rows, |back| last < a.body(a_rows - 1 - back));
        }
        let ties = sums && a_rows > 0 && b_rows < b.len();
        let tie = ties && a.body(a_rows - 1) == b.body(b_rows);
        b_rows += usize::from(tie);
        let bytes = a.part(0, a_rows).span() + b.part(0, b_rows).span();
        // Of a single pair of equal rows only the sum is written.
        if out.fits(a_rows + b_rows, bytes) || (rows == 1 && tie && out.fits(1, a.row(0).len())) {
            return (a_rows, b_rows);
        }
        rows /= 2;
    }
    (0, 0)
}

/// How many rows of `a` and of `b` are the first `rows` of the merge; equal ones of `a` come first.
fn split(a: Varying<'_>, b: Varying<'_>, rows: usize) -> (usize, usize) {
    let (mut low, mut high) = (rows.saturating_sub(b.len()), rows.min(a.len()));
    while low < high {
        let middle = low + (high - low) / 2;
        if b.body(rows - middle - 1) < a.body(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    (low, rows - low)
}

/// Merges all of `a` and `b`, whatever their lengths: for a few rows, and rows without a word.
fn plainly(a: Varying<'_>, b: Varying<'_>, out: &mut Target<'_>, wrapped: &mut Wrapped<'_>) {
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        let (left, right) = (a.body(i), b.body(j));
        if let Some(wrapped) = wrapped
            && left == right
        {
            add(a.row(i), b.row(j), out, wrapped);
            (i, j) = (i + 1, j + 1);
        } else if left <= right {
            out.push(a.row(i));
            i += 1;
        } else {
            out.push(b.row(j));
            j += 1;
        }
    }
    (i..a.len()).for_each(|index| out.push(a.row(index)));
    (j..b.len()).for_each(|index| out.push(b.row(index)));
}

/// Appends the sum of two equal rows, unless it is zero.
fn add(a: &[u8], b: &[u8], out: &mut Target<'_>, wrapped: &mut dyn FnMut(&[u8], i64)) {
    let diff = |row: &[u8]| i64::from_le_bytes(row.last_chunk().copied().unwrap_or_default());
    let (sum, overflow) = diff(a).overflowing_add(diff(b));
    if sum != 0 {
        out.push(a);
        let used = out.used;
        out.bytes[used - 8..used].copy_from_slice(&sum.to_le_bytes());
    }
    if overflow {
        wrapped(&a[..a.len() - 8], if diff(b) > 0 { 1 } else { -1 });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Rows of different lengths: `common` bytes, a key, a text of any length and its end, a diff.
    fn rows(keys: &BTreeMap<(u16, usize), i64>, common: usize) -> (Vec<u8>, Vec<u32>) {
        let (mut bytes, mut starts) = (Vec::new(), vec![0]);
        for (&key, diff) in keys {
            bytes.extend_from_slice(&body(key, common));
            bytes.extend_from_slice(&diff.to_le_bytes());
            starts.push(bytes.len() as u32);
        }
        (bytes, starts)
    }

    fn body((key, text): (u16, usize), common: usize) -> Vec<u8> {
        [&vec![9; common][..], &key.to_be_bytes(), &vec![7; text], &[1]].concat()
    }

    fn keys(of: &[(u16, usize, i64)]) -> BTreeMap<(u16, usize), i64> {
        of.iter().map(|&(key, text, diff)| ((key, text), diff)).collect()
    }

    type Changes = Vec<(u16, usize, i64)>;

    /// Keys in no order, in turns, or in runs; texts from none to longer than any single move.
    fn changes(longest: usize, diffs: std::ops::Range<i64>) -> impl Strategy<Value = Changes> {
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
        fn merges_like_a_map_with_and_without_instructions(
            (a, b) in prop::sample::select(vec![0usize, 3, 40, 700])
                .prop_flat_map(|longest| (changes(longest, 1..3), changes(longest, -2..0))),
            common in 0usize..90,
            room in 1usize..60_000,
            sums in any::<bool>(),
        ) {
            let (a, b) = (keys(&a), keys(&b));
            let ((a_bytes, a_starts), (b_bytes, b_starts)) = (rows(&a, common), rows(&b, common));
            let a_in = Varying { bytes: &a_bytes, starts: &a_starts, tail: 8 };
            let b_in = Varying { bytes: &b_bytes, starts: &b_starts, tail: 8 };
            let merge = |whole: bool| {
                let (mut bytes, mut ends) = (vec![0; room], vec![0]);
                let mut out = Target { bytes: &mut bytes, used: 0, ends: &mut ends, spare: 4 };
                let mut none = |_: &[u8], _: i64| unreachable!("small sums");
                let wrapped: Wrapped<'_> = if sums { Some(&mut none) } else { None };
                let merged = if whole {
                    merge_varying(a_in, b_in, &mut out, wrapped)
                } else {
                    // SAFETY: any processor.
                    unsafe { blocks::<Plain>(a_in, b_in, 0, &mut out, wrapped) }
                };
                let used = out.used;
                bytes.truncate(used);
                (merged, bytes, ends)
            };
            let (merged, bytes, ends) = merge(true);
            let twin = merge(false);
            prop_assert_eq!((&merged, &bytes, &ends), (&twin.0, &twin.1, &twin.2));
            // What was used of both is what came out.
            let a_used = a.iter().take(merged.a).map(|(&key, &diff)| (key, 0, diff));
            let b_used = b.iter().take(merged.b).map(|(&key, &diff)| (key, 1, diff));
            let mut expected: Vec<_> = a_used.chain(b_used).collect();
            expected.sort_unstable();
            if sums {
                expected.dedup_by(|next, kept| {
                    let same = next.0 == kept.0;
                    kept.2 += if same { next.2 } else { 0 };
                    same
                });
                expected.retain(|change| change.2 != 0);
            }
            let (mut rows, mut starts) = (Vec::new(), vec![0]);
            for &(key, _, diff) in &expected {
                rows.extend_from_slice(&body(key, common));
                rows.extend_from_slice(&diff.to_le_bytes());
                starts.push(rows.len() as u32);
            }
            prop_assert_eq!(merged.out, expected.len());
            prop_assert_eq!((&bytes, &ends), (&rows, &starts));
            // No row that is left belongs before one that came out, or is its equal.
            if let Some(&(last, ..)) = expected.last() {
                let left = a.keys().skip(merged.a).chain(b.keys().skip(merged.b)).min();
                prop_assert!(left.is_none_or(|&row| row > last || (!sums && row == last)));
            }
            // It stops for want of room only.
            if merged.a < a.len() && merged.b < b.len() {
                let next = a.keys().nth(merged.a).min(b.keys().nth(merged.b));
                let next = next.map_or(0, |&key| body(key, common).len() + 8);
                prop_assert!(rows.len() + next + 4 * starts.len() > room);
            }
        }

        #[test]
        fn sums_of_rows_that_differ_in_their_times_or_between(
            a in prop::collection::vec((0u16..150, 0u8..60, 0u64..3, 1i64..3), 1..600),
            b in prop::collection::vec((0u16..150, 0u8..60, 0u64..3, -2i64..0), 1..600),
        ) {
            // A key, what is the same in most rows, and a time.
            let row = |&(key, middle, time, diff): &(u16, u8, u64, i64)| {
                let (middle, longer) = (middle.saturating_sub(57), middle == 59);
                let text = vec![middle; 21 + usize::from(longer)];
                ([&key.to_be_bytes()[..], &[5; 20], &text, &time.to_be_bytes()].concat(), diff)
            };
            let sides = [&a, &b].map(|side| side.iter().map(row).collect::<BTreeMap<_, _>>());
            let [(a_bytes, a_starts), (b_bytes, b_starts)] = sides.each_ref().map(|side| {
                let (mut bytes, mut starts) = (Vec::new(), vec![0]);
                for (body, diff) in side {
                    bytes.extend_from_slice(&[&body[..], &diff.to_le_bytes()].concat());
                    starts.push(bytes.len() as u32);
                }
                (bytes, starts)
            });
            let a_in = Varying { bytes: &a_bytes, starts: &a_starts, tail: 8 };
            let b_in = Varying { bytes: &b_bytes, starts: &b_starts, tail: 8 };
            for portable in [false, true] {
                let (mut bytes, mut ends) = (vec![0; 200_000], vec![0]);
                let mut out = Target { bytes: &mut bytes, used: 0, ends: &mut ends, spare: 4 };
                let mut none = |_: &[u8], _: i64| unreachable!("small sums");
                let merged = if portable {
                    // SAFETY: any processor.
                    unsafe { blocks::<Plain>(a_in, b_in, 0, &mut out, Some(&mut none)) }
                } else {
                    merge_varying(a_in, b_in, &mut out, Some(&mut none))
                };
                let used = out.used;
                prop_assert!(merged.a == sides[0].len() || merged.b == sides[1].len());
                let mut expected = BTreeMap::new();
                for (body, diff) in sides[0].iter().take(merged.a).chain(sides[1].iter().take(merged.b)) {
                    *expected.entry(body).or_insert(0) += diff;
                }
                expected.retain(|_, diff| *diff != 0);
                let rows: Vec<u8> = expected
                    .iter()
                    .flat_map(|(body, diff)| [&body[..], &diff.to_le_bytes()].concat())
                    .collect();
                prop_assert_eq!(merged.out, expected.len());
                prop_assert_eq!((&bytes[..used], ends.len()), (&rows[..], expected.len() + 1));
            }
        }
    }
}
