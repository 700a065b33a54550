//! Half joins: each update of a stream meets the earlier changes of an arrangement.
//!
//! ```text
//! (key, value, time) at initial --> waiting, until the arrangement is complete before initial
//!                                      |  ready: sorted by key, 64 keys at a time
//!     arrangement, looked up ----------+--> pairs with changes before initial
//! ```
//! A delta query computes a join of several collections by one chain of half joins for each
//! collection. In its chain, an update meets the earlier changes of every further collection. No
//! intermediate result is arranged.
//!
//! Invariant: the capabilities precede the initial times of all ready and waiting updates.
//!
//! # Known limitation
//! Waiting updates take memory outside of the budget.

use std::time::Instant;

use differential_dataflow::consolidation::{ConsolidatingContainerBuilder, consolidate_updates};
use differential_dataflow::difference::{Multiply, Semigroup};
use differential_dataflow::operators::arrange::Arranged;
use differential_dataflow::trace::TraceReader;
use differential_dataflow::{AsCollection, Data, ExchangeData, VecCollection};
use timely::container::PushInto;
use timely::dataflow::channels::pact::{Exchange, Pipeline};
use timely::dataflow::operators::CapabilitySet;
use timely::dataflow::operators::generic::operator::Operator;
use timely::progress::Antichain;
use windrow::{Cursor, KeyBlock};

use crate::exchange::{hash_of, owner_of};
use crate::row::Form;
use crate::tactic::{Changes, Code, locate, look_up_in_all, scoped};
use crate::{DiffCode, Enc, Row, ScopedBatch, TimeCode};

/// Joins each update with the changes of `arrangement` before the update's initial time. An update
/// `((key, value, time), initial, diff)` and a change `((key, other), at, other_diff)` give
/// `((output(key, value, other), time.join(at)), initial, diff * other_diff)` if
/// `comparison(at, initial)`. Corresponds to `half_join` of differential's `dogs3`.
///
/// `comparison` is a total order of times that extends their partial order; equal times may compare
/// as true or as false. `frontier` receives a lower bound of future initial times, and inserts the
/// times from which on the arrangement must distinguish changes. Other operators run whenever
/// `yields` returns true, given the start of the present turn and the number of its pairs so far.
/// Costs a look-up for each update, side by side with the updates of a round.
///
/// A delta query of two collections; at equal times, changes of `right` precede those of `left`:
///
/// ```
/// use differential_dataflow::AsCollection;
/// use differential_dataflow::input::Input;
/// use timely::dataflow::operators::vec::Map;
/// use timely::progress::Antichain;
/// use windrow::Pool;
/// use windrow_differential::{ArrangeRows, Context, half_join_rows};
///
/// let context = Context::new(Pool::unlimited());
/// timely::execute_directly(move |worker| {
///     let (mut left, mut right) = worker.dataflow::<u64, _, _>(|scope| {
///         let (left_in, left) = scope.new_collection::<(u64, u32), isize>();
///         let (right_in, right) = scope.new_collection::<(u64, u32), isize>();
///         // A half join takes the time of an update twice; further half joins advance the first.
///         let [of_left, of_right] = [&left, &right].map(|updates| {
///             let updates = updates.clone().inner;
///             updates.map(|((key, value), time, diff)| ((key, value, time), time, diff)).as_collection()
///         });
///         let [left, right] = [left, right].map(|updates| updates.arrange_rows(&context));
///         let before = |time: &u64, times: &mut Antichain<u64>| {
///             times.insert(time.saturating_sub(1));
///         };
///         let never = |_, _| false;
///         half_join_rows(of_left, right, before, |at, time| at <= time, never, |_, a, b| (*a, b.get()))
///             .concat(half_join_rows(of_right, left, before, |at, time| at < time, never, |_, b, a| (a.get(), *b)))
///             .inspect(|(((a, b), _), _, diff)| assert_eq!((*a, *b, *diff), (10, 20, 1)));
///         (left_in, right_in)
///     });
///     left.insert((1, 10));
///     right.insert((1, 20));
/// });
/// ```
pub fn half_join_rows<'scope, K, V, T, R, V2, R2, Tr, D>(
    updates: VecCollection<'scope, T, (K, V, T), R>,
    arrangement: Arranged<'scope, Tr>,
    frontier: impl Fn(&T, &mut Antichain<T>) + 'static,
    comparison: impl Fn(&T, &T) -> bool + 'static,
    yields: impl Fn(Instant, usize) -> bool + 'static,
    mut output: impl FnMut(Enc<'_, K>, &V, Enc<'_, V2>) -> D + 'static,
) -> VecCollection<'scope, T, (D, T), <R as Multiply<R2>>::Output>
where
    K: Row + ExchangeData,
    V: ExchangeData,
    T: TimeCode,
    R: ExchangeData + Semigroup + Multiply<R2, Output: Semigroup + Data>,
    V2: Row,
    R2: DiffCode,
    Tr: TraceReader<Time = T> + 'static,
    Tr::Batch: ScopedBatch<Key = K, Value = V2, Time = T, Diff = R2>,
    D: Data,
{
    let (scope, mut bytes) = (updates.inner.scope(), Vec::new());
    let peers = scope.peers();
    let by_key = Exchange::new(move |((key, _, _), _, _): &Waiting<K, V, T, R>| {
        bytes.clear();
        key.encode(Form::Column, &mut bytes);
        owner_of(hash_of(&bytes), peers) as u64
    });
    let Arranged { stream, mut trace } = arrangement;
    // Any cut of the trace serves.
    trace.set_physical_compaction(Antichain::new().borrow());
    let mut trace = Some(trace);
    let (updates, name) = (updates.inner, "HalfJoinRows");
    let joined = updates.binary_frontier(stream, by_key, Pipeline, name, move |_, info| {
        let activator = scope.activator_for(info.address);
        let (mut times, mut waiting) = (CapabilitySet::new(), Vec::new());
        let (mut ready, mut changes) = (Ready::new(), Changes::new());
        move |(updates, coming), (batches, arranging), joined| {
            updates.for_each(|stamp, updates| {
                stamp.retain_stamp(0).iter().for_each(|time| times.insert(time.clone()));
                waiting.append(updates);
            });
            // The trace has the batches; their stream schedules the operator.
            batches.for_each(|_, _| {});
            let Some(reader) = &mut trace else { return };
            let (start, mut pairs) = (Instant::now(), 0);
            let (mut is_paused, mut cursor) = (false, None);
            let is_ready =
                |initial: &T| !arranging.frontier().iter().any(|time| comparison(time, initial));
            while !is_paused && ready.refill(&mut waiting, is_ready) {
                let cursor = cursor.get_or_insert_with(|| look_up_in_all(reader));
                let mut session = joined.session_with_builder(&times);
                let join = |key: &[u8], update: &_, changes: &Changes<_, _, _>| {
                    let ((_, value, time), initial, diff): &Waiting<K, V, T, R> = update;
                    let builder: &mut Joined<T, D, R::Output> = session.builder();
                    for ((other, at), other_diff) in &changes.edits {
                        if comparison(at, initial) {
                            let data = output(Enc::new(key), value, changes.value(*other));
                            let diff = diff.clone().multiply(other_diff);
                            builder.push_into(((data, time.join(at)), initial.clone(), diff));
                            pairs += 1;
                        }
                    }
                    session.extract_and_send();
                    yields(start, pairs)
                };
                is_paused = ready.run::<_, _, Tr::Batch>(cursor, &mut changes, join);
            }
            if is_paused {
                activator.activate();
            } else {
                let initials = waiting.iter().map(|(_, initial, _)| initial.clone());
                times.downgrade(initials.collect::<Antichain<T>>());
            }
            let mut least = Antichain::new();
            coming.frontier().iter().for_each(|time| frontier(time, &mut least));
            times.iter().for_each(|time| frontier(time.time(), &mut least));
            reader.set_logical_compaction(least.borrow());
            if coming.is_empty() && times.is_empty() {
                trace = None;
            }
        }
    });
    joined.as_collection()
}

/// Collects results with their times and initial times.
type Joined<T, D, R> = ConsolidatingContainerBuilder<Vec<((D, T), T, R)>>;

/// An update with its initial time.
type Waiting<K, V, T, R> = ((K, V, T), T, R);

/// Updates before whose initial time the arrangement is complete, sorted by key.
struct Ready<K, V, T, R> {
    updates: Vec<Waiting<K, V, T, R>>,
    /// Number of joined updates.
    joined: usize,
    block: KeyBlock,
    bytes: Vec<u8>,
}

impl<K: Row, V: Data, T: TimeCode, R: Semigroup + Data> Ready<K, V, T, R> {
    fn new() -> Self {
        Self { updates: Vec::new(), joined: 0, block: KeyBlock::new(), bytes: Vec::new() }
    }

    /// Returns true if an update is to be joined; takes the ready ones of `waiting` if all others
    /// are joined.
    fn refill(
        &mut self,
        waiting: &mut Vec<Waiting<K, V, T, R>>,
        is_ready: impl Fn(&T) -> bool,
    ) -> bool {
        if self.joined == self.updates.len() {
            self.updates.clear();
            self.updates.extend(waiting.extract_if(.., |(_, initial, _)| is_ready(initial)));
            consolidate_updates(&mut self.updates);
            self.joined = 0;
        }
        self.joined < self.updates.len()
    }

    /// Calls `join` with each update, the bytes of its key and the changes of its key, until `join`
    /// returns true; then returns true, too.
    fn run<V2, R2: DiffCode, S>(
        &mut self,
        cursor: &mut Option<Cursor<Code<S>>>,
        changes: &mut Changes<V2, T, R2>,
        mut join: impl FnMut(&[u8], &Waiting<K, V, T, R>, &Changes<V2, T, R2>) -> bool,
    ) -> bool
    where
        S: ScopedBatch<Time = T>,
    {
        let Self { updates, joined, block, bytes } = self;
        while *joined < updates.len() {
            let rest = &updates[*joined..];
            let of_keys = || rest.chunk_by(|((a, ..), ..), ((b, ..), ..)| a == b);
            block.clear();
            for updates in of_keys() {
                if block.is_full() {
                    break;
                }
                bytes.clear();
                updates[0].0.0.encode(Form::Column, bytes);
                block.push(bytes);
            }
            locate(cursor, block);
            for (number, updates) in of_keys().enumerate().take(block.len()) {
                changes.load((block, number), cursor, scoped::<S>, None);
                for update in updates {
                    *joined += 1;
                    if join(block.key(number), update, changes) {
                        return true;
                    }
                }
            }
        }
        false
    }
}
