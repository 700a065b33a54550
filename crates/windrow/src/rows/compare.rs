//! Short byte strings, by words.

use std::cmp::Ordering;

/// How the first `len_a` bytes of `a` compare with the first `len_b` of `b`.
///
/// They are short and mostly differ early, and a word costs less than a call; so words are read that may
/// reach beyond them, and what is found there does not count.
#[inline]
pub(super) fn compare(a: &[u8], len_a: usize, b: &[u8], len_b: usize) -> Ordering {
    const WORDS: usize = 4;
    let shorter = len_a.min(len_b);
    for at in (0..8 * WORDS).step_by(8) {
        let (Some(x), Some(y)) = (word(a, at), word(b, at)) else { break };
        let (x, y) = (u64::from_be_bytes(x), u64::from_be_bytes(y));
        let differs = at + (x ^ y).leading_zeros() as usize / 8;
        if x != y && differs < shorter {
            return x.cmp(&y);
        }
        if at + 8 >= shorter {
            return len_a.cmp(&len_b);
        }
    }
    a[..len_a].cmp(&b[..len_b])
}

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> Option<[u8; 8]> {
    bytes.get(at..at + 8)?.try_into().ok()
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
            behind in prop::collection::vec(0u8..3, 0..20),
        ) {
            let (a, b) = ([&start[..], &a].concat(), [&start[..], &b].concat());
            let beyond = |bytes: &[u8]| [bytes, &behind].concat();
            prop_assert_eq!(compare(&beyond(&a), a.len(), &beyond(&b), b.len()), a.cmp(&b));
            prop_assert_eq!(compare(&a, a.len(), &beyond(&b), b.len()), a.cmp(&b));
        }
    }
}
