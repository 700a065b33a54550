//! The synchronization primitives of slots. `tests/merges_under_every_interleaving.rs` replaces them
//! by loom's.

pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
