//! Comparison of byte strings that mostly differ early.
//!
//! ```text
//! a      https://example.org/pear | ...          32 bytes of both at once, even past their ends
//! b      https://example.org/plum | ...
//! alike  111111111111111111111010 ...            the first difference decides, if within both
//! ```

use std::cmp::Ordering;

/// Bytes compared at once.
const BLOCK: usize = 32;

/// Compares the first `len_a` bytes of `a` with the first `len_b` bytes of `b`.
///
/// The strings mostly differ early, at an unpredictable byte. The function therefore reads a block
/// of both, possibly beyond their ends, and ignores differences beyond the ends.
///
/// Benefit: 2 ns, wherever they differ; comparing word by word takes 2.4 to 4.6 ns (rows of 32
/// bytes, a null in the first column or not), `memcmp` 1.9 to 4.3 ns.
///
/// # Panics
/// If a slice is shorter than its length, unless an earlier byte decides.
#[inline]
pub fn compare(a: &[u8], len_a: usize, b: &[u8], len_b: usize) -> Ordering {
    let (Some(x), Some(y)) = (a.first_chunk(), b.first_chunk()) else {
        return a[..len_a].cmp(&b[..len_b]);
    };
    let first = common(x, y);
    let is_within = first < len_a.min(len_b).min(BLOCK);
    if !is_within && len_a.min(len_b) > BLOCK {
        return a[BLOCK..len_a].cmp(&b[BLOCK..len_b]);
    }
    // Reads both bytes: a branch would be as hard to predict as the first difference.
    let (x, y) = (x[first % BLOCK], y[first % BLOCK]);
    let (x, y) = if is_within { (x.into(), y.into()) } else { (len_a, len_b) };
    x.cmp(&y)
}

/// Returns the length of the common prefix of two blocks.
#[inline(always)]
fn common(a: &[u8; BLOCK], b: &[u8; BLOCK]) -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        let alike = |at: usize| {
            // SAFETY: a block has two halves of sixteen bytes, and every x86-64 CPU has SSE2.
            unsafe {
                let (a, b) = (a.as_ptr().add(at).cast(), b.as_ptr().add(at).cast());
                _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128(a), _mm_loadu_si128(b))) as u32
            }
        };
        (alike(0) | alike(BLOCK / 2) << 16).trailing_ones() as usize
    }
    #[cfg(not(target_arch = "x86_64"))]
    common_each(a, b)
}

/// The portable twin.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn common_each(a: &[u8; BLOCK], b: &[u8; BLOCK]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_behind_does_not_count(
            start in prop::collection::vec(0u8..3, 0..50),
            a in prop::collection::vec(0u8..3, 0..20),
            b in prop::collection::vec(0u8..3, 0..20),
            behind in prop::collection::vec(0u8..3, 0..50),
        ) {
            let (a, b) = ([&start[..], &a].concat(), [&start[..], &b].concat());
            let beyond = |bytes: &[u8]| [bytes, &behind].concat();
            prop_assert_eq!(compare(&beyond(&a), a.len(), &beyond(&b), b.len()), a.cmp(&b));
            prop_assert_eq!(compare(&a, a.len(), &beyond(&b), b.len()), a.cmp(&b));
        }

        #[test]
        fn both_find_the_same(mut a: [u8; BLOCK], differ in 0usize..=BLOCK, by: u8) {
            let b = a;
            if let Some(byte) = a.get_mut(differ) {
                *byte ^= by | 1;
            }
            prop_assert_eq!(common(&a, &b), differ);
            prop_assert_eq!(common_each(&a, &b), differ);
        }
    }
}
