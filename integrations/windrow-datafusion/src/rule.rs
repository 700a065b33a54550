//! What of a plan is replaced.
//!
//! ```text
//! SortPreservingMergeExec                    ProjectionExec
//!   ProjectionExec, if any          -->        WindrowSortExec, all partitions into one
//!     SortExec, each partition                   input
//!       input
//!
//! FilterExec row_number = 1                  FilterExec row_number = 1
//!   BoundedWindowAggExec            -->        BoundedWindowAggExec
//!     SortExec                                   WindrowLatestExec: one row a key
//! ```
//! The plan is rewritten from its leaves up, after all rules of DataFusion's: they know their own operators by type.

use std::sync::Arc;

use arrow_schema::{DataType, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::projection::ProjectionExec;
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
    rewrite_above(plan, config, |_| false)
}

/// The same, for the nodes above those that `ends` is true for: plans that are cut there run elsewhere below.
///
/// # Errors
/// As [`rewrite`].
pub fn rewrite_above(
    plan: Arc<dyn ExecutionPlan>,
    config: &WindrowConfig,
    ends: impl Fn(&Arc<dyn ExecutionPlan>) -> bool,
) -> Result<Arc<dyn ExecutionPlan>> {
    let down = |node| match ends(&node) {
        true => Ok(Transformed::new(node, false, TreeNodeRecursion::Jump)),
        false => Ok(Transformed::no(node)),
    };
    let up = |node| {
        if ends(&node) {
            return Ok(Transformed::no(node));
        }
        Ok(match replacement(&node, config)? {
            Some(new) => Transformed::yes(new),
            None => Transformed::no(node),
        })
    };
    Ok(plan.transform_down_up(down, up)?.data)
}

/// What stands for `node`, whose inputs are rewritten.
fn replacement(
    node: &Arc<dyn ExecutionPlan>,
    config: &WindrowConfig,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if config.latest
        && let Some(latest) = latest::replacement(node, config.fuse)?
    {
        return Ok(Some(latest));
    }
    if config.sort
        && let Some(sorted) = sorted(node, config)?
    {
        return Ok(Some(Arc::new(sorted)));
    }
    if config.fuse
        && let Some(gathered) = gathered(node)?
    {
        return Ok(Some(gathered));
    }
    let merged = config.merge.then(|| merged(node, config)).flatten();
    Ok(merged.map(|merged| Arc::new(merged) as Arc<dyn ExecutionPlan>))
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

/// For a merge of partitions that are sorted each by itself, and may be projected then.
fn gathered(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(merge) = node.downcast_ref::<SortPreservingMergeExec>() else { return Ok(None) };
    gathered_below(merge.input(), merge.expr(), merge.fetch())
}

/// `plan` with all partitions in one, if it sorts each of them by `order` or by more.
fn gathered_below(
    plan: &Arc<dyn ExecutionPlan>,
    order: &LexOrdering,
    fetch: Option<usize>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let Some(order) = unprojected(order, projection)? else { return Ok(None) };
        let Some(input) = gathered_below(projection.input(), &order, fetch)? else {
            return Ok(None);
        };
        return replace_children_if_necessary(Arc::clone(plan), vec![input]).map(Some);
    }
    let Some(sort) = plan.downcast_ref::<WindrowExec>() else { return Ok(None) };
    if sort.work() != Work::Sort || sort.gathers() || !starts_with(sort.order(), order) {
        return Ok(None);
    }
    let fetch = fetch.into_iter().chain(sort.fetch()).min();
    let new = WindrowExec::try_new(Work::Sort, sort.order().clone(), Arc::clone(sort.input()))?;
    Ok(Some(Arc::new(new.gathering()?.fetching(fetch))))
}

/// `order`, which is over what `projection` yields, over what it takes.
fn unprojected(order: &LexOrdering, projection: &ProjectionExec) -> Result<Option<LexOrdering>> {
    let below = |expr: Arc<dyn PhysicalExpr>| {
        let place = expr.downcast_ref::<Column>().map(Column::index);
        Ok(match place.and_then(|place| projection.expr().get(place)) {
            Some(of) => Transformed::new(Arc::clone(&of.expr), true, TreeNodeRecursion::Jump),
            None => Transformed::no(expr),
        })
    };
    let by = |by: &PhysicalSortExpr| {
        let expr = Arc::clone(&by.expr).transform_down(below)?.data;
        Ok(PhysicalSortExpr::new(expr, by.options))
    };
    Ok(LexOrdering::new(order.iter().map(by).collect::<Result<Vec<_>>>()?))
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
