//! Times; frontiers, which separate complete changes from later ones; and diffs, which add up.
//!
//! A row stores a time as its ordered code: bytes that compare like the times in a total order.
//! [`Time`] adds the partial order of the computation, and decodes codes.
//!
//! ```text
//! frontier {4}        0 1 2 3 | 4 5 6 ...           times at or beyond it: 4 5 6 ...
//! frontier {}         0 1 2 3 4 5 6 ...             nothing is beyond it: all is complete
//! frontier {(1,3), (4,0)}                           (2,3) is beyond it, (3,2) is not
//! ```
//!
//! Invariant: if `a` is less than or equal to `b` in the partial order, the code of `a` is less
//! than or equal to the code of `b`.

mod antichain;
mod diff;

use arrow_schema::DataType;

pub use antichain::Antichain;
pub use diff::Diff;

/// Maximum number of bytes of a time's code.
pub const MOST_TIME_BYTES: usize = 32;

/// A time of changes, and the partial order of times.
///
/// Numbers are times of a column of numbers. A pair is a time of two dimensions: the codes of its
/// two times follow each other in a column of `FixedSizeBinary`. Pairs of pairs have more
/// dimensions. `[u8; W]` is a time in the order of its bytes, and `()` is the time of changes
/// without a time column.
///
/// ```
/// use windrow_rows::{Antichain, Time};
///
/// // An epoch and a round: a column of 12 bytes.
/// assert_eq!(<(u64, u32)>::WIDTH, 12);
/// let frontier = Antichain::from_iter([(1u64, 3u32), (4, 0), (5, 1)]);
/// assert_eq!(frontier.elements(), [(1, 3), (4, 0)]);
/// assert!(frontier.less_equal((2, 3)) && !frontier.less_equal((3, 2)));
/// ```
///
/// Other types can implement `Time` if their [`Ord`] is the order of the codes as bytes, and
/// extends the partial order: `a.less_equal(b)` only if `a <= b`.
pub trait Time: Copy + Ord + std::fmt::Debug + Send + Sync + 'static {
    /// True if any two times are comparable: [`Time::less_equal`] is `<=`.
    const TOTAL: bool;

    /// Bytes of a code: at most 32.
    const WIDTH: usize;

    /// Returns the least time, which is less than or equal to every time.
    fn least() -> Self;

    /// Returns true if a column of this type, with values of [`Time::WIDTH`] bytes, can hold such
    /// times.
    fn fits(data_type: &DataType) -> bool {
        is_binary(data_type, Self::WIDTH)
    }

    /// Decodes the time from a code of [`Time::WIDTH`] bytes.
    fn decode(code: &[u8]) -> Self;

    /// Writes the code: bytes that compare like the times.
    fn encode(self, code: &mut [u8]);

    /// Returns true if `other` is at or beyond this time.
    fn less_equal(self, other: Self) -> bool;

    /// Returns the least time at or beyond both.
    #[must_use]
    fn join(self, other: Self) -> Self;

    /// Returns the greatest time that both are at or beyond.
    #[must_use]
    fn meet(self, other: Self) -> Self;
}

fn is_binary(data_type: &DataType, width: usize) -> bool {
    matches!(data_type, DataType::FixedSizeBinary(bytes) if usize::try_from(*bytes) == Ok(width))
}

/// Methods of a total order.
macro_rules! by_order {
    () => {
        fn less_equal(self, other: Self) -> bool {
            self <= other
        }

        fn join(self, other: Self) -> Self {
            self.max(other)
        }

        fn meet(self, other: Self) -> Self {
            self.min(other)
        }
    };
}

macro_rules! total {
    ($time:ty, $code:ty, $pattern:pat, $flip:expr) => {
        impl Time for $time {
            const TOTAL: bool = true;
            const WIDTH: usize = size_of::<$code>();

            fn least() -> Self {
                <$time>::MIN
            }

            fn fits(data_type: &DataType) -> bool {
                use DataType::*;
                matches!(data_type, $pattern) || is_binary(data_type, Self::WIDTH)
            }

            #[inline(always)]
            fn decode(code: &[u8]) -> Self {
                let mut bytes = [0; size_of::<$code>()];
                bytes.copy_from_slice(code);
                (<$code>::from_be_bytes(bytes) ^ $flip) as Self
            }

            #[inline(always)]
            fn encode(self, code: &mut [u8]) {
                code.copy_from_slice(&(self as $code ^ $flip).to_be_bytes());
            }

            by_order!();
        }
    };
}
total!(u64, u64, UInt64, 0);
total!(usize, u64, UInt64, 0);
total!(u32, u32, UInt32, 0);
total!(u16, u16, UInt16, 0);
total!(u8, u8, UInt8, 0);
total!(i64, u64, Int64 | Date64 | Time64(_) | Timestamp(..) | Duration(_), 1 << 63);
total!(i32, u32, Int32 | Date32 | Time32(_), 1 << 31);

/// A time in the order of its bytes.
impl<const W: usize> Time for [u8; W] {
    const TOTAL: bool = true;
    const WIDTH: usize = W;

    fn least() -> Self {
        [0; W]
    }

    #[inline(always)]
    fn decode(code: &[u8]) -> Self {
        let mut bytes = [0; W];
        bytes.copy_from_slice(code);
        bytes
    }

    #[inline(always)]
    fn encode(self, code: &mut [u8]) {
        code.copy_from_slice(&self);
    }

    by_order!();
}

/// The only time.
impl Time for () {
    const TOTAL: bool = true;
    const WIDTH: usize = 0;

    fn least() {}

    fn decode(_code: &[u8]) {}

    fn encode(self, _code: &mut [u8]) {}

    fn less_equal(self, _other: Self) -> bool {
        true
    }

    fn join(self, _other: Self) {}

    fn meet(self, _other: Self) {}
}

/// The product order: less than or equal in both components.
impl<A: Time, B: Time> Time for (A, B) {
    const TOTAL: bool = false;
    const WIDTH: usize = A::WIDTH + B::WIDTH;

    fn least() -> Self {
        (A::least(), B::least())
    }

    #[inline(always)]
    fn decode(code: &[u8]) -> Self {
        (A::decode(&code[..A::WIDTH]), B::decode(&code[A::WIDTH..]))
    }

    #[inline(always)]
    fn encode(self, code: &mut [u8]) {
        self.0.encode(&mut code[..A::WIDTH]);
        self.1.encode(&mut code[A::WIDTH..]);
    }

    fn less_equal(self, other: Self) -> bool {
        self.0.less_equal(other.0) && self.1.less_equal(other.1)
    }

    fn join(self, other: Self) -> Self {
        (self.0.join(other.0), self.1.join(other.1))
    }

    fn meet(self, other: Self) -> Self {
        (self.0.meet(other.0), self.1.meet(other.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T: Time>(time: T) -> Vec<u8> {
        let mut code = vec![0; T::WIDTH];
        time.encode(&mut code);
        code
    }

    fn keep_their_order<T: Time>(times: &[T]) {
        assert!(times.is_sorted() && times.is_sorted_by_key(|&time| code(time)));
        assert!(times.iter().all(|&time| T::decode(&code(time)) == time));
        assert_eq!(times[0], T::least());
        for (&a, &b) in times.iter().flat_map(|a| times.iter().map(move |b| (a, b))) {
            assert!(!a.less_equal(b) || a <= b);
            assert!(a.less_equal(a.join(b)) && b.less_equal(a.join(b)));
            assert!(a.meet(b).less_equal(a) && a.meet(b).less_equal(b));
            assert_eq!(a.join(b) == b, a.less_equal(b));
        }
    }

    #[test]
    fn codes_keep_the_order_and_come_back() {
        keep_their_order(&[i64::MIN, -7, -1, 0, 1, 42, i64::MAX]);
        keep_their_order(&[i32::MIN, -7, -1, 0, 1, 42, i32::MAX]);
        keep_their_order(&[0, 1, 255, 256, u64::MAX]);
        keep_their_order(&[0u8, 1, 255]);
        keep_their_order(&[[0; 9], [0, 0, 0, 0, 0, 0, 0, 0, 1], [255; 9]]);
        keep_their_order(&[()]);
        let numbers = [i32::MIN, -1, 300];
        let pairs = numbers.iter().flat_map(|&a| [0u64, 1, 1 << 40].map(|b| (a, (b, ()))));
        keep_their_order(&pairs.collect::<Vec<_>>());
        assert_eq!(code(-1i32), [0x7f, 0xff, 0xff, 0xff]);
        assert_eq!(code((1u8, 2u16)), [1, 0, 2]);
    }
}
