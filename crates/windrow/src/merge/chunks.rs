//! What yields the chunks of one run.

use std::sync::Arc;

use crate::chunk::Chunk;
use crate::error::Result;

/// Where the chunks of one run come from, in order.
pub(crate) trait ChunkSource: Send {
    /// The next chunk, or `None` at the end of the run.
    fn next_chunk(&mut self) -> Result<Option<Arc<Chunk>>>;

    /// The next chunk, if there is one in memory.
    fn next_resident(&mut self) -> Option<Arc<Chunk>> {
        None
    }

    /// The next chunk is asked for soon.
    fn read_ahead(&self) {}
}
