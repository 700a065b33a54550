//! The input of one thread.

use std::sync::Arc;

use arrow_array::RecordBatch;

use super::Shared;
use super::pile::Pile;
use crate::chunk::{Chunker, Failure, Starts, View};
use windrow_pool::Pool;
use windrow_rows::engine::check_rows;
use windrow_rows::{Error, Layout, Result};

/// The input of one thread to a [`crate::Batcher`].
pub struct Pusher {
    chunker: Chunker,
    pile: Pile,
}

impl Pusher {
    pub(super) fn new(layout: &Layout, pool: &Pool, shared: &Arc<Shared>, pushers: usize) -> Self {
        let chunker = Chunker::new(layout, pool, &shared.wraps);
        Self { chunker, pile: Pile::new(layout, shared, pushers) }
    }

    pub(super) fn layout(&self) -> &Layout {
        self.chunker.layout()
    }

    pub(super) fn pool(&self) -> &Pool {
        self.chunker.pool()
    }

    /// Takes the rows of `batch`. `sequence` is the position of its first row in the whole input;
    /// positions decide between equal rows, and later rows follow consecutively.
    ///
    /// # Errors As for [`crate::Batcher::push`], and [`Error::InvalidOrder`] for a position beyond
    /// 64 bits. A record batch that cannot be encoded is refused as a whole; after any other error
    /// rows are missing, and the batcher does not finish.
    pub fn push(&mut self, batch: &RecordBatch, sequence: u64) -> Result<()> {
        if sequence.checked_add(batch.num_rows() as u64).is_none() {
            let message = format!("the rows from {sequence} on have no place in an input");
            return Err(Error::InvalidOrder(message));
        }
        match self.chunker.push(batch, sequence, &mut self.pile) {
            Ok(()) => Ok(()),
            Err(Failure::Refused(error)) => Err(error),
            Err(Failure::Lost(error)) => self.pile.shared.noting(Err(error)),
        }
    }

    /// Takes encoded rows.
    ///
    /// # Errors As for [`crate::Batcher::push_rows`].
    pub fn push_rows(&mut self, bytes: &[u8], ends: &[u32]) -> Result<()> {
        let layout = self.chunker.layout();
        check_rows(layout, bytes, ends)?;
        let listed: Vec<u32>;
        let starts = match layout.stride() {
            Some(stride) => Starts::Every(stride),
            None => {
                listed = [0].into_iter().chain(ends.iter().copied()).collect();
                Starts::At(&listed)
            }
        };
        let pushed = self.chunker.push_rows(View { bytes, starts }, &mut self.pile);
        self.pile.shared.noting(pushed)
    }

    /// Hands all rows over to the batcher.
    ///
    /// # Errors As for [`crate::Batcher::push`].
    pub fn flush(&mut self) -> Result<()> {
        let flushed = self.chunker.flush(&mut self.pile);
        self.pile.shared.noting(flushed)?;
        self.pile.hand_over();
        Ok(())
    }
}

shown!(Pusher, it => order: it.layout().order(), holds_rows: it.pile.is_open());
