//! Compaction on request: all batches of a spine become one.

use std::ops::Range;

use super::levels::Standing;
use super::{Entry, Spine};
use windrow_rows::Time;

impl<T: Time> Spine<T> {
    /// Requests the merge of all batches into one, from the running merges' end on. The merge
    /// proceeds like any other, by [`Spine::work`], inserts or threads. Batches that readers need
    /// to [distinguish](Spine::set_distinguish) stay apart.
    pub fn compact(&mut self) {
        self.compacts = true;
    }

    /// Returns true from a [`Spine::compact`] on until its merge has ended.
    pub fn is_compacting(&self) -> bool {
        self.compacts || matches!(self.entries.first(), Some(Entry::Merging { .. }))
    }

    /// Returns all batches that may be merged, if no merge is running.
    pub(super) fn compaction(&mut self, standing: &[Standing]) -> Option<Range<usize>> {
        let is_merging = |standing: &Standing| matches!(standing, Standing::Merging(_));
        if standing.iter().any(is_merging) {
            return None;
        }
        self.compacts = false;
        let is_batch = |standing: &&Standing| matches!(standing, Standing::Batch(_));
        let count = standing.iter().take_while(is_batch).count();
        (count > 1).then_some(0..count)
    }
}
