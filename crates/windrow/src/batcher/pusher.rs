//! One thread's way in.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow_array::RecordBatch;

use super::Shared;
use super::accounting::Held;
use super::ladder::Ladder;
use crate::batch::{OWN_CHUNKS, held_by_chunk, merger};
use crate::chunk::Chunker;
use crate::error::Result;
use crate::merge::Run;
use crate::order::Layout;
use crate::pool::Pool;
use crate::rows::Prepared;

/// One thread's way into a [`crate::Batcher`].
pub struct Pusher {
    layout: Layout,
    pool: Pool,
    shared: Arc<Shared>,
    /// Whether this pusher counts as open.
    open: bool,
    /// Rows were lost to an error: open for ever.
    failed: bool,
    chunker: Chunker,
    ladder: Ladder,
    pushers: usize,
}

impl Pusher {
    pub(super) fn new(layout: &Layout, pool: &Pool, shared: &Arc<Shared>, pushers: usize) -> Self {
        Self {
            layout: layout.clone(),
            pool: pool.clone(),
            shared: Arc::clone(shared),
            open: false,
            failed: false,
            chunker: Chunker::new(layout, pool, &shared.wraps),
            ladder: Ladder::new(layout, pool, &shared.wraps, &shared.sink),
            pushers,
        }
    }

    /// Takes the rows of `batch` in. `sequence` is the place in the whole input of its first row,
    /// which decides between equals; those after it follow on.
    ///
    /// # Errors
    /// As [`crate::Batcher::push`]. A record batch that cannot be encoded is refused as a whole; after
    /// any other error rows are missing, and the batcher does not finish.
    pub fn push(&mut self, batch: &RecordBatch, sequence: u64) -> Result<()> {
        let prepared = self.chunker.prepare(batch, sequence)?;
        if !std::mem::replace(&mut self.open, true) {
            self.shared.open.fetch_add(1, Ordering::Release);
        }
        let pushed = self.stage(&prepared);
        self.failed |= pushed.is_err();
        pushed
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
        let flushed = self.chunker.flush().and_then(|()| self.collect());
        self.failed |= flushed.is_err();
        flushed?;
        self.shared.runs().extend(self.ladder.take());
        if !self.failed && std::mem::replace(&mut self.open, false) {
            self.shared.open.fetch_sub(1, Ordering::Release);
        }
        Ok(())
    }

    fn collect(&mut self) -> Result<()> {
        while let Some(chunk) = self.chunker.take() {
            let share = self.pool.budget().limit() / self.pushers;
            let room = share.saturating_sub(OWN_CHUNKS * held_by_chunk(&self.pool));
            self.ladder.push(Run::of(&self.pool, chunk), room)?;
            if self.ladder.resident_bytes() > room {
                let runs = self.ladder.take().into_iter().filter_map(Held::take).collect();
                let mut merger = merger(&self.layout, &self.pool, &self.shared.wraps, runs);
                let run = Run::spilled(&self.pool, &mut merger)?;
                self.shared.runs().push(Held::new(run, &self.shared.sink));
            }
        }
        Ok(())
    }
}
