//! Ranks: few distinct strings as numbers.
//!
//! ```text
//! rows    pear | fig | pear | apple | fig ...      numbered as they come: 0 1 0 2 1
//! sorted  apple fig pear                           rank of each number: 2 1 0
//! ranks   2    | 1   | 2    | 0     | 1   ...
//! ```
//!
//! Equal strings leave groups of rows to the next keys. A rank is short, so that the next keys fit
//! into the same word and no groups arise.

use super::key::Key;
use crate::rows::Interner;

/// Minimum number of rows for which ranks pay.
const LEAST_ROWS: usize = 1 << 12;
/// The sample is one of `ONE_OF` rows, but at most `MOST` rows.
const ONE_OF: usize = 128;
const MOST: usize = 1024;
/// Consecutive rows in the sample: scattered rows wait for memory, 3 of the 36 us for 8,192
/// strings.
const TOGETHER: usize = 16;
/// Minimum number of rows for each distinct string.
const REPEATS: usize = 8;

/// Returns the ranks of the strings of `key` in `count` rows, if few are distinct. The rank of a
/// null is arbitrary.
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

/// Returns true if a sample repeats strings as often as few distinct strings would. Compares hashes
/// of both ends of the strings and allocates nothing: for many distinct strings the effort is
/// wasted.
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
    // A sample of `s` rows of `d` equally frequent strings has about `s * s / 2d` repeats.
    len > 0 && repeats * 2 * (count / REPEATS) >= len * len
}

#[inline(always)]
fn number(interner: &mut Interner, key: &Key, row: usize) -> u32 {
    let (bytes, len) = key.bytes_beyond(row);
    interner.intern(bytes, len).0 as u32
}
