//! Windrow inside DataFusion: sorts, merges and the latest row of each key, in memory granted by
//! the query engine's pool, and on its disks beyond.
//!
//! ```text
//! SQL, DataFrame --> DataFusion's optimizer --> rewrite --> plan with WindrowExec nodes
//!
//! WindrowExec    inputs --> shape --> pushers --> batcher --> merge --> decode --> RecordBatch
//!                                                    |
//!                                     memory: a reservation of the pool, files of the disk manager
//! ```
//! `WindrowExchangeExec`, on request, distributes rows by a hash in the place of `RepartitionExec`.
//!
//! ```
//! use datafusion::execution::SessionStateBuilder;
//! use datafusion::prelude::SessionContext;
//! use windrow_datafusion::WithWindrow;
//!
//! # #[tokio::main]
//! # async fn main() -> datafusion::error::Result<()> {
//! let state = SessionStateBuilder::new().with_default_features().with_windrow().build();
//! let context = SessionContext::new_with_state(state);
//! context.sql("SELECT * FROM (VALUES (2), (1)) t (id) ORDER BY id").await?.show().await?;
//! // As any setting, by query or by session.
//! context.sql("SET windrow.sort = false").await?;
//! # Ok(())
//! # }
//! ```
//!
//! An unsupported operator is not replaced: types without an order in the engine, unbounded inputs,
//! sorts of sorted inputs, and `LIMIT`s that fit in memory.

#![forbid(unsafe_code)]

#[cfg(feature = "compact")]
mod compact;
mod config;
mod error;
mod exchange;
mod exchange_exec;
mod exec;
mod frame;
mod latest;
mod memory;
mod pool;
mod rule;
mod run;
mod shape;

#[cfg(feature = "compact")]
pub use compact::WindrowCompact;
pub use config::WindrowConfig;
pub use exchange_exec::WindrowExchangeExec;
pub use exec::{WindrowExec, Work};
pub use frame::WindrowFrame;
pub use pool::WindrowMemoryPool;
pub use rule::{WindrowRule, WithWindrow, rewrite, rewrite_above};

/// The example in the README, tested with the examples of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
