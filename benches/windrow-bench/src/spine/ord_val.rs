//! differential-dataflow's spine of ordered values, used without a dataflow.

use std::rc::Rc;

use differential_026::trace::cursor::{Cursor as _, cursor_list};
use differential_026::trace::implementations::ord_neu::{OrdValSpine, VecOrdValBuilder};
use differential_026::trace::{Builder as _, Description, Span, Trace as _, TraceReader as _};
use timely_032::dataflow::operators::generic::OperatorInfo;
use timely_032::progress::Antichain;

use crate::Result;

type Spine = OrdValSpine<u64, u64, u64, i64>;
type Builder = VecOrdValBuilder<u64, u64, u64, i64>;

/// A spine of keys with themselves as values.
pub(super) struct OrdVal(Spine);

impl OrdVal {
    pub(super) fn new() -> Self {
        Self(Spine::new(OperatorInfo::new(0, 0, [].into()), None, None))
    }

    /// Inserts ascending keys at `time`.
    pub(super) fn insert(&mut self, keys: impl Iterator<Item = u64>, time: u64) {
        let mut changes: Vec<_> = keys.map(|key| ((key, key), time, 1)).collect();
        let mut builder = Builder::with_capacity(changes.len(), changes.len(), changes.len());
        builder.push(&mut changes);
        let (lower, upper) = (Antichain::from_elem(time), Antichain::from_elem(time + 1));
        let description = Description::new(lower, upper, Antichain::from_elem(0));
        self.0.insert(Span::new(description, builder.done().map(Rc::new)));
    }

    /// Returns the sum of diffs of ascending keys. Each search starts at the previous key's
    /// position.
    pub(super) fn probe(&mut self, keys: &[u64]) -> Result<i64> {
        let all = Antichain::new();
        let batches = self.0.batches_through(all.borrow()).ok_or("batches that cannot be read")?;
        let (mut cursor, storage) = cursor_list(batches);
        let mut sum = 0;
        for key in keys {
            cursor.seek_key(&storage, key);
            if cursor.get_key(&storage) == Some(key) {
                while cursor.val_valid(&storage) {
                    cursor.map_times(&storage, |_, diff| sum += *diff);
                    cursor.step_val(&storage);
                }
            }
        }
        Ok(sum)
    }
}
