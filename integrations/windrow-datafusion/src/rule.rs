//! The optimizer rule, which replaces operators in a physical plan.
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
//!
//! RepartitionExec by a hash, if wanted -->  WindrowExchangeExec
//! ```
//! Rewrites a plan from the leaves up, after all rules of DataFusion, as DataFusion's rules
//! recognize operators by type.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::config::WindrowConfig;
use crate::exchange_exec::WindrowExchangeExec;
use crate::exec::{WindrowExec, Work};
use crate::latest;

/// Replaces the operators selected by `config` in `plan`, wherever the result has the same rows. A
/// session should use [`WithWindrow`]; this function is for engines with their own planner, which
/// rewrite plans before running.
///
/// # Errors
/// DataFusion's error for an inconsistent plan.
pub fn rewrite(
    plan: Arc<dyn ExecutionPlan>,
    config: &WindrowConfig,
) -> Result<Arc<dyn ExecutionPlan>> {
    rewrite_above(plan, config, |_| false)
}

/// As [`rewrite`], but only above nodes for which `ends` is true: subplans from there on run
/// elsewhere.
///
/// # Errors
/// As [`rewrite`].
pub fn rewrite_above(
    plan: Arc<dyn ExecutionPlan>,
    config: &WindrowConfig,
    ends: impl Fn(&Arc<dyn ExecutionPlan>) -> bool,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = replaced(plan, &ends, |node| replacement(node, config))?;
    // Other replacements recognize plans by stock's exchanges.
    if config.exchange { replaced(plan, &ends, exchange) } else { Ok(plan) }
}

/// Replaces nodes from the leaves up, above nodes for which `ends` is true.
fn replaced(
    plan: Arc<dyn ExecutionPlan>,
    ends: impl Fn(&Arc<dyn ExecutionPlan>) -> bool,
    replacement: impl Fn(&Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let down = |node| match ends(&node) {
        true => Ok(Transformed::new(node, false, TreeNodeRecursion::Jump)),
        false => Ok(Transformed::no(node)),
    };
    let up = |node| {
        if ends(&node) {
            return Ok(Transformed::no(node));
        }
        Ok(match replacement(&node)? {
            Some(new) => Transformed::yes(new),
            None => Transformed::no(node),
        })
    };
    Ok(plan.transform_down_up(down, up)?.data)
}

/// Replaces an exchange.
fn exchange(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(stock) = node.downcast_ref::<RepartitionExec>() else { return Ok(None) };
    let exchange = WindrowExchangeExec::of(stock)?;
    Ok(exchange.map(|new| Arc::new(new) as Arc<dyn ExecutionPlan>))
}

/// Returns the replacement of `node`, whose inputs are rewritten already.
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
    let merge = node.downcast_ref::<SortPreservingMergeExec>();
    if config.fuse
        && let Some(merge) = merge
        && let Some(gathered) = gathered(merge.input(), merge.expr(), merge.fetch())?
    {
        return Ok(Some(gathered));
    }
    let merged = merge.filter(|_| config.merge).and_then(|merge| merged(merge, config));
    Ok(merged.map(|merged| Arc::new(merged) as Arc<dyn ExecutionPlan>))
}

/// Replaces a sort.
fn sorted(node: &Arc<dyn ExecutionPlan>, config: &WindrowConfig) -> Result<Option<WindrowExec>> {
    let Some(sort) = node.downcast_ref::<SortExec>() else { return Ok(None) };
    let input = sort.input();
    if fits(sort.fetch(), input, config)
        || input.equivalence_properties().ordering_satisfy(sort.expr().clone())?
    {
        return Ok(None);
    }
    let new = WindrowExec::try_new(Work::Sort, sort.expr().clone(), Arc::clone(input));
    Ok(new.ok().map(|new| new.fetching(sort.fetch())))
}

/// Gathers all partitions of `plan` into one, if the plan sorts each partition by `order` or by
/// more columns, with an optional projection above.
fn gathered(
    plan: &Arc<dyn ExecutionPlan>,
    order: &LexOrdering,
    fetch: Option<usize>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let Some(order) = unprojected(order, projection)? else { return Ok(None) };
        let input = gathered(projection.input(), &order, fetch)?;
        let above = |input| replace_children_if_necessary(Arc::clone(plan), vec![input]);
        return input.map(above).transpose();
    }
    let Some(sort) = plan.downcast_ref::<WindrowExec>() else { return Ok(None) };
    if sort.work() != Work::Sort || sort.gathers() || !sort.order().starts_with(order) {
        return Ok(None);
    }
    let fetch = fetch.into_iter().chain(sort.fetch()).min();
    let new = WindrowExec::try_new(Work::Sort, sort.order().clone(), Arc::clone(sort.input()))?;
    Ok(Some(Arc::new(new.gathering()?.fetching(fetch))))
}

/// Rewrites `order` from the output of `projection` to its input.
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

/// Replaces a merge of partitions that are sorted in the input.
fn merged(merge: &SortPreservingMergeExec, config: &WindrowConfig) -> Option<WindrowExec> {
    let input = merge.input();
    let partitions = input.output_partitioning().partition_count();
    if partitions < 2 || fits(merge.fetch(), input, config) {
        return None;
    }
    let new = WindrowExec::try_new(Work::Merge, merge.expr().clone(), Arc::clone(input)).ok()?;
    Some(new.fetching(merge.fetch()))
}

/// Returns true if a limit of `fetch` rows of `input` is below [`WindrowConfig::topk_bytes`], by
/// estimate.
fn fits(fetch: Option<usize>, input: &Arc<dyn ExecutionPlan>, config: &WindrowConfig) -> bool {
    /// Estimated bytes of a value of variable length.
    const VALUE: usize = 32;
    let schema = input.schema();
    let widths = schema.fields().iter().map(|field| field.data_type().primitive_width());
    let row: usize = widths.map(|width| width.unwrap_or(VALUE)).sum();
    fetch.is_some_and(|fetch| row.saturating_mul(fetch) < config.topk_bytes)
}

/// [`rewrite`] as a rule of DataFusion's optimizer, with the session's [`WindrowConfig`]. Must be
/// the last rule.
#[derive(Debug, Default)]
pub struct WindrowRule {
    config: WindrowConfig,
}

impl WindrowRule {
    /// Creates a rule with `config` for sessions without a [`WindrowConfig`] of their own.
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

/// Adds Windrow to a session.
pub trait WithWindrow {
    /// Appends the rule after existing ones, and registers the settings named `windrow.`
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
