//! Times and frontiers: which changes are complete.
//!
//! A time stands in a row as its ordered code, bytes that compare as the times do in a total order.
//! What a [`Time`] adds is the partial order in which a computation goes on, and a way from the code.
//!
//! ```text
//! frontier {4}        0 1 2 3 | 4 5 6 ...           times at or beyond it: 4 5 6 ...
//! frontier {}         0 1 2 3 4 5 6 ...             nothing is beyond it: all is complete
//! frontier {(1,3), (4,0)}                           (2,3) is beyond it, (3,2) is not
//! ```
//!
//! Invariant: if `a` is less than or equal to `b` in the partial order, so is its code.

mod antichain;

use arrow_schema::DataType;

pub use antichain::Antichain;

/// A time of changes, and the partial order of times.
///
/// The core needs `u64`; signed numbers and others are the same in other clothes. Times of two
/// dimensions fit, too, as long as their code is a linear extension of their order:
///
/// ```
/// use windrow::arrow_schema::DataType;
/// use windrow::{Antichain, Time};
///
/// /// An epoch and a round, in the upper and the lower half of a UInt64 column.
/// #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
/// struct Round(u32, u32);
///
/// impl Time for Round {
///     const TOTAL: bool = false;
///     const LEAST: Self = Self(0, 0);
///     fn fits(data_type: &DataType) -> bool {
///         *data_type == DataType::UInt64
///     }
///     fn from_code(code: u64) -> Self {
///         Self((code >> 32) as u32, code as u32)
///     }
///     fn code(self) -> u64 {
///         u64::from(self.0) << 32 | u64::from(self.1)
///     }
///     fn less_equal(self, other: Self) -> bool {
///         self.0 <= other.0 && self.1 <= other.1
///     }
///     fn join(self, other: Self) -> Self {
///         Self(self.0.max(other.0), self.1.max(other.1))
///     }
///     fn meet(self, other: Self) -> Self {
///         Self(self.0.min(other.0), self.1.min(other.1))
///     }
/// }
///
/// let frontier = Antichain::from_iter([Round(1, 3), Round(4, 0), Round(5, 1)]);
/// assert_eq!(frontier.elements(), [Round(1, 3), Round(4, 0)]);
/// assert!(frontier.less_equal(Round(2, 3)) && !frontier.less_equal(Round(3, 2)));
/// ```
pub trait Time: Copy + Ord + std::fmt::Debug + Send + Sync + 'static {
    /// True if any two times are comparable: [`Time::less_equal`] is `<=`.
    const TOTAL: bool;

    /// The time that is less than or equal to all others.
    const LEAST: Self;

    /// True if a time column of this type holds such times.
    fn fits(data_type: &DataType) -> bool;

    /// The time whose code, read as a big-endian number, is `code`.
    fn from_code(code: u64) -> Self;

    /// The code of the time.
    fn code(self) -> u64;

    /// True if `other` is at or beyond this time.
    fn less_equal(self, other: Self) -> bool;

    /// The least time that is at or beyond both.
    #[must_use]
    fn join(self, other: Self) -> Self;

    /// The greatest time that both are at or beyond.
    #[must_use]
    fn meet(self, other: Self) -> Self;
}

macro_rules! total {
    ($time:ty, $pattern:pat, $flip:expr) => {
        impl Time for $time {
            const TOTAL: bool = true;
            const LEAST: Self = <$time>::MIN;

            fn fits(data_type: &DataType) -> bool {
                use DataType::*;
                matches!(data_type, $pattern)
            }

            fn from_code(code: u64) -> Self {
                (code ^ $flip) as Self
            }

            fn code(self) -> u64 {
                const WIDTH: u32 = <$time>::BITS;
                (self as u64 & (u64::MAX >> (64 - WIDTH))) ^ $flip
            }

            fn less_equal(self, other: Self) -> bool {
                self <= other
            }

            fn join(self, other: Self) -> Self {
                self.max(other)
            }

            fn meet(self, other: Self) -> Self {
                self.min(other)
            }
        }
    };
}
total!(u64, UInt64, 0);
total!(u32, UInt32, 0);
total!(i64, Int64 | Date64 | Time64(_) | Timestamp(..) | Duration(_), 1 << 63);
total!(i32, Int32 | Date32 | Time32(_), 1 << 31);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_keep_the_order_and_come_back() {
        let numbers = [i64::MIN, -7, -1, 0, 1, 42, i64::MAX];
        assert!(numbers.is_sorted_by_key(|time| time.code()));
        assert!(numbers.iter().all(|&time| i64::from_code(time.code()) == time));
        let small = [i32::MIN, -7, -1, 0, 1, 42, i32::MAX];
        assert!(small.is_sorted_by_key(|time| time.code()));
        assert!(small.iter().all(|&time| i32::from_code(time.code()) == time));
        assert_eq!((-1i32).code(), 0x7fff_ffff);
        assert_eq!((u64::from_code(5), 5u32.code()), (5, 5));
    }
}
