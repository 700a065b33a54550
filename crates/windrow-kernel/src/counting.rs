//! Counting sort of rows by small codes, without words to move: the number of rows with lesser
//! codes is where the first row of a code goes.
//!
//! ```text
//! codes    2 0 2 1 2 0 ...
//! counted  code 0: 2 | 1: 1 | 2: 3          begin at 0, 2, 3; end at 2, 3, 6
//! order    1 5 | 3 | 0 2 4                  each row goes to the next position of its code
//! ```
//!
//! The sort reads two bytes a row and writes four; a pass over words moves sixteen. The sort is
//! stable.

/// Most bits of a code: the counters of each turn take half of a first-level cache.
pub const BITS: u32 = 11;

const CODES: usize = 1 << BITS;
/// Counters for each code, used in turn by consecutive rows: repeated increments of one counter
/// would wait for each other.
const TURNS: usize = 2;

/// Returns the rows in the order of their codes. `ends` receives where the rows of each code below
/// `1 << bits` end.
///
/// # Panics
/// If there are more rows than 32 bits can number, or more bits than [`BITS`].
pub fn order(codes: &[u16], bits: u32, ends: &mut Vec<u32>) -> Vec<u32> {
    assert!(bits <= BITS && u32::try_from(codes.len()).is_ok(), "small codes, 32 bits for a row");
    let mask = (1 << bits) - 1;
    let mut counts = [[0u32; CODES]; TURNS];
    let (some, rest) = codes.as_chunks::<TURNS>();
    for turn in some {
        for (counts, code) in counts.iter_mut().zip(turn) {
            counts[usize::from(*code) & mask & (CODES - 1)] += 1;
        }
    }
    rest.iter().for_each(|code| counts[0][usize::from(*code) & mask & (CODES - 1)] += 1);
    let [next, others] = &mut counts;
    let mut start = 0;
    ends.clear();
    for (next, other) in next[..=mask].iter_mut().zip(others) {
        start += std::mem::replace(next, start) + *other;
        ends.push(start);
    }
    let mut order = Vec::with_capacity(codes.len());
    let places = order.spare_capacity_mut();
    for (code, row) in codes.iter().zip(0..) {
        let place = &mut next[usize::from(*code) & mask & (CODES - 1)];
        // SAFETY: the counted codes are `codes`, so each row has a place of its own below the
        // number of rows. The capacity covers all rows.
        unsafe { places.get_unchecked_mut(*place as usize).write(row) };
        *place += 1;
    }
    // SAFETY: each row was written to a place of its own below their number.
    unsafe { order.set_len(codes.len()) };
    order
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_stand_by_their_codes(bits in 0u32..=BITS, codes in prop::collection::vec(any::<u16>(), 0..5000)) {
            let codes: Vec<u16> = codes.iter().map(|code| code & ((1 << bits) - 1)).collect();
            let mut ends = vec![7];
            let mut expected: Vec<u32> = (0..codes.len() as u32).collect();
            expected.sort_by_key(|&row| codes[row as usize]);
            prop_assert_eq!(order(&codes, bits, &mut ends), expected);
            let at_most = |last: usize| codes.iter().filter(|code| usize::from(**code) <= last).count();
            prop_assert_eq!(ends.len(), 1 << bits);
            prop_assert!(ends.iter().enumerate().all(|(code, &end)| end as usize == at_most(code)));
        }
    }
}
