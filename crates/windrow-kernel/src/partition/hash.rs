//! The folded multiply, over columns of words.
//!
//! ```text
//! state <- addend
//! for each two columns: state <- fold(state ^ word, multiplier ^ next word)
//! for one left over:    state <- fold(state ^ word, multiplier)
//! id <- upper half of ((upper half of finish(state)) * partitions)
//! ```
//!
//! A row's state stays in a register while its columns are absorbed, so two columns cost one wide
//! multiplication and two loads. Rows are independent: with AVX-512, eight are hashed at once, and
//! a wide multiplication is four narrow ones.

/// Multiplies and XORs the halves of the 128-bit product.
#[inline(always)]
pub fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Keys that depend on the seed and the round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    pub addend: u64,
    /// Odd, so that no bit of a word is lost.
    pub multiplier: u64,
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

/// Absorbs the words of `columns` into `states`. All slices have one length.
pub fn absorb<const N: usize>(keys: Keys, columns: [&[u64]; N], states: &mut [u64]) {
    let columns = columns.map(|words| &words[..states.len()]);
    for (row, state) in states.iter_mut().enumerate() {
        *state = absorbed(keys, &columns, row, *state);
    }
}

/// Hashes the words of `columns` from fresh states, and reduces the states to ids below
/// `partitions`. All slices have one length.
pub fn fused<const N: usize>(keys: Keys, columns: [&[u64]; N], partitions: u32, ids: &mut [u32]) {
    let columns = columns.map(|words| &words[..ids.len()]);
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if crate::cpu::detected!("avx512f", "avx512dq") {
        // SAFETY: the CPU has AVX-512F and DQ.
        done = unsafe { wide::fused(keys, columns, partitions, ids) };
    }
    fused_portable(keys, columns, partitions, ids, done);
}

fn fused_portable<const N: usize>(
    keys: Keys,
    columns: [&[u64]; N],
    partitions: u32,
    ids: &mut [u32],
    from: usize,
) {
    for (row, id) in ids.iter_mut().enumerate().skip(from) {
        *id = reduce(absorbed(keys, &columns, row, keys.addend), partitions);
    }
}

/// Eight rows at a time.
#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::*;

    use super::{FINISH, Keys};

    /// Hashes as the portable twin does, for as many rows as are a multiple of eight. Returns their
    /// number.
    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) fn fused<const N: usize>(
        keys: Keys,
        columns: [&[u64]; N],
        partitions: u32,
        ids: &mut [u32],
    ) -> usize {
        let (blocks, _) = ids.as_chunks_mut::<8>();
        let columns = columns.map(|words| &words.as_chunks::<8>().0[..blocks.len()]);
        let addend = _mm512_set1_epi64(keys.addend as i64);
        let multiplier = _mm512_set1_epi64(keys.multiplier as i64);
        let finish = _mm512_set1_epi64(FINISH as i64);
        let partitions = _mm512_set1_epi64(i64::from(partitions));
        for (index, ids) in blocks.iter_mut().enumerate() {
            let load = |column: usize| {
                let words: &[u64; 8] = &columns[column][index];
                // SAFETY: eight words are 64 bytes.
                unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
            };
            let mut state = addend;
            let mut column = 0;
            while column + 1 < N {
                let other = _mm512_xor_si512(multiplier, load(column + 1));
                state = fold(_mm512_xor_si512(state, load(column)), other);
                column += 2;
            }
            if column < N {
                state = fold(_mm512_xor_si512(state, load(column)), multiplier);
            }
            state = _mm512_xor_si512(state, _mm512_srli_epi64::<32>(state));
            state = _mm512_srli_epi64::<32>(_mm512_mullo_epi64(state, finish));
            let id = _mm512_srli_epi64::<32>(_mm512_mul_epu32(state, partitions));
            // SAFETY: eight ids are 32 bytes.
            unsafe { _mm256_storeu_si256(ids.as_mut_ptr().cast(), _mm512_cvtepi64_epi32(id)) };
        }
        blocks.len() * 8
    }

    /// XORs the halves of 128-bit products, made of four products of halves.
    #[target_feature(enable = "avx512f")]
    fn fold(a: __m512i, b: __m512i) -> __m512i {
        let half = _mm512_set1_epi64(0xffff_ffff);
        let (a_high, b_high) = (_mm512_srli_epi64::<32>(a), _mm512_srli_epi64::<32>(b));
        let low = _mm512_mul_epu32(a, b);
        let crossed = _mm512_mul_epu32(a_high, b);
        let other = _mm512_mul_epu32(a, b_high);
        let high = _mm512_mul_epu32(a_high, b_high);
        let crossed = _mm512_add_epi64(crossed, _mm512_srli_epi64::<32>(low));
        let middle = _mm512_add_epi64(other, _mm512_and_si512(crossed, half));
        let high = _mm512_add_epi64(high, _mm512_srli_epi64::<32>(crossed));
        let high = _mm512_add_epi64(high, _mm512_srli_epi64::<32>(middle));
        let low = _mm512_or_si512(_mm512_slli_epi64::<32>(middle), _mm512_and_si512(low, half));
        _mm512_xor_si512(high, low)
    }
}

/// Mixes `states` once more, with the keys of a later round.
pub fn remix(keys: Keys, states: &mut [u64]) {
    for state in states {
        *state = fold(*state ^ keys.addend, keys.multiplier);
    }
}

/// The multiplier of [`reduce`]: odd, with as many ones as zeros.
const FINISH: u64 = 0xd6e8_feb8_6659_fd93;

/// Reduces a state to a number below `partitions`.
///
/// The best bits of a folded product are in its middle, so they are moved up first. The upper half
/// is then a fraction of one and multiplied (Lemire, "Fast random integer generation in an
/// interval", 2019).
#[inline(always)]
pub fn reduce(state: u64, partitions: u32) -> u32 {
    let state = (state ^ (state >> 32)).wrapping_mul(FINISH);
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
        let mut again = vec![0; 100];
        fused_portable(keys, [a, b, c], 10, &mut again, 0);
        assert_eq!(ids, again);
        fused(keys, [a], u32::MAX, &mut ids);
        fused_portable(keys, [a], u32::MAX, &mut again, 0);
        assert_eq!(ids, again);
    }

    #[test]
    fn reduction_stays_below_the_count() {
        for partitions in [1, 2, 3, 65_536, u32::MAX] {
            let ids = (0..10_000).map(|state: u64| reduce(state << 50 ^ state, partitions));
            assert!(ids.into_iter().all(|id| id < partitions));
        }
    }
}
