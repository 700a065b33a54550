//! The two-way merge of rows of one length, a block at a time.
//!
//! ```text
//! 1. words   what all rows share at the start is not compared
//! 2. blocks  of BLOCK rows of output: look at the first few, choose a loop, run it; it stops by itself
//! 3. sum     equal neighbours of a block become one
//! ```

use super::Wrapped;
#[cfg(target_arch = "x86_64")]
use super::level::{Avx2, has_avx2};
use super::level::{Level, Plain};
use super::shape::{LONG, ODD, Shape, Strided, common};
use super::steps::{Sample, Work, sample};

/// Rows of output in a block: it is read again by the sum, from the first-level cache and the second.
const BLOCK: usize = 1024;
/// Rows looked at to choose a loop.
const SAMPLE: usize = 16;
/// A sample with at most this many switches has runs: the processor guesses where the next row comes
/// from.
const RUNS: usize = 2;
/// A sample with more equal heads than these has many.
const TIES: usize = 1;

/// What a call did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Merged {
    /// Rows used up.
    pub(crate) a: usize,
    pub(crate) b: usize,
    /// Rows written.
    pub(crate) out: usize,
}

/// Merges `a` and `b` into `out` until one of them is used up, or `out` has no room for more. With
/// `wrapped` equal rows become one, as in [`super::sum`]; without, `a`'s come first.
///
/// Of rows that are equal, either all or none are used up: each input has its own only once.
///
/// # Panics
/// If the inputs differ in stride or body, if a body has less than 8 bytes, or if it overlaps the diff.
pub(crate) fn merge(
    a: Strided<'_>,
    b: Strided<'_>,
    out: &mut [u8],
    wrapped: Wrapped<'_>,
) -> Merged {
    assert!(a.stride == b.stride && a.body == b.body && a.body >= 8 && a.body <= a.stride);
    assert!(wrapped.is_none() || a.body + 8 <= a.stride);
    if a.len() == 0 || b.len() == 0 {
        return Merged::default();
    }
    let least = a.body(0).min(b.body(0));
    let greatest = a.body(a.len() - 1).max(b.body(b.len() - 1));
    let at = common(least, greatest);
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // SAFETY: the instructions were detected.
        return unsafe { with_avx2(a, b, out, at, wrapped) };
    }
    with_shape::<Plain>(a, b, out, at, wrapped)
}

/// [`with_shape`], compiled for newer processors: rows of 32 bytes move in one register, words are
/// loaded in their order.
///
/// # Safety
/// The processor has these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,movbe,bmi1,bmi2")]
unsafe fn with_avx2(
    a: Strided<'_>,
    b: Strided<'_>,
    out: &mut [u8],
    at: usize,
    wrapped: Wrapped<'_>,
) -> Merged {
    with_shape::<Avx2>(a, b, out, at, wrapped)
}

/// Chooses the comparison: `at` bytes are equal in all rows.
#[inline(always)]
fn with_shape<L: Level>(
    a: Strided<'_>,
    b: Strided<'_>,
    out: &mut [u8],
    at: usize,
    wrapped: Wrapped<'_>,
) -> Merged {
    let (stride, body) = (a.stride, a.body);
    let words = (body - at.min(body)).div_ceil(8).max(1);
    // Whole words, counted from the body's end; without them, from the first byte that may differ.
    let fits = words <= 3 && 8 * words <= body;
    macro_rules! blocks {
        ($stride:literal) => {
            match words {
                1 if fits => {
                    blocks::<L, $stride, 1>(Shape::new(stride, body - 8, body), a, b, out, wrapped)
                }
                2 if fits => {
                    blocks::<L, $stride, 2>(Shape::new(stride, body - 16, body), a, b, out, wrapped)
                }
                3 if fits => {
                    blocks::<L, $stride, 3>(Shape::new(stride, body - 24, body), a, b, out, wrapped)
                }
                _ if body >= 24 => {
                    let at = at.min(body - 24);
                    blocks::<L, $stride, LONG>(Shape::new(stride, at, body), a, b, out, wrapped)
                }
                _ => {
                    let at = at.min(body - 8);
                    blocks::<L, 0, ODD>(Shape::new(stride, at, body), a, b, out, wrapped)
                }
            }
        };
    }
    macro_rules! long {
        ($($stride:literal)*) => {
            match stride {
                32 if body == 24 => blocks!(32),
                $($stride if words > 3 && body + 8 == $stride => {
                    let at = at.min(body - 24);
                    blocks::<L, $stride, LONG>(Shape::new(stride, at, body), a, b, out, wrapped)
                })*
                _ => blocks!(0),
            }
        };
    }
    long!(48 64 80 96 128)
}

#[inline(always)]
fn blocks<L: Level, const S: usize, const W: usize>(
    shape: Shape<S, W>,
    a: Strided<'_>,
    b: Strided<'_>,
    out: &mut [u8],
    mut wrapped: Wrapped<'_>,
) -> Merged {
    let stride = shape.stride();
    let mut done = Merged::default();
    while done.a < a.len() && done.b < b.len() {
        let room = out.len() / stride - done.out;
        let left = Work {
            a: a.bytes[done.a * stride..].as_ptr(),
            a_rows: a.len() - done.a,
            b: b.bytes[done.b * stride..].as_ptr(),
            b_rows: b.len() - done.b,
            out: out[done.out * stride..].as_mut_ptr(),
        };
        // One row more may come: the equal of the last.
        let most = room.saturating_sub(1).min(left.a_rows + left.b_rows);
        // A rest that is no block is part of the last one.
        let rows = if most < 2 * BLOCK { most } else { BLOCK };
        if rows == 0 {
            break;
        }
        // SAFETY: `left` has that many whole rows, as the slices say, and `rows` is at most their sum.
        // `out` has room for `rows + 1` rows and, being mutable, overlaps neither input.
        let block = unsafe {
            let Sample { switches, ties, alike } = sample(shape, left, SAMPLE.min(rows));
            match &mut wrapped {
                Some(wrapped) if ties > TIES => L::summed(shape, left, rows, wrapped),
                wrapped if switches > RUNS && switches + 2 < SAMPLE.min(rows) => {
                    if alike == 0 {
                        L::led::<S, W, u64>(shape, left, rows, wrapped)
                    } else {
                        L::led::<S, W, u128>(shape, left, rows, wrapped)
                    }
                }
                wrapped => {
                    let (mut block, ties) = if switches <= RUNS {
                        L::runs(shape, left, rows)
                    } else if alike == 0 {
                        L::streamed::<S, W, 1>(shape, left, rows)
                    } else {
                        L::streamed::<S, W, 3>(shape, left, rows)
                    };
                    if ties && let Some(wrapped) = wrapped {
                        block.out = L::add_up(shape, left.out, block.out, wrapped);
                    }
                    block
                }
            }
        };
        done.a += block.a;
        done.b += block.b;
        done.out += block.out;
    }
    done
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Rows of `stride` bytes with bodies that agree in their first `common` bytes.
    fn rows(bodies: &BTreeMap<Vec<u8>, i64>) -> Vec<u8> {
        bodies.iter().flat_map(|(body, diff)| [&body[..], &diff.to_le_bytes()].concat()).collect()
    }

    fn side(body: usize, keys: &[(u16, i64)], common: usize) -> BTreeMap<Vec<u8>, i64> {
        let row = |&(key, diff): &(u16, i64)| {
            let mut bytes = vec![9; body];
            let at = common.min(body - 2);
            bytes[at..at + 2].copy_from_slice(&key.to_be_bytes());
            // The end decides, too, among keys that are alike.
            bytes[body - 1] = bytes[body - 1].wrapping_add(key as u8 & 1);
            (bytes, diff)
        };
        keys.iter().map(row).collect()
    }

    proptest! {
        #[test]
        fn merges_like_a_map_with_and_without_instructions(
            a in prop::collection::vec((0u16..900, 1i64..3), 1..700),
            b in prop::collection::vec((0u16..900, -2i64..0), 1..700),
            body in prop::sample::select(vec![8usize, 12, 16, 24, 25, 40, 56, 72, 88, 120, 130]),
            common in 0usize..90,
            room in 1usize..1500,
            sums in any::<bool>(),
        ) {
            let (a, b) = (side(body, &a, common), side(body, &b, common));
            let (a_rows, b_rows) = (rows(&a), rows(&b));
            let stride = body + 8;
            let a_in = Strided { bytes: &a_rows, stride, body };
            let b_in = Strided { bytes: &b_rows, stride, body };
            let merge_into = |out: &mut [u8], portable: bool| {
                let mut none = |_: &[u8], _: i64| unreachable!("small sums");
                let wrapped: Wrapped<'_> = if sums { Some(&mut none) } else { None };
                if portable {
                    with_shape::<Plain>(a_in, b_in, out, 0, wrapped)
                } else {
                    merge(a_in, b_in, out, wrapped)
                }
            };
            let mut out = vec![0; room * stride];
            let merged = merge_into(&mut out, false);
            // The same without the newer instructions.
            let mut twin = vec![0; room * stride];
            prop_assert_eq!(merged, merge_into(&mut twin, true));
            prop_assert_eq!(&out, &twin);
            // What was used of both is what came out, added up or not.
            let mut expected: BTreeMap<(Vec<u8>, usize), i64> = BTreeMap::new();
            let sides = [a.iter().take(merged.a), b.iter().take(merged.b)];
            for (side, used) in sides.into_iter().enumerate() {
                for (body, diff) in used {
                    *expected.entry((body.clone(), if sums { 0 } else { side })).or_default() += diff;
                }
            }
            expected.retain(|_, diff| *diff != 0);
            let row = |((body, _), diff): (&(Vec<u8>, usize), &i64)| {
                [&body[..], &diff.to_le_bytes()].concat()
            };
            let expected_rows: Vec<u8> = expected.iter().flat_map(row).collect();
            prop_assert_eq!(&out[..merged.out * stride], &expected_rows[..]);
            // No row that is left belongs before one that came out, or is its equal.
            if let Some(((last, _), _)) = expected.last_key_value() {
                let left = a.keys().skip(merged.a).chain(b.keys().skip(merged.b));
                prop_assert!(left.min().is_none_or(|row| row > last));
            }
            if room > a.len() + b.len() {
                prop_assert!(merged.a == a.len() || merged.b == b.len());
            }
        }
    }
}
