//! Few distinct strings as numbers: their ranks.
//!
//! ```text
//! rows    pear | fig | pear | apple | fig ...      numbered as they come: 0 1 0 2 1
//! sorted  apple fig pear                           rank of each number: 2 1 0
//! ranks   2    | 1   | 2    | 0     | 1   ...
//! ```
//!
//! Equal strings leave groups of rows whose order the next keys decide. With ranks those share a word with
//! the string, so that there are no groups.

use super::key::Key;
use crate::rows::value::Interner;

/// Rows of the smallest record batch for which this pays.
const LEAST_ROWS: usize = 1 << 15;
/// Rows that are looked at before all of them are.
const SAMPLE: usize = 1024;
/// Rows for each distinct string, at the least.
const REPEATS: usize = 8;

/// The ranks of the strings of `key` in `count` rows, if they are few. Those of nulls are any.
pub(super) fn ranks(key: &Key, count: usize) -> Option<Vec<u32>> {
    if count < LEAST_ROWS {
        return None;
    }
    let mut interner = Interner::default();
    for at in 0..SAMPLE {
        number(&mut interner, key, at * (count / SAMPLE));
    }
    // Of `d` strings as many of each, a sample of `s` has about `s * s / 2d` that were there before.
    let repeats = SAMPLE - interner.len();
    if repeats * 2 * (count / REPEATS) < SAMPLE * SAMPLE {
        return None;
    }
    let mut numbers = Vec::with_capacity(count);
    for row in 0..count {
        numbers.push(number(&mut interner, key, row));
        if interner.len() > count / REPEATS {
            return None;
        }
    }
    let mut sorted: Vec<u32> = (0..interner.len() as u32).collect();
    sorted.sort_unstable_by_key(|&number| interner.get(number as usize));
    let mut ranks = vec![0; sorted.len()];
    for (&number, rank) in sorted.iter().zip(0..) {
        ranks[number as usize] = rank;
    }
    numbers.iter_mut().for_each(|number| *number = ranks[*number as usize]);
    Some(numbers)
}

#[inline(always)]
fn number(interner: &mut Interner, key: &Key, row: usize) -> u32 {
    let (bytes, len) = key.bytes_beyond(row);
    interner.intern(bytes, len).0 as u32
}
