//! The synchronization primitives of the budget. `tests/budget_under_every_interleaving.rs` replaces
//! them by loom's.

pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{AtomicUsize, Ordering};
