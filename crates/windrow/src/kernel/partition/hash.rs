//! The folded multiply, over columns of words.
//!
//! ```text
//! state <- addend
//! for each two columns: state <- fold(state ^ word, multiplier ^ next word)
//! for one left over:    state <- fold(state ^ word, multiplier)
//! id <- (upper half of state) * partitions, upper half of that
//! ```
//!
//! A row's state stays in a register while its columns are absorbed, so two columns cost one
//! multiplication and two loads. Rows do not depend on each other.

/// XORs the halves of the 128-bit product.
#[inline(always)]
pub(crate) fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// What the seed decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keys {
    pub(crate) addend: u64,
    /// Odd, so that no bit of a word is lost.
    pub(crate) multiplier: u64,
}

/// Absorbs the words of a row of `columns` into `state`.
#[inline(always)]
fn absorbed<const N: usize>(keys: Keys, columns: &[&[u64]; N], row: usize, state: u64) -> u64 {
    let mut state = state;
    let mut column = 0;
    while column + 1 < N {
        state = fold(state ^ columns[column][row], keys.multiplier ^ columns[column + 1][row]);
        column += 2;
    }
    if column < N { fold(state ^ columns[column][row], keys.multiplier) } else { state }
}

/// Absorbs the words of `columns` into `states`. All slices are of one length.
pub(crate) fn absorb<const N: usize>(keys: Keys, columns: [&[u64]; N], states: &mut [u64]) {
    let columns = columns.map(|words| &words[..states.len()]);
    for (row, state) in states.iter_mut().enumerate() {
        *state = absorbed(keys, &columns, row, *state);
    }
}

/// Absorbs the words of `columns` into states that nothing was absorbed into, and reduces them to
/// ids below `partitions`. All slices are of one length.
pub(crate) fn fused<const N: usize>(
    keys: Keys,
    columns: [&[u64]; N],
    partitions: u32,
    ids: &mut [u32],
) {
    let columns = columns.map(|words| &words[..ids.len()]);
    for (row, id) in ids.iter_mut().enumerate() {
        *id = reduce(absorbed(keys, &columns, row, keys.addend), partitions);
    }
}

/// A number below `partitions`: the upper half of the state as a fraction of one, multiplied
/// (Lemire, "Fast random integer generation in an interval", 2019).
#[inline(always)]
pub(crate) fn reduce(state: u64, partitions: u32) -> u32 {
    (((state >> 32) * u64::from(partitions)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fused_and_absorbed_states_agree() {
        let keys = Keys { addend: 7, multiplier: 0x9e37_79b9_7f4a_7c15 };
        let columns: [Vec<u64>; 3] =
            [1, 2, 3].map(|c| (0..100).map(|row| fold(row + c, keys.multiplier)).collect());
        let [a, b, c] = &columns;
        let mut ids = vec![0; 100];
        fused(keys, [a, b, c], 10, &mut ids);
        let mut states = vec![keys.addend; 100];
        absorb(keys, [a, b], &mut states);
        absorb(keys, [c], &mut states);
        let expected: Vec<u32> = states.iter().map(|&state| reduce(state, 10)).collect();
        assert_eq!(ids, expected);
        assert!((0..10).all(|id| ids.contains(&id)));
    }

    #[test]
    fn reduction_stays_below_the_count() {
        for partitions in [1, 2, 3, 65_536, u32::MAX] {
            assert_eq!(reduce(0, partitions), 0);
            assert_eq!(reduce(u64::MAX, partitions), partitions - 1);
        }
    }
}
