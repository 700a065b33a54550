//! A Delta table in Z-order, sorted by Windrow in bounded memory.
//!
//! ```text
//! delta-rs: files --scan--> zorder_key(columns) --sort--> files, and a commit
//!                                                  |
//!                  the session's rules put WindrowSortExec here, in the session's memory pool
//! ```
//! delta-rs plans and runs this sort in a session of the caller, so delta-rs needs no changes: the
//! session has one additional rule.

use std::sync::Arc;

use deltalake_core::datafusion::execution::memory_pool::MemoryPool;
use deltalake_core::datafusion::execution::runtime_env::RuntimeEnvBuilder;
use deltalake_core::datafusion::execution::{SessionState, SessionStateBuilder};
use deltalake_core::delta_datafusion::{DeltaSessionContext, SessionFallbackPolicy};
use deltalake_core::operations::optimize::{Metrics, OptimizeType};
use deltalake_core::{DeltaResult, DeltaTable};
use windrow_datafusion::WithWindrow;

/// Creates delta-rs's default session with the memory of `pool`, and appends Windrow's rule.
///
/// # Errors
/// The error of creating temporary directories.
pub fn session(pool: Arc<dyn MemoryPool>) -> DeltaResult<SessionState> {
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc()?;
    let stock = DeltaSessionContext::with_runtime_env(runtime).state();
    Ok(SessionStateBuilder::new_from_existing(stock).with_windrow().build())
}

/// Rewrites `table` in the Z-order of `columns`, in `session`.
///
/// # Errors
/// The error of delta-rs: missing columns, a concurrent writer, insufficient memory or disk space.
pub async fn z_order(
    table: DeltaTable,
    columns: Vec<String>,
    session: SessionState,
) -> DeltaResult<(DeltaTable, Metrics)> {
    table
        .optimize()
        .with_type(OptimizeType::ZOrder(columns))
        .with_session_state(Arc::new(session))
        .with_session_fallback_policy(SessionFallbackPolicy::RequireSessionState)
        .await
}
