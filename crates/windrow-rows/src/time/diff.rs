//! Diffs: how often a row was added.

/// Bytes of a lane.
const LANE: usize = 8;

/// A diff of a row: lanes of `i64`, each with its own sum over equal rows. A row whose lanes are
/// all zero is removed.
///
/// ```
/// use windrow_rows::Diff;
/// assert_eq!(<(i64, [i64; 2])>::LANES, 3); // a count and two sums
/// ```
pub trait Diff: Copy + Send + Sync + 'static {
    /// Number of lanes: the number of the order's diff columns.
    const LANES: usize;

    /// Reads the diff from its lanes, eight bytes each, little-endian.
    fn decode(lanes: &[u8]) -> Self;

    /// Writes the lanes.
    fn encode(self, lanes: &mut [u8]);
}

impl Diff for i64 {
    const LANES: usize = 1;

    #[inline(always)]
    fn decode(lanes: &[u8]) -> Self {
        Self::from_le_bytes(lanes.first_chunk().copied().unwrap_or_default())
    }

    #[inline(always)]
    fn encode(self, lanes: &mut [u8]) {
        lanes.copy_from_slice(&self.to_le_bytes());
    }
}

impl<D: Diff, const N: usize> Diff for [D; N] {
    const LANES: usize = N * D::LANES;

    #[inline(always)]
    fn decode(lanes: &[u8]) -> Self {
        std::array::from_fn(|at| D::decode(&lanes[at * D::LANES * LANE..]))
    }

    #[inline(always)]
    fn encode(self, lanes: &mut [u8]) {
        for (diff, lanes) in self.into_iter().zip(lanes.chunks_exact_mut(D::LANES * LANE)) {
            diff.encode(lanes);
        }
    }
}

/// Splits the lanes of a `D` off the front of `lanes`.
#[inline(always)]
fn first<'a, D: Diff>(lanes: &mut &'a [u8]) -> &'a [u8] {
    let (first, rest) = lanes.split_at(D::LANES * LANE);
    *lanes = rest;
    first
}

/// Splits off lanes like [`first`], mutably.
#[inline(always)]
fn first_mut<'a, D: Diff>(lanes: &mut &'a mut [u8]) -> &'a mut [u8] {
    let (first, rest) = std::mem::take(lanes).split_at_mut(D::LANES * LANE);
    *lanes = rest;
    first
}

macro_rules! tuple {
    ($($diff:ident $at:tt),+) => {
        impl<$($diff: Diff),+> Diff for ($($diff,)+) {
            const LANES: usize = 0 $(+ $diff::LANES)+;

            #[inline(always)]
            fn decode(mut lanes: &[u8]) -> Self {
                ($($diff::decode(first::<$diff>(&mut lanes)),)+)
            }

            #[inline(always)]
            fn encode(self, mut lanes: &mut [u8]) {
                $(self.$at.encode(first_mut::<$diff>(&mut lanes));)+
            }
        }
    };
}
tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_come_back() {
        let diff: (i64, [i64; 2], (i64,)) = (-1, [i64::MAX, 0], (i64::MIN,));
        let mut lanes = [0; 32];
        diff.encode(&mut lanes);
        assert_eq!(<(i64, [i64; 2], (i64,))>::decode(&lanes), diff);
        assert_eq!(<[i64; 4]>::decode(&lanes), [-1, i64::MAX, 0, i64::MIN]);
    }
}
