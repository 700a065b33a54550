//! The changes of one key: its values, with the times and diffs of each value.

use std::marker::PhantomData;

use differential_dataflow::consolidation::consolidate;
use windrow::{Cursor, Time};

use crate::context::done;
use crate::diff::DiffCode;
use crate::enc::Enc;
use crate::of::Of;
use crate::time::TimeCode;

/// Ordinal of a value among the ascending values of its key.
pub(super) type ValueId = u32;

/// The changes of one key.
pub(super) struct Changes<V, T, R> {
    /// The bytes of the values, and the end of each value.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Ordered by value; if times were advanced, by value and time, each pair once.
    pub(super) edits: Vec<((ValueId, T), R)>,
    of: Of<V>,
}

impl<V, T: TimeCode, R: DiffCode> Changes<V, T, R> {
    pub(super) fn new() -> Self {
        Self { bytes: Vec::new(), ends: Vec::new(), edits: Vec::new(), of: PhantomData }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.edits.clear();
    }

    /// Loads the changes of the current key of `cursor`, which then stands after the key's last
    /// value. `scoped` converts the times of rows; times are then advanced to `meet`, if given.
    pub(super) fn load<C: Time>(
        &mut self,
        cursor: &mut Cursor<C>,
        scoped: impl Fn(C) -> T,
        meet: Option<&T>,
    ) {
        self.clear();
        let Self { bytes, ends, edits, .. } = self;
        // Values of several batches arrive one batch after another.
        let (mut last, mut ascend) = (0..0, true);
        done(cursor.map_changes(|value, time, lanes| {
            let before = &bytes[last.clone()];
            if ends.is_empty() || before != value {
                ascend &= ends.is_empty() || before < value;
                last = bytes.len()..bytes.len() + value.len();
                bytes.extend_from_slice(value);
                ends.push(bytes.len());
            }
            let id = (ends.len() - 1) as ValueId;
            edits.push(((id, scoped(time)), R::of_lanes(lanes)));
        }));
        if !ascend {
            self.sort();
        }
        if let Some(meet) = meet {
            self.edits.iter_mut().for_each(|((_, time), _)| time.join_assign(meet));
            consolidate(&mut self.edits);
        }
    }

    /// Renumbers the values in ascending order, each once.
    fn sort(&mut self) {
        let mut ids: Vec<ValueId> = (0..self.ends.len() as ValueId).collect();
        ids.sort_unstable_by_key(|&id| self.value(id).bytes());
        let (mut bytes, mut ends) = (Vec::with_capacity(self.bytes.len()), Vec::new());
        let mut numbers = vec![0; ids.len()];
        let mut last = None;
        for id in ids {
            let value = self.value(id).bytes();
            if last != Some(value) {
                bytes.extend_from_slice(value);
                ends.push(bytes.len());
                last = Some(value);
            }
            numbers[id as usize] = (ends.len() - 1) as ValueId;
        }
        self.edits.iter_mut().for_each(|((id, _), _)| *id = numbers[*id as usize]);
        self.edits.sort_by_key(|((id, _), _)| *id);
        (self.bytes, self.ends) = (bytes, ends);
    }

    /// Returns a value.
    pub(super) fn value(&self, id: ValueId) -> Enc<'_, V> {
        let id = id as usize;
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        Enc::new(&self.bytes[start..self.ends[id]])
    }

    /// Returns the times of all changes.
    pub(super) fn times(&self) -> impl Iterator<Item = &T> {
        self.edits.iter().map(|((_, time), _)| time)
    }
}
