//! The physical operator in DataFusion's plans.

use std::fmt;
use std::sync::Arc;

use datafusion::common::stats::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{assert_eq_or_internal_err, not_impl_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements, Partitioning,
    PhysicalExpr,
};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, EmissionType, EvaluationType, SchedulingType,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, PlanProperties, StatisticsArgs, apply_expression_roots,
};

use futures::StreamExt;

use crate::memory::RunMetrics;
use crate::run::Run;
use crate::shape::Shape;

/// The operation on the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Sorts all rows.
    Sort,
    /// Sorts, and keeps the first row of each value of the first `key` expressions.
    Latest {
        /// Number of expressions.
        key: usize,
    },
    /// Merges sorted partitions into one.
    Merge,
}

/// Sorts its input in the memory of the task's pool and on the task's disks. Either each partition
/// is sorted by itself, or all partitions become one: a task per partition pushes the rows, and all
/// tasks share one budget and one merge.
///
/// The sort is stable: equal rows keep the order of partitions, and of rows within a partition.
#[derive(Debug)]
pub struct WindrowExec {
    work: Work,
    input: Arc<dyn ExecutionPlan>,
    order: LexOrdering,
    /// True if all partitions of the input become one.
    gathers: bool,
    fetch: Option<usize>,
    /// Output columns, if different from the input's.
    pub(crate) projected: Option<Projected>,
    shape: Arc<Shape>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// Output columns as expressions over the input, and the plan's properties.
#[derive(Clone, Debug)]
pub(crate) struct Projected {
    pub(crate) columns: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) properties: Arc<PlanProperties>,
}

impl WindrowExec {
    /// Creates an operator that applies `work` to each partition of `input`.
    ///
    /// # Errors
    /// `NotImplemented` for types without an order in the engine, and for unbounded inputs.
    pub fn try_new(work: Work, order: LexOrdering, input: Arc<dyn ExecutionPlan>) -> Result<Self> {
        let schema = input.schema();
        let column = |(place, field): (usize, &Arc<arrow_schema::Field>)| {
            Arc::new(Column::new(field.name(), place)) as Arc<dyn PhysicalExpr>
        };
        let columns = schema.fields().iter().enumerate().map(column).collect();
        let gathers = work == Work::Merge;
        let properties = Arc::new(properties(work, &input, &order, gathers)?);
        Ok(Self { gathers, ..Self::with(work, order, input, columns, properties)? })
    }

    /// Creates an operator with other output columns.
    ///
    /// # Errors
    /// As [`WindrowExec::try_new`].
    pub(crate) fn projecting(
        work: Work,
        order: LexOrdering,
        input: Arc<dyn ExecutionPlan>,
        projected: Projected,
    ) -> Result<Self> {
        let Projected { columns, properties } = projected.clone();
        let new = Self::with(work, order, input, columns, properties)?;
        Ok(Self { projected: Some(projected), ..new })
    }

    fn with(
        work: Work,
        order: LexOrdering,
        input: Arc<dyn ExecutionPlan>,
        columns: Vec<Arc<dyn PhysicalExpr>>,
        properties: Arc<PlanProperties>,
    ) -> Result<Self> {
        if input.boundedness().is_unbounded() {
            return not_impl_err!("sorting an input without an end");
        }
        let key = match work {
            Work::Sort | Work::Merge => None,
            Work::Latest { key } => Some(key),
        };
        let output = Arc::clone(properties.equivalence_properties().schema());
        let shape = Shape::new(&input.schema(), columns, output, &order, key)?;
        Ok(Self {
            work,
            input,
            order,
            gathers: false,
            fetch: None,
            projected: None,
            shape: Arc::new(shape),
            properties,
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// Makes the operator gather all partitions of the input into one.
    ///
    /// # Errors
    /// DataFusion's error, if the order is invalid.
    pub fn gathering(mut self) -> Result<Self> {
        self.gathers = true;
        if self.projected.is_none() {
            self.properties = Arc::new(properties(self.work, &self.input, &self.order, true)?);
        }
        Ok(self)
    }

    /// Limits each output partition to the first `fetch` rows.
    #[must_use]
    pub fn fetching(mut self, fetch: Option<usize>) -> Self {
        self.fetch = fetch;
        self
    }

    /// Returns the operation on the rows.
    pub fn work(&self) -> Work {
        self.work
    }

    /// Returns the sort order.
    pub fn order(&self) -> &LexOrdering {
        &self.order
    }

    /// Returns true if all partitions of the input become one.
    pub fn gathers(&self) -> bool {
        self.gathers
    }

    /// Returns the input.
    pub fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    /// Creates the same operator over another input.
    fn over(&self, input: Arc<dyn ExecutionPlan>) -> Result<Self> {
        let (work, order) = (self.work, self.order.clone());
        let new = match self.projected.clone() {
            None => Self::try_new(work, order, input)?,
            Some(projected) => Self::projecting(work, order, input, projected)?,
        };
        let new = new.fetching(self.fetch);
        if self.gathers { new.gathering() } else { Ok(new) }
    }
}

/// Returns the plan properties of `input` after `work` by `order`.
fn properties(
    work: Work,
    input: &Arc<dyn ExecutionPlan>,
    order: &LexOrdering,
    gathers: bool,
) -> Result<PlanProperties> {
    let mut equivalences: EquivalenceProperties = input.equivalence_properties().clone();
    if gathers {
        equivalences.clear_per_partition_constants();
    }
    if work == Work::Merge {
        equivalences.add_ordering(order.clone());
    } else {
        equivalences.reorder(order.clone())?;
    }
    let partitioning = match gathers {
        true => Partitioning::UnknownPartitioning(1),
        false => input.output_partitioning().clone(),
    };
    let emission = match work {
        Work::Merge => input.pipeline_behavior(),
        Work::Sort | Work::Latest { .. } => EmissionType::Final,
    };
    let properties = PlanProperties::new(equivalences, partitioning, emission, input.boundedness());
    Ok(properties
        .with_evaluation_type(EvaluationType::Eager)
        .with_scheduling_type(SchedulingType::Cooperative))
}

impl DisplayAs for WindrowExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "{}: expr=[{}]", self.name(), self.order)?;
                ", "
            }
            DisplayFormatType::TreeRender => {
                write!(f, "{}", self.order)?;
                "\n"
            }
        };
        if let Work::Latest { key } = self.work {
            write!(f, "{separator}key={key}")?;
        }
        if self.gathers {
            let partitions = self.input.output_partitioning().partition_count();
            write!(f, "{separator}partitions={partitions}")?;
        }
        if let Some(fetch) = self.fetch {
            write!(f, "{separator}fetch={fetch}")?;
        }
        Ok(())
    }
}

impl ExecutionPlan for WindrowExec {
    fn name(&self) -> &str {
        match self.work {
            Work::Sort => "WindrowSortExec",
            Work::Latest { .. } => "WindrowLatestExec",
            Work::Merge => "WindrowMergeExec",
        }
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let projected = self.projected.iter().flat_map(|projected| &projected.columns);
        apply_expression_roots(self.order.iter().map(|by| &by.expr).chain(projected), f)
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::UnspecifiedDistribution])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![(self.work == Work::Merge).then(|| OrderingRequirements::from(self.order.clone()))]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![self.work == Work::Merge]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        assert_eq_or_internal_err!(children.len(), 1, "one input");
        Ok(Arc::new(self.over(children.swap_remove(0))?))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let partitions = self.input.output_partitioning().partition_count();
        let (wanted, sharers) =
            if self.gathers { (0..partitions, 1) } else { (partition..partition + 1, partitions) };
        let inputs = wanted
            .map(|partition| self.input.execute(partition, Arc::clone(&context)))
            .collect::<Result<Vec<_>>>()?;
        let run = Run {
            shape: Arc::clone(&self.shape),
            name: format!("{}[{partition}]", self.name()),
            sharers,
            fetch: self.fetch,
            metrics: RunMetrics::new(&self.metrics, partition),
            context,
        };
        let schema = Arc::clone(&self.shape.output);
        let rows = match self.work {
            Work::Merge => run.merged(inputs).boxed(),
            Work::Sort | Work::Latest { .. } => run.sorted(inputs).boxed(),
        };
        Ok(Box::pin(cooperative(RecordBatchStreamAdapter::new(schema, rows))))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition.filter(|_| !self.gathers))]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        if self.projected.is_some() {
            return Ok(Arc::new(Statistics::new_unknown(&self.shape.output)));
        }
        let statistics = inputs[0].as_ref().clone();
        Ok(Arc::new(match self.work {
            Work::Sort | Work::Merge => statistics.with_fetch(self.fetch, 0, 1)?,
            Work::Latest { .. } => statistics.to_inexact().with_fetch(self.fetch, 0, 1)?,
        }))
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let new = self.over(Arc::clone(&self.input)).ok()?;
        Some(Arc::new(new.fetching(limit)))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        match (self.work, self.fetch) {
            (Work::Sort | Work::Merge, None) => CardinalityEffect::Equal,
            _ => CardinalityEffect::LowerEqual,
        }
    }
}
