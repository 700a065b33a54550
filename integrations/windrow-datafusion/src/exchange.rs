//! The exchange: distributes the rows of all input partitions by a hash of keys.
//!
//! ```text
//! input 0 --task: hash, split-->  waiting rows of output 0  --poll: one record batch--> output 0
//! input 1 --task: hash, split-->  waiting rows of output 1  --poll: one record batch--> output 1
//!                                       | more than two record batches, or no memory
//!                                       v
//!                                 overflow: in the memory of the session's pool, on disk beyond
//! ```
//! An input waits while every output has a record batch that nobody has taken: whichever output is
//! polled then goes on. As long as an output has none, inputs go on, whatever the others hold, so
//! that no circle of waits can arise.
//!
//! Invariant: every row of an input is in the waiting rows or the overflow of its output, or was
//! returned, unless the output was dropped or an error is returned to all outputs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::concat_batches;
use datafusion::common::hash_utils::create_hashes;
use datafusion::common::internal_datafusion_err;
use datafusion::common::runtime::JoinSet;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::repartition::REPARTITION_RANDOM_STATE;
use futures::{Stream, StreamExt, stream};
use tokio::sync::Notify;
use windrow::{PartitionBuilder, PartitionChunks, Partitioned, Partitioner};

use crate::error::datafusion_error;
use crate::memory::{RunMetrics, Workspace};

/// Record batches of an output that wait in memory as they are; more go to the overflow.
const WAITING: usize = 2;

/// One run of an exchange.
pub(crate) struct Exchange {
    keys: Vec<Arc<dyn PhysicalExpr>>,
    schema: SchemaRef,
    context: Arc<TaskContext>,
    metrics: RunMetrics,
    state: Mutex<State>,
    /// Told when an output has taken rows or was dropped.
    room: Arc<Notify>,
}

struct State {
    /// Inputs until their tasks start with the first poll.
    inputs: Vec<SendableRecordBatchStream>,
    tasks: JoinSet<()>,
    /// Number of inputs with rows to come.
    running: usize,
    failed: Option<Arc<DataFusionError>>,
    outputs: Vec<Output>,
    /// Memory of waiting rows.
    reserved: MemoryReservation,
    overflow: Option<Overflow>,
}

/// Waiting rows of an output.
#[derive(Default)]
struct Output {
    slices: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
    waker: Option<Waker>,
    is_dropped: bool,
}

struct Overflow {
    builder: PartitionBuilder,
    workspace: Workspace,
}

impl Exchange {
    /// Creates the run of an exchange of `inputs` into `partitions` outputs.
    pub(crate) fn new(
        keys: Vec<Arc<dyn PhysicalExpr>>,
        partitions: usize,
        inputs: Vec<SendableRecordBatchStream>,
        schema: SchemaRef,
        context: Arc<TaskContext>,
        metrics: RunMetrics,
    ) -> Self {
        let reserved = MemoryConsumer::new("WindrowExchange").register(context.memory_pool());
        let mut outputs = Vec::new();
        outputs.resize_with(partitions, Output::default);
        let (tasks, running) = (JoinSet::new(), inputs.len());
        let (failed, overflow) = Default::default();
        let state = State { inputs, tasks, running, failed, outputs, reserved, overflow };
        Self { keys, schema, context, metrics, state: Mutex::new(state), room: Arc::default() }
    }

    /// Returns the rows of an output. Nothing runs before the first poll of any.
    pub(crate) fn output(
        self: &Arc<Self>,
        number: usize,
    ) -> impl Stream<Item = Result<RecordBatch>> + Send + use<> {
        let mut taker = Taker { exchange: Arc::clone(self), number, chunks: None, rest: None };
        stream::poll_fn(move |context| taker.poll(context))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the usual number of rows of a record batch.
    fn batch_size(&self) -> usize {
        self.context.session_config().batch_size()
    }

    /// Starts a task for each input. Tasks do not keep the run alive: they end with the last output.
    fn start(self: &Arc<Self>, state: &mut State) {
        let partitions = state.outputs.len();
        for input in std::mem::take(&mut state.inputs) {
            let (exchange, room) = (Arc::downgrade(self), Arc::clone(&self.room));
            let failed = Some(internal_datafusion_err!("a task of an exchange ended early"));
            let mut ended = Ended { exchange, failed };
            state.tasks.spawn(async move {
                let done = distribute_all(input, &ended.exchange, &room, partitions).await;
                ended.failed = done.err();
                drop(ended);
            });
        }
    }
}

/// Distributes the rows of an input.
async fn distribute_all(
    mut input: SendableRecordBatchStream,
    exchange: &Weak<Exchange>,
    room: &Notify,
    partitions: usize,
) -> Result<()> {
    let mut source = Source::new(partitions);
    while let Some(batch) = input.next().await.transpose()? {
        let Some(running) = exchange.upgrade() else { break };
        source.distribute(&running, batch)?;
        drop(running);
        wait_for_room(exchange, room).await;
    }
    Ok(())
}

/// Waits while every output has rows to take.
async fn wait_for_room(exchange: &Weak<Exchange>, room: &Notify) {
    loop {
        let mut told = std::pin::pin!(room.notified());
        told.as_mut().enable();
        let is_full = |exchange: Arc<Exchange>| exchange.state().is_full(exchange.batch_size());
        if !exchange.upgrade().is_some_and(is_full) {
            return;
        }
        told.await;
    }
}

impl State {
    /// Returns true if an output has a record batch of `batch` rows.
    fn has_rows(&self, number: usize, batch: usize) -> bool {
        let stored = || self.overflow.as_ref().map_or(0, |over| over.builder.rows(number));
        self.outputs[number].rows >= batch || stored() >= batch
    }

    /// Returns true if every output that was not dropped has a record batch.
    fn is_full(&self, batch: usize) -> bool {
        let is_full =
            |number: usize| self.outputs[number].is_dropped || self.has_rows(number, batch);
        (0..self.outputs.len()).all(is_full)
    }

    /// Adds the parts of a record batch to their outputs.
    fn add(&mut self, exchange: &Exchange, parts: &Partitioned) -> Result<()> {
        let bytes = parts.batch().get_array_memory_size();
        let (total, most) = (parts.batch().num_rows().max(1), WAITING * exchange.batch_size());
        for (number, rows) in parts.occupied() {
            let output = &mut self.outputs[number];
            if output.is_dropped {
                continue;
            }
            let bytes = bytes * rows.num_rows() / total;
            if output.rows < most && self.reserved.try_grow(bytes).is_ok() {
                output.rows += rows.num_rows();
                output.bytes += bytes;
                output.slices.push(rows);
            } else {
                let overflow = match &mut self.overflow {
                    Some(overflow) => overflow,
                    none => none.insert(Overflow::open(exchange, self.outputs.len())?),
                };
                let ids = vec![number as u32; rows.num_rows()];
                overflow.builder.push_by_ids(&rows, &ids).map_err(datafusion_error)?;
                overflow.workspace.tell();
            }
        }
        for number in 0..self.outputs.len() {
            if self.has_rows(number, exchange.batch_size())
                && let Some(waker) = self.outputs[number].waker.take()
            {
                waker.wake();
            }
        }
        Ok(())
    }

    fn wake_all(&mut self) {
        self.outputs.iter_mut().filter_map(|output| output.waker.take()).for_each(Waker::wake);
    }
}

impl Overflow {
    fn open(exchange: &Exchange, partitions: usize) -> Result<Self> {
        let workspace =
            Workspace::open(&exchange.context, "WindrowExchange overflow", 1, &exchange.metrics)?;
        let partitioner = Partitioner::ids(partitions);
        let builder = PartitionBuilder::new(partitioner, &exchange.schema, &workspace.pool);
        Ok(Self { builder: builder.map_err(datafusion_error)?, workspace })
    }
}

/// The work of one input.
struct Source {
    partitioner: Partitioner,
    hashes: Vec<u64>,
    ids: Vec<u32>,
}

impl Source {
    fn new(partitions: usize) -> Self {
        Self { partitioner: Partitioner::ids(partitions), hashes: Vec::new(), ids: Vec::new() }
    }

    /// Splits a record batch by DataFusion's hash, on which other operators rely.
    fn distribute(&mut self, exchange: &Exchange, batch: RecordBatch) -> Result<()> {
        let elapsed = exchange.metrics.elapsed();
        let _timer = elapsed.timer();
        let keys = exchange.keys.iter();
        let keys = keys.map(|key| key.evaluate(&batch)?.into_array(batch.num_rows()));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        self.hashes.clear();
        self.hashes.resize(batch.num_rows(), 0);
        create_hashes(&keys, REPARTITION_RANDOM_STATE.random_state(), &mut self.hashes)?;
        let partitions = self.partitioner.partitions() as u64;
        self.ids.clear();
        self.ids.extend(self.hashes.iter().map(|hash| (hash % partitions) as u32));
        let parts = self.partitioner.split_by_ids(&batch, &self.ids).map_err(datafusion_error)?;
        exchange.state().add(exchange, &parts)
    }
}

/// Records the end of an input, also on panic.
struct Ended {
    exchange: Weak<Exchange>,
    failed: Option<DataFusionError>,
}

impl Drop for Ended {
    fn drop(&mut self) {
        let Some(exchange) = self.exchange.upgrade() else { return };
        let mut state = exchange.state();
        state.running -= 1;
        if let Some(error) = self.failed.take() {
            state.failed.get_or_insert_with(|| Arc::new(error));
        }
        if state.running == 0 || state.failed.is_some() {
            state.wake_all();
        }
    }
}

/// Takes the rows of one output.
struct Taker {
    exchange: Arc<Exchange>,
    number: usize,
    /// Rows taken from the overflow.
    chunks: Option<PartitionChunks>,
    /// A record batch of more rows than are usual.
    rest: Option<RecordBatch>,
}

impl Taker {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        loop {
            if let Some(rows) = self.rest.take() {
                let first = rows.num_rows().min(self.exchange.batch_size());
                if first < rows.num_rows() {
                    self.rest = Some(rows.slice(first, rows.num_rows() - first));
                }
                self.exchange.metrics.baseline.record_output(first);
                return Poll::Ready(Some(Ok(rows.slice(0, first))));
            }
            if let Some(chunks) = &mut self.chunks {
                match chunks.next().transpose().map_err(datafusion_error) {
                    Ok(Some(rows)) => self.rest = Some(rows),
                    Ok(None) => self.chunks = None,
                    Err(error) => return Poll::Ready(Some(Err(error))),
                }
                continue;
            }
            match self.take(context) {
                Ok(true) => {}
                Ok(false) => return Poll::Pending,
                Err(None) => return Poll::Ready(None),
                Err(Some(error)) => return Poll::Ready(Some(Err(error))),
            }
        }
    }

    /// Takes waiting rows, or rows of the overflow. Returns false if there are none yet, and no
    /// error after the last.
    fn take(
        &mut self,
        context: &Context<'_>,
    ) -> std::result::Result<bool, Option<DataFusionError>> {
        let exchange = &self.exchange;
        let mut locked = exchange.state();
        let state = &mut *locked;
        exchange.start(state);
        if let Some(error) = &state.failed {
            return Err(Some(DataFusionError::from(error)));
        }
        let (is_last, batch) = (state.running == 0, exchange.batch_size());
        let output = &mut state.outputs[self.number];
        if output.rows >= batch || is_last && output.rows > 0 {
            let slices = std::mem::take(&mut output.slices);
            state.reserved.shrink(output.bytes);
            (output.rows, output.bytes) = (0, 0);
            drop(locked);
            exchange.room.notify_waiters();
            self.rest =
                Some(concat_batches(&exchange.schema, &slices).map_err(|e| Some(e.into()))?);
            return Ok(true);
        }
        if let Some(Overflow { builder, .. }) = &mut state.overflow {
            let taken = match is_last {
                true => Some(builder.flush(self.number)),
                false if builder.rows(self.number) >= batch => {
                    Some(builder.flush_split(self.number))
                }
                false => None,
            };
            if let Some(chunks) = taken {
                let chunks = chunks.map_err(|error| Some(datafusion_error(error)))?;
                if !chunks.is_empty() {
                    self.chunks = Some(chunks);
                    drop(locked);
                    exchange.room.notify_waiters();
                    return Ok(true);
                }
            }
        }
        if is_last {
            return Err(None);
        }
        state.outputs[self.number].waker = Some(context.waker().clone());
        Ok(false)
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        let mut state = self.exchange.state();
        let state = &mut *state;
        let output = &mut state.outputs[self.number];
        state.reserved.shrink(output.bytes);
        *output = Output { is_dropped: true, ..Output::default() };
        self.exchange.room.notify_waiters();
    }
}
