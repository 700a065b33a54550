//! The pool: memory under one budget, and a store on disk for the overflow.
//!
//! ```text
//! Budget   a number of bytes; leases take from it and give back on drop
//! Buffer   memory with its lease, recycled through the pool
//! Kept     unused working memory, if there is no limit
//! Store    a few unlinked files, or memory outside the process; extents of them, checksummed
//! Spiller  threads that write pages out and read them ahead
//! ```
//! If the budget is exhausted, a caller gets memory in this order: a recycled buffer, the memory of
//! a write in progress, the memory of the coldest page at rest, and only then memory beyond the
//! limit. Limit, policy, codec and spill target may change while leases and extents exist.
//!
//! Invariants: leases exceed the limit only by memory without which a job could not go on. A store
//! returns the bytes as written, or an error.
//!
//! The crate is internal to [windrow](https://docs.rs/windrow), which exports the types that users
//! need: published because the other crates of Windrow need it, and without a stable interface. Any
//! release may change it.

#![allow(rustdoc::private_intra_doc_links, reason = "read by those who change it")]
#![forbid(unsafe_code)]

mod budget;
mod buffer;
mod codec;
mod lock;
mod metrics;
mod options;
mod policy;
mod pool;
mod recycled;
mod residents;
mod spiller;
mod store;
mod sync;
mod system;

pub use budget::{Budget, Lease, Memory, Share};
pub use buffer::Buffer;
pub use codec::Codec;
#[doc(hidden)]
pub use lock::lock;
pub use metrics::{MetricsRegistry, PoolStats};
pub use options::PoolOptions;
pub use policy::{Decision, ForceSpill, Offer, SpillEvent, SpillPolicy, SpillTo, Tiered};
pub use pool::Pool;
pub use spiller::{Leave, Paged};
pub use store::{Extent, Part};
pub use system::available_memory;
