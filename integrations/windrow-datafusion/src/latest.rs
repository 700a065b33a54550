//! Plans that keep the first row of each key in some order.
//!
//! ```text
//! row_number() OVER (PARTITION BY key ORDER BY order) = 1     filter over window over sort
//! the same with `optimizer.enable_window_topn`                window over PartitionedTopKExec
//! SELECT DISTINCT ON (key) .. ORDER BY key, order             first_value(..) GROUP BY key
//! first_value(x ORDER BY order), last_value(..) GROUP BY key  an aggregate, or partial and final
//! ```
//! Below a filter, the sort is replaced. The window above then sees one row per key, always with
//! number 1, so a column of ones replaces the window, and the filter is dropped if it has no other
//! condition. If, within one process, the sort's input is repartitioned by key, the repartitioning
//! moves above the new operator, to carry one row per key.
//!
//! An aggregate is replaced as a whole. A sort groups by bytes, an aggregate by value. So the
//! aggregate stays if the key has floats or nested values, and also if the order has lists or
//! structs, which the aggregate compares without their nulls.

use std::sync::Arc;

use arrow_schema::{DataType, Schema};
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_expr::window::StandardWindowExpr;
use datafusion::physical_expr::{
    LexOrdering, Partitioning, PhysicalExpr, PhysicalSortExpr, split_conjunction,
};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{EmissionType, replace_children_if_necessary};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::partitioned_topk::{PartitionedTopKExec, WindowFnKind};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::udaf::AggregateFunctionExpr;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowUDFExpr};
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, InputOrderMode, PlanProperties, WindowExpr,
};
use datafusion::scalar::ScalarValue;

use crate::exec::{Projected, WindrowExec, Work};

/// Returns the replacement of `node`, whose inputs are rewritten already, or `None` if no pattern
/// matches. With `fuse`, a repartitioning moves above the new operator.
pub(crate) fn replacement(
    node: &Arc<dyn ExecutionPlan>,
    fuse: bool,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(filter) = node.downcast_ref::<FilterExec>() {
        return filtered(node, filter, fuse);
    }
    if let Some(top) = node.downcast_ref::<PartitionedTopKExec>() {
        return topmost(top, fuse);
    }
    if let Some(window) = node.downcast_ref::<BoundedWindowAggExec>() {
        return if sees_one_row_a_key(window) { ones(window, window.input()) } else { Ok(None) };
    }
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        return aggregated(aggregate, fuse);
    }
    Ok(None)
}

/// Replaces a top-k heap per key with k = 1.
fn topmost(top: &PartitionedTopKExec, fuse: bool) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if top.fetch() != 1 || !matches!(top.fn_kind(), WindowFnKind::RowNumber) {
        return Ok(None);
    }
    let work = Work::Latest { key: top.partition_prefix_len() };
    let new = WindrowExec::try_new(work, top.expr().clone(), Arc::clone(top.input()));
    new.ok().map(|new| spread_behind(new, fuse)).transpose()
}

/// Returns `latest`. With `fuse`, moves a repartitioning by key above the operator: fewer rows are
/// repartitioned, and each partition stays in order. A repartitioning of a single partition stays,
/// as it makes the sort parallel.
fn spread_behind(latest: WindrowExec, fuse: bool) -> Result<Arc<dyn ExecutionPlan>> {
    let spread = latest.input().downcast_ref::<RepartitionExec>();
    let Some(spread) = spread.filter(|spread| fuse && spreads_by_key(spread, &latest)) else {
        return Ok(Arc::new(latest));
    };
    let (order, input) = (latest.order().clone(), Arc::clone(spread.input()));
    let gathered = WindrowExec::try_new(latest.work(), order, input)?.gathering()?;
    let partitioning = spread.partitioning().clone();
    Ok(Arc::new(RepartitionExec::try_new(Arc::new(gathered), partitioning)?))
}

/// Returns true if `spread` brings all rows of a key of `latest` together.
fn spreads_by_key(spread: &RepartitionExec, latest: &WindrowExec) -> bool {
    let (Partitioning::Hash(by, _), Work::Latest { key }) = (spread.partitioning(), latest.work())
    else {
        return false;
    };
    let keys = &latest.order()[..key];
    !latest.gathers()
        && spread.input().output_partitioning().partition_count() > 1
        && by.iter().all(|by| keys.iter().any(|key| &key.expr == by))
}

/// Replaces the input of a filter on row numbers.
fn filtered(
    node: &Arc<dyn ExecutionPlan>,
    filter: &FilterExec,
    fuse: bool,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let conditions = split_conjunction(filter.predicate());
    for first in conditions.iter().copied().filter_map(first_of) {
        let Some(input) = numbered(filter.input(), first, fuse)? else { continue };
        if conditions.len() == 1 && filter.fetch().is_none() {
            let all = match filter.projection() {
                Some(columns) => projected(&input, columns)?,
                None => Arc::clone(&input),
            };
            if all.schema() == filter.schema() {
                return Ok(Some(all));
            }
        }
        return replace_children_if_necessary(Arc::clone(node), vec![input]).map(Some);
    }
    Ok(None)
}

/// Projects `plan` to the columns at `columns`.
fn projected(plan: &Arc<dyn ExecutionPlan>, columns: &[usize]) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = plan.schema();
    let columns = columns.iter().map(|&place| column(&schema, place));
    Ok(Arc::new(ProjectionExec::try_new(columns, Arc::clone(plan))?))
}

fn column(schema: &Schema, place: usize) -> ProjectionExpr {
    let name = schema.field(place).name();
    ProjectionExpr::new(Arc::new(Column::new(name, place)), name.clone())
}

/// Returns the column that `predicate` restricts to row number 1: by `= 1`, `<= 1` or `< 2`.
fn first_of(predicate: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    let binary = predicate.downcast_ref::<BinaryExpr>()?;
    let sides = [(binary.left(), binary.right(), *binary.op())]
        .into_iter()
        .chain(binary.op().swap().map(|op| (binary.right(), binary.left(), op)));
    for (column, value, op) in sides {
        let Some(column) = column.downcast_ref::<Column>() else { continue };
        let Some(value) = value.downcast_ref::<Literal>() else { continue };
        let value = value.value().cast_to(&DataType::Int64).ok();
        if let (Operator::Eq | Operator::LtEq, Some(ScalarValue::Int64(Some(1))))
        | (Operator::Lt, Some(ScalarValue::Int64(Some(2)))) = (op, value)
        {
            return Some(column.index());
        }
    }
    None
}

/// Reduces `plan` to one row of each key, if column `place` holds row numbers within keys.
fn numbered(
    plan: &Arc<dyn ExecutionPlan>,
    place: usize,
    fuse: bool,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let below = if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let column = projection.expr().get(place).and_then(|of| of.expr.downcast_ref::<Column>());
        let Some(column) = column else { return Ok(None) };
        numbered(projection.input(), column.index(), fuse)?
    } else if let Some(window) = plan.downcast_ref::<BoundedWindowAggExec>()
        && let [number] = window.window_expr()
        && place == window.input().schema().fields().len()
        && is_row_number(number)
        && let Some(latest) = first_rows(number, window.input())
    {
        let below = spread_behind(latest, fuse)?;
        if let Some(ones) = ones(window, &below)? {
            return Ok(Some(ones));
        }
        Some(below)
    } else {
        None
    };
    below.map(|below| replace_children_if_necessary(Arc::clone(plan), vec![below])).transpose()
}

/// Returns true if the input of `window` has one row for each of the window's keys.
fn sees_one_row_a_key(window: &BoundedWindowAggExec) -> bool {
    let input = window.input();
    let spread = input.downcast_ref::<RepartitionExec>();
    let below = spread.map_or(input, |spread| spread.input());
    let (Some(latest), [number]) = (below.downcast_ref::<WindrowExec>(), window.window_expr())
    else {
        return false;
    };
    let (Work::Latest { key }, false) = (latest.work(), latest.projected.is_some()) else {
        return false;
    };
    let (keys, by) = (&latest.order()[..key], number.partition_by());
    is_row_number(number)
        && by.iter().all(|by| keys.iter().any(|key| &key.expr == by))
        && keys.iter().all(|key| by.contains(&key.expr))
}

/// Appends the column of `window` to `rows` as a literal 1; each row must be the only one of its
/// key.
fn ones(
    window: &BoundedWindowAggExec,
    rows: &Arc<dyn ExecutionPlan>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let (schema, below) = (window.schema(), rows.schema());
    let places = below.fields().len();
    let one = Arc::new(Literal::new(ScalarValue::UInt64(Some(1))));
    let one = ProjectionExpr::new(one, schema.field(places).name().clone());
    let columns = (0..places).map(|place| column(&below, place)).chain([one]);
    let new = ProjectionExec::try_new_with_schema_metadata(columns, Arc::clone(rows), &schema)?;
    Ok((new.schema() == schema).then(|| Arc::new(new) as Arc<dyn ExecutionPlan>))
}

fn is_row_number(window: &Arc<dyn WindowExpr>) -> bool {
    let standard = window.as_any().downcast_ref::<StandardWindowExpr>();
    let function = standard.map(|standard| standard.get_standard_func_expr().as_any());
    let function = function.and_then(|function| function.downcast_ref::<WindowUDFExpr>());
    function.is_some_and(|function| function.fun().name() == "row_number")
}

/// Returns the operator for the first row of each key of `number`, in place of the sort below.
fn first_rows(number: &Arc<dyn WindowExpr>, sort: &Arc<dyn ExecutionPlan>) -> Option<WindrowExec> {
    let (order, input, gathers) = if let Some(sort) = sort.downcast_ref::<SortExec>() {
        if sort.fetch().is_some() {
            return None;
        }
        (sort.expr(), sort.input(), false)
    } else {
        let sort = sort.downcast_ref::<WindrowExec>()?;
        if sort.work() != Work::Sort || sort.fetch().is_some() {
            return None;
        }
        (sort.order(), sort.input(), sort.gathers())
    };
    let (keys, then) = (number.partition_by(), number.order_by());
    let key = order.iter().take_while(|by| keys.contains(&by.expr)).count();
    // As in the sort, only the first occurrence of an expression counts.
    let new = |(place, by): (usize, &PhysicalSortExpr)| {
        !keys.contains(&by.expr) && !then[..place].iter().any(|before| before.expr.eq(&by.expr))
    };
    let then = then.iter().enumerate().filter(|by| new(*by)).map(|(_, by)| by).collect::<Vec<_>>();
    let rest = &order[key..];
    // The sort may omit a key with a constant value; this case is not replaced.
    let all = keys.iter().all(|key| order.iter().any(|by| &by.expr == key));
    if key == 0 || !all || then.len() > rest.len() || then.iter().zip(rest).any(|(a, b)| *a != b) {
        return None;
    }
    let new = WindrowExec::try_new(Work::Latest { key }, order.clone(), Arc::clone(input)).ok()?;
    if gathers { new.gathering().ok() } else { Some(new) }
}

/// Replaces an aggregate of first and last values. With `fuse`, all partitions become one, which is
/// repartitioned afterwards.
fn aggregated(aggregate: &AggregateExec, fuse: bool) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let below = aggregate.input();
    let mut spreads = false;
    let (source, input): (&AggregateExec, Arc<dyn ExecutionPlan>) = match aggregate.mode() {
        AggregateMode::Single | AggregateMode::SinglePartitioned => {
            (aggregate, Arc::clone(aggregate.input()))
        }
        AggregateMode::Final => {
            let gathered = below.downcast_ref::<CoalescePartitionsExec>();
            let below = gathered.map_or(below, |gathered| gathered.input());
            let Some(partial) = partial(below) else { return Ok(None) };
            (partial, Arc::clone(partial.input()))
        }
        AggregateMode::FinalPartitioned => {
            let Some(spread) = below.downcast_ref::<RepartitionExec>() else { return Ok(None) };
            let Some(partial) = partial(spread.input()) else { return Ok(None) };
            spreads = fuse;
            let input = Arc::clone(partial.input());
            if fuse {
                (partial, input)
            } else {
                let parts = spread.partitioning().partition_count();
                let hash = Partitioning::Hash(partial.group_expr().input_exprs(), parts);
                (partial, Arc::new(RepartitionExec::try_new(input, hash)?))
            }
        }
        AggregateMode::Partial | AggregateMode::PartialReduce => return Ok(None),
    };
    let Some((order, key)) = group_order(aggregate, source) else { return Ok(None) };
    let mut columns = source.group_expr().input_exprs();
    columns.extend(source.aggr_expr().iter().flat_map(|value| value.expressions()));
    let partitioning = aggregate.properties().output_partitioning();
    let gathers = (spreads || matches!(aggregate.mode(), AggregateMode::Final))
        && input.output_partitioning().partition_count() > 1;
    let properties = PlanProperties::new(
        aggregate.properties().equivalence_properties().clone(),
        if spreads { Partitioning::UnknownPartitioning(1) } else { partitioning.clone() },
        EmissionType::Final,
        aggregate.properties().boundedness,
    );
    let latest = Projected { columns, properties: Arc::new(properties) };
    let work = Work::Latest { key };
    let Ok(new) = WindrowExec::projecting(work, order, input, latest) else { return Ok(None) };
    let new = Arc::new(if gathers { new.gathering()? } else { new });
    Ok(Some(match spreads {
        true => Arc::new(RepartitionExec::try_new(new, partitioning.clone())?),
        false => new,
    }))
}

/// Returns the first stage of an aggregate, if `plan` is one.
fn partial(plan: &Arc<dyn ExecutionPlan>) -> Option<&AggregateExec> {
    let partial = plan.downcast_ref::<AggregateExec>()?;
    matches!(partial.mode(), AggregateMode::Partial).then_some(partial)
}

/// Returns an order in which the first row of each group has all values of `aggregate`, and the
/// number of group expressions in front. `source` is the stage that reads the input.
fn group_order(aggregate: &AggregateExec, source: &AggregateExec) -> Option<(LexOrdering, usize)> {
    let groups = source.group_expr();
    let plain = groups.is_single()
        && !groups.is_empty()
        && [aggregate, source].iter().all(|stage| {
            stage.limit_options().is_none() && *stage.input_order_mode() == InputOrderMode::Linear
        })
        && source.filter_expr().iter().all(Option::is_none);
    let schema = source.input_schema();
    let keys = groups.input_exprs();
    let compared = |key: &Arc<dyn PhysicalExpr>| {
        key.data_type(&schema).is_ok_and(|data_type| !holds_floats(&data_type))
    };
    if !plain || !keys.iter().all(compared) {
        return None;
    }
    let mut orders = source.aggr_expr().iter().map(|value| first_by(value));
    let then = orders.next()??;
    let flat = |by: &PhysicalSortExpr| {
        by.expr.data_type(&schema).is_ok_and(|data_type| !data_type.is_nested())
    };
    if !orders.all(|order| order.as_ref() == Some(&then)) || !then.iter().all(flat) {
        return None;
    }
    let keys = LexOrdering::new(keys.into_iter().map(PhysicalSortExpr::new_default))?;
    let key = keys.len();
    Some((LexOrdering::new(keys.into_iter().chain(then))?, key))
}

/// Returns the order in which the first row has the value, if the value comes from a single row.
fn first_by(value: &AggregateFunctionExpr) -> Option<Vec<PhysicalSortExpr>> {
    if value.is_distinct() || value.ignore_nulls() || value.expressions().len() != 1 {
        return None;
    }
    let order = value.order_bys();
    match value.fun().name() {
        _ if order.is_empty() => None,
        "first_value" => Some(order.to_vec()),
        "last_value" => Some(order.iter().map(|by| reversed(by.clone())).collect()),
        _ => None,
    }
}

fn reversed(mut by: PhysicalSortExpr) -> PhysicalSortExpr {
    by.options = !by.options;
    by
}

/// Returns true if equal values of the type may differ in bytes.
fn holds_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => holds_floats(values),
        other => other.is_floating() || other.is_nested(),
    }
}
