//! Whether a chunk leaves memory, where it goes and how it is packed.
//!
//! ```text
//! chunk done  --Offer-->  policy  --> Keep                       it stays, and may be evicted later
//!                                 --> Spill { to, codec }        written out, by a spill thread
//! ```

use std::any::Any;
use std::fmt::Debug;

use super::codec::Codec;
use super::options::SpillTo;

/// A chunk that is about to be kept or written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offer {
    /// Bytes of its rows.
    pub bytes: usize,
    /// How many merges its rows went through, up to 255.
    pub generation: u8,
    /// Bytes that the budget has left, beyond what whoever works needs to go on.
    pub free: usize,
    /// False if the engine needs its memory in any case: then `Keep` is taken as leaving where and how to
    /// what the pool is set to.
    pub may_stay: bool,
    /// Where the pool is set to spill to.
    pub to: SpillTo,
    /// How it is set to compress.
    pub codec: Codec,
}

/// What becomes of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It stays in memory.
    Keep,
    /// It is written out.
    Spill {
        /// Where.
        to: SpillTo,
        /// How it is packed.
        codec: Codec,
    },
}

/// What became of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpillEvent {
    /// It was written out.
    PagedOut {
        /// Bytes of its rows.
        bytes: usize,
        /// Bytes that they take in the store.
        stored: usize,
    },
    /// It was read back.
    PagedIn {
        /// Bytes of its rows.
        bytes: usize,
    },
    /// It could not be written out; it is still in memory.
    Failed,
    /// It left memory without being written: it was dead, or in the store already.
    Released {
        /// Bytes of its rows.
        bytes: usize,
    },
}

/// Decides about chunks. Called on any thread, between one chunk and the next, so it may take a
/// microsecond but should not wait.
pub trait SpillPolicy: Any + Debug + Send + Sync {
    /// What becomes of a chunk.
    fn decide(&self, offer: &Offer) -> Decision;

    /// Hears of what became of chunks.
    fn record(&self, _event: SpillEvent) {}
}

/// The usual policy: in memory while the budget has room, then to where the pool is set to. A chunk that
/// no merge has read yet is not compressed, since its first merge will read it back.
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

/// Writes every chunk out, whatever the budget: for tests, and to see what spilling costs.
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
