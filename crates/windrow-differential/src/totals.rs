//! Totals: counts and thresholds of rows at totally ordered times, without an arrangement of the
//! output.
//!
//! ```text
//! new batches --next 64 rows--> block, looked up in the trace before them --> total of each row
//!      |                                                                        |
//!      +-- diffs of the row, by time -------------------------------------------+--> old, new total
//! ```
//! A reduction looks up its previous output. If times are totally ordered, the total before a
//! change determines the previous output, and the trace of the input is enough.
//!
//! Invariant: the trace is not compacted beyond the last batch that arrived.

use std::collections::VecDeque;

use differential_dataflow::consolidation::{ConsolidatingContainerBuilder, consolidate};
use differential_dataflow::difference::{Abelian, IsZero, Semigroup};
use differential_dataflow::operators::arrange::Arranged;
use differential_dataflow::trace::TraceReader;
use differential_dataflow::{AsCollection, Data, VecCollection};
use timely::ContainerBuilder;
use timely::container::PushInto;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::CapabilitySet;
use timely::dataflow::operators::generic::operator::Operator;
use timely::order::TotalOrder;
use timely::progress::Antichain;
use windrow::{Cursor, KeyBlock};

use crate::context::done;
use crate::scan::ROWS_A_TURN;
use crate::tactic::{Code, cursor_over, locate, look_up_in, next_block, scoped};
use crate::{DiffCode, Enc, Row, ScopedBatch, TimeCode};

/// Counts and thresholds of an arrangement of rows without values
/// ([`arrange_rows_by_self`](crate::RowCollection::arrange_rows_by_self)) at totally ordered times.
/// They correspond to `count_total`, `threshold_total` and `distinct_total`.
///
/// Each keeps no state of its own: it reads the totals before a change in the arrangement. A
/// change costs a look-up, shared by the changes of a row.
///
/// ```
/// use differential_dataflow::input::Input;
/// use windrow::Pool;
/// use windrow_differential::{Context, RowCollection, RowTotals};
///
/// let context = Context::new(Pool::unlimited());
/// timely::execute_directly(move |worker| {
///     let mut words = worker.dataflow::<u64, _, _>(|scope| {
///         let (input, words) = scope.new_collection::<String, isize>();
///         let words = words.arrange_rows_by_self(&context);
///         words.clone().count_total_rows().inspect(|(word, _, _)| assert_eq!(word.1, 2));
///         words.distinct_total_rows().inspect(|(_, _, diff)| assert_eq!(*diff, 1));
///         input
///     });
///     words.update("tick".to_owned(), 2);
/// });
/// ```
pub trait RowTotals<'scope, K: Row, T: TimeCode, R: DiffCode>: Sized {
    /// Returns each row with its multiplicity as a value.
    fn count_total_rows(self) -> VecCollection<'scope, T, (K, R), isize>
    where
        R: Data;

    /// Returns each row with the multiplicity that `threshold` computes from its multiplicity, for
    /// the total before and the total after each change. Multiplicities of zero stay zero.
    fn threshold_total_rows<R2: Abelian + Data>(
        self,
        threshold: impl FnMut(Enc<'_, K>, &R) -> R2 + 'static,
    ) -> VecCollection<'scope, T, K, R2>;

    /// Returns each present row once, whatever its multiplicity.
    fn distinct_total_rows(self) -> VecCollection<'scope, T, K, isize> {
        self.threshold_total_rows(|_, _| 1)
    }
}

impl<'scope, K: Row, T: TimeCode + TotalOrder, R: DiffCode, Tr> RowTotals<'scope, K, T, R>
    for Arranged<'scope, Tr>
where
    Tr: TraceReader<Time = T> + 'static,
    Tr::Batch: ScopedBatch<Key = K, Value = (), Time = T, Diff = R>,
{
    fn count_total_rows(self) -> VecCollection<'scope, T, (K, R), isize>
    where
        R: Data,
    {
        counts(self)
    }

    fn threshold_total_rows<R2: Abelian + Data>(
        self,
        threshold: impl FnMut(Enc<'_, K>, &R) -> R2 + 'static,
    ) -> VecCollection<'scope, T, K, R2> {
        thresholds(self, threshold)
    }
}

/// Collects updates and consolidates them by the container.
type Consolidating<T, D, R> = ConsolidatingContainerBuilder<Vec<(D, T, R)>>;

/// Does the same as [`RowTotals::count_total_rows`]; `T::Code` is totally ordered.
pub(crate) fn counts<'scope, K: Row, T: TimeCode, R: DiffCode + Data, Tr>(
    arranged: Arranged<'scope, Tr>,
) -> VecCollection<'scope, T, (K, R), isize>
where
    Tr: TraceReader<Time = T> + 'static,
    Tr::Batch: ScopedBatch<Key = K, Value = (), Time = T, Diff = R>,
{
    let logic = |key: Enc<'_, K>,
                 time: &T,
                 totals: [Option<&R>; 2],
                 builder: &mut Consolidating<T, (K, R), isize>| {
        for (total, diff) in totals.into_iter().zip([-1, 1]) {
            if let Some(total) = total {
                builder.push_into(((key.get(), total.clone()), time.clone(), diff));
            }
        }
    };
    totals(arranged, "CountTotalRows", logic).as_collection()
}

/// Does the same as [`RowTotals::threshold_total_rows`]; `T::Code` is totally ordered.
pub(crate) fn thresholds<
    'scope,
    K: Row,
    T: TimeCode,
    R: DiffCode,
    R2: Abelian + Ord + 'static,
    Tr,
>(
    arranged: Arranged<'scope, Tr>,
    mut threshold: impl FnMut(Enc<'_, K>, &R) -> R2 + 'static,
) -> VecCollection<'scope, T, K, R2>
where
    Tr: TraceReader<Time = T> + 'static,
    Tr::Batch: ScopedBatch<Key = K, Value = (), Time = T, Diff = R>,
{
    let logic = move |key: Enc<'_, K>,
                      time: &T,
                      [old, new]: [Option<&R>; 2],
                      builder: &mut Consolidating<T, K, R2>| {
        let mut change = old.map_or(R2::zero(), |old| threshold(key, old));
        change.negate();
        if let Some(new) = new {
            change.plus_equals(&threshold(key, new));
        }
        if !change.is_zero() {
            builder.push_into((key.get(), time.clone(), change));
        }
    };
    totals(arranged, "ThresholdTotalRows", logic).as_collection()
}

/// Calls `logic` with each changed row, the time of the change, and the row's totals before and
/// after the change; a total of zero is `None`.
fn totals<'scope, T: TimeCode, Tr, B: ContainerBuilder>(
    Arranged { stream, mut trace }: Arranged<'scope, Tr>,
    name: &str,
    mut logic: impl FnMut(
        Enc<'_, <Tr::Batch as ScopedBatch>::Key>,
        &T,
        [Option<&<Tr::Batch as ScopedBatch>::Diff>; 2],
        &mut B,
    ) + 'static,
) -> Stream<'scope, T, B::Container>
where
    Tr: TraceReader<Time = T, Batch: ScopedBatch<Time = T>> + 'static,
{
    let scope = stream.scope();
    stream.unary_frontier::<B, _, _, _>(Pipeline, name, move |_, info| {
        let activator = scope.activator_for(info.address);
        let mut upper = Antichain::from_elem(T::minimum());
        let mut waiting = VecDeque::new();
        move |(input, _), output| {
            let (lower, mut times, mut fresh) = (upper.clone(), CapabilitySet::new(), Vec::new());
            input.for_each(|stamp, spans| {
                stamp.retain_stamp(0).iter().for_each(|time| times.insert(time.clone()));
                for span in spans.drain(..) {
                    upper.clone_from(span.upper());
                    fresh.extend(span.inner);
                }
            });
            if !fresh.is_empty() {
                let before = trace.batches_through(lower.borrow());
                let before = before.expect("the trace is not compacted beyond its last batch");
                waiting.push_back((times, Changed::new(&before, &fresh)));
            }
            trace.advance_upper(&mut upper);
            trace.set_logical_compaction(upper.borrow());
            trace.set_physical_compaction(upper.borrow());
            let mut turn = ROWS_A_TURN;
            while let Some((times, changed)) = waiting.front_mut()
                && turn > 0
            {
                let mut session = output.session_with_builder(&*times);
                let is_done = changed.go_on(&mut turn, |key, time, totals| {
                    logic(key, time, totals, session.builder());
                    session.extract_and_send();
                });
                drop(session);
                if is_done {
                    waiting.pop_front();
                }
            }
            if !waiting.is_empty() {
                activator.activate();
            }
        }
    })
}

/// The rows changed by new batches, and the position in them.
struct Changed<S: ScopedBatch> {
    /// The trace before the new batches, and the new batches.
    before: Option<Cursor<Code<S>>>,
    fresh: Option<Cursor<Code<S>>>,
    /// The next keys of the new batches.
    ahead: Option<Cursor<Code<S>>>,
    block: KeyBlock,
    number: usize,
    changes: Vec<(S::Time, S::Diff)>,
}

impl<S: ScopedBatch> Changed<S> {
    fn new(before: &[S], fresh: &[S]) -> Self {
        Self {
            before: look_up_in(before),
            fresh: look_up_in(fresh),
            ahead: cursor_over(fresh),
            block: KeyBlock::new(),
            number: 0,
            changes: Vec::new(),
        }
    }

    /// Calls `each` with some rows, and subtracts the number of their changes from `turn`, down to
    /// zero or less. Returns true after the last row.
    fn go_on(
        &mut self,
        turn: &mut usize,
        mut each: impl FnMut(Enc<'_, S::Key>, &S::Time, [Option<&S::Diff>; 2]),
    ) -> bool {
        while *turn > 0 {
            if self.number == self.block.len() {
                self.number = 0;
                next_block(&mut self.ahead, &mut self.block);
                if self.block.is_empty() {
                    return true;
                }
                locate(&mut self.before, &self.block);
                locate(&mut self.fresh, &self.block);
            }
            let Self { before, fresh, block, number, changes, .. } = self;
            let mut total: Option<S::Diff> = None;
            if let Some(before) = before {
                done(before.map_located(block, *number, |_, _, lanes| {
                    add(&mut total, &S::Diff::of_lanes(lanes));
                }));
            }
            total = total.filter(|total| !total.is_zero());
            if let Some(fresh) = fresh {
                done(fresh.map_located(block, *number, |_, time, lanes| {
                    changes.push((scoped::<S>(time), S::Diff::of_lanes(lanes)));
                }));
            }
            *turn = turn.saturating_sub(changes.len());
            consolidate(changes);
            for (time, diff) in changes.drain(..) {
                let mut new = total.clone();
                add(&mut new, &diff);
                new = new.filter(|new| !new.is_zero());
                each(Enc::new(block.key(*number)), &time, [total.as_ref(), new.as_ref()]);
                total = new;
            }
            *number += 1;
        }
        false
    }
}

/// Adds a diff to a total; no total counts as zero.
fn add<R: Semigroup>(total: &mut Option<R>, diff: &R) {
    match total {
        Some(total) => total.plus_equals(diff),
        None => *total = Some(diff.clone()),
    }
}
