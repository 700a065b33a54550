//! The operators that a program of differential-dataflow calls in place of differential's own.
//!
//! ```text
//! collection --[rows, to the worker of the key]--> batcher --> RowBatch --> trace
//!                                                                 |
//!                                     join_rows, reduce_rows: a chunk of each batch in memory
//! ```

use differential_dataflow::batcher::Batcher;
use differential_dataflow::consolidation::ConsolidatingContainerBuilder;
use differential_dataflow::difference::{Abelian, Multiply, Semigroup};
use differential_dataflow::logging::Logger;
use differential_dataflow::operators::arrange::arrangement::arrange_core;
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::operators::join::join_with_tactic;
use differential_dataflow::operators::reduce::reduce_with_tactic;
use differential_dataflow::trace::implementations::spine_fueled::Spine;
use differential_dataflow::trace::{Trace, TraceReader};
use differential_dataflow::{AsCollection, Data, VecCollection};
use timely::container::{CapacityContainerBuilder, PushInto};
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::{DistributorPact, Pipeline};
use timely::dataflow::operators::generic::operator::Operator;
use windrow::{Layout, Time};

use crate::ahead::read_ahead;
use crate::exchange::RowDistributor;
use crate::format::Format;
use crate::of::Update;
use crate::scan::scan;
use crate::totals;
use crate::{
    Context, DiffCode, Enc, Row, RowBatch, RowBatcher, RowCode, RowJoin, RowReduce, ScopedBatch,
    TimeCode, Updates,
};

/// A trace of rows: batches, merged by differential's spine.
pub type RowSpine<K, V, T, R> = Spine<RowBatch<K, V, T, R>>;
/// A handle of a trace of rows.
pub type RowTrace<K, V, T, R> = TraceAgent<RowSpine<K, V, T, R>>;
/// A collection arranged by key as rows.
pub type RowArranged<'scope, K, V, T, R> = Arranged<'scope, RowTrace<K, V, T, R>>;

/// Arranges collections of keys and values.
pub trait ArrangeRows<'scope, K: Row, V: Row, T: TimeCode, R: DiffCode> {
    /// Arranges the collection by key, as rows in the memory of `context`.
    fn arrange_rows(self, context: &Context) -> RowArranged<'scope, K, V, T, R>;
}

impl<'scope, K: Row, V: Row, T: TimeCode, R: DiffCode> ArrangeRows<'scope, K, V, T, R>
    for VecCollection<'scope, T, (K, V), R>
{
    fn arrange_rows(self, context: &Context) -> RowArranged<'scope, K, V, T, R> {
        let name = "ArrangeRows";
        if self.inner.scope().peers() > 1 {
            let layout = Format::<K, V, T, R>::layout();
            return arrange_updates(encoded(self.inner, |update| update), &layout, context, name);
        }
        let context = context.clone();
        let batcher = move |logger, operator| RowBatcher::logging(&context, logger, operator);
        arrange_core(self.inner, Pipeline, name, batcher)
    }
}

/// Encodes the `update` of each item as a row.
pub(crate) fn encoded<'scope, D: 'static, K: Row, V: Row, T: TimeCode, R: DiffCode>(
    stream: Stream<'scope, T, Vec<D>>,
    update: impl Fn(D) -> Update<K, V, T, R> + 'static,
) -> Stream<'scope, T, Updates<K, V, T, R>> {
    stream.unary::<CapacityContainerBuilder<_>, _, _, _>(Pipeline, "EncodeRows", |_, _| {
        move |input, output| {
            input.for_each(|capability, items| {
                let mut session = output.session(&capability);
                items.drain(..).for_each(|item| session.give(update(item)));
            });
        }
    })
}

/// Arranges rows of `layout` in the memory of `context`, each at the worker of its key.
pub(crate) fn arrange_updates<'scope, K: RowCode, V: RowCode, T: TimeCode, R: DiffCode>(
    rows: Stream<'scope, T, Updates<K, V, T, R>>,
    layout: &Layout,
    context: &Context,
    name: &str,
) -> RowArranged<'scope, K, V, T, R> {
    arrange_with(rows, layout, name, |logger, operator| {
        RowBatcher::<K, V, T, R>::of_layout(layout, context, logger, operator)
    })
}

/// Arranges the batches that `batcher` makes of rows of `layout`, each at the worker of its key.
pub(crate) fn arrange_with<'scope, K: RowCode, V: RowCode, T: TimeCode, R: DiffCode, Tr, Ba>(
    rows: Stream<'scope, T, Updates<K, V, T, R>>,
    layout: &Layout,
    name: &str,
    batcher: impl FnOnce(Option<Logger>, usize) -> Ba,
) -> Arranged<'scope, TraceAgent<Tr>>
where
    Tr: Trace<Time = T> + 'static,
    Ba: Batcher<Updates<K, V, T, R>, Time = T, Output: Into<Tr::Batch>> + 'static,
{
    let layout = layout.clone();
    match rows.scope().peers() {
        1 => arrange_core(rows, Pipeline, name, batcher),
        _ => {
            let pact = DistributorPact(|peers| RowDistributor::<K, V, T, R>::new(layout, peers));
            arrange_core(rows, pact, name, batcher)
        }
    }
}

/// Operators on collections arranged as rows, also if the arrangement [entered](Arranged::enter) a
/// loop.
pub trait RowArrangement<'scope, K: Row, V: Row, T: TimeCode, R: DiffCode>:
    Into<Arranged<'scope, Self::Trace>>
{
    /// The trace of the arrangement.
    type Trace: TraceReader<Time = T, Batch: ScopedBatch<Key = K, Value = V, Time = T, Diff = R>>
        + 'static;

    /// Returns the arrangement with batches that arrive once a thread of the pool has read what
    /// their keys look up in `other`. A join or a reduction after it waits for no disk, and other
    /// operators run meanwhile. Its other side is the trace that it reads: of a join the other
    /// arrangement, of a reduction `self`.
    ///
    /// Covers the first 4,096 keys of a batch; those beyond, those while the threads are busy, and
    /// all with direct I/O wait for the disk. Costs an operator and, once the pool has spilled, a
    /// second look-up of each key by a thread of the pool. So it pays with a slow store: if all
    /// reads come from the system's cache, a round takes up to twice as long.
    ///
    /// ```
    /// use differential_dataflow::input::Input;
    /// use windrow::{Budget, Pool};
    /// use windrow_differential::{ArrangeRows, Context, RowArrangement};
    ///
    /// let context = Context::new(Pool::in_dir(std::env::temp_dir(), Budget::bytes(64 << 20)).unwrap());
    /// timely::execute_directly(move |worker| {
    ///     worker.dataflow::<u64, _, _>(|scope| {
    ///         let (_, orders) = scope.new_collection::<(u64, u64), isize>();
    ///         let (_, users) = scope.new_collection::<(u64, String), isize>();
    ///         let (orders, users) = (orders.arrange_rows(&context), users.arrange_rows(&context));
    ///         let ahead = (orders.clone().reading_ahead(&users), users.reading_ahead(&orders));
    ///         ahead.0.join_rows(ahead.1, |_user, amount, name| Some((name.get(), amount.get())));
    ///     });
    /// });
    /// ```
    fn reading_ahead<Tr2>(self, other: &Arranged<'scope, Tr2>) -> Arranged<'scope, Self::Trace>
    where
        Tr2: TraceReader<Time = T, Batch: ScopedBatch<Key = K, Time = T>> + Clone + 'static,
    {
        read_ahead(self.into(), other.trace.clone())
    }

    /// Calls `result` for each pair of values of a key and returns the items. Differs from
    /// `join_core` in that neither side must fit in memory.
    fn join_rows<V2, R2, Tr2, I>(
        self,
        other: Arranged<'scope, Tr2>,
        mut result: impl FnMut(Enc<'_, K>, Enc<'_, V>, Enc<'_, V2>) -> I + 'static,
    ) -> VecCollection<'scope, T, I::Item, <R as Multiply<R2>>::Output>
    where
        V2: Row,
        R2: DiffCode,
        Tr2: TraceReader<Time = T> + 'static,
        Tr2::Batch: ScopedBatch<Key = K, Value = V2, Time = T, Diff = R2>,
        R: Multiply<R2, Output: Semigroup + Ord + 'static>,
        I: IntoIterator<Item: Data>,
    {
        type Joined<T, D, R> = ConsolidatingContainerBuilder<Vec<(D, T, R)>>;
        let logic = move |key: Enc<'_, K>,
                          value: Enc<'_, V>,
                          other: Enc<'_, V2>,
                          time: T,
                          diff: &R,
                          other_diff: &R2,
                          builder: &mut Joined<T, I::Item, R::Output>| {
            let diff = diff.clone().multiply(other_diff);
            for data in result(key, value, other) {
                builder.push_into((data, time.clone(), diff.clone()));
            }
        };
        join_with_tactic(self.into(), other, "JoinRows", RowJoin::new(logic)).as_collection()
    }

    /// Calls `logic` for each key with its values and their multiplicities, and arranges the
    /// output. `logic` is not called for keys without values. Differs from `reduce_abelian` in that
    /// neither input nor output must fit in memory, only the values of one key.
    fn reduce_rows<V2, R2>(
        self,
        context: &Context,
        mut logic: impl FnMut(Enc<'_, K>, &[(Enc<'_, V>, R)], &mut Vec<(V2, R2)>) + 'static,
    ) -> RowArranged<'scope, K, V2, T, R2>
    where
        V2: Row,
        R2: DiffCode + Abelian,
    {
        let tactic = RowReduce::<K, V, V2, T, R, R2, _>::new(
            context,
            move |key, input, output: &[(V2, R2)], changes| {
                if !input.is_empty() {
                    logic(key, input, changes);
                }
                changes.extend(output.iter().cloned().map(|(value, mut diff)| {
                    diff.negate();
                    (value, diff)
                }));
            },
        );
        reduce_with_tactic(self.into(), "ReduceRows", tactic)
    }

    /// Calls `logic` for each key and value, and returns the results with the times and diffs of
    /// the rows. Differs from `as_collection` in that the arrangement need not fit in memory: one
    /// chunk is read at a time.
    fn map_rows<D: Data>(
        self,
        mut logic: impl FnMut(Enc<'_, K>, Enc<'_, V>) -> D + 'static,
    ) -> VecCollection<'scope, T, D, R> {
        self.flat_map_rows(move |key, value| Some(logic(key, value)))
    }

    /// Does the same as [`RowArrangement::map_rows`] for any number of results per row. Corresponds
    /// to `flat_map_ref`.
    fn flat_map_rows<I: IntoIterator<Item: Data>>(
        self,
        mut logic: impl FnMut(Enc<'_, K>, Enc<'_, V>) -> I + 'static,
    ) -> VecCollection<'scope, T, I::Item, R> {
        type Mapped<T, D, R> = CapacityContainerBuilder<Vec<(D, T, R)>>;
        let stream = self.into().stream;
        let mapped = scan::<_, Mapped<T, I::Item, R>>(
            stream,
            "MapRows",
            move |key, value, time, diff, builder| {
                for data in logic(key, value) {
                    builder.push_into((data, time.clone(), diff.clone()));
                }
            },
        );
        mapped.as_collection()
    }
}

impl<'scope, K: Row, V: Row, T: TimeCode, R: DiffCode, Tr> RowArrangement<'scope, K, V, T, R>
    for Arranged<'scope, Tr>
where
    Tr: TraceReader<Time = T> + 'static,
    Tr::Batch: ScopedBatch<Key = K, Value = V, Time = T, Diff = R>,
{
    type Trace = Tr;
}

/// Operators on collections of rows without values.
pub trait RowCollection<'scope, D: Row, T: TimeCode, R: DiffCode>:
    Into<VecCollection<'scope, T, D, R>>
{
    /// Arranges the collection by its rows.
    fn arrange_rows_by_self(self, context: &Context) -> RowArranged<'scope, D, (), T, R> {
        self.into().map(|row| (row, ())).arrange_rows(context)
    }

    /// Consolidates the collection: each row occurs at most once per time.
    fn consolidate_rows(self, context: &Context) -> VecCollection<'scope, T, D, R> {
        self.arrange_rows_by_self(context).map_rows(|row, _| row.get())
    }

    /// Returns each present row once, whatever its multiplicity.
    fn distinct_rows(self, context: &Context) -> VecCollection<'scope, T, D, R>
    where
        R: Abelian + From<i8>,
    {
        self.threshold_rows(context, |_, _| R::from(1))
    }

    /// Returns each row with the multiplicity `threshold` computes from its multiplicity. Totally
    /// ordered times need no arrangement of the output, see [`RowTotals`](crate::RowTotals).
    fn threshold_rows<R2: DiffCode + Abelian>(
        self,
        context: &Context,
        mut threshold: impl FnMut(Enc<'_, D>, &R) -> R2 + 'static,
    ) -> VecCollection<'scope, T, D, R2> {
        let rows = self.arrange_rows_by_self(context);
        if T::Code::TOTAL {
            return totals::thresholds(rows, threshold);
        }
        let kept = rows.reduce_rows(context, move |row, input, output| {
            output.push(((), threshold(row, &input[0].1)));
        });
        kept.map_rows(|row, _| row.get())
    }

    /// Returns each row with its multiplicity as a value. Totally ordered times need no arrangement
    /// of the output.
    fn count_rows(self, context: &Context) -> VecCollection<'scope, T, (D, R), isize>
    where
        R: Row,
    {
        let rows = self.arrange_rows_by_self(context);
        if T::Code::TOTAL {
            return totals::counts(rows);
        }
        let counted = rows.reduce_rows(context, |_, input, output| {
            output.push((input[0].1.clone(), 1isize));
        });
        counted.map_rows(|row, count| (row.get(), count.get()))
    }
}

impl<'scope, D: Row, T: TimeCode, R: DiffCode> RowCollection<'scope, D, T, R>
    for VecCollection<'scope, T, D, R>
{
}
