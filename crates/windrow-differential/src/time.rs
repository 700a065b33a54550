//! Times of a dataflow as times of the engine.
//!
//! ```text
//! Product<u64, u32>   outer 8 | inner 4        one after the other, in a column of 12 bytes
//! ```
//!
//! Invariant: the order of the codes is a linear extension of the timestamps' order and preserves
//! joins and meets.

use differential_dataflow::lattice::Lattice;
use timely::order::Product;
use timely::progress::Timestamp;
use windrow::Time;
use windrow::arrow_schema::DataType;

/// A timestamp that can be stored in rows: at most 32 bytes.
///
/// Implement `TimeCode` for your own timestamps by mapping them to an engine time, here a pair of
/// integers:
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
    /// The engine's time with the same order, joins and meets.
    type Code: Time;

    /// Returns the engine's time.
    fn code(&self) -> Self::Code;

    /// Returns the timestamp of an engine time.
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

/// Returns the type of the time column, or `None` if the type has only one time.
pub(crate) fn data_type<T: TimeCode>() -> Option<DataType> {
    let width = i32::try_from(T::Code::WIDTH).expect("a time is short");
    (width > 0).then_some(DataType::FixedSizeBinary(width))
}
