//! Diffs with an addition of their own: differential's traces and Windrow's give equal results.

use std::fmt::Debug;

use crate::common::{over_two, same};
use differential_dataflow::VecCollection;
use differential_dataflow::difference::{IsZero, Multiply, Semigroup};
use serde::{Deserialize, Serialize};
use windrow::Fold;
use windrow_differential::{ArrangeRows, DiffCode, Row, RowArrangement, RowCollection, folds};

/// A path length. Addition takes the shorter path, and a join concatenates paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Row)]
struct Least(i64);

/// A set of up to 128 elements with odd multiplicity; zero is the empty set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Row)]
struct Odd(u64, u64);

impl IsZero for Least {
    fn is_zero(&self) -> bool {
        false
    }
}

impl Semigroup for Least {
    fn plus_equals(&mut self, other: &Self) {
        self.0 = self.0.min(other.0);
    }
}

impl Multiply<Least> for Least {
    type Output = Least;

    fn multiply(self, other: &Least) -> Least {
        Least(self.0 + other.0)
    }
}

impl Multiply<isize> for Least {
    type Output = Least;

    fn multiply(self, _count: &isize) -> Least {
        self
    }
}

impl DiffCode for Least {
    type Lanes = i64;
    const FOLD: Option<&'static dyn Fold> = Some(folds::<Self>());

    fn lanes(&self) -> i64 {
        self.0
    }

    fn of_lanes(lane: i64) -> Self {
        Self(lane)
    }
}

impl IsZero for Odd {
    fn is_zero(&self) -> bool {
        *self == Self(0, 0)
    }
}

impl Semigroup for Odd {
    fn plus_equals(&mut self, other: &Self) {
        *self = Self(self.0 ^ other.0, self.1 ^ other.1);
    }
}

impl Multiply<isize> for Odd {
    type Output = Odd;

    fn multiply(self, count: &isize) -> Odd {
        if count % 2 == 0 { Self(0, 0) } else { self }
    }
}

impl Multiply<Odd> for Odd {
    type Output = Odd;

    fn multiply(self, other: &Odd) -> Odd {
        Self(self.0 & other.0, self.1 & other.1)
    }
}

impl DiffCode for Odd {
    type Lanes = (i64, i64);
    const FOLD: Option<&'static dyn Fold> = Some(folds::<Self>());

    fn lanes(&self) -> (i64, i64) {
        (self.0 as i64, self.1 as i64)
    }

    fn of_lanes((low, high): (i64, i64)) -> Self {
        Self(low as u64, high as u64)
    }
}

/// Creates diffs from random numbers.
trait Made:
    DiffCode + Copy + Row + Serialize + for<'a> Deserialize<'a> + Debug + std::hash::Hash + Send + Sync
where
    Self: Multiply<isize, Output = Self> + Multiply<Self, Output = Self>,
{
    fn of(number: u64) -> Self;
}

impl Made for Least {
    fn of(number: u64) -> Self {
        Self(number as i64 - 3)
    }
}

impl Made for Odd {
    fn of(number: u64) -> Self {
        Self(number & 1, number & 6)
    }
}

/// Checks counts, consolidation and joins of collections with diffs `R`.
fn agrees<R: Made + Multiply<isize, Output = R> + Multiply<R, Output = R>>() {
    over_two(
        |numbers| (numbers.below(25), numbers.below(5), numbers.below(8)),
        |context, both, seen, probe| {
            let [a, b] = both.map(|rows: VecCollection<'_, u64, (u64, u64, u64), isize>| {
                rows.explode(|(key, value, number)| Some(((key, value), R::of(number))))
            });
            // A count turns the sum of diffs into a value.
            same(a.clone().count(), a.clone().count_rows(context), seen, probe);
            let consolidated = a.clone().consolidate_rows(context);
            same(a.clone().count(), consolidated.count(), seen, probe);
            let stock = a.clone().join_map(b.clone(), |key, a, b| (*key, *a, *b));
            let (a, b) = (a.arrange_rows(context), b.arrange_rows(context));
            let cursors =
                a.clone().join_core(b.clone(), |key, a, b| Some((key.get(), a.get(), b.get())));
            same(stock.clone().count(), cursors.count(), seen, probe);
            let pages = a.join_rows(b, |key, a, b| Some((key.get(), a.get(), b.get())));
            same(stock.count(), pages.count(), seen, probe);
        },
    );
}

#[test]
fn the_least_is_kept() {
    agrees::<Least>();
}

#[test]
fn what_cancels_in_its_own_way_is_gone() {
    agrees::<Odd>();
}

#[test]
fn a_tuple_folds_if_a_part_does() {
    over_two(
        |numbers| (numbers.below(9), numbers.below(8)),
        |context, [a, _], seen, probe| {
            let both = a.explode(|(key, number)| Some((key, (2isize, Least::of(number)))));
            same(both.clone().count(), both.count_rows(context), seen, probe);
        },
    );
}
