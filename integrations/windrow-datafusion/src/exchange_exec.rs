//! The exchange as an operator in DataFusion's plans.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::common::assert_eq_or_internal_err;
use datafusion::common::stats::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{Partitioning, PhysicalExpr};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    PlanProperties, StatisticsArgs,
};

use crate::exchange::Exchange;
use crate::memory::RunMetrics;

/// Distributes rows by a hash of keys, as `RepartitionExec` does, and keeps what waits in the
/// memory of the session's pool and on its disks.
#[derive(Debug)]
pub struct WindrowExchangeExec {
    /// The operator in whose place this one stands, which knows all properties.
    stock: RepartitionExec,
    keys: Vec<Arc<dyn PhysicalExpr>>,
    partitions: usize,
    run: Mutex<Option<Run>>,
    metrics: ExecutionPlanMetricsSet,
}

/// A run, and which outputs were taken.
struct Run(Arc<Exchange>, Vec<bool>);

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Run").field(&self.1).finish()
    }
}

impl WindrowExchangeExec {
    /// Returns an operator in the place of `stock`, if that distributes rows by a hash, of an input
    /// with an end, and keeps no order.
    ///
    /// # Errors
    /// DataFusion's error for an inconsistent plan.
    pub fn of(stock: &RepartitionExec) -> Result<Option<Self>> {
        let Partitioning::Hash(keys, partitions) = stock.partitioning() else { return Ok(None) };
        let input = stock.input();
        // Of one input, stock keeps the order without being told to.
        let keeps = stock.maintains_input_order().contains(&true);
        if keeps && input.output_ordering().is_some() || input.boundedness().is_unbounded() {
            return Ok(None);
        }
        Ok(Some(Self {
            stock: RepartitionExec::try_new(
                Arc::clone(stock.input()),
                stock.partitioning().clone(),
            )?,
            keys: keys.clone(),
            partitions: *partitions,
            run: Mutex::default(),
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }
}

impl DisplayAs for WindrowExchangeExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if format != DisplayFormatType::TreeRender {
            write!(f, "{}: ", self.name())?;
        }
        let inputs = self.stock.input().output_partitioning().partition_count();
        write!(f, "partitioning={}, input_partitions={inputs}", self.stock.partitioning())
    }
}

impl ExecutionPlan for WindrowExchangeExec {
    fn name(&self) -> &str {
        "WindrowExchangeExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.stock.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.stock.children()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.stock.apply_expressions(f)
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        self.stock.benefits_from_input_partitioning()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        assert_eq_or_internal_err!(children.len(), 1, "one input");
        let partitioning = self.stock.partitioning().clone();
        let stock = RepartitionExec::try_new(children.swap_remove(0), partitioning)?;
        let new = Self::of(&stock)?.map(|new| Arc::new(new) as Arc<dyn ExecutionPlan>);
        Ok(new.unwrap_or_else(|| Arc::new(stock)))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        // An output that is taken again belongs to another run of the plan.
        if run.as_ref().is_none_or(|Run(_, taken)| taken[partition]) {
            let input = self.stock.input();
            let inputs = 0..input.output_partitioning().partition_count();
            let inputs = inputs.map(|number| input.execute(number, Arc::clone(&context)));
            let exchange = Exchange::new(
                self.keys.clone(),
                self.partitions,
                inputs.collect::<Result<_>>()?,
                self.schema(),
                context,
                RunMetrics::new(&self.metrics, partition),
            );
            *run = Some(Run(Arc::new(exchange), vec![false; self.partitions]));
        }
        let Some(Run(exchange, taken)) = &mut *run else { unreachable!("made above") };
        taken[partition] = true;
        let rows = exchange.output(partition);
        if taken.iter().all(|taken| *taken) {
            // The outputs alone keep the run alive.
            *run = None;
        }
        Ok(Box::pin(cooperative(RecordBatchStreamAdapter::new(self.schema(), Box::pin(rows)))))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.stock.child_stats_requests(partition)
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        self.stock.statistics_from_inputs(inputs, args)
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}
