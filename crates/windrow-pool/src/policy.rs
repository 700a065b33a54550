//! Whether a chunk leaves memory, where it goes and how it is compressed.
//!
//! ```text
//! chunk done  --Offer-->  policy  --> Keep                       stays; may be evicted later
//!                                 --> Spill { to, codec }        is written out by a spill thread
//! ```

use std::any::Any;
use std::fmt::Debug;
use std::io::ErrorKind;

use crate::codec::Codec;

/// Where spilled chunks go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpillTo {
    /// Temporary files without a name.
    #[default]
    Disk,
    /// Memory outside of the process, swapped out by the system: for machines with swap and without
    /// a scratch disk. Such memory is not resident in the process, but counts in its cgroup.
    /// Compression pays.
    Memory,
}

/// A chunk that is about to be kept or written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offer {
    /// Bytes of the chunk's rows.
    pub bytes: usize,
    /// Number of merges that the rows went through, up to 255.
    pub generation: u8,
    /// Free bytes of the budget, beyond the reserve for running operations.
    pub free: usize,
    /// False if the engine needs the chunk's memory in any case. The pool then treats `Keep` as a
    /// spill with its own settings.
    pub may_stay: bool,
    /// Spill target of the pool's settings.
    pub to: SpillTo,
    /// Codec of the pool's settings.
    pub codec: Codec,
}

/// The decision on a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Keep the chunk in memory.
    Keep,
    /// Write the chunk out.
    Spill {
        /// Spill target.
        to: SpillTo,
        /// Compression.
        codec: Codec,
    },
}

/// An event of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpillEvent {
    /// The chunk was written out.
    #[non_exhaustive]
    PagedOut {
        /// Bytes of the chunk's rows.
        bytes: usize,
        /// Bytes in the store.
        stored: usize,
        /// Spill target.
        to: SpillTo,
        /// Compression.
        codec: Codec,
    },
    /// The chunk was read back.
    #[non_exhaustive]
    PagedIn {
        /// Bytes of the chunk's rows.
        bytes: usize,
    },
    /// The write failed; the chunk is still in memory.
    #[non_exhaustive]
    Failed {
        /// Bytes of the chunk's rows.
        bytes: usize,
        /// Spill target.
        to: SpillTo,
        /// Compression.
        codec: Codec,
        /// Kind of the system's error.
        kind: ErrorKind,
    },
    /// The chunk left memory without a write: it was dropped, was passed on to a merge, or was
    /// already in the store.
    #[non_exhaustive]
    Released {
        /// Bytes of the chunk's rows.
        bytes: usize,
    },
}

/// Decides on chunks. Called on any thread between two chunks, so `decide` may take a microsecond
/// but should not block.
pub trait SpillPolicy: Any + Debug + Send + Sync {
    /// Decides on a chunk.
    fn decide(&self, offer: &Offer) -> Decision;

    /// Observes an event of a chunk.
    fn record(&self, _event: SpillEvent) {}
}

/// The default policy: keeps chunks while the budget suffices, then spills to the pool's target.
/// Chunks of generation 0 are not compressed, since their first merge reads them back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tiered;

impl SpillPolicy for Tiered {
    fn decide(&self, offer: &Offer) -> Decision {
        if offer.may_stay && offer.free >= offer.bytes {
            return Decision::Keep;
        }
        let codec = if offer.generation == 0 { Codec::None } else { offer.codec };
        Decision::Spill { to: offer.to, codec }
    }
}

/// Writes every chunk out, whatever the budget: for tests, and to measure the cost of spilling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForceSpill;

impl SpillPolicy for ForceSpill {
    fn decide(&self, offer: &Offer) -> Decision {
        Decision::Spill { to: offer.to, codec: offer.codec }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_are_memory_then_the_store_raw_then_compressed() {
        let offer = Offer {
            bytes: 100,
            generation: 0,
            free: 100,
            may_stay: true,
            to: SpillTo::Memory,
            codec: Codec::Lz4,
        };
        let spill = |codec| Decision::Spill { to: SpillTo::Memory, codec };
        assert_eq!(Tiered.decide(&offer), Decision::Keep);
        assert_eq!(Tiered.decide(&Offer { free: 99, ..offer }), spill(Codec::None));
        assert_eq!(Tiered.decide(&Offer { may_stay: false, ..offer }), spill(Codec::None));
        assert_eq!(Tiered.decide(&Offer { free: 0, generation: 1, ..offer }), spill(Codec::Lz4));
        assert_eq!(ForceSpill.decide(&offer), spill(Codec::Lz4));
    }
}
