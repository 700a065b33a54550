//! Detection of rows that are already a run: ascending, or strictly descending.
//!
//! ```text
//! for each block of neighbours (a short one first: most inputs are no run, and show it soon)
//!   first key    all in order?  which rows are equal?
//!   other keys   of the rows equal so far: all in order?  which are still equal?
//! ```

use std::cmp::Ordering;
use std::ops::Range;

use super::key::{Key, PlainCode};

/// Neighbours in the first block, and in all other blocks.
const FIRST: usize = 64;
const BLOCK: usize = 1024;

/// Order of all rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run {
    Up,
    Down,
}

/// Returns the run that `count` rows form, if any. `count` is at least two.
pub(super) fn run(keys: &[Key], count: usize) -> Option<Run> {
    let first = keys.iter().map(|key| key.compare(0, 1)).find(|order| order.is_ne());
    let run = if first == Some(Ordering::Greater) { Run::Down } else { Run::Up };
    let mut equal = Vec::with_capacity(BLOCK);
    let mut block = FIRST;
    let mut row = 1;
    while row < count {
        let end = (row + block).min(count);
        if !is_in_order(keys, run, row, end, &mut equal) {
            return None;
        }
        (row, block) = (end, BLOCK);
    }
    Some(run)
}

/// Returns true if each row from `first` to `end` follows its predecessor as `run` requires.
fn is_in_order(keys: &[Key], run: Run, first: usize, end: usize, equal: &mut Vec<u32>) -> bool {
    fn numbers(key: &Key) -> Option<(&[[u8; 8]], PlainCode)> {
        key.numbers().filter(|_| key.nulls.is_none())
    }
    let Some((key, mut others)) = keys.split_first() else { return run == Run::Up };
    equal.clear();
    match numbers(key) {
        Some((values, code)) => {
            let values = &values[first - 1..end];
            let codes = values.iter().map(|value| code.code(u64::from_ne_bytes(*value)));
            // Two numbers compare like one number of twice the width.
            let second = others.split_first().and_then(|(key, rest)| Some((numbers(key)?, rest)));
            let wrong = match second {
                Some(((values, code), rest)) => {
                    others = rest;
                    let values = &values[first - 1..end];
                    let low = values.iter().map(|value| code.code(u64::from_ne_bytes(*value)));
                    let both = codes.zip(low);
                    let both = both.map(|(high, low)| u128::from(high) << 64 | u128::from(low));
                    any_wrong(both, run, first..end, others.is_empty(), equal)
                }
                None => any_wrong(codes, run, first..end, others.is_empty(), equal),
            };
            if wrong || others.is_empty() {
                return !wrong;
            }
        }
        None => {
            for row in first..end {
                match key.compare(row - 1, row) {
                    Ordering::Equal => equal.push(row as u32),
                    order if is_wrong(order, run) => return false,
                    _ => {}
                }
            }
        }
    }
    for key in others {
        if equal.is_empty() {
            return true;
        }
        let mut wrong = false;
        let mut keep = |order: Ordering| {
            wrong |= is_wrong(order, run);
            order.is_eq()
        };
        match numbers(key) {
            Some((values, code)) => {
                let code = |row: usize| code.code(u64::from_ne_bytes(values[row]));
                equal.retain(|&row| keep(code(row as usize - 1).cmp(&code(row as usize))));
            }
            None => equal.retain(|&row| keep(key.compare(row as usize - 1, row as usize))),
        }
        if wrong {
            return false;
        }
    }
    run == Run::Up || equal.is_empty()
}

/// Returns true if one of `rows` violates `run` with respect to its predecessor. The codes start
/// with the predecessor of the first row. `equal` receives the rows that equal their predecessor,
/// unless this key is the last.
#[inline(always)]
fn any_wrong<T: Ord + Copy>(
    codes: impl Iterator<Item = T> + Clone,
    run: Run,
    rows: Range<usize>,
    is_last: bool,
    equal: &mut Vec<u32>,
) -> bool {
    let wrong = match (run, is_last) {
        (Run::Up, _) => any_pair(codes.clone(), |before, code| before > code),
        (Run::Down, true) => any_pair(codes.clone(), |before, code| before <= code),
        (Run::Down, false) => any_pair(codes.clone(), |before, code| before < code),
    };
    if wrong || is_last {
        return wrong;
    }
    equal.resize(rows.len(), 0);
    let mut count = 0;
    for (row, (before, code)) in rows.zip(codes.clone().zip(codes.skip(1))) {
        equal[count] = row as u32;
        count += usize::from(before == code);
    }
    equal.truncate(count);
    false
}

/// Returns true if `is_wrong` holds for two neighbours. Has no branch for each pair, and so takes
/// few instructions a row.
#[inline(always)]
fn any_pair<T: Copy>(mut codes: impl Iterator<Item = T>, is_wrong: impl Fn(T, T) -> bool) -> bool {
    let Some(mut before) = codes.next() else { return false };
    let mut wrong = false;
    for code in codes {
        wrong |= is_wrong(before, code);
        before = code;
    }
    wrong
}

fn is_wrong(order: Ordering, run: Run) -> bool {
    order == if run == Run::Up { Ordering::Greater } else { Ordering::Less }
}
