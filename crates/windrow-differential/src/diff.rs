//! Diffs of a dataflow as lanes of `i64`, which the engine adds up.

use differential_dataflow::difference::{Present, Semigroup};
use windrow::Diff;

/// Bytes of a lane.
pub(crate) const LANE: usize = 8;

/// A diff that adds up lane by lane, and is zero if all its lanes are: numbers, and tuples of them.
///
/// Sums that do not fit into an `i64` end the dataflow with the engine's `DiffOverflow`, those that do not fit their type
/// with a message of their own.
pub trait DiffCode: Semigroup + Ord + 'static {
    /// The same as a diff of the engine.
    type Lanes: Diff;

    /// The diff as the engine has it.
    fn lanes(&self) -> Self::Lanes;

    /// The diff of the engine's.
    fn of_lanes(lanes: Self::Lanes) -> Self;
}

macro_rules! number {
    ($($number:ty)+) => {$(
        impl DiffCode for $number {
            type Lanes = i64;

            #[inline(always)]
            fn lanes(&self) -> i64 {
                *self as i64
            }

            #[inline(always)]
            fn of_lanes(lane: i64) -> Self {
                Self::try_from(lane).expect("a diff fits its type")
            }
        }
    )+};
}
number!(i8 i16 i32 i64 isize);

/// A count of how often it was put there, which is never taken away.
impl DiffCode for Present {
    type Lanes = i64;

    fn lanes(&self) -> i64 {
        1
    }

    fn of_lanes(_count: i64) -> Self {
        Self
    }
}

macro_rules! tuple {
    ($($part:ident $at:tt),+) => {
        impl<$($part: DiffCode),+> DiffCode for ($($part,)+) {
            type Lanes = ($($part::Lanes,)+);

            #[inline(always)]
            fn lanes(&self) -> Self::Lanes {
                ($(self.$at.lanes(),)+)
            }

            #[inline(always)]
            fn of_lanes(lanes: Self::Lanes) -> Self {
                ($($part::of_lanes(lanes.$at),)+)
            }
        }
    };
}
tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);

/// Adds the bytes of a diff.
#[inline(always)]
pub(crate) fn put<R: DiffCode>(diff: &R, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + R::Lanes::LANES * LANE, 0);
    diff.lanes().encode(&mut out[start..]);
}

/// The diff of so many bytes.
#[inline(always)]
pub(crate) fn take<R: DiffCode>(bytes: &[u8]) -> R {
    R::of_lanes(R::Lanes::decode(bytes))
}
