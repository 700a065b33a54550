//! Pages: whether they leave, and their way to the store and back.

use std::io::ErrorKind;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use windrow_rows::{Error, Result};

use super::{Pool, Settings};
use crate::buffer::Buffer;
use crate::codec::Codec;
use crate::lock::lock;
use crate::policy::{Decision, Offer, SpillEvent, SpillTo};
use crate::spiller::Paged;
use crate::store::{Extent, Part};

/// For the engine.
#[doc(hidden)]
impl Pool {
    /// Returns the decision of the policy on `bytes` of rows that went through `generation` merges.
    pub fn decide(&self, bytes: usize, generation: u8, may_stay: bool) -> Decision {
        let keep = || {
            self.inner.metrics.change(|stats| {
                stats.kept += 1;
                stats.kept_bytes += bytes;
            });
            Decision::Keep
        };
        if may_stay && !self.inner.budget.is_limited() && self.inner.usual.load(Ordering::Relaxed) {
            return keep();
        }
        let Settings { codec, to, policy } = lock(&self.inner.settings).clone();
        let free = self.spare();
        let offer = Offer { bytes, generation, free, may_stay, to, codec };
        match policy.decide(&offer) {
            Decision::Keep if may_stay => keep(),
            Decision::Keep => Decision::Spill { to, codec },
            spill => spill,
        }
    }

    /// Writes `page` out, on a spill thread if there is one.
    ///
    /// # Errors Errors of this write, or of an earlier write without a waiting caller.
    pub fn page_out(&self, page: Arc<dyn Paged>) -> Result<()> {
        self.inner.spiller.write(page)
    }

    /// Lets a spill thread read `page`, unless the page is dropped before. Returns false if there is
    /// no thread, or if enough reads wait.
    pub fn read_ahead(&self, page: Arc<dyn Paged>) -> bool {
        self.inner.spiller.read(&page)
    }

    /// Registers a page that may be evicted.
    pub fn at_rest(&self, page: Arc<dyn Paged>, generation: u8) {
        lock(&self.inner.residents).push(Arc::downgrade(&page), generation);
    }

    /// Returns the error of a failed write, if it was not reported yet.
    pub fn spill_failure(&self) -> Result<()> {
        self.inner.spiller.failure().map_or(Ok(()), Err)
    }

    /// Writes `bytes` to the store; pages of an index so that parts can be read.
    pub fn store(&self, bytes: &[u8], how: (SpillTo, Codec)) -> Result<Extent> {
        let written = self.inner.store.write(bytes, how, self.fine);
        let (bytes, (to, codec)) = (bytes.len(), how);
        self.tell(match &written {
            Ok(Extent { stored_len, .. }) => {
                SpillEvent::PagedOut { bytes, stored: *stored_len, to, codec }
            }
            Err(Error::Io { source, .. }) => {
                SpillEvent::Failed { bytes, to, codec, kind: source.kind() }
            }
            Err(_) => SpillEvent::Failed { bytes, to, codec, kind: ErrorKind::Other },
        });
        written
    }

    /// Reads an extent into a buffer of at least `room` bytes.
    pub fn load(&self, extent: &Extent, room: usize) -> Result<Buffer> {
        let buffer = self.buffer(room.max(extent.len()))?;
        self.load_into(extent, buffer)
    }

    /// Reads an extent as [`Pool::load`] does, if the budget has memory to spare.
    pub fn load_ahead(&self, extent: &Extent, room: usize) -> Option<Result<Buffer>> {
        let buffer = self.spare_buffer(room.max(extent.len()))?;
        self.inner.metrics.change(|stats| stats.read_ahead += 1);
        Some(self.load_into(extent, buffer))
    }

    fn load_into(&self, extent: &Extent, mut buffer: Buffer) -> Result<Buffer> {
        self.inner.store.read(extent, &mut buffer.region[..extent.len()])?;
        self.tell(SpillEvent::PagedIn { bytes: extent.len() });
        Ok(buffer)
    }

    /// Reads bytes `range` of an extent that [has parts](Extent::has_parts). May exceed the budget.
    pub fn load_part(&self, extent: &Extent, range: Range<usize>) -> Result<Part> {
        let part = self.inner.store.read_part(extent, range)?;
        self.tell(SpillEvent::PagedIn { bytes: part.len() });
        Ok(part)
    }

    /// Records an unnecessary write, and whether the write had begun.
    pub fn write_spared(&self, bytes: usize, begun: bool) {
        self.inner.metrics.change(|stats| {
            *(if begun { &mut stats.cancelled } else { &mut stats.elided }) += 1;
        });
        self.released(bytes);
    }

    /// Tells the policy that a chunk left memory without a write.
    pub fn released(&self, bytes: usize) {
        self.tell(SpillEvent::Released { bytes });
    }

    /// Records a page in memory when needed, thanks to read-ahead.
    pub fn read_ahead_hit(&self) {
        self.inner.metrics.change(|stats| stats.read_ahead_hits += 1);
    }

    fn tell(&self, event: SpillEvent) {
        self.inner.metrics.change(|stats| match event {
            SpillEvent::PagedOut { bytes, stored, .. } => {
                stats.spills += 1;
                stats.spilled_bytes += bytes;
                stats.stored_bytes += stored;
            }
            SpillEvent::PagedIn { bytes } => {
                stats.loads += 1;
                stats.loaded_bytes += bytes;
            }
            SpillEvent::Failed { .. } => stats.failed += 1,
            SpillEvent::Released { .. } => {}
        });
        let policy = Arc::clone(&lock(&self.inner.settings).policy);
        policy.record(event);
    }
}
