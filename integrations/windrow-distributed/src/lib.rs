//! Windrow's operators on the workers of datafusion-distributed, and in the coordinator's own
//! stage.
//!
//! ```text
//! coordinator: plans and cuts stages, stock operators only --> its own stage is rewritten
//!     stage --wire, with settings `windrow.*`--> worker: rewritten on arrival, before it runs
//! ```
//! The planner cuts a plan by DataFusion's operator types, so the rewrite happens only after the
//! cut. Stages keep their partitions, so sorts are not fused with the merges above.
//!
//! ```
//! use datafusion::execution::{SessionState, SessionStateBuilder};
//! use datafusion_distributed::{SessionStateBuilderExt, Worker, WorkerQueryContext};
//! use windrow_distributed::{WithWindrowStages, worker_session};
//!
//! let coordinator = SessionStateBuilder::new()
//!     .with_default_features()
//!     .with_distributed_planner()
//!     .with_windrow_stages();
//!
//! async fn session(query: WorkerQueryContext) -> datafusion::error::Result<SessionState> {
//!     Ok(worker_session(query)?.build())
//! }
//! let worker = Worker::from_session_builder(session);
//! # let _ = (coordinator, worker);
//! ```

#![forbid(unsafe_code)]

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion_distributed::{
    DistributedConfig, DistributedExec, DistributedExt, NetworkBoundaryExt, WorkerPlanRewriteEvent,
    WorkerPlanRewriteEventResponse, WorkerQueryContext,
};
use windrow_datafusion::{WindrowConfig, rewrite, rewrite_above};

/// Adds Windrow to a coordinator's session.
pub trait WithWindrowStages {
    /// Registers settings named `windrow.`, which are sent to the workers, and rewrites the
    /// coordinator's own stage. Call `with_distributed_planner` first; without a distributed
    /// planner, only the settings are added.
    #[must_use]
    fn with_windrow_stages(self) -> Self;
}

impl WithWindrowStages for SessionStateBuilder {
    fn with_windrow_stages(mut self) -> Self {
        let config = self.config().get_or_insert_default();
        let settings = of(config.options());
        let this = self.with_distributed_option_extension(settings);
        with_planner(this)
    }
}

/// Wraps the planner of `builder` to rewrite its cut plans.
fn with_planner(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    match builder.query_planner().take() {
        Some(inner) => builder.with_query_planner(Arc::new(Planner { inner })),
        None => builder,
    }
}

/// Creates a worker's session for one query. Arriving stages are rewritten with the settings of the
/// coordinator's session.
///
/// # Errors
/// DataFusion's error for unreadable settings.
pub fn worker_session(query: WorkerQueryContext) -> Result<SessionStateBuilder> {
    let WorkerQueryContext { builder, headers } = query;
    let builder =
        builder.with_distributed_option_extension_from_headers::<WindrowConfig>(&headers)?;
    Ok(builder.with_distributed_worker_plan_rewrite_handler(rewritten))
}

/// Rewrites a stage for a worker.
fn rewritten(stage: WorkerPlanRewriteEvent<'_>) -> Result<WorkerPlanRewriteEventResponse> {
    let settings = of_stages(stage.session_config.options());
    rewrite(stage.plan, &settings).map(WorkerPlanRewriteEventResponse::new)
}

fn of(options: &ConfigOptions) -> WindrowConfig {
    options.extensions.get::<WindrowConfig>().cloned().unwrap_or_default()
}

/// Returns the settings for stages, which keep their partitions.
fn of_stages(options: &ConfigOptions) -> WindrowConfig {
    let mut settings = of(options);
    settings.fuse = false;
    settings
}

/// Rewrites the coordinator's own stage.
#[derive(Debug)]
struct Planner {
    inner: Arc<dyn QueryPlanner + Send + Sync>,
}

#[async_trait]
impl QueryPlanner for Planner {
    async fn create_physical_plan(
        &self,
        logical_plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = self.inner.create_physical_plan(logical_plan, session).await?;
        let options = session.config_options();
        if !plan.is::<DistributedExec>() {
            return rewrite(plan, &of(options));
        }
        if DistributedConfig::from_config_options(options)?.dynamic_task_count {
            // The plan is cut only while it runs.
            return Ok(plan);
        }
        let settings = of_stages(options);
        let own = |stage: &Arc<dyn ExecutionPlan>| {
            rewrite_above(Arc::clone(stage), &settings, |node| node.is_network_boundary())
        };
        let children = plan.children().into_iter().map(own).collect::<Result<Vec<_>>>()?;
        replace_children_if_necessary(plan, children)
    }
}

/// The example in the README, tested with the examples of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
