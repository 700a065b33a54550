//! The exchange: distributes the rows of all input partitions by a hash of keys.
//!
//! ```text
//! input 0 --task: hash, split--> filling 0 --whole record batches--> ready 0 --poll--> output 0
//! input 1 --task: hash, split--> filling 1 --whole record batches--> ready 1 --poll--> output 1
//!                                   | no memory                        | more than a part of the pool
//!                                   v                                  v
//!                                overflow: in the memory of the session's pool, on disk beyond
//! ```
//! Rows are copied from a split into the record batch that an output fills, so that the memory of a
//! split is used again by the next one, and nothing that waits keeps record batches of an input alive.
//! An input waits while every output has a record batch that nobody has taken: whichever output is
//! polled then goes on. As long as an output has none, inputs go on, whatever the others hold, so
//! that no circle of waits can arise.
//!
//! Invariant: every row of an input is in the filling or ready rows or the overflow of its output, or was
//! returned, unless the output was dropped or an error is returned to all outputs.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::BatchCoalescer;
use datafusion::common::hash_utils::create_hashes;
use datafusion::common::internal_datafusion_err;
use datafusion::common::runtime::JoinSet;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::repartition::REPARTITION_RANDOM_STATE;
use futures::{Stream, StreamExt, stream};
use tokio::sync::Notify;
use windrow::{PartitionBuilder, PartitionChunks, Partitioner};

use crate::error::datafusion_error;
use crate::memory::{RunMetrics, Workspace};

/// Record batches of an output that wait in memory as they are; more go to the overflow, if all
/// outputs have more than their part of the pool.
const WAITING: usize = 2;
/// One part in `PARTS` of a pool's memory is for record batches that wait.
const PARTS: usize = 4;
/// Bytes of the memory of a split that is used again: a usual record batch, which caches still hold.
const SPLIT: usize = 4 << 20;

/// One run of an exchange.
pub(crate) struct Exchange {
    keys: Vec<Arc<dyn PhysicalExpr>>,
    schema: SchemaRef,
    context: Arc<TaskContext>,
    metrics: RunMetrics,
    /// One of each output.
    filling: Vec<Mutex<Filling>>,
    /// Memory of filling and ready rows, and how much of it is taken before the overflow is.
    reserved: MemoryReservation,
    spare: usize,
    /// Locked after a [`Filling`], never before.
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
    overflow: Option<Overflow>,
}

/// The record batch of an output that is not whole yet.
struct Filling {
    /// None once the output was dropped.
    rows: Option<BatchCoalescer>,
    /// Reserved bytes.
    bytes: usize,
}

/// Whole record batches of an output, with their reserved bytes.
#[derive(Default)]
struct Output {
    ready: VecDeque<(RecordBatch, usize)>,
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
        let spare = match context.memory_pool().memory_limit() {
            MemoryLimit::Infinite => usize::MAX,
            MemoryLimit::Finite(bytes) => bytes / PARTS,
            MemoryLimit::Unknown => 0,
        };
        let batch = context.session_config().batch_size();
        let filling = |_| {
            let rows = Some(BatchCoalescer::new(Arc::clone(&schema), batch));
            Mutex::new(Filling { rows, bytes: 0 })
        };
        let filling = (0..partitions).map(filling).collect();
        let mut outputs = Vec::new();
        outputs.resize_with(partitions, Output::default);
        let (tasks, running) = (JoinSet::new(), inputs.len());
        let (failed, overflow) = Default::default();
        let state = Mutex::new(State { inputs, tasks, running, failed, outputs, overflow });
        let room = Arc::default();
        Self { keys, schema, context, metrics, filling, reserved, spare, state, room }
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

    fn filling(&self, number: usize) -> MutexGuard<'_, Filling> {
        self.filling[number].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds rows to the record batch that an output fills. Hands over whole record batches, and what
    /// has no memory.
    fn fill(&self, number: usize, rows: RecordBatch) -> Result<()> {
        let mut filling = self.filling(number);
        let Filling { rows: Some(filled), bytes } = &mut *filling else { return Ok(()) };
        filled.push_batch(rows)?;
        let grown = filled.size().saturating_sub(*bytes);
        let has_memory = self.reserved.try_grow(grown).is_ok();
        if has_memory {
            *bytes += grown;
        } else {
            filled.finish_buffered_batch()?;
        }
        if !filled.has_completed_batch() {
            return Ok(());
        }
        let mut state = self.state();
        while let Some(whole) = filled.next_completed_batch() {
            state.add(self, number, whole, has_memory)?;
        }
        let left = filled.size().min(*bytes);
        self.reserved.shrink(*bytes - left);
        *bytes = left;
        Ok(())
    }

    /// Hands over the last rows of an output.
    fn finish(&self, number: usize) -> Result<Option<RecordBatch>> {
        let Filling { rows, bytes } = &mut *self.filling(number);
        self.reserved.shrink(std::mem::take(bytes));
        let Some(mut filled) = rows.take() else { return Ok(None) };
        filled.finish_buffered_batch()?;
        Ok(filled.next_completed_batch())
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

/// Waits while every output has rows to take. Lets an output go on that takes rows slower than they
/// come.
async fn wait_for_room(exchange: &Weak<Exchange>, room: &Notify) {
    let is_crowded = |exchange: Arc<Exchange>| exchange.state().is_crowded();
    if exchange.upgrade().is_some_and(is_crowded) {
        tokio::task::yield_now().await;
    }
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
        !self.outputs[number].ready.is_empty() || stored() >= batch
    }

    /// Returns true if every output that was not dropped has a record batch.
    fn is_full(&self, batch: usize) -> bool {
        let is_full =
            |number: usize| self.outputs[number].is_dropped || self.has_rows(number, batch);
        (0..self.outputs.len()).all(is_full)
    }

    /// Returns true if an output does not take rows as fast as they come.
    fn is_crowded(&self) -> bool {
        self.outputs.iter().any(|output| output.ready.len() >= WAITING)
    }

    /// Adds a record batch to an output: to those that are ready, or to the overflow.
    fn add(
        &mut self,
        exchange: &Exchange,
        number: usize,
        rows: RecordBatch,
        has_memory: bool,
    ) -> Result<()> {
        let output = &mut self.outputs[number];
        if output.is_dropped {
            return Ok(());
        }
        let bytes = rows.get_array_memory_size();
        if has_memory
            && (output.ready.len() < WAITING || exchange.reserved.size() < exchange.spare)
            && exchange.reserved.try_grow(bytes).is_ok()
        {
            output.ready.push_back((rows, bytes));
            output.waker.take().into_iter().for_each(Waker::wake);
            return Ok(());
        }
        let overflow = match &mut self.overflow {
            Some(overflow) => overflow,
            none => none.insert(Overflow::open(exchange, self.outputs.len())?),
        };
        let ids = vec![number as u32; rows.num_rows()];
        overflow.builder.push_by_ids(&rows, &ids).map_err(datafusion_error)?;
        overflow.workspace.tell();
        // The builder may have split rows of other outputs, too, that were staged before.
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
        let partitioner = Partitioner::ids(partitions).keeping(SPLIT).pinning();
        Self { partitioner, hashes: Vec::new(), ids: Vec::new() }
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
        // A division takes as long as the rest of a hash.
        match partitions.is_power_of_two() {
            true => {
                self.ids.extend(self.hashes.iter().map(|hash| (hash & (partitions - 1)) as u32))
            }
            false => self.ids.extend(self.hashes.iter().map(|hash| (hash % partitions) as u32)),
        }
        let parts = self.partitioner.split_by_ids(&batch, &self.ids).map_err(datafusion_error)?;
        parts.occupied().try_for_each(|(number, rows)| exchange.fill(number, rows))
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
    /// Rows to return, of which the overflow may have more together than is usual.
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

    /// Takes rows that are ready or the last ones, or `chunks` of the overflow. Returns false if there
    /// are none yet, and no error after the last.
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
        if let Some((rows, bytes)) = state.outputs[self.number].ready.pop_front() {
            drop(locked);
            exchange.reserved.shrink(bytes);
            exchange.room.notify_waiters();
            self.rest = Some(rows);
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
            drop(locked);
            self.rest = Some(exchange.finish(self.number).map_err(Some)?.ok_or(None)?);
            return Ok(true);
        }
        state.outputs[self.number].waker = Some(context.waker().clone());
        Ok(false)
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        let exchange = &self.exchange;
        let Filling { rows, bytes } = &mut *exchange.filling(self.number);
        *rows = None;
        exchange.reserved.shrink(std::mem::take(bytes));
        let output = Output { is_dropped: true, ..Output::default() };
        let dropped = std::mem::replace(&mut exchange.state().outputs[self.number], output);
        dropped.ready.iter().for_each(|(_, bytes)| exchange.reserved.shrink(*bytes));
        exchange.room.notify_waiters();
    }
}
