//! Joins of two lists of batches, key by key.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use differential_dataflow::operators::join::{Fresh, JoinTactic};
use differential_dataflow::trace::implementations::spine_fueled::SpineBatch;
use timely::ContainerBuilder;
use windrow::KeyBlock;

use super::changes::Changes;
use super::{cursor_over, locate, look_up_in, next_block, scoped};
use crate::of::Of;
use crate::{DiffCode, Enc, RowCode, ScopedBatch, TimeCode};

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
        Self { logic: Rc::new(RefCell::new(logic)), of: Of::default() }
    }
}

impl<K: RowCode, T: TimeCode, S0, S1, L, B> JoinTactic<T, S0, S1, B::Container> for RowJoin<L, B>
where
    S0: ScopedBatch<Key = K, Time = T>,
    S1: ScopedBatch<Key = K, Time = T>,
    B: ContainerBuilder<Container: Default> + 'static,
    L: FnMut(Enc<'_, K>, Enc<'_, S0::Value>, Enc<'_, S1::Value>, T, &S0::Diff, &S1::Diff, &mut B)
        + 'static,
{
    fn prep(
        &mut self,
        input0: Vec<S0>,
        input1: Vec<S1>,
        fresh: Fresh,
        meet: T,
    ) -> Box<dyn Iterator<Item = B::Container>> {
        let (mut cursor0, mut cursor1) = (look_up_in(&input0), look_up_in(&input1));
        // The keys of the side with fewer rows are looked up in both.
        let mut next: Box<dyn FnMut(&mut KeyBlock)> = if rows_of(&input0) < rows_of(&input1) {
            let mut ahead = cursor_over(&input0);
            Box::new(move |block| next_block(&mut ahead, block))
        } else {
            let mut ahead = cursor_over(&input1);
            Box::new(move |block| next_block(&mut ahead, block))
        };
        let (mut block, mut number) = (KeyBlock::new(), 0);
        // Times of the fresh input are at or beyond `meet` already.
        let (meet0, meet1) = match fresh {
            Fresh::Input0 => (None, Some(meet)),
            Fresh::Input1 => (Some(meet), None),
        };
        let mut changes0 = Changes::<S0::Value, T, S0::Diff>::new();
        let mut changes1 = Changes::<S1::Value, T, S1::Diff>::new();
        let (shared, mut builder, mut ready) =
            (Rc::clone(&self.logic), B::default(), VecDeque::new());
        Box::new(std::iter::from_fn(move || {
            while ready.is_empty() {
                if number == block.len() {
                    number = 0;
                    next(&mut block);
                    if block.is_empty() {
                        ready.extend(std::iter::from_fn(|| builder.finish().map(std::mem::take)));
                        break;
                    }
                    locate(&mut cursor0, &block);
                    locate(&mut cursor1, &block);
                }
                let at = (&block, number);
                number += 1;
                if changes0.load(at, &mut cursor0, scoped::<S0>, meet0.as_ref())
                    && changes1.load(at, &mut cursor1, scoped::<S1>, meet1.as_ref())
                {
                    let (key, logic) = (Enc::new(block.key(at.1)), &mut *shared.borrow_mut());
                    pair(&mut changes0, &mut changes1, |value0, value1, time, diff0, diff1| {
                        logic(key, value0, value1, time, diff0, diff1, &mut builder);
                    });
                    ready.extend(std::iter::from_fn(|| builder.extract().map(std::mem::take)));
                }
            }
            ready.pop_front()
        }))
    }
}

/// Returns the number of rows of `batches`.
fn rows_of<S: ScopedBatch>(batches: &[S]) -> usize {
    batches.iter().map(|batch| batch.rows().len()).sum()
}

/// Pairs each change of one side with each change of the opposite side. Many changes are replayed
/// in time order: each change meets the earlier changes of the opposite side, consolidated as far
/// as later times cannot distinguish them.
fn pair<V0, V1, T: TimeCode, R0: DiffCode, R1: DiffCode>(
    side0: &mut Changes<V0, T, R0>,
    side1: &mut Changes<V1, T, R1>,
    mut emit: impl FnMut(Enc<'_, V0>, Enc<'_, V1>, T, &R0, &R1),
) {
    if side0.edits.len() < FEW || side1.edits.len() < FEW {
        for ((v0, t0), r0) in &side0.edits {
            for ((v1, t1), r1) in &side1.edits {
                emit(side0.value(*v0), side1.value(*v1), t0.join(t1), r0, r1);
            }
        }
        return;
    }
    side0.begin_replay();
    side1.begin_replay();
    loop {
        let first = match (side0.history.time(), side1.history.time()) {
            (None, None) => return,
            (Some(t0), Some(t1)) => t0 < t1,
            (time0, _) => time0.is_some(),
        };
        if first {
            replay_next(side0, side1, &mut emit);
        } else {
            replay_next(side1, side0, |v1, v0, time, r1, r0| emit(v0, v1, time, r0, r1));
        }
    }
}

/// Pairs the next change of `side` with the earlier changes of `opposite`.
fn replay_next<V, V2, T: TimeCode, R: DiffCode, R2: DiffCode>(
    side: &mut Changes<V, T, R>,
    opposite: &mut Changes<V2, T, R2>,
    mut emit: impl FnMut(Enc<'_, V>, Enc<'_, V2>, T, &R, &R2),
) {
    let (Some(meet), Some((value, time, diff))) = (side.history.meet(), side.history.edit()) else {
        return;
    };
    opposite.history.advance_buffer_by(meet);
    for ((other, at), other_diff) in opposite.history.buffer() {
        emit(side.value(value), opposite.value(*other), time.join(at), diff, other_diff);
    }
    side.history.step();
}
