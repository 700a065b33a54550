//! Partially ordered times: a reduction is correct at every point of a grid, including points
//! without changes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::common::{Numbers, in_all_ways, same, step_until};
use differential_dataflow::lattice::Lattice;
use differential_dataflow::{AsCollection, VecCollection};
use serde::{Deserialize, Serialize};
use timely::PartialOrder;
use timely::dataflow::ProbeHandle;
use timely::dataflow::operators::vec::{Map, UnorderedInput};
use timely::progress::timestamp::{PathSummary, Refines};
use timely::progress::{Antichain, Timestamp};
use windrow_differential::{ArrangeRows, RowArranged, RowArrangement, TimeCode, half_join_rows};

/// The time of an event, and the time of its report.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
struct Grid {
    event: u64,
    heard: u32,
}

impl PartialOrder for Grid {
    fn less_equal(&self, other: &Self) -> bool {
        self.event <= other.event && self.heard <= other.heard
    }
}

impl Refines<()> for Grid {
    fn to_inner(_: ()) -> Self {
        Self::default()
    }

    fn to_outer(self) {}

    fn summarize(_: Step) {}
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Step;

impl PartialOrder for Step {
    fn less_equal(&self, _other: &Self) -> bool {
        true
    }
}

impl PathSummary<Grid> for Step {
    fn results_in(&self, time: &Grid) -> Option<Grid> {
        Some(*time)
    }

    fn followed_by(&self, _other: &Self) -> Option<Self> {
        Some(Self)
    }
}

impl Timestamp for Grid {
    type Summary = Step;

    fn minimum() -> Self {
        Self::default()
    }
}

impl Lattice for Grid {
    fn join(&self, other: &Self) -> Self {
        Self { event: self.event.max(other.event), heard: self.heard.max(other.heard) }
    }

    fn meet(&self, other: &Self) -> Self {
        Self { event: self.event.min(other.event), heard: self.heard.min(other.heard) }
    }
}

impl TimeCode for Grid {
    type Code = (u64, u32);

    fn code(&self) -> (u64, u32) {
        (self.event, self.heard)
    }

    fn of_code((event, heard): (u64, u32)) -> Self {
        Self { event, heard }
    }
}

/// Side length of the grid.
const SIDE: u64 = 6;

type Updates = Vec<((u64, u64), Grid, isize)>;

/// Generates a worker's input, in rounds; each round ends at an event time.
fn inputs(seed: u64) -> Vec<Updates> {
    let mut numbers = Numbers(seed);
    let round = |base: u64, numbers: &mut Numbers| -> Updates {
        (0..12)
            .map(|_| {
                let time = Grid {
                    event: base + numbers.below(SIDE / 2),
                    heard: numbers.below(SIDE) as u32,
                };
                let diff = if numbers.below(3) == 0 { -1 } else { 1 };
                ((numbers.below(2), numbers.below(3)), time, diff)
            })
            .collect()
    };
    (0..2).map(|half| round(half * SIDE / 2, &mut numbers)).collect()
}

/// The reduction: the least value with a positive count, and the number of values.
fn reduced<'a>(values: impl Iterator<Item = (&'a u64, &'a isize)>) -> Vec<(u64, isize)> {
    let values: Vec<_> = values.collect();
    let there = values.iter().find(|(_, count)| **count > 0).map(|(value, _)| (**value, 1));
    there.into_iter().chain([(100 + values.len() as u64, 1)]).collect()
}

/// Sums up `updates` at `time`.
fn accumulated<D: Ord + Clone>(updates: &[(D, Grid, isize)], time: &Grid) -> BTreeMap<D, isize> {
    let mut sums = BTreeMap::new();
    for (data, at, diff) in updates {
        if at.less_equal(time) {
            *sums.entry(data.clone()).or_default() += diff;
        }
    }
    sums.retain(|_, sum| *sum != 0);
    sums
}

/// Fails unless `output` at every point of the grid is the reduction of `input` at the same point.
fn check(input: &Updates, output: &Updates, key_is_ours: impl Fn(u64) -> bool) {
    for (event, heard) in
        (0..SIDE).flat_map(|event| (0..SIDE as u32).map(move |heard| (event, heard)))
    {
        let time = Grid { event, heard };
        let mut expected = BTreeMap::new();
        let there = accumulated(input, &time);
        for key in (0..2).filter(|key| key_is_ours(*key)) {
            let values: BTreeMap<u64, isize> = there
                .iter()
                .filter(|((of, _), _)| *of == key)
                .map(|((_, value), count)| (*value, *count))
                .collect();
            if !values.is_empty() {
                for (value, count) in reduced(values.iter()) {
                    expected.insert((key, value), count);
                }
            }
        }
        assert_eq!(accumulated(output, &time), expected, "at {time:?}");
    }
}

type Pairs<'scope> = VecCollection<'scope, Grid, (u64, u64), isize>;

/// The join of a collection with itself by half joins, in the order of event and report.
fn by_delta_query<'scope>(
    pairs: Pairs<'scope>,
    rows: RowArranged<'scope, u64, u64, Grid, isize>,
) -> VecCollection<'scope, Grid, (u64, u64, u64), isize> {
    let updates = pairs.inner.map(|((key, value), time, diff)| ((key, value, time), time, diff));
    let updates = updates.as_collection();
    let frontier = |time: &Grid, times: &mut Antichain<Grid>| {
        times.insert(Grid { event: time.event.saturating_sub(1), heard: 0 });
    };
    let until = |at: &Grid, time: &Grid| at <= time;
    let earlier = |at: &Grid, time: &Grid| at < time;
    let never = |_, _| false;
    let first =
        half_join_rows(updates.clone(), rows.clone(), frontier, until, never, |key, a, b| {
            (key.get(), *a, b.get())
        });
    let second = half_join_rows(updates, rows, frontier, earlier, never, |key, b, a| {
        (key.get(), a.get(), *b)
    });
    let joined = first.concat(second).inner;
    joined.map(|((data, time), _, diff)| (data, time, diff)).as_collection()
}

#[test]
fn reductions_on_a_grid() {
    in_all_ways(|worker, context| {
        let mut total = 0;
        for seed in 0..12 {
            let (seen, mut probe) = (Rc::new(Cell::new(0)), ProbeHandle::new());
            let output = Rc::new(RefCell::new(Updates::new()));
            let (mut input, mut capability) = worker.dataflow::<Grid, _, _>(|scope| {
                let (input, updates) = scope.new_unordered_input::<((u64, u64), Grid, isize)>();
                let pairs = updates.as_collection();
                let rows = pairs.clone().arrange_rows(context);
                let ours = rows.clone().reduce_rows(context, |_key, values, out| {
                    let values: Vec<_> =
                        values.iter().map(|(value, n)| (value.get(), *n)).collect();
                    out.extend(reduced(values.iter().map(|(value, n)| (value, n))));
                });
                let ours = ours.map_rows(|key, value| (key.get(), value.get()));
                let output = Rc::clone(&output);
                let shown = ours.clone().inspect(move |update| output.borrow_mut().push(*update));
                let stock = pairs.clone().reduce(|_key, values, out| {
                    out.extend(reduced(values.iter().map(|(value, n)| (*value, n))));
                });
                same(stock, shown, &seen, &mut probe);
                // Changes of a join meet at times of neither input.
                let stock = pairs.clone().join_map(pairs.clone(), |key, a, b| (*key, *a, *b));
                let joined = rows
                    .clone()
                    .join_rows(rows.clone(), |key, a, b| Some((key.get(), a.get(), b.get())));
                same(stock.clone(), joined, &seen, &mut probe);
                same(stock, by_delta_query(pairs, rows), &seen, &mut probe);
                input
            });
            let rounds = inputs(seed);
            for (half, updates) in (1..).zip(&rounds) {
                if worker.index() == 0 {
                    let mut session = input.activate();
                    session.session(&capability).give_iterator(updates.iter().copied());
                }
                let end = Grid { event: half * SIDE / 2, heard: 0 };
                capability.downgrade(&end);
                step_until(worker, || !probe.less_than(&end));
            }
            drop(capability);
            step_until(worker, || probe.done());
            total += seen.get();
            // Each worker owns some of the keys, and shows only their results.
            let output = output.borrow();
            check(&rounds.concat(), &output, |key| {
                worker.peers() == 1 || output.iter().any(|((of, _), _, _)| *of == key)
            });
        }
        total
    });
}
