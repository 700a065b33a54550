//! Reductions of the values of each key, key by key.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use differential_dataflow::operators::reduce::ReduceTactic;
use differential_dataflow::trace::{Builder, Description, Span};
use timely::progress::Antichain;
use windrow::{Cursor, Layout, Time};

use super::replay::Replay;
use super::{Code, cursor_over, key_at, look_up_in, scoped};
use crate::batch::{RowBatch, ScopedBatch};
use crate::builder::{RowBuffer, RowBuilder};
use crate::context::{Context, done};
use crate::diff::DiffCode;
use crate::enc::Enc;
use crate::format::Format;
use crate::of::Of;
use crate::row::{Row, RowCode};
use crate::time::TimeCode;

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

impl<K, V, V2, T, R, R2, L> RowReduce<K, V, V2, T, R, R2, L>
where
    K: Row,
    V: Row,
    V2: Row,
    T: TimeCode,
    R: DiffCode,
    R2: DiffCode,
    L: FnMut(Enc<'_, K>, &[(Enc<'_, V>, R)], &[(V2, R2)], &mut Vec<(V2, R2)>),
{
    /// Creates a reduction by `logic`; its output is in the memory of `context`.
    pub fn new(context: &Context, logic: L) -> Self {
        Self::of_layout(&Format::<K, V2, T, R2>::layout(), context, logic)
    }
}

impl<K, V, V2, T, R, R2, L> RowReduce<K, V, V2, T, R, R2, L>
where
    K: RowCode,
    V: RowCode,
    V2: RowCode,
    T: TimeCode,
    R: DiffCode,
    R2: DiffCode,
    L: FnMut(Enc<'_, K>, &[(Enc<'_, V>, R)], &[(V2::Owned, R2)], &mut Vec<(V2::Owned, R2)>),
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
            of: PhantomData,
        }
    }

    /// Reduces one key at its due times before `upper`. Loads the key's new changes if `fresh` has
    /// the key as its current key.
    fn reduce_key<S: ScopedBatch<Key = K, Value = V, Time = T, Diff = R>>(
        &mut self,
        key: &[u8],
        kept: Vec<T>,
        (fresh, source, output): Cursors<'_, S>,
        upper: &Antichain<T>,
        buffer: &mut RowBuffer<K, V2, T, R2>,
    ) {
        let Self { logic, later, replay, .. } = self;
        replay.fresh.clear();
        if key_at(fresh) == Some(key)
            && let Some(cursor) = fresh
        {
            replay.fresh.load(cursor, scoped::<S>, None);
            done(cursor.step_key());
        }
        replay.begin(kept);
        let meet = replay.meet();
        if let Some(cursor) = at(source, key) {
            replay.source.load(cursor, scoped::<S>, meet.as_ref());
        } else {
            replay.source.clear();
        }
        if let Some(cursor) = at(output, key) {
            replay.output.load(cursor, T::of_code, meet.as_ref());
        } else {
            replay.output.clear();
        }
        let mut still_due = Vec::new();
        replay.run(
            upper,
            &mut still_due,
            |input, output, changes| logic(Enc::new(key), input, output, changes),
            |value, time, diff| buffer.push(key, value, time, diff),
        );
        if !still_due.is_empty() {
            later.insert(key.to_vec(), still_due);
        }
    }
}

/// Cursors over new input, old input, and old output.
type Cursors<'a, S> = (
    &'a mut Option<Cursor<Code<S>>>,
    &'a mut Option<Cursor<Code<S>>>,
    &'a mut Option<Cursor<<<S as ScopedBatch>::Time as TimeCode>::Code>>,
);

/// Returns the cursor at `key`, if the cursor has the key.
fn at<'a, T: Time>(cursor: &'a mut Option<Cursor<T>>, key: &[u8]) -> Option<&'a mut Cursor<T>> {
    let cursor = cursor.as_mut()?;
    done(cursor.find_key(key)).then_some(cursor)
}

impl<K, V, V2, T, R, R2, S, L> ReduceTactic<T, S, RowBatch<K, V2, T, R2>>
    for RowReduce<K, V, V2, T, R, R2, L>
where
    S: ScopedBatch<Key = K, Value = V, Time = T, Diff = R>,
    K: RowCode,
    V: RowCode,
    V2: RowCode,
    T: TimeCode,
    R: DiffCode,
    R2: DiffCode,
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
        let mut source = look_up_in(&source_batches);
        let mut output = look_up_in(&output_batches);
        let mut fresh = cursor_over(&input_batches);
        let mut builder = RowBuilder::default();
        let mut buffer = RowBuffer::of_layout(&self.context, &self.layout);
        let mut kept = std::mem::take(&mut self.later);
        let mut key = Vec::new();
        loop {
            let next = match (key_at(&fresh), kept.first_key_value()) {
                (None, None) => break,
                (Some(fresh), Some((kept, _))) => fresh.min(kept),
                (Some(key), None) => key,
                (None, Some((key, _))) => key,
            };
            key.clear();
            key.extend_from_slice(next);
            let times = kept.remove(&key).unwrap_or_default();
            if key_at(&fresh) != Some(&key) && times.iter().all(|time| upper.less_equal(time)) {
                self.later.insert(key.clone(), times);
                continue;
            }
            let cursors = (&mut fresh, &mut source, &mut output);
            self.reduce_key::<S>(&key, times, cursors, upper, &mut buffer);
            if buffer.is_full() {
                builder.push(&mut buffer);
            }
        }
        builder.push(&mut buffer);
        let least = Antichain::from_elem(T::minimum());
        let description = Description::new(lower.clone(), upper.clone(), least);
        let frontier = self.later.values().flatten().cloned().collect();
        (Some(Span::new(description, builder.done())), frontier)
    }
}
