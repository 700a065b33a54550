//! Times of a dataflow as the engine's times.
//!
//! ```text
//! Product<u64, u32>   outer 8 | inner 4        one behind the other, in a column of 12 bytes
//! ```
//!
//! Invariant: the order of the codes goes on with that of the timestamps, and both have the same joins and meets.

use differential_dataflow::lattice::Lattice;
use timely::order::Product;
use timely::progress::Timestamp;
use windrow::Time;
use windrow::arrow_schema::DataType;

/// A timestamp that can stand in rows: at most 32 bytes.
///
/// A type that is not one yet is one that says what it is to the engine. Of a pair of numbers that is the pair:
///
/// ```
/// # use differential_dataflow::lattice::Lattice;
/// # use serde::{Deserialize, Serialize};
/// # use timely::PartialOrder;
/// # use timely::progress::timestamp::{PathSummary, Refines};
/// # use timely::progress::Timestamp;
/// # use windrow_differential::TimeCode;
/// #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
/// struct Bitemporal {
///     event: u64,
///     system: u64,
/// }
/// # impl PartialOrder for Bitemporal {
/// #     fn less_equal(&self, other: &Self) -> bool {
/// #         self.event <= other.event && self.system <= other.system
/// #     }
/// # }
/// # impl Refines<()> for Bitemporal {
/// #     fn to_inner(_: ()) -> Self { Self::default() }
/// #     fn to_outer(self) {}
/// #     fn summarize(_: ()) {}
/// # }
/// # impl PathSummary<Bitemporal> for () {
/// #     fn results_in(&self, time: &Bitemporal) -> Option<Bitemporal> { Some(*time) }
/// #     fn followed_by(&self, _: &Self) -> Option<()> { Some(()) }
/// # }
/// # impl Timestamp for Bitemporal {
/// #     type Summary = ();
/// #     fn minimum() -> Self { Self::default() }
/// # }
/// # impl Lattice for Bitemporal {
/// #     fn join(&self, other: &Self) -> Self {
/// #         Self { event: self.event.max(other.event), system: self.system.max(other.system) }
/// #     }
/// #     fn meet(&self, other: &Self) -> Self {
/// #         Self { event: self.event.min(other.event), system: self.system.min(other.system) }
/// #     }
/// # }
///
/// impl TimeCode for Bitemporal {
///     type Code = (u64, u64);
///     fn code(&self) -> (u64, u64) {
///         (self.event, self.system)
///     }
///     fn of_code((event, system): (u64, u64)) -> Self {
///         Self { event, system }
///     }
/// }
/// ```
pub trait TimeCode: Timestamp + Lattice {
    /// The same as a time of the engine, with the same order, joins and meets.
    type Code: Time;

    /// The time as the engine has it.
    fn code(&self) -> Self::Code;

    /// The timestamp of a time of the engine.
    fn of_code(code: Self::Code) -> Self;
}

macro_rules! same {
    ($($time:ty)+) => {$(
        impl TimeCode for $time {
            type Code = Self;

            #[inline(always)]
            fn code(&self) -> Self {
                *self
            }

            #[inline(always)]
            fn of_code(code: Self) -> Self {
                code
            }
        }
    )+};
}
same!(() u8 u16 u32 u64 usize i32 i64);

impl<A: TimeCode, B: TimeCode> TimeCode for Product<A, B> {
    type Code = (A::Code, B::Code);

    #[inline(always)]
    fn code(&self) -> Self::Code {
        (self.outer.code(), self.inner.code())
    }

    #[inline(always)]
    fn of_code((outer, inner): Self::Code) -> Self {
        Self::new(A::of_code(outer), B::of_code(inner))
    }
}

/// Bytes of a time in a row.
pub(crate) const fn width<T: TimeCode>() -> usize {
    T::Code::WIDTH
}

/// The type of the column of times; there is none where there is only one time.
pub(crate) fn data_type<T: TimeCode>() -> Option<DataType> {
    let width = i32::try_from(width::<T>()).expect("a time is short");
    (width > 0).then_some(DataType::FixedSizeBinary(width))
}

/// Adds the bytes of a time.
#[inline(always)]
pub(crate) fn put<T: TimeCode>(time: &T, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + width::<T>(), 0);
    time.code().encode(&mut out[start..]);
}

/// The time of so many bytes.
#[inline(always)]
pub(crate) fn take<T: TimeCode>(bytes: &[u8]) -> T {
    T::of_code(T::Code::decode(bytes))
}
