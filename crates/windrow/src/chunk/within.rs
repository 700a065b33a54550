//! The merge of two chunks in the memory of one of them, where their rows come in runs.
//!
//! ```text
//! bytes    | 1 3 5 7 | . . . . |        a, and room behind it            b   | 2 4 8 9 |
//!          | 1 3 5 7 | . . 8 9 |        from the last row to the first: the run of one input that comes last
//!          | 1 3 . . 5 7 8 9 |                goes to the end of the room that is left
//!          | 1 2 3 4 5 7 8 9 |          b is used up: what is left of a lies where it belongs
//! ```
//!
//! Benefit over a merge into another buffer: half of the memory that is written was read a moment ago, and the
//! first run need not move; neither a buffer nor a chunk is taken and given back. Rows of 96 bytes in runs of
//! about 64, 32 KiB a side, take 1.2 to 1.3 ns instead of 1.7 (Zen 5). Where it loses: a run is looked for before it is
//! moved, which costs two wrong guesses more than to do both at once. Rows of 32 bytes, of which a run has a third of the
//! bytes, take 1.17 ns instead of 0.88.
//!
//! A move of a run needs no `unsafe`: it is one of the standard library's.

use std::ops::Range;

use super::View;
use crate::kernel::merge::{Strided, Wrapped};
use crate::rows::decode::diff_of;

/// Rows that are long enough for it.
const LONG: usize = 64;
/// Rows looked at to find out whether there are runs.
const SAMPLE: usize = 16;
/// A sample with more switches has no runs.
const SWITCHES: usize = 2;
/// Rows that the last run has, if there are runs.
const FEW: usize = 4;
/// Rows of a run for one that is looked at.
const STEP: usize = 8;
/// Runs that are shorter, on average, are not moved one by one, but for the first `GRACE` rows.
const SHORT_RUN: usize = 4;
const GRACE: usize = 128;
/// Bytes that are compared as a number: the first ones decide most comparisons, and the next ones most others.
const WORD: usize = 8;
const LEAD: usize = 2 * WORD;
/// Bytes of a diff, at the end of a row.
const DIFF: usize = 8;

/// How rows of one length are compared.
#[derive(Clone, Copy)]
struct Shape {
    stride: usize,
    /// Bytes that are compared, and where those begin that may differ.
    body: usize,
    at: usize,
}

/// A row that others are compared to.
struct Pivot<'a> {
    lead: u64,
    body: &'a [u8],
}

impl Shape {
    /// The last of `rows`.
    fn last(self, rows: &[u8]) -> &[u8] {
        &rows[rows.len() - self.stride..]
    }

    /// What decides most comparisons of a row, which may be the first of some.
    #[inline(always)]
    fn lead(self, row: &[u8]) -> u64 {
        word(&row[self.at..])
    }

    /// What decides most others.
    #[inline(always)]
    fn next(self, row: &[u8]) -> u64 {
        word(&row[self.at + WORD..])
    }

    fn pivot(self, row: &[u8]) -> Pivot<'_> {
        Pivot { lead: self.lead(row), body: &row[..self.body] }
    }

    /// True if a row, which may be the first of some, stands behind the pivot.
    #[inline(always)]
    fn is_behind(self, row: &[u8], pivot: &Pivot<'_>) -> bool {
        let lead = self.lead(row);
        if lead != pivot.lead {
            return lead > pivot.lead;
        }
        let (next, other) = (self.next(row), self.next(pivot.body));
        if next == other { row[..self.body] > *pivot.body } else { next > other }
    }

    /// The bytes of the last of `rows` that stand behind the pivot.
    #[inline(always)]
    fn last_behind(self, rows: &[u8], pivot: &Pivot<'_>) -> usize {
        let step = STEP * self.stride;
        let mut behind = 0;
        for rows in rows.rchunks_exact(step) {
            if !self.is_behind(rows, pivot) {
                // All of them, none after another, and without a branch: nobody can guess where a run ends.
                let rows = rows[self.stride..].chunks_exact(self.stride);
                let count: usize = rows.map(|row| usize::from(self.is_behind(row, pivot))).sum();
                return behind + count * self.stride;
            }
            behind += step;
        }
        let rows = rows[..rows.len() - behind].rchunks_exact(self.stride);
        behind + self.stride * rows.take_while(|row| self.is_behind(row, pivot)).count()
    }

    /// True if the inputs take turns so rarely, as far as their last rows tell, that whole runs can be moved.
    fn has_runs<'a>(self, mut a: &'a [u8], mut b: &'a [u8]) -> bool {
        let few = FEW * self.stride;
        if a.len() < few || b.len() < few {
            return false;
        }
        let takes_b = |a: &[u8], b: &[u8]| !self.is_behind(a, &self.pivot(b));
        // Of inputs in no order, one of eight has a run of so many rows at its end.
        let mut before = takes_b(self.last(a), self.last(b));
        let is_run = match before {
            true => takes_b(self.last(a), &b[b.len() - few..]),
            false => !takes_b(&a[a.len() - few..], self.last(b)),
        };
        if !is_run {
            return false;
        }
        let mut switches = 0;
        let mut leads = [a, b].map(|rows| self.lead(self.last(rows)));
        for _ in 0..SAMPLE {
            let [lead_a, lead_b] = leads;
            let takes_b = match lead_a == lead_b {
                true => takes_b(self.last(a), self.last(b)),
                false => lead_b > lead_a,
            };
            switches += usize::from(before != takes_b);
            if switches > SWITCHES {
                return false;
            }
            before = takes_b;
            let rows = if takes_b { &mut b } else { &mut a };
            *rows = &rows[..rows.len() - self.stride];
            if rows.is_empty() {
                break;
            }
            leads[usize::from(takes_b)] = self.lead(self.last(rows));
        }
        true
    }
}

/// The first bytes, as a number of their order.
#[inline(always)]
fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |word| u64::from_be_bytes(*word))
}

/// How many bytes the bodies of all rows have in common at their beginning, of those of `stride` bytes in order.
fn common(a: &[u8], b: &[u8], stride: usize, body: usize) -> usize {
    let last = |rows: &[u8]| rows.len() - stride;
    let (last_a, last_b) = (&a[last(a)..][..body], &b[last(b)..][..body]);
    // What the least row and the greatest agree in, all do.
    let differ = word(a).min(word(b)) ^ word(last_a).max(word(last_b));
    if differ != 0 {
        return differ.leading_zeros() as usize / 8;
    }
    let least = (&a[..body]).min(&b[..body]);
    least.iter().zip(last_a.max(last_b)).take_while(|(a, b)| a == b).count()
}

/// What a merge came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Within {
    /// Nothing: these rows are not for it.
    Refused,
    /// All rows are in their places, and take so many bytes.
    Done(usize),
    /// There are no runs any more: the first so many rows of both are still to be merged, and what comes behind
    /// them are these, counted from the start of the bytes.
    Left { a: usize, b: usize, behind: Range<usize> },
}

/// Merges `b` into the rows that are the first `used` bytes of `bytes`, if they are long, of one length, come in
/// runs and have room there.
///
/// With `note` equal rows become one with the sum of their diffs, or none, and it hears of sums that do not fit;
/// without, those of `b` stand behind. The last `tail` bytes of a row are not compared.
pub(super) fn merge_within(
    bytes: &mut [u8],
    (used, stride): (usize, usize),
    b: View<'_>,
    tail: usize,
    mut note: Wrapped<'_>,
) -> Within {
    let Some(Strided { bytes: b, body, .. }) = b.strided(0..b.len(), tail) else {
        return Within::Refused;
    };
    let whole = used + b.len();
    if stride < LONG || body < LEAD || used == 0 || b.is_empty() || whole > bytes.len() {
        return Within::Refused;
    }
    let a = &bytes[..used];
    let shape = Shape { stride, body, at: common(a, b, stride, body).min(body - LEAD) };
    if !shape.has_runs(a, b) {
        return Within::Refused;
    }
    // Where the rows end that are left of each, and where the first of those begins that are in their places.
    let (mut i, mut j, mut to) = (used, b.len(), whole);
    let mut least_to = whole + GRACE * stride;
    while i > 0 && j > 0 {
        if to > least_to {
            let behind = to / stride..whole / stride;
            return Within::Left { a: i / stride, b: j / stride, behind };
        }
        least_to = least_to.saturating_sub(2 * SHORT_RUN * stride);
        let run = shape.last_behind(&bytes[..i], &shape.pivot(shape.last(&b[..j])));
        to -= run;
        bytes.copy_within(i - run..i, to);
        i -= run;
        if i == 0 {
            break;
        }
        let pivot = shape.pivot(shape.last(&bytes[..i]));
        let run = shape.last_behind(&b[..j], &pivot);
        let is_equal = run < j && shape.last(&b[..j - run])[..body] == *pivot.body;
        let run = if is_equal && note.is_none() { run + stride } else { run };
        to -= run;
        bytes[to..][..run].copy_from_slice(&b[j - run..j]);
        j -= run;
        if is_equal && let Some(note) = &mut note {
            let (row, other) = (&bytes[i - stride..i], &b[j - stride..j]);
            let (sum, overflow) = diff_of(row).overflowing_add(diff_of(other));
            if overflow {
                note(&row[..body], if diff_of(other) > 0 { 1 } else { -1 });
            }
            (i, j) = (i - stride, j - stride);
            if sum != 0 {
                to -= stride;
                bytes.copy_within(i..i + stride, to);
                bytes[to + stride - DIFF..][..DIFF].copy_from_slice(&sum.to_le_bytes());
            }
        }
    }
    to -= j;
    bytes[to..][..j].copy_from_slice(&b[..j]);
    // A gap is left where rows were equal.
    if to > i {
        bytes.copy_within(to..whole, i);
    }
    Within::Done(whole - (to - i))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::chunk::Starts;

    /// Bytes of a row that are compared.
    const BODY: usize = 64;
    const STRIDE: usize = BODY + DIFF;

    type Rows = BTreeMap<[u8; BODY], i64>;

    /// Rows whose bodies begin alike and differ at byte `at`, and in the last one.
    fn rows(keys: &[(u16, i64)], at: usize) -> Rows {
        let row = |&(key, diff): &(u16, i64)| {
            let mut body = [3; BODY];
            body[at..at + 2].copy_from_slice(&(key >> 1).to_be_bytes());
            body[BODY - 1] = key as u8 & 1;
            (body, diff)
        };
        keys.iter().map(row).collect()
    }

    fn bytes(rows: &Rows) -> Vec<u8> {
        rows.iter().flat_map(|(body, diff)| [&body[..], &diff.to_le_bytes()].concat()).collect()
    }

    /// Keys of two inputs that take turns in runs, and some more of the second.
    fn turns(runs: &[(bool, u16)], others: &[(u16, i64)]) -> [Vec<(u16, i64)>; 2] {
        let (mut a, mut b, mut key) = (Vec::new(), others.to_vec(), 0);
        for &(of_b, len) in runs {
            let run = (key..key + len).map(|key| (3 * key, i64::from(key % 3) + 1));
            if of_b {
                b.extend(run)
            } else {
                a.extend(run)
            }
            key += len;
        }
        [a, b]
    }

    proptest! {
        #[test]
        fn merges_runs_like_a_map(
            runs in prop::collection::vec((any::<bool>(), 1u16..40), 2..20),
            others in prop::collection::vec((0u16..900, -3i64..0), 0..20),
            at in prop::sample::select(vec![0usize, 7, 40, 60]),
            sums in any::<bool>(),
            spare in 0usize..200,
        ) {
            let [a, b] = turns(&runs, &others).map(|side| rows(&side, at));
            let (mut merged, b_bytes) = (bytes(&a), bytes(&b));
            let used = merged.len();
            merged.resize(used + b_bytes.len() + spare, 0xee);
            let before = merged.clone();
            let mut none = |_: &[u8], _: i64| unreachable!("small sums");
            let note: Wrapped<'_> = if sums { Some(&mut none) } else { None };
            let view = View { bytes: &b_bytes, starts: Starts::Every(STRIDE) };
            let (end, left) = match merge_within(&mut merged, (used, STRIDE), view, DIFF, note) {
                Within::Refused => {
                    prop_assert_eq!(merged, before);
                    return Ok(());
                }
                Within::Done(end) => (0..end, (0, 0)),
                Within::Left { a, b, behind } => {
                    (behind.start * STRIDE..behind.end * STRIDE, (a, b))
                }
            };
            prop_assert_eq!(&merged[..left.0 * STRIDE], &before[..left.0 * STRIDE]);
            let mut expected: BTreeMap<([u8; BODY], usize), i64> = BTreeMap::new();
            for (side, rows) in [&a, &b].into_iter().enumerate() {
                for (body, diff) in rows.iter().skip([left.0, left.1][side]) {
                    *expected.entry((*body, if sums { 0 } else { side })).or_default() += diff;
                }
            }
            expected.retain(|_, diff| *diff != 0);
            let row = |((body, _), diff): (&([u8; BODY], usize), &i64)| {
                [&body[..], &diff.to_le_bytes()].concat()
            };
            let expected: Vec<u8> = expected.iter().flat_map(row).collect();
            prop_assert_eq!(&merged[end], &expected[..]);
        }
    }

    #[test]
    fn takes_runs_and_nothing_else() {
        let keys = |from: u16, step: usize| (from..from + 90).step_by(step).map(|key| (key, 1));
        let merge = |a: Vec<(u16, i64)>, b: Vec<(u16, i64)>, spare: usize| {
            let (mut merged, b) = (bytes(&rows(&a, 8)), bytes(&rows(&b, 8)));
            let used = merged.len();
            merged.resize(used + spare, 0);
            let view = View { bytes: &b, starts: Starts::Every(STRIDE) };
            merge_within(&mut merged, (used, STRIDE), view, DIFF, None)
        };
        let room = 200 * STRIDE;
        assert_eq!(merge(keys(0, 2).collect(), keys(1, 2).collect(), room), Within::Refused);
        assert_eq!(
            merge(keys(0, 1).collect(), keys(100, 1).collect(), 89 * STRIDE),
            Within::Refused
        );
        let used = merge(keys(0, 1).collect(), keys(100, 1).collect(), 90 * STRIDE);
        assert_eq!(used, Within::Done(180 * STRIDE));
        assert_eq!(merge(keys(0, 1).collect(), keys(0, 1).collect(), room), Within::Refused);
    }

    #[test]
    fn sums_that_do_not_fit_are_told() {
        let side = |diff: i64| (0..50).map(|key| (key, diff)).collect::<Vec<_>>();
        let mut a = side(1);
        a.extend([(51, i64::MAX), (53, i64::MIN), (55, 4)]);
        let b: Vec<_> =
            [(51, 1), (53, -1), (55, -4)].into_iter().chain((60..90).map(|k| (k, 1))).collect();
        let (mut merged, b) = (bytes(&rows(&a, 0)), bytes(&rows(&b, 0)));
        let used = merged.len();
        merged.resize(used + b.len(), 0);
        let mut told = Vec::new();
        let mut note = |body: &[u8], times: i64| told.push((body[BODY - 1], times));
        let view = View { bytes: &b, starts: Starts::Every(STRIDE) };
        let end = merge_within(&mut merged, (used, STRIDE), view, DIFF, Some(&mut note));
        assert_eq!(end, Within::Done((50 + 2 + 30) * STRIDE));
        told.sort();
        assert_eq!(told, [(1, -1), (1, 1)]);
        let diffs = |row: usize| diff_of(&merged[row * STRIDE..][..STRIDE]);
        assert_eq!((diffs(50), diffs(51)), (i64::MIN, i64::MAX));
    }
}
