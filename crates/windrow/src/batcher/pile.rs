//! The runs of a pusher in memory: merged as they become many, spilled as one when the share is
//! full.
//!
//! ```text
//! take --> ladder --share full--> merged in memory, if much cancels; or merged into a run on disk
//!            |
//! hand_over--+--> runs of the batcher
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Shared;
use super::accounting::Held;
use super::ladder::{Ladder, Means};
use crate::batch::{held_by_chunk, merger, own_bytes};
use crate::chunk::{Chunk, Runs};
use crate::merge::{Merger, Run};
use windrow_pool::{Pool, Share, lock};
use windrow_rows::{Layout, Result, Rule};

/// One part in `WAITING` of a pusher's memory is reserved for pages that wait for compression.
const WAITING: usize = 4;

/// Runs of one pusher, in memory up to its share.
pub(super) struct Pile {
    pub(super) shared: Arc<Shared>,
    /// The pusher's part of the budget, while the pusher holds rows and counts as open.
    open: Option<Share>,
    ladder: Ladder,
    /// Bytes left by the last merge of all resident runs in memory; `usize::MAX` if such a merge is
    /// not worth trying.
    live: usize,
    /// Bytes of memory of the largest chunk so far.
    longest: usize,
    pushers: usize,
}

impl Runs for Pile {
    fn open(&mut self, pool: &Pool) {
        if self.open.is_none() {
            self.open = Some(pool.budget().join());
            self.shared.open.fetch_add(1, Ordering::Release);
        }
    }

    fn take(&mut self, layout: &Layout, pool: &Pool, chunks: Vec<Arc<Chunk>>) -> Result<()> {
        // A row longer than a chunk is in a write buffer while another such row is written out.
        for chunk in &chunks {
            self.longest = self.longest.max(chunk.leased_bytes());
        }
        let room = self.room(pool);
        self.push(layout, pool, Run::of(chunks), room)?;
        let held = self.ladder.resident;
        if held > room || held > room / 4 && self.is_crowded(pool) {
            self.spill(layout, pool)?;
        } else if held > room / 2 && self.live <= room / 4 {
            self.thin_out(layout, pool, room)?;
        }
        Ok(())
    }
}

/// Marks the batcher's rows as lost if runs were not handed over.
impl Drop for Pile {
    fn drop(&mut self) {
        if self.open.is_some() {
            self.shared.lost.store(true, Ordering::Release);
            self.shared.open.fetch_sub(1, Ordering::Release);
        }
    }
}

impl Pile {
    pub(super) fn new(layout: &Layout, shared: &Arc<Shared>, pushers: usize) -> Self {
        Self {
            shared: Arc::clone(shared),
            open: None,
            ladder: Ladder::default(),
            // Under `keep`, rows never cancel.
            live: if layout.rule() == Rule::Keep { usize::MAX } else { 0 },
            longest: 0,
            pushers,
        }
    }

    /// Returns true if the pusher holds rows.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Hands all runs over to the batcher.
    pub(super) fn hand_over(&mut self) {
        lock(&self.shared.runs).extend(self.ladder.take());
        if self.open.take().is_some() {
            self.shared.open.fetch_sub(1, Ordering::Release);
        }
    }

    fn push(&mut self, layout: &Layout, pool: &Pool, run: Run, room: usize) -> Result<()> {
        let Shared { wraps, sink, .. } = &*self.shared;
        self.ladder.push(Means { layout, pool, wraps, sink }, run, room)
    }

    /// Returns the bytes of memory that runs may take.
    fn room(&self, pool: &Pool) -> usize {
        let share = pool.budget().share(self.pushers);
        if !pool.budget().is_limited() {
            return share;
        }
        let share = share.min(pool.limit_of_rows() / self.pushers);
        let usual = held_by_chunk(pool);
        let own = own_bytes(pool) + 2 * self.longest.saturating_sub(usual);
        let room = share.saturating_sub(own);
        // Pages that wait for compression are in memory together with the next rows.
        if pool.compresses() { room - room / WAITING } else { room }
    }

    /// Returns true if earlier users of the budget still hold more than their share.
    fn is_crowded(&self, pool: &Pool) -> bool {
        let budget = pool.budget();
        budget.sharing() > self.pushers && budget.used() > budget.limit()
    }

    /// Merges all resident runs in memory, to see whether many rows cancel: short-lived rows are
    /// then never written. If few cancel, this is not tried again until a merge removes more.
    fn thin_out(&mut self, layout: &Layout, pool: &Pool, room: usize) -> Result<()> {
        let before = self.ladder.resident;
        let out = self.merged(layout, pool, Run::merged)?;
        let after = out.resident_bytes();
        self.live = if is_thinner(layout, before, after) { after } else { usize::MAX };
        self.push(layout, pool, out, room)
    }

    /// Merges all resident runs into one run on disk.
    fn spill(&mut self, layout: &Layout, pool: &Pool) -> Result<()> {
        let before = self.ladder.resident;
        let out = self.merged(layout, pool, Run::spilled)?;
        self.live = if is_thinner(layout, before, out.bytes()) { 0 } else { usize::MAX };
        lock(&self.shared.runs).push(Held::new(out, &self.shared.sink));
        Ok(())
    }

    /// Merges all resident runs into one by `into`.
    fn merged(
        &mut self,
        layout: &Layout,
        pool: &Pool,
        into: impl Fn(Run, &Pool, &mut Merger) -> Result<Run>,
    ) -> Result<Run> {
        let runs: Vec<Run> = self.ladder.take().filter_map(Held::take).collect();
        let out = Run::after(&runs);
        into(out, pool, &mut merger(layout, pool, &self.shared.wraps, runs))
    }
}

/// Returns true if a merge was worthwhile: it removed at least a quarter of the bytes.
fn is_thinner(layout: &Layout, before: usize, after: usize) -> bool {
    layout.rule() != Rule::Keep && after <= before / 4 * 3
}
