//! Rows that are one run already: in order, or in reverse with no two of them equal.
//!
//! ```text
//! for each block of neighbours (a short one first: most inputs are no run, and show it soon)
//!   first key    all in order?  which are equal?
//!   other keys   of those that are equal so far: all in order?  which are still equal?
//! ```

use std::cmp::Ordering;

use super::key::Key;

/// Neighbours of the first block, and of all others.
const FIRST: usize = 64;
const BLOCK: usize = 1024;

/// What all rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run {
    Up,
    Down,
}

/// Finds out whether `count` rows, at least two, are one run.
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

/// Whether each of the rows from `first` on, before `end`, stands to the one in front of it as in `run`.
fn is_in_order(keys: &[Key], run: Run, first: usize, end: usize, equal: &mut Vec<u32>) -> bool {
    let Some((key, others)) = keys.split_first() else { return run == Run::Up };
    equal.clear();
    match key.numbers().filter(|_| key.nulls.is_none()) {
        Some((values, code)) => {
            let code = |value: &[u8; 8]| code.code(u64::from_ne_bytes(*value));
            let values = &values[first - 1..end];
            let is_last = others.is_empty();
            // No branch for each pair, so that the loops are a few instructions a row.
            let (mut before, mut wrong) = (code(&values[0]), false);
            for value in &values[1..] {
                let value = code(value);
                wrong |= match run {
                    Run::Up => before > value,
                    Run::Down if is_last => before <= value,
                    Run::Down => before < value,
                };
                before = value;
            }
            if wrong || is_last {
                return !wrong;
            }
            equal.resize(values.len(), 0);
            let mut count = 0;
            for (row, pair) in (first as u32..).zip(values.windows(2)) {
                equal[count] = row;
                count += usize::from(pair[0] == pair[1]);
            }
            equal.truncate(count);
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
        match key.numbers().filter(|_| key.nulls.is_none()) {
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

fn is_wrong(order: Ordering, run: Run) -> bool {
    order == if run == Run::Up { Ordering::Greater } else { Ordering::Less }
}
