//! Windrow's operators on the executors of Ballista.
//!
//! ```text
//! scheduler: plans and cuts stages, stock operators only
//!     stage --wire--> executor: WindrowEngine --rewrite below the shuffle writer--> final stage
//! ```
//! Planners cut a plan by operator types, and serialize only known operators. So each executor
//! rewrites a stage just before running. No operator of Windrow's is sent, and executors with and
//! without the engine can share a query.
//!
//! ```no_run
//! use std::sync::Arc;
//! use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
//! use windrow_ballista::WindrowEngine;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let config = ExecutorProcessConfig {
//!     override_execution_engine: Some(Arc::new(WindrowEngine::default())),
//!     memory_pool_size: Some(512 << 20),
//!     ..ExecutorProcessConfig::default()
//! };
//! start_executor_process(Arc::new(config)).await?;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

use std::fmt;
use std::sync::Arc;

use ballista_core::JobId;
use ballista_core::execution_plans::RuntimeStatsExec;
use ballista_executor::execution_engine::{
    DefaultExecutionEngine, ExecutionEngine, QueryStageExecutor,
};
use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::prelude::SessionConfig;
use windrow_datafusion::{WindrowConfig, rewrite};

/// An execution engine that runs stages with Windrow's operators: sorts, and the latest row of each
/// key.
///
/// Merges of sorted partitions are not replaced, because shuffle writers read the number of output
/// partitions from them.
pub struct WindrowEngine {
    inner: Arc<dyn ExecutionEngine>,
    config: WindrowConfig,
}

impl WindrowEngine {
    /// Creates an engine that passes rewritten stages to `inner`. `config` applies to sessions
    /// without settings of Windrow.
    pub fn new(inner: Arc<dyn ExecutionEngine>, config: WindrowConfig) -> Self {
        Self { inner, config }
    }
}

impl Default for WindrowEngine {
    fn default() -> Self {
        Self::new(Arc::new(DefaultExecutionEngine::new()), WindrowConfig::default())
    }
}

impl fmt::Debug for WindrowEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindrowEngine").field("config", &self.config).finish_non_exhaustive()
    }
}

impl ExecutionEngine for WindrowEngine {
    fn create_query_stage_exec(
        &self,
        job_id: JobId,
        stage_id: usize,
        task_id: usize,
        global_output_partition_ids: Vec<usize>,
        plan: Arc<dyn ExecutionPlan>,
        work_dir: &str,
        config: &SessionConfig,
    ) -> Result<Arc<dyn QueryStageExecutor>> {
        let session = config.options().extensions.get::<WindrowConfig>();
        let mut windrow = session.unwrap_or(&self.config).clone();
        (windrow.fuse, windrow.merge) = (false, false);
        let plan = stage(plan, &windrow)?;
        self.inner.create_query_stage_exec(
            job_id,
            stage_id,
            task_id,
            global_output_partition_ids,
            plan,
            work_dir,
            config,
        )
    }
}

/// Rewrites a stage below its root, the shuffle writer. Stages with row sampling stay unchanged:
/// Ballista looks for samples below its own operators.
fn stage(root: Arc<dyn ExecutionPlan>, config: &WindrowConfig) -> Result<Arc<dyn ExecutionPlan>> {
    if root.exists(|node| Ok(node.is::<RuntimeStatsExec>()))? {
        return Ok(root);
    }
    let children = root.children().into_iter().map(|child| rewrite(Arc::clone(child), config));
    let children = children.collect::<Result<Vec<_>>>()?;
    replace_children_if_necessary(root, children)
}

/// The example in the README, tested with the examples of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
