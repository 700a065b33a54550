//! Diffs of a dataflow as lanes of `i64`, added up by the engine or by their type.

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;

use differential_dataflow::difference::{Present, Semigroup};
use windrow::{Diff, Fold};

use crate::of::Of;

/// Bytes of a lane.
pub(crate) const LANE: usize = 8;

/// A diff of one or more lanes. Numbers and tuples of numbers add up lane by lane, and are zero if
/// all lanes are. Any other semigroup sets [`DiffCode::FOLD`] to define its own addition:
///
/// ```
/// use differential_dataflow::difference::{IsZero, Semigroup};
/// use windrow::Fold;
/// use windrow_differential::{DiffCode, folds};
///
/// /// The least of all values that a row came with.
/// #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
/// struct Least(i64);
///
/// impl IsZero for Least {
///     fn is_zero(&self) -> bool {
///         false
///     }
/// }
///
/// impl Semigroup for Least {
///     fn plus_equals(&mut self, other: &Self) {
///         self.0 = self.0.min(other.0);
///     }
/// }
///
/// impl DiffCode for Least {
///     type Lanes = i64;
///     const FOLD: Option<&'static dyn Fold> = Some(folds::<Self>());
///
///     fn lanes(&self) -> i64 {
///         self.0
///     }
///
///     fn of_lanes(lane: i64) -> Self {
///         Self(lane)
///     }
/// }
/// ```
///
/// A sum that overflows `i64` ends the dataflow with the engine's `DiffOverflow`. A sum that
/// overflows a narrower type panics with its own message.
pub trait DiffCode: Semigroup + Ord + 'static {
    /// The engine's diff of the same shape.
    type Lanes: Diff;

    /// `None` if lanes add up; otherwise the result of [`folds`].
    const FOLD: Option<&'static dyn Fold> = None;

    /// Returns the diff as lanes.
    fn lanes(&self) -> Self::Lanes;

    /// Returns the diff of `lanes`.
    fn of_lanes(lanes: Self::Lanes) -> Self;

    /// Adds another diff; called by the engine through [`folds`]. In a tuple with a folding member,
    /// all members are added here, and no lane by the engine.
    fn add(&mut self, other: &Self) {
        self.plus_equals(other);
    }
}

/// Returns the engine's fold of this type: decodes two diffs, adds them with the type's own
/// addition, and encodes the sum.
pub const fn folds<R: DiffCode>() -> &'static dyn Fold {
    &Folds::<R>(PhantomData)
}

struct Folds<R>(Of<R>);

impl<R> fmt::Debug for Folds<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(type_name::<R>())
    }
}

impl<R: DiffCode> Fold for Folds<R> {
    fn name(&self) -> &str {
        type_name::<R>()
    }

    fn fold(&self, into: &mut [u8], diff: &[u8]) {
        let mut sum = take::<R>(into);
        sum.add(&take(diff));
        sum.lanes().encode(into);
    }

    fn is_zero(&self, diff: &[u8]) -> bool {
        take::<R>(diff).is_zero()
    }
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

            fn add(&mut self, other: &Self) {
                *self = self.checked_add(*other).expect("a sum of diffs fits its type");
            }
        }
    )+};
}
number!(i8 i16 i32 i64 isize);

/// The number of insertions. `Present` has no negative diffs.
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
            const FOLD: Option<&'static dyn Fold> =
                if $($part::FOLD.is_none())&&+ { None } else { Some(folds::<Self>()) };

            #[inline(always)]
            fn lanes(&self) -> Self::Lanes {
                ($(self.$at.lanes(),)+)
            }

            #[inline(always)]
            fn of_lanes(lanes: Self::Lanes) -> Self {
                ($($part::of_lanes(lanes.$at),)+)
            }

            fn add(&mut self, other: &Self) {
                $(self.$at.add(&other.$at);)+
            }
        }
    };
}
tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);

/// Adds `diff` to `into` and returns whether the sum is zero. Returns `None` and changes nothing on
/// overflow.
pub(crate) fn add<R: DiffCode>(into: &mut [u8], diff: &[u8]) -> Option<bool> {
    if let Some(fold) = R::FOLD {
        fold.fold(into, diff);
        return Some(fold.is_zero(into));
    }
    let (into, _) = into.as_chunks_mut::<LANE>();
    let (lanes, _) = diff.as_chunks::<LANE>();
    let sum = |to: &[u8; LANE], lane: &[u8; LANE]| {
        i64::from_le_bytes(*to).checked_add(i64::from_le_bytes(*lane))
    };
    if into.iter().zip(lanes).any(|(to, lane)| sum(to, lane).is_none()) {
        return None;
    }
    let mut is_zero = true;
    for (to, lane) in into.iter_mut().zip(lanes) {
        let sum = sum(to, lane)?;
        is_zero &= sum == 0;
        *to = sum.to_le_bytes();
    }
    Some(is_zero)
}

/// Returns true if a diff is zero.
pub(crate) fn is_zero<R: DiffCode>(diff: &[u8]) -> bool {
    match R::FOLD {
        Some(fold) => fold.is_zero(diff),
        None => diff.iter().all(|&byte| byte == 0),
    }
}

/// Decodes a diff.
#[inline(always)]
pub(crate) fn take<R: DiffCode>(bytes: &[u8]) -> R {
    R::of_lanes(R::Lanes::decode(bytes))
}
