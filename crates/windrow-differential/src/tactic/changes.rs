//! The changes of one key: its values, and when each of them came and went.

use std::marker::PhantomData;

use differential_dataflow::consolidation::consolidate;
use windrow::Cursor;

use crate::context::done;
use crate::diff::DiffCode;
use crate::enc::Enc;
use crate::of::Of;
use crate::time::TimeCode;

/// The number of a value among those of its key, which ascend.
pub(super) type ValueId = u32;

/// The changes of one key.
pub(super) struct Changes<V, T, R> {
    /// The bytes of the values, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// By value; by value and time, each once, if times were moved.
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

    /// Takes the changes of the key that `cursor` stands at, and leaves it behind the last value. Times are moved up to
    /// `meet`, if there is one.
    pub(super) fn load(&mut self, cursor: &mut Cursor<T::Code>, meet: Option<&T>) {
        self.clear();
        while let Some(value) = cursor.value() {
            self.bytes.extend_from_slice(value);
            let id = self.ends.len() as ValueId;
            self.ends.push(self.bytes.len());
            let edits = &mut self.edits;
            done(cursor.map_diffs(|time, lanes| {
                edits.push(((id, T::of_code(time)), R::of_lanes(lanes)));
            }));
            done(cursor.step_value());
        }
        if let Some(meet) = meet {
            self.edits.iter_mut().for_each(|((_, time), _)| time.join_assign(meet));
            consolidate(&mut self.edits);
        }
    }

    /// A value.
    pub(super) fn value(&self, id: ValueId) -> Enc<'_, V> {
        let id = id as usize;
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        Enc::new(&self.bytes[start..self.ends[id]])
    }

    /// The times of all changes.
    pub(super) fn times(&self) -> impl Iterator<Item = &T> {
        self.edits.iter().map(|((_, time), _)| time)
    }
}
