//! How the diffs of equal rows are combined: by sums, or by a caller's fold.
//!
//! ```text
//! row   | key | ... | time | lane 0 | lane 1 |   sums   each lane modulo 2^64; zero if all are
//!                            i64      i64        fold   all lanes at once; zero by the fold's rule
//! ```
//! Invariant: the result does not depend on the sequence in which the diffs of a row are combined.

use std::fmt::Debug;

/// Bytes of a lane.
pub(super) const LANE: usize = 8;

/// A commutative and associative function of two diffs of one row, in place of their sum: the
/// minimum or a union, for example. All values have one size. See
/// [`Order::fold`](crate::Order::fold).
///
/// Threads and memory determine the sequence in which rows meet: if a fold depends on this
/// sequence, its answers vary.
pub trait Fold: Debug + Send + Sync + 'static {
    /// Returns the name. Folds with equal names must do the same.
    fn name(&self) -> &str;

    /// Folds `diff` into `into`. Both are the lanes of the order, eight bytes each, little-endian.
    fn fold(&self, into: &mut [u8], diff: &[u8]);

    /// Returns true for the neutral diff, the diff without effect on any other. A row with the
    /// neutral diff is removed. By default, no diff is neutral.
    fn is_zero(&self, diff: &[u8]) -> bool {
        let _ = diff;
        false
    }
}

/// The diffs of a layout.
#[derive(Clone, Debug)]
pub struct Diffs {
    /// Positions of the diff columns.
    pub(crate) columns: Vec<usize>,
    /// Function in place of sums.
    pub(super) fold: Option<&'static dyn Fold>,
}

impl PartialEq for Diffs {
    fn eq(&self, other: &Self) -> bool {
        let name = |diffs: &Self| diffs.fold.map(|fold| fold.name().to_owned());
        self.columns == other.columns && name(self) == name(other)
    }
}

impl Eq for Diffs {}

impl Diffs {
    /// Returns true for a single sum, as supported by kernels.
    pub(super) fn are_one_sum(&self) -> bool {
        self.columns.len() == 1 && self.fold.is_none()
    }

    /// Adds `diff` to `into`: sums modulo 2^64, or the fold. For each lane whose sum overflows,
    /// calls `wrapped` with the lane and with 1 or -1, the missing multiple of 2^64.
    #[inline]
    pub(super) fn add(&self, into: &mut [u8], diff: &[u8], mut wrapped: impl FnMut(usize, i64)) {
        if let Some(fold) = self.fold {
            return fold.fold(into, diff);
        }
        let lanes = into.as_chunks_mut::<LANE>().0.iter_mut().zip(diff.as_chunks::<LANE>().0);
        for (lane, (sum, diff)) in lanes.enumerate() {
            let diff = i64::from_le_bytes(*diff);
            let (total, overflow) = i64::from_le_bytes(*sum).overflowing_add(diff);
            *sum = total.to_le_bytes();
            if overflow {
                wrapped(lane, if diff > 0 { 1 } else { -1 });
            }
        }
    }

    /// Returns true if a row with this diff is removed.
    #[inline]
    pub(super) fn is_zero(&self, diff: &[u8]) -> bool {
        match self.fold {
            Some(fold) => fold.is_zero(diff),
            None => diff.iter().all(|&byte| byte == 0),
        }
    }
}
