//! Joins of two lists of batches, key by key.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::rc::Rc;

use differential_dataflow::lattice::Lattice;
use differential_dataflow::operators::history::ValueHistory;
use differential_dataflow::operators::join::{Fresh, JoinTactic};
use timely::ContainerBuilder;
use windrow::Cursor;

use super::changes::{Changes, ValueId};
use super::{Code, cursor_over, scoped};
use crate::batch::ScopedBatch;
use crate::context::done;
use crate::diff::DiffCode;
use crate::enc::Enc;
use crate::of::Of;
use crate::row::RowCode;
use crate::time::TimeCode;

/// If a side has fewer changes, each of them is paired with all changes of the opposite side. From
/// `FEW` changes on, both sides are replayed in time order, and changes at equivalent times are
/// consolidated.
const FEW: usize = 10;

/// Joins batches of rows. `logic` receives each pair of changes (key, values, time, diffs) and puts
/// its results into a builder.
pub struct RowJoin<L, B> {
    logic: Rc<RefCell<L>>,
    of: Of<B>,
}

impl<L, B> RowJoin<L, B> {
    /// Creates a join by `logic`.
    pub fn new(logic: L) -> Self {
        Self { logic: Rc::new(RefCell::new(logic)), of: PhantomData }
    }
}

impl<K, T, S0, S1, L, B> JoinTactic<T, S0, S1, B::Container> for RowJoin<L, B>
where
    K: RowCode,
    T: TimeCode,
    S0: ScopedBatch<Key = K, Time = T>,
    S1: ScopedBatch<Key = K, Time = T>,
    B: ContainerBuilder<Container: Default> + 'static,
    L: Logic<S0, S1, B>,
{
    fn prep(
        &mut self,
        input0: Vec<S0>,
        input1: Vec<S1>,
        fresh: Fresh,
        meet: T,
    ) -> Box<dyn Iterator<Item = B::Container>> {
        let cursors = cursor_over(&input0).zip(cursor_over(&input1));
        // Times of the fresh input are at or beyond `meet` already.
        let (meet0, meet1) = match fresh {
            Fresh::Input0 => (None, Some(meet)),
            Fresh::Input1 => (Some(meet), None),
        };
        Box::new(Unit::<S0, S1, L, B> {
            cursors,
            meets: (meet0, meet1),
            changes: (Changes::new(), Changes::new()),
            histories: (ValueHistory::new(), ValueHistory::new()),
            logic: Rc::clone(&self.logic),
            builder: B::default(),
            ready: VecDeque::new(),
        })
    }
}

/// The function applied to each pair of changes: a closure of key, values, time, diffs and a
/// builder for the results.
pub trait Logic<S0: ScopedBatch, S1: ScopedBatch, B>:
    FnMut(
        Enc<'_, S0::Key>,
        Enc<'_, S0::Value>,
        Enc<'_, S1::Value>,
        S0::Time,
        &S0::Diff,
        &S1::Diff,
        &mut B,
    ) + 'static
{
}

impl<S0: ScopedBatch, S1: ScopedBatch, B, L> Logic<S0, S1, B> for L where
    L: FnMut(
            Enc<'_, S0::Key>,
            Enc<'_, S0::Value>,
            Enc<'_, S1::Value>,
            S0::Time,
            &S0::Diff,
            &S1::Diff,
            &mut B,
        ) + 'static
{
}

/// The changes of one key of a side.
type ChangesOf<S> =
    Changes<<S as ScopedBatch>::Value, <S as ScopedBatch>::Time, <S as ScopedBatch>::Diff>;
/// The changes of one key of a side, ordered by time.
type HistoryOf<S> = ValueHistory<ValueId, <S as ScopedBatch>::Time, <S as ScopedBatch>::Diff>;

/// Cursors over both sides.
type Cursors<S0, S1> = (Cursor<Code<S0>>, Cursor<Code<S1>>);

/// A running join.
struct Unit<S0: ScopedBatch, S1: ScopedBatch, L, B: ContainerBuilder> {
    /// Cursors over both sides; `None` after the last key.
    cursors: Option<Cursors<S0, S1>>,
    /// The time to which lesser times of each side may be advanced.
    meets: (Option<S0::Time>, Option<S0::Time>),
    changes: (ChangesOf<S0>, ChangesOf<S1>),
    histories: (HistoryOf<S0>, HistoryOf<S1>),
    logic: Rc<RefCell<L>>,
    builder: B,
    ready: VecDeque<B::Container>,
}

impl<S0, S1, L, B> Iterator for Unit<S0, S1, L, B>
where
    S0: ScopedBatch,
    S1: ScopedBatch<Key = S0::Key, Time = S0::Time>,
    B: ContainerBuilder<Container: Default>,
    L: Logic<S0, S1, B>,
{
    type Item = B::Container;

    fn next(&mut self) -> Option<B::Container> {
        while self.ready.is_empty()
            && let Some((cursor0, cursor1)) = &mut self.cursors
        {
            match (cursor0.key(), cursor1.key()) {
                (Some(key0), Some(key1)) => match key0.cmp(key1) {
                    Ordering::Less => done(cursor0.seek_key(key1)),
                    Ordering::Greater => done(cursor1.seek_key(key0)),
                    Ordering::Equal => self.join_key(),
                },
                _ => {
                    self.cursors = None;
                    while let Some(container) = self.builder.finish() {
                        self.ready.push_back(std::mem::take(container));
                    }
                }
            }
        }
        self.ready.pop_front()
    }
}

impl<S0, S1, L, B> Unit<S0, S1, L, B>
where
    S0: ScopedBatch,
    S1: ScopedBatch<Key = S0::Key, Time = S0::Time>,
    B: ContainerBuilder<Container: Default>,
    L: Logic<S0, S1, B>,
{
    /// Joins the current key of both cursors and advances them.
    fn join_key(&mut self) {
        let Some((cursor0, cursor1)) = &mut self.cursors else { return };
        let (changes0, changes1) = &mut self.changes;
        changes0.load(cursor0, scoped::<S0>, self.meets.0.as_ref());
        changes1.load(cursor1, scoped::<S1>, self.meets.1.as_ref());
        if let Some(key) = cursor0.key() {
            let (logic, builder) = (&mut *self.logic.borrow_mut(), &mut self.builder);
            let key = Enc::new(key);
            let (values0, values1) = (&*changes0, &*changes1);
            let emit = |v0, v1, time: S0::Time, r0: &S0::Diff, r1: &S1::Diff| {
                logic(key, values0.value(v0), values1.value(v1), time, r0, r1, builder);
            };
            if changes0.edits.len() < FEW || changes1.edits.len() < FEW {
                cross(&values0.edits, &values1.edits, emit);
            } else {
                let (history0, history1) = &mut self.histories;
                load(history0, &values0.edits);
                load(history1, &values1.edits);
                replay(history0, history1, emit);
            }
        }
        done(cursor0.step_key());
        done(cursor1.step_key());
        while let Some(container) = self.builder.extract() {
            self.ready.push_back(std::mem::take(container));
        }
    }
}

fn load<T: TimeCode, R: DiffCode>(
    history: &mut ValueHistory<ValueId, T, R>,
    edits: &[((ValueId, T), R)],
) {
    let edits = edits.iter().map(|((value, time), diff)| (*value, time.clone(), diff.clone()));
    history.load_iter(edits, None);
}

/// Pairs each change of one side with each change of the opposite side.
fn cross<T: Lattice, R0, R1>(
    edits0: &[((ValueId, T), R0)],
    edits1: &[((ValueId, T), R1)],
    mut emit: impl FnMut(ValueId, ValueId, T, &R0, &R1),
) {
    for ((v0, t0), r0) in edits0 {
        for ((v1, t1), r1) in edits1 {
            emit(*v0, *v1, t0.join(t1), r0, r1);
        }
    }
}

/// Pairs changes as [`cross`] does, in time order: each change meets the earlier changes of the
/// opposite side, consolidated as far as later times cannot distinguish them.
fn replay<T: TimeCode, R0: DiffCode, R1: DiffCode>(
    history0: &mut ValueHistory<ValueId, T, R0>,
    history1: &mut ValueHistory<ValueId, T, R1>,
    mut emit: impl FnMut(ValueId, ValueId, T, &R0, &R1),
) {
    loop {
        let first = match (history0.time(), history1.time()) {
            (None, None) => return,
            (Some(t0), Some(t1)) => t0 < t1,
            (time0, _) => time0.is_some(),
        };
        if first {
            let (Some(meet), Some((v0, t0, r0))) = (history0.meet(), history0.edit()) else {
                return;
            };
            history1.advance_buffer_by(meet);
            for ((v1, t1), r1) in history1.buffer() {
                emit(v0, *v1, t0.join(t1), r0, r1);
            }
            history0.step();
        } else {
            let (Some(meet), Some((v1, t1, r1))) = (history1.meet(), history1.edit()) else {
                return;
            };
            history0.advance_buffer_by(meet);
            for ((v0, t0), r0) in history0.buffer() {
                emit(*v0, v1, t0.join(t1), r0, r1);
            }
            history1.step();
        }
    }
}
