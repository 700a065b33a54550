//! One thread's way in.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow_array::RecordBatch;

use super::Shared;
use super::accounting::Held;
use super::ladder::{Ladder, Means};
use super::pending::Pending;
use crate::batch::{held_by_chunk, merger, own_bytes};
use crate::chunk::Chunker;
use crate::error::{Error, Result};
use crate::merge::{Merger, Run};
use crate::order::{Layout, Rule};
use crate::pool::Pool;
use crate::pool::Share;
use crate::rows::Prepared;

/// The part of a pusher's memory, one of so many, that is left to what waits to be compressed.
const WAITING: usize = 4;

/// One thread's way into a [`crate::Batcher`].
pub struct Pusher {
    shared: Arc<Shared>,
    /// While it holds rows it counts as open, and has a part of the budget.
    open: Option<Share>,
    pending: Pending,
    chunker: Chunker,
    ladder: Ladder,
    /// Bytes that were left when all in memory was last merged in memory; the greatest number if that
    /// is not worth trying.
    live: usize,
    /// Bytes of memory of the largest chunk so far.
    longest: usize,
    pushers: usize,
}

impl Pusher {
    pub(super) fn new(layout: &Layout, pool: &Pool, shared: &Arc<Shared>, pushers: usize) -> Self {
        Self {
            shared: Arc::clone(shared),
            open: None,
            pending: Pending::default(),
            chunker: Chunker::new(layout, pool, &shared.wraps),
            ladder: Ladder::default(),
            // Under `keep` nothing ever cancels.
            live: if layout.rule() == Rule::Keep { usize::MAX } else { 0 },
            longest: 0,
            pushers,
        }
    }

    pub(super) fn layout(&self) -> &Layout {
        self.chunker.layout()
    }

    pub(super) fn pool(&self) -> &Pool {
        self.chunker.pool()
    }

    /// Takes the rows of `batch` in. `sequence` is the place in the whole input of its first row,
    /// which decides between equals; those after it follow on.
    ///
    /// # Errors
    /// As [`crate::Batcher::push`], and [`Error::InvalidOrder`] for a place beyond 64 bits. A record
    /// batch that cannot be encoded is refused as a whole; after any other error rows are missing, and
    /// the batcher does not finish.
    pub fn push(&mut self, batch: &RecordBatch, sequence: u64) -> Result<()> {
        if sequence.checked_add(batch.num_rows() as u64).is_none() {
            let message = format!("the rows from {sequence} on have no place in an input");
            return Err(Error::InvalidOrder(message));
        }
        let next = if self.pending.is_empty() { self.push_plain(batch)? } else { Some(0) };
        match next {
            None => Ok(()),
            Some(0) => self.push_any(batch, sequence),
            Some(next) => {
                let rest = batch.slice(next, batch.num_rows() - next);
                let pushed = self.push_any(&rest, sequence + next as u64);
                // The rows in front of these are in already.
                self.shared.noting(pushed)
            }
        }
    }

    /// Takes rows of a record batch in that need not be made ready, being nothing but numbers and text; the
    /// first that has to be, if there is one.
    fn push_plain(&mut self, batch: &RecordBatch) -> Result<Option<usize>> {
        let mut next = 0;
        loop {
            match self.chunker.push_plain(batch, next) {
                Ok(None) => return Ok(Some(next)),
                Err(error @ Error::SchemaMismatch { .. }) => return Err(error),
                pushed => {
                    self.open();
                    let collected = pushed.and_then(|pushed| self.collect().map(|()| pushed));
                    next = self.shared.noting(collected)?.unwrap_or(next);
                }
            }
            if next == batch.num_rows() {
                return Ok(None);
            }
        }
    }

    /// Takes a record batch in whose columns are to be resolved.
    fn push_any(&mut self, batch: &RecordBatch, sequence: u64) -> Result<()> {
        if self.pending.offer(self.chunker.layout(), batch, sequence)? {
            self.open();
            return Ok(());
        }
        self.push_pending()?;
        if self.pending.offer(self.chunker.layout(), batch, sequence)? {
            self.open();
            return Ok(());
        }
        let prepared = self.chunker.prepare(batch, sequence)?;
        self.open();
        let pushed = self.stage(&prepared);
        self.shared.noting(pushed)
    }

    /// Counts as open from here on.
    fn open(&mut self) {
        if self.open.is_none() {
            self.open = Some(self.chunker.pool().budget().join());
            self.shared.open.fetch_add(1, Ordering::Release);
        }
    }

    /// Encodes the record batches that wait.
    fn push_pending(&mut self) -> Result<()> {
        let pushed = self.pending.take().and_then(|batch| match batch {
            Some((batch, sequence)) => {
                let prepared = self.chunker.prepare(&batch, sequence)?;
                self.stage(&prepared)
            }
            None => Ok(()),
        });
        self.shared.noting(pushed)
    }

    /// Stages rows and collects chunks in turn, so that no more of them pile up than fit.
    fn stage(&mut self, prepared: &Prepared) -> Result<()> {
        let mut next = 0;
        while next < prepared.len() {
            next = self.chunker.push(prepared, next)?;
            self.collect()?;
        }
        Ok(())
    }

    /// Hands everything over to the batcher.
    ///
    /// # Errors
    /// As [`crate::Batcher::push`].
    pub fn flush(&mut self) -> Result<()> {
        let flushed =
            self.push_pending().and_then(|()| self.chunker.flush()).and_then(|()| self.collect());
        self.shared.noting(flushed)?;
        self.shared.runs().extend(self.ladder.take());
        if self.open.take().is_some() {
            self.shared.open.fetch_sub(1, Ordering::Release);
        }
        Ok(())
    }

    fn collect(&mut self) -> Result<()> {
        while let Some(chunks) = self.chunker.take() {
            // One row that is longer than a chunk is staged while another one leaves.
            for chunk in &chunks {
                self.longest = self.longest.max(chunk.leased_bytes());
            }
            let room = self.room();
            self.ladder.push(means(&self.chunker, &self.shared), Run::of(chunks), room)?;
            let held = self.ladder.resident_bytes();
            if held > room || held > room / 4 && self.is_crowded() {
                self.spill()?;
            } else if self.ladder.resident_bytes() > room / 2 && self.live <= room / 4 {
                self.thin_out(room)?;
            }
        }
        Ok(())
    }

    /// Bytes of memory that runs may take.
    fn room(&self) -> usize {
        let pool = self.pool();
        let share = pool.budget().share(self.pushers);
        if !pool.budget().is_limited() {
            return share;
        }
        let usual = held_by_chunk(pool);
        let own = own_bytes(pool) + 2 * self.longest.saturating_sub(usual);
        let room = share.saturating_sub(own);
        // What waits to be compressed is, beside the rows that come next.
        if pool.compresses() { room - room / WAITING } else { room }
    }

    /// True if others have taken more of the budget than was theirs before this one came.
    fn is_crowded(&self) -> bool {
        let budget = self.chunker.pool().budget();
        budget.sharing() > self.pushers && budget.used() > budget.limit()
    }

    /// Merges all that is in memory, in memory, to see whether much of it cancels: what dies young is
    /// never written. If not much does, that is left until a merge finds otherwise.
    fn thin_out(&mut self, room: usize) -> Result<()> {
        let before = self.ladder.resident_bytes();
        let out = self.merged(Run::merged)?;
        let after = out.resident_bytes();
        self.live = if self.is_thinner(before, after) { after } else { usize::MAX };
        self.ladder.push(means(&self.chunker, &self.shared), out, room)
    }

    /// Merges all that is in memory into one run out of memory.
    fn spill(&mut self) -> Result<()> {
        let before = self.ladder.resident_bytes();
        let out = self.merged(Run::spilled)?;
        self.live = if self.is_thinner(before, out.bytes()) { 0 } else { usize::MAX };
        self.shared.runs().push(Held::new(out, &self.shared.sink));
        Ok(())
    }

    /// One run of all that is in memory.
    fn merged(&mut self, into: impl Fn(Run, &Pool, &mut Merger) -> Result<Run>) -> Result<Run> {
        let runs: Vec<Run> = self.ladder.take().filter_map(Held::take).collect();
        let out = Run::after(&runs);
        into(
            out,
            self.chunker.pool(),
            &mut merger(self.chunker.layout(), self.chunker.pool(), &self.shared.wraps, runs),
        )
    }

    /// True if a merge was worth its while: at the least a quarter of the bytes is gone.
    fn is_thinner(&self, before: usize, after: usize) -> bool {
        self.chunker.layout().rule() != Rule::Keep && after <= before / 4 * 3
    }
}

/// What a pusher merges runs with.
fn means<'a>(chunker: &'a Chunker, shared: &'a Shared) -> Means<'a> {
    let (layout, pool) = (chunker.layout(), chunker.pool());
    Means { layout, pool, wraps: &shared.wraps, sink: &shared.sink }
}

impl std::fmt::Debug for Pusher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Pusher");
        out.field("order", &self.layout().order()).field("holds_rows", &self.open.is_some());
        out.finish_non_exhaustive()
    }
}
