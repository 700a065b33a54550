//! The changes of one key: its values, with the times and diffs of each value.

use std::cmp::Ordering;

use differential_dataflow::consolidation::consolidate;
use differential_dataflow::operators::history::ValueHistory;
use windrow::{Cursor, KeyBlock, Time};

use crate::context::done;
use crate::enc::compare;
use crate::{DiffCode, Enc, EncVec, TimeCode};

/// Ordinal of a value among the ascending values of its key.
pub(crate) type ValueId = u32;

/// The changes of one key.
pub(crate) struct Changes<V, T, R> {
    values: EncVec<V>,
    /// Ordered by value; if times were advanced, by value and time, each pair once.
    pub(crate) edits: Vec<((ValueId, T), R)>,
    /// The edits in the order of their times, after [`Changes::begin_replay`].
    pub(crate) history: ValueHistory<ValueId, T, R>,
    /// Memory that [`Changes::sort`] reuses: ascending values, their ordinals, the values sorted.
    order: Vec<ValueId>,
    ordinals: Vec<ValueId>,
    sorted: EncVec<V>,
}

impl<V, T: TimeCode, R: DiffCode> Changes<V, T, R> {
    pub(crate) fn new() -> Self {
        Self {
            values: EncVec::default(),
            edits: Vec::new(),
            history: ValueHistory::new(),
            order: Vec::new(),
            ordinals: Vec::new(),
            sorted: EncVec::default(),
        }
    }

    /// Loads the changes of the key with `number` in `block`, which `cursor` has located. Returns
    /// false if there are none. `scoped` converts the times of rows; times are then advanced to
    /// `meet`, if given.
    pub(crate) fn load<C: Time>(
        &mut self,
        (block, number): (&KeyBlock, usize),
        cursor: &mut Option<Cursor<C>>,
        scoped: impl Fn(C) -> T,
        meet: Option<&T>,
    ) -> bool {
        let Self { values, edits, .. } = self;
        values.clear();
        edits.clear();
        let Some(cursor) = cursor else { return false };
        // Values of several batches arrive one batch after another.
        let mut ascend = true;
        let found = cursor.map_located(block, number, |value, time, lanes| {
            let order = values.last().map_or(Ordering::Less, |last| compare(last, value));
            if order.is_ne() {
                ascend &= order.is_lt();
                values.push(value);
            }
            edits.push((((values.len() - 1) as ValueId, scoped(time)), R::of_lanes(lanes)));
        });
        if !ascend {
            self.sort();
        }
        match meet {
            Some(meet) => {
                self.edits.iter_mut().for_each(|((_, time), _)| time.join_assign(meet));
                consolidate(&mut self.edits);
            }
            None if !ascend => self.edits.sort_by_key(|((id, _), _)| *id),
            None => {}
        }
        done(found)
    }

    /// Renumbers the values in ascending order, each once; the edits stay where they are.
    fn sort(&mut self) {
        let Self { values, edits, order, ordinals, sorted, .. } = self;
        let value = |id: ValueId| values.get(id as usize);
        order.clear();
        order.extend(0..values.len() as ValueId);
        order.sort_unstable_by_key(|&id| value(id));
        sorted.clear();
        ordinals.clear();
        ordinals.resize(values.len(), 0);
        for &id in &*order {
            if sorted.last() != Some(value(id).bytes()) {
                sorted.push(value(id).bytes());
            }
            ordinals[id as usize] = (sorted.len() - 1) as ValueId;
        }
        edits.iter_mut().for_each(|((id, _), _)| *id = ordinals[*id as usize]);
        std::mem::swap(values, sorted);
    }

    /// Returns a value.
    pub(crate) fn value(&self, id: ValueId) -> Enc<'_, V> {
        self.values.get(id as usize)
    }

    /// Puts all edits into the history.
    pub(crate) fn begin_replay(&mut self) {
        let edits = self.edits.iter();
        let edits = edits.map(|((value, time), diff)| (*value, time.clone(), diff.clone()));
        self.history.load_iter(edits, None);
    }

    /// Returns the values and diffs of the replayed changes at or before `time`.
    pub(crate) fn as_of<'a>(&'a self, time: &'a T) -> impl Iterator<Item = (Enc<'a, V>, R)> {
        let before = self.history.buffer().iter().filter(move |((_, at), _)| at.less_equal(time));
        before.map(|((id, _), diff)| (self.value(*id), diff.clone()))
    }

    /// Returns the times of all changes.
    pub(crate) fn times(&self) -> impl Iterator<Item = &T> {
        self.edits.iter().map(|((_, time), _)| time)
    }
}
