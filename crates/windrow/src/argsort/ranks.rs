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
use crate::rows::Interner;

/// Rows of the smallest record batch for which this pays.
const LEAST_ROWS: usize = 1 << 12;
/// Rows that are looked at before all of them are: one of so many, and no more than so many.
const ONE_OF: usize = 128;
const MOST: usize = 1024;
/// So many of these follow each other: rows from all over wait for memory, 3 of 36 us that 8,192 strings take.
const TOGETHER: usize = 16;
/// Rows for each distinct string, at the least.
const REPEATS: usize = 8;

/// The ranks of the strings of `key` in `count` rows, if they are few. Those of nulls are any.
pub(super) fn ranks(key: &Key, count: usize) -> Option<Vec<u32>> {
    if count < LEAST_ROWS || !seem_few(key, count) {
        return None;
    }
    let mut interner = Interner::default();
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

/// Whether a sample has as many strings twice as it would have of few. It is told by their ends, without memory
/// from the allocator: where strings are not few it is for nothing.
fn seem_few(key: &Key, count: usize) -> bool {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let most = MOST.min(count / ONE_OF);
    let stretches = (0..count).step_by(count / most * TOGETHER);
    let rows = stretches.flat_map(|first| first..first + TOGETHER).take(most);
    let (mut sample, mut len) = ([0; MOST], 0);
    for row in rows.filter(|&row| !key.is_null(row)) {
        let (_, bytes) = key.bytes_beyond(row);
        let (first, last) = (key.word(row, 0), key.word(row, bytes.saturating_sub(8)));
        sample[len] = (first.rotate_left(32) ^ last).wrapping_mul(ODD) ^ bytes as u64;
        len += 1;
    }
    let sample = &mut sample[..len];
    sample.sort_unstable();
    let repeats = sample.windows(2).filter(|pair| pair[0] == pair[1]).count();
    // Of `d` strings as many of each, a sample of `s` has about `s * s / 2d` that were there before.
    len > 0 && repeats * 2 * (count / REPEATS) >= len * len
}

#[inline(always)]
fn number(interner: &mut Interner, key: &Key, row: usize) -> u32 {
    let (bytes, len) = key.bytes_beyond(row);
    interner.intern(bytes, len).0 as u32
}
