//! Diffs of a dataflow as lanes of `i64`, which the engine adds up.

use differential_dataflow::difference::{Present, Semigroup};

/// Bytes of a lane.
pub(crate) const LANE: usize = 8;

/// A diff that adds up lane by lane, and is zero if all its lanes are.
///
/// Sums that do not fit into an `i64` end the dataflow with the engine's `DiffOverflow`.
pub trait DiffCode: Semigroup + Ord + 'static {
    /// Number of lanes.
    const LANES: usize;

    /// Adds the lanes, eight bytes each, little-endian.
    fn put(&self, out: &mut Vec<u8>);

    /// The diff of as many lanes.
    fn take(lanes: &[u8]) -> Self;
}

macro_rules! number {
    ($($number:ty)+) => {$(
        impl DiffCode for $number {
            const LANES: usize = 1;

            #[inline(always)]
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&(*self as i64).to_le_bytes());
            }

            #[inline(always)]
            fn take(lanes: &[u8]) -> Self {
                let lane = i64::from_le_bytes(*lanes.first_chunk().expect("a lane is whole"));
                Self::try_from(lane).expect("a diff fits its type")
            }
        }
    )+};
}
number!(i8 i16 i32 i64 isize);

/// A count of how often it was put there, which is never taken away.
impl DiffCode for Present {
    const LANES: usize = 1;

    fn put(&self, out: &mut Vec<u8>) {
        1i64.put(out);
    }

    fn take(_lanes: &[u8]) -> Self {
        Self
    }
}
