//! What of a plan is replaced.
//!
//! ```text
//! SortPreservingMergeExec                    WindrowSortExec, all partitions into one
//!   SortExec, each partition        -->        input
//!     input
//!
//! FilterExec row_number = 1                  FilterExec row_number = 1
//!   BoundedWindowAggExec            -->        BoundedWindowAggExec
//!     SortExec                                   WindrowLatestExec: one row a key
//! ```
//! The plan is rewritten from its leaves up, after all rules of DataFusion's: they know their own operators by type.

use std::sync::Arc;

use arrow_schema::{DataType, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::config::WindrowConfig;
use crate::exec::{WindrowExec, Work};
use crate::latest;

/// `plan` with Windrow's operators in place of those that `config` names, wherever they give the same rows. For a
/// session there is [`WithWindrow`]; this is for engines that plan by themselves, and rewrite what runs.
///
/// # Errors
/// What DataFusion reports of a plan that does not hold together.
pub fn rewrite(
    plan: Arc<dyn ExecutionPlan>,
    config: &WindrowConfig,
) -> Result<Arc<dyn ExecutionPlan>> {
    let rewritten = plan.transform_up(|node| {
        Ok(match replacement(&node, config)? {
            Some(new) => Transformed::yes(new),
            None => Transformed::no(node),
        })
    })?;
    Ok(rewritten.data)
}

/// What stands for `node`, whose inputs are rewritten.
fn replacement(
    node: &Arc<dyn ExecutionPlan>,
    config: &WindrowConfig,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if config.latest
        && let Some(latest) = latest::replacement(node)?
    {
        return Ok(Some(latest));
    }
    let mut new = None;
    if config.sort {
        new = sorted(node, config)?;
    }
    if config.fuse && new.is_none() {
        new = gathered(node)?;
    }
    if config.merge && new.is_none() {
        new = merged(node, config);
    }
    Ok(new.map(|new| Arc::new(new) as Arc<dyn ExecutionPlan>))
}

/// For a sort.
fn sorted(node: &Arc<dyn ExecutionPlan>, config: &WindrowConfig) -> Result<Option<WindrowExec>> {
    let Some(sort) = node.downcast_ref::<SortExec>() else { return Ok(None) };
    let input = sort.input();
    if sort
        .fetch()
        .is_some_and(|fetch| row_bytes(&input.schema()).saturating_mul(fetch) < config.topk_bytes)
        || input.equivalence_properties().ordering_satisfy(sort.expr().clone())?
    {
        return Ok(None);
    }
    let new = WindrowExec::try_new(Work::Sort, sort.expr().clone(), Arc::clone(input));
    Ok(new.ok().map(|new| new.fetching(sort.fetch())))
}

/// For a merge of partitions that are sorted each by itself.
fn gathered(node: &Arc<dyn ExecutionPlan>) -> Result<Option<WindrowExec>> {
    let Some(merge) = node.downcast_ref::<SortPreservingMergeExec>() else { return Ok(None) };
    let Some(sort) = merge.input().downcast_ref::<WindrowExec>() else { return Ok(None) };
    if sort.work() != Work::Sort || sort.gathers() || !starts_with(sort.order(), merge.expr()) {
        return Ok(None);
    }
    let fetch = merge.fetch().into_iter().chain(sort.fetch()).min();
    let new = WindrowExec::try_new(Work::Sort, sort.order().clone(), Arc::clone(sort.input()))?;
    Ok(Some(new.gathering()?.fetching(fetch)))
}

/// For a merge of partitions that were sorted before.
fn merged(node: &Arc<dyn ExecutionPlan>, config: &WindrowConfig) -> Option<WindrowExec> {
    let merge = node.downcast_ref::<SortPreservingMergeExec>()?;
    let input = merge.input();
    let small = |fetch: usize| row_bytes(&input.schema()).saturating_mul(fetch) < config.topk_bytes;
    if input.output_partitioning().partition_count() < 2 || merge.fetch().is_some_and(small) {
        return None;
    }
    let new = WindrowExec::try_new(Work::Merge, merge.expr().clone(), Arc::clone(input)).ok()?;
    Some(new.fetching(merge.fetch()))
}

/// True if rows in `order` are in the order of `first`, too.
fn starts_with(order: &LexOrdering, first: &LexOrdering) -> bool {
    first.len() <= order.len() && first.iter().zip(order.iter()).all(|(a, b)| a == b)
}

/// Bytes of a row of `schema`, by estimate.
fn row_bytes(schema: &Schema) -> usize {
    /// Of a value of any length.
    const VALUE: usize = 32;
    let width = |data_type: &DataType| data_type.primitive_width().unwrap_or(VALUE);
    schema.fields().iter().map(|field| width(field.data_type())).sum()
}

/// [`rewrite`] as a rule of DataFusion's optimizer, by the [`WindrowConfig`] of the session. It is to be the last one.
#[derive(Debug, Default)]
pub struct WindrowRule {
    config: WindrowConfig,
}

impl WindrowRule {
    /// A rule by `config` in sessions that have no [`WindrowConfig`] of their own.
    pub fn new(config: WindrowConfig) -> Self {
        Self { config }
    }
}

impl PhysicalOptimizerRule for WindrowRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        rewrite(plan, config.extensions.get::<WindrowConfig>().unwrap_or(&self.config))
    }

    fn name(&self) -> &str {
        "windrow"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Windrow in a session.
pub trait WithWindrow {
    /// The same, with the rule behind those that are there, and settings named `windrow.`
    #[must_use]
    fn with_windrow(self) -> Self;
}

impl WithWindrow for SessionStateBuilder {
    fn with_windrow(mut self) -> Self {
        let config = self.config().get_or_insert_default();
        if config.options().extensions.get::<WindrowConfig>().is_none() {
            config.options_mut().extensions.insert(WindrowConfig::default());
        }
        self.with_physical_optimizer_rule(Arc::new(WindrowRule::default()))
    }
}
