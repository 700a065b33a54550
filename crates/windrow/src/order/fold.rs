//! What becomes of the diffs of equal rows: sums, or what a caller's fold makes of them.
//!
//! ```text
//! row   | key | ... | time | lane 0 | lane 1 |     sums    lane by lane, modulo 2^64; zero if all lanes are
//!                            i64      i64          fold    all lanes at once; zero if the fold says so
//! ```
//! Invariant: in whatever order the diffs of a row meet, the same comes of them.

use std::fmt::Debug;

/// Bytes of a lane.
pub(super) const LANE: usize = 8;

/// What is made of two diffs of one row, in place of their sum: the minimum, a union, whatever is associative and
/// commutative on values of one size. See [`Order::fold`](crate::Order::fold).
///
/// Rows meet in an order that depends on threads and memory: a fold for which that matters gives answers that depend on
/// them as well.
pub trait Fold: Debug + Send + Sync + 'static {
    /// The name. Folds of one name do the same.
    fn name(&self) -> &str;

    /// Folds `diff` into `into`. Both are the lanes of the order, eight bytes each, little-endian.
    fn fold(&self, into: &mut [u8], diff: &[u8]);

    /// True for the diff that changes no other, if there is one: a row that has it is gone.
    fn is_zero(&self, diff: &[u8]) -> bool {
        let _ = diff;
        false
    }
}

/// The diffs of a layout.
#[derive(Clone, Debug)]
pub(crate) struct Diffs {
    /// The columns' positions.
    pub(crate) columns: Vec<usize>,
    /// In place of sums.
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
    /// True for one number that is added up, as kernels do.
    pub(super) fn are_one_sum(&self) -> bool {
        self.columns.len() == 1 && self.fold.is_none()
    }

    /// Adds `diff` to `into`: sums modulo 2^64. Calls `wrapped` with each lane whose sum does not fit, and 1 or -1 for the
    /// 2^64 that are missing.
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

    /// True if a row with this diff is gone.
    #[inline]
    pub(super) fn is_zero(&self, diff: &[u8]) -> bool {
        match self.fold {
            Some(fold) => fold.is_zero(diff),
            None => diff.iter().all(|&byte| byte == 0),
        }
    }
}
