//! The source of the chunks of one run.

use std::sync::Arc;

use crate::chunk::Chunk;
use windrow_rows::Result;

/// Yields the chunks of one run in order.
pub(crate) trait ChunkSource: Send {
    /// Returns the next chunk, or `None` at the end of the run.
    fn next_chunk(&mut self) -> Result<Option<Arc<Chunk>>>;

    /// Returns the next chunk if it is in memory.
    fn next_resident(&mut self) -> Option<Arc<Chunk>> {
        None
    }

    /// Prefetches the next chunk.
    fn read_ahead(&self) {}
}
