//! Compaction on request: all batches of a spine become one. Rows that merges drop.

use std::ops::Range;

use super::Spine;
use super::levels::Standing;
use crate::merge::Retain;
use windrow_rows::{Result, Time};

impl<T: Time> Spine<T> {
    /// Sets a filter of rows by key and value: merges that begin afterwards drop all other rows,
    /// whatever their times. [`Retain`] names the promises of the caller. A merge filters the
    /// batches that it merges; [`Spine::compact`] filters all. Saves do not contain the filter.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
    /// use windrow::{Antichain, Batcher, Order, Pool, Retain, RowEncoder, Spine};
    ///
    /// # let users = |users: &[u64]| Arc::new(UInt64Array::from(users.to_vec())) as ArrayRef;
    /// # let changes = |time: u64| {
    /// #     let diffs = Arc::new(Int64Array::from(vec![1; 4])) as ArrayRef;
    /// #     RecordBatch::try_from_iter([("user", users(&[1, 2, 3, 3])), ("item", users(&[time; 4])), ("time", users(&[time; 4])), ("diff", diffs)]).unwrap()
    /// # };
    /// # let two = RecordBatch::try_from_iter([("user", users(&[2]))])?;
    /// let layout = Order::by("user").time("time").diff("diff").bind(&changes(0).schema())?;
    /// let pool = Pool::unlimited();
    /// let (mut batcher, mut spine) = (Batcher::new(&layout, &pool), Spine::new(&layout, &pool)?);
    /// for time in 0..10 {
    ///     batcher.push(&changes(time))?; // an item of each of the users 1, 2 and 3
    ///     spine.insert(batcher.seal(&Antichain::at(time + 1))?)?;
    /// }
    /// let least = RowEncoder::of_keys(&layout).encode(&two)?.row(0).to_vec();
    /// // Users from 2 on, each with its last three items.
    /// spine.set_retain(Retain::new().keys(move |user| user >= &least[..]).greatest(3))?;
    /// spine.set_since(&Antichain::at(10))?;
    /// spine.compact();
    /// while !spine.work(&mut 1000)? {}
    /// assert_eq!(spine.batches().filter_map(|batch| batch.rows()).sum::<u64>(), 6);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::InvalidOrder`] if values are counted and the layout has no single sum of diffs.
    pub fn set_retain(&mut self, retain: Retain) -> Result<()> {
        retain.check(&self.layout)?;
        self.retain = Some(retain);
        Ok(())
    }

    /// Requests the merge of all batches into one, from the running merges' end on. The merge
    /// proceeds like any other, by [`Spine::work`], inserts or threads. Batches that readers need
    /// to [distinguish](Spine::set_distinguish) stay apart.
    pub fn compact(&mut self) {
        self.compacts = true;
    }

    /// Returns true from a [`Spine::compact`] on until its merge has ended.
    pub fn is_compacting(&self) -> bool {
        self.compacts || self.entries.first().is_some_and(|entry| entry.merge.is_some())
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
        // A single batch may have rows to drop.
        (count > usize::from(self.retain.is_none())).then_some(0..count)
    }
}
