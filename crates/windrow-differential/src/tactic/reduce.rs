//! Reductions of the values of each key, key by key.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use differential_dataflow::operators::reduce::ReduceTactic;
use differential_dataflow::trace::{Builder, Description, Span};
use timely::progress::Antichain;
use windrow::{Cursor, KeyBlock, Layout, Time};

use super::replay::Replay;
use super::{cursor_over, key_at, locate, look_up_in, scoped, step_key};
use crate::format::Format;
use crate::of::Of;
use crate::{
    Context, DiffCode, Enc, Row, RowBatch, RowBuffer, RowBuilder, RowCode, ScopedBatch, TimeCode,
};

/// Reduces batches of rows by `logic`. `logic` receives a key, its values and its present output,
/// and appends the changes of the output.
pub struct RowReduce<K, V, V2: RowCode, T, R, R2, L> {
    context: Context,
    /// Layout of the output rows.
    layout: Layout,
    logic: L,
    /// Due times of keys that are not complete yet.
    later: BTreeMap<Vec<u8>, Vec<T>>,
    replay: Replay<V, V2, T, R, R2>,
    of: Of<K>,
}

impl<K: Row, V: Row, V2: Row, T: TimeCode, R: DiffCode, R2: DiffCode, L>
    RowReduce<K, V, V2, T, R, R2, L>
where
    L: FnMut(Enc<'_, K>, &[(Enc<'_, V>, R)], &[(V2, R2)], &mut Vec<(V2, R2)>),
{
    /// Creates a reduction by `logic`; its output is in the memory of `context`.
    pub fn new(context: &Context, logic: L) -> Self {
        Self::of_layout(&Format::<K, V2, T, R2>::layout(), context, logic)
    }
}

impl<K, V: RowCode, V2: RowCode, T: TimeCode, R: DiffCode, R2: DiffCode, L>
    RowReduce<K, V, V2, T, R, R2, L>
{
    /// Creates a reduction by `logic` to rows of `layout`; its output is in the memory of
    /// `context`.
    pub(crate) fn of_layout(layout: &Layout, context: &Context, logic: L) -> Self {
        Self {
            context: context.clone(),
            layout: layout.clone(),
            logic,
            later: BTreeMap::new(),
            replay: Replay::new(),
            of: Of::default(),
        }
    }
}

impl<K: RowCode, V: RowCode, V2: RowCode, T: TimeCode, R: DiffCode, R2: DiffCode, S, L>
    ReduceTactic<T, S, RowBatch<K, V2, T, R2>> for RowReduce<K, V, V2, T, R, R2, L>
where
    S: ScopedBatch<Key = K, Value = V, Time = T, Diff = R>,
    L: FnMut(Enc<'_, K>, &[(Enc<'_, V>, R)], &[(V2::Owned, R2)], &mut Vec<(V2::Owned, R2)>),
{
    fn retire(
        &mut self,
        source_batches: Vec<S>,
        output_batches: Vec<RowBatch<K, V2, T, R2>>,
        input_batches: Vec<S>,
        lower: &Antichain<T>,
        upper: &Antichain<T>,
        held: &Antichain<T>,
    ) -> (Option<Span<T, RowBatch<K, V2, T, R2>>>, Antichain<T>) {
        if held.iter().all(|time| upper.less_equal(time)) {
            return (None, held.clone());
        }
        let Self { context, layout, logic, later, replay, .. } = self;
        let mut source = look_up_in(&source_batches);
        let mut output = look_up_in(&output_batches);
        let mut fresh = look_up_in(&input_batches);
        let mut ahead = cursor_over(&input_batches);
        let mut builder = RowBuilder::default();
        let mut buffer = RowBuffer::of_layout(context, layout);
        let mut kept = std::mem::take(later);
        let (mut block, mut due) = (KeyBlock::new(), Vec::new());
        loop {
            let is_due = |times: &[T]| !times.iter().all(|time| upper.less_equal(time));
            next_keys(&mut ahead, &mut kept, later, is_due, (&mut block, &mut due));
            if block.is_empty() {
                break;
            }
            locate(&mut source, &block);
            locate(&mut output, &block);
            locate(&mut fresh, &block);
            for (number, times) in due.drain(..).enumerate() {
                let (at, key) = ((&block, number), block.key(number));
                replay.fresh.load(at, &mut fresh, scoped::<S>, None);
                let meet = replay.begin(times);
                replay.source.load(at, &mut source, scoped::<S>, meet.as_ref());
                replay.output.load(at, &mut output, T::of_code, meet.as_ref());
                let still_due = replay.run(
                    upper,
                    |input, output, changes| logic(Enc::new(key), input, output, changes),
                    |value, time, diff| buffer.push(key, value, time, diff),
                );
                if !still_due.is_empty() {
                    later.insert(key.to_vec(), still_due);
                }
                if buffer.is_full() {
                    builder.push(&mut buffer);
                }
            }
        }
        builder.push(&mut buffer);
        let least = Antichain::from_elem(T::minimum());
        let description = Description::new(lower.clone(), upper.clone(), least);
        let frontier = later.values().flatten().cloned().collect();
        (Some(Span::new(description, builder.done())), frontier)
    }
}

/// Fills `block` with the next keys that `ahead` or `kept` has, and `due` with the times kept for
/// each key. Moves keys that have neither changes nor a time that `is_due` from `kept` to `later`.
fn next_keys<C: Time, T>(
    ahead: &mut Option<Cursor<C>>,
    kept: &mut BTreeMap<Vec<u8>, Vec<T>>,
    later: &mut BTreeMap<Vec<u8>, Vec<T>>,
    is_due: impl Fn(&[T]) -> bool,
    (block, due): (&mut KeyBlock, &mut Vec<Vec<T>>),
) {
    block.clear();
    while !block.is_full() {
        let waiting = kept.first_entry();
        let order = match (key_at(ahead), &waiting) {
            (None, None) => return,
            (Some(changed), Some(waiting)) => changed.cmp(waiting.key()),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
        };
        match waiting {
            Some(waiting) if order.is_ge() => {
                let (key, times) = waiting.remove_entry();
                if order.is_gt() && !is_due(&times) {
                    later.insert(key, times);
                    continue;
                }
                block.push(&key);
                due.push(times);
            }
            _ => {
                block.push(key_at(ahead).unwrap_or_default());
                due.push(Vec::new());
            }
        }
        if order.is_le() {
            step_key(ahead);
        }
    }
}
