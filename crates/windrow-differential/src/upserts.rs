//! Upserts: a stream of new values of keys, arranged as the collection of current values.
//!
//! ```text
//! (key, Some(value) or None, time) --> batcher, until times are complete
//!                                        |  keys of a round, 64 at a time
//!                          trace --look-up--> current value --> old value -1, new value +1
//!                            ^                                        |
//!                            +---------------- batch -----------------+
//! ```
//! The state of the operator is its own output. Waiting upserts are rows in the same budget.
//!
//! Invariant: a key has at most one value at each time.

use std::cell::RefCell;
use std::rc::Rc;

use differential_dataflow::batcher::{Batcher, Extract};
use differential_dataflow::trace::{Builder, TraceReader};
use timely::dataflow::Stream;
use timely::order::TotalOrder;
use timely::progress::frontier::AntichainRef;
use windrow::{Cursor, KeyBlock, Layout};

use crate::context::done;
use crate::format::Format;
use crate::operators::{arrange_with, encoded};
use crate::tactic::{Changes, cursor_over, locate, look_up_in, look_up_in_all, next_block};
use crate::{
    Context, Row, RowArranged, RowBatch, RowBatcher, RowBuffer, RowBuilder, RowTrace, TimeCode,
    Updates,
};

/// Arranges streams of upserts.
pub trait ArrangeUpserts<'scope, K: Row, V: Row, T: TimeCode + TotalOrder> {
    /// Arranges the current value of each key, as rows in the memory of `context`. An upsert
    /// replaces the value of its key from its time on; `None` removes the key. Of several upserts
    /// of a key at one time the greatest counts, and `None` only if it is alone. Corresponds to
    /// `arrange_from_upsert`.
    ///
    /// An upsert costs a look-up in the arrangement, side by side with those of its round. The
    /// arrangement stays as long as the dataflow, even if no operator reads it.
    ///
    /// ```
    /// use timely::dataflow::InputHandle;
    /// use timely::dataflow::operators::Input;
    /// use windrow::Pool;
    /// use windrow_differential::{ArrangeUpserts, Context, RowArrangement};
    ///
    /// let context = Context::new(Pool::unlimited());
    /// timely::execute_directly(move |worker| {
    ///     let mut input = InputHandle::new();
    ///     worker.dataflow::<u64, _, _>(|scope| {
    ///         let prices = scope.input_from(&mut input).arrange_rows_from_upsert(&context);
    ///         let prices = prices.map_rows(|name, cents| (name.get(), cents.get()));
    ///         prices.inspect(|(price, time, diff)| println!("{price:?} at {time}: {diff:+}"));
    ///     });
    ///     input.send(("tea".to_owned(), Some(120_u32), 0));
    ///     input.send(("tea".to_owned(), Some(140), 1)); // ("tea", 120) at 1: -1, ("tea", 140) at 1: +1
    ///     input.send(("tea".to_owned(), None, 2)); // ("tea", 140) at 2: -1
    /// });
    /// ```
    fn arrange_rows_from_upsert(self, context: &Context) -> RowArranged<'scope, K, V, T, isize>;
}

impl<'scope, K: Row, V: Row, T: TimeCode + TotalOrder> ArrangeUpserts<'scope, K, V, T>
    for Stream<'scope, T, Vec<(K, Option<V>, T)>>
{
    fn arrange_rows_from_upsert(self, context: &Context) -> RowArranged<'scope, K, V, T, isize> {
        let layout = Format::<K, Option<V>, T, isize>::layout();
        let upserts = encoded(self, |(key, value, time)| ((key, value), time, 1));
        let trace = Rc::default();
        let arranged =
            arrange_with(upserts, &layout, "ArrangeUpserts", |logger, operator| UpsertBatcher {
                context: context.clone(),
                upserts: RowBatcher::of_layout(&layout, context, logger, operator),
                layout: Format::<K, V, T, isize>::layout(),
                trace: Rc::clone(&trace),
            });
        *trace.borrow_mut() = Some(arranged.trace.clone());
        arranged
    }
}

/// A trace that is built after the operator's batcher.
type Shared<Tr> = Rc<RefCell<Option<Tr>>>;

/// Sorts upserts, and makes batches of the changes of values.
struct UpsertBatcher<K: Row, V: Row, T: TimeCode> {
    context: Context,
    upserts: RowBatcher<K, Option<V>, T, isize>,
    /// Layout of the changes.
    layout: Layout,
    /// The arrangement of all batches; present once the operator is built.
    trace: Shared<RowTrace<K, V, T, isize>>,
}

impl<K: Row, V: Row, T: TimeCode> Batcher<Updates<K, Option<V>, T, isize>>
    for UpsertBatcher<K, V, T>
{
    fn insert(&mut self, container: &mut Updates<K, Option<V>, T, isize>) {
        self.upserts.insert(container);
    }
}

impl<K: Row, V: Row, T: TimeCode> Extract for UpsertBatcher<K, V, T> {
    type Time = T;
    type Output = RowBatch<K, V, T, isize>;

    fn extract<'a>(
        &'a mut self,
        upper: AntichainRef<'_, T>,
    ) -> (Option<Self::Output>, AntichainRef<'a, T>) {
        let Self { context, upserts, layout, trace } = self;
        let (batch, frontier) = upserts.extract(upper);
        let mut trace = trace.borrow_mut();
        let trace = trace.as_mut().expect("set when the operator was built");
        let changes = batch.and_then(|batch| {
            let current = look_up_in_all(trace);
            changes(batch, current, context, layout)
        });
        trace.set_logical_compaction(upper);
        trace.set_physical_compaction(upper);
        (changes, frontier)
    }
}

/// Returns the changes of the `current` values by a batch of upserts, as rows of `layout`.
fn changes<K: Row, V: Row, T: TimeCode>(
    upserts: RowBatch<K, Option<V>, T, isize>,
    mut current: Option<Cursor<T::Code>>,
    context: &Context,
    layout: &Layout,
) -> Option<RowBatch<K, V, T, isize>> {
    let upserts = [upserts];
    let (mut fresh, mut ahead) = (look_up_in(&upserts), cursor_over(&upserts));
    let mut block = KeyBlock::new();
    let (mut known, mut news) = (Changes::<V, T, isize>::new(), Vec::new());
    let mut builder = RowBuilder::default();
    let mut buffer = RowBuffer::of_layout(context, layout);
    loop {
        next_block(&mut ahead, &mut block);
        if block.is_empty() {
            builder.push(&mut buffer);
            return builder.done();
        }
        locate(&mut current, &block);
        locate(&mut fresh, &block);
        for number in 0..block.len() {
            known.load((&block, number), &mut current, T::of_code, None);
            let mut value = value_of(&known);
            if let Some(fresh) = &mut fresh {
                done(fresh.map_located(&block, number, |new, time, _: i64| {
                    news.push((T::of_code(time), Option::<V>::from_bytes(new)));
                }));
            }
            // By time, the greatest value of each time first.
            news.sort_by(|(time, new), (at, other)| time.cmp(at).then_with(|| other.cmp(new)));
            news.dedup_by(|(time, _), (at, _)| time == at);
            for (time, new) in news.drain(..) {
                if new == value {
                    continue;
                }
                let old = std::mem::replace(&mut value, new);
                for (value, diff) in [(&old, -1), (&value, 1)] {
                    let value = value.iter();
                    value.for_each(|value| buffer.push(block.key(number), value, &time, &diff));
                }
            }
            if buffer.is_full() {
                builder.push(&mut buffer);
            }
        }
    }
}

/// Returns the value that is present, if any.
fn value_of<V: Row, T: TimeCode>(changes: &Changes<V, T, isize>) -> Option<V> {
    let mut values = changes.edits.chunk_by(|((value, _), _), ((next, _), _)| value == next);
    let is_present = |edits: &&[_]| edits.iter().map(|(_, diff)| diff).sum::<isize>() > 0;
    let ((value, _), _) = values.find(is_present)?.first()?;
    Some(changes.value(*value).get())
}
