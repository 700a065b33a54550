//! The exchange: distributes the rows of all input partitions by a hash of keys.
//!
//! ```text
//! input 0 --task: hash, split--> filling 0 --whole record batches--> ready 0 --poll--> output 0
//! input 1 --task: hash, split--> filling 1 --whole record batches--> ready 1 --poll--> output 1
//!                                               no memory, or more |  ^
//!                                          than a part of the pool v  | in turn
//!                                                      disks of the session
//! ```
//! Rows are copied from a split into the record batch that an output fills, so that the memory of a
//! split is used again by the next one, and nothing that waits keeps record batches of an input alive.
//! An input waits while every output has a record batch that nobody has taken: whichever output is
//! polled then goes on. As long as an output has none, inputs go on, whatever the others hold, so
//! that no circle of waits can arise.
//!
//! Invariant: every row of an input is in the filling or ready rows of its output, or was returned,
//! unless the output was dropped or an error is returned to all outputs.

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
use windrow::{Partitioner, Pool, StoredRows};

use crate::error::datafusion_error;
use crate::memory::{RunMetrics, Workspace};

/// Record batches of an output that wait in memory; more are stored, if all outputs have more than
/// their part of the pool.
const WAITING: usize = 2;
/// One part in `PARTS` of a pool's memory is for record batches that wait.
const PARTS: usize = 4;
/// Bytes of rows that an exchange keeps in memory whatever the pool grants: record batches of a few
/// rows would cost more.
const LEAST: usize = 4 << 20;
/// Bytes of the memory of a split that is used again: a usual record batch, which caches still hold.
const SPLIT: usize = 4 << 20;

/// One run of an exchange.
pub(crate) struct Exchange {
    keys: Vec<Arc<dyn PhysicalExpr>>,
    context: Arc<TaskContext>,
    metrics: RunMetrics,
    /// One of each output.
    filling: Vec<Mutex<Filling>>,
    /// Memory of filling and ready rows, and how much of it is taken before rows are stored.
    reserved: MemoryReservation,
    spare: usize,
    /// Locked after a [`Filling`], never before.
    state: Mutex<State>,
    /// Where rows are stored, from the first of them on.
    store: Mutex<Option<Workspace>>,
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
}

/// The record batch of an output that is not whole yet.
struct Filling {
    /// None once the output was dropped.
    rows: Option<BatchCoalescer>,
    /// Reserved bytes.
    bytes: usize,
}

/// Whole record batches of an output, the oldest first.
#[derive(Default)]
struct Output {
    ready: VecDeque<Ready>,
    waker: Option<Waker>,
    is_dropped: bool,
}

enum Ready {
    /// A record batch and its reserved bytes.
    InMemory(RecordBatch, usize),
    Stored(StoredRows),
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
            _ if !context.runtime_env().disk_manager.tmp_files_enabled() => usize::MAX,
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
        let state = Mutex::new(State { inputs, tasks, running, failed: None, outputs });
        let (store, room) = Default::default();
        Self { keys, context, metrics, filling, reserved, spare, state, store, room }
    }

    /// Returns the rows of an output. Nothing runs before the first poll of any.
    pub(crate) fn output(
        self: &Arc<Self>,
        number: usize,
    ) -> impl Stream<Item = Result<RecordBatch>> + Send + use<> {
        let taker = Taker { exchange: Arc::clone(self), number };
        stream::poll_fn(move |context| taker.poll(context))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn filling(&self, number: usize) -> MutexGuard<'_, Filling> {
        self.filling[number].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds rows to the record batch that an output fills. Hands over whole record batches, and what
    /// has no memory. `scratch` is memory to store rows.
    fn fill(&self, number: usize, rows: RecordBatch, scratch: &mut Vec<u8>) -> Result<()> {
        let mut filling = self.filling(number);
        let Filling { rows: Some(filled), bytes } = &mut *filling else { return Ok(()) };
        filled.push_batch(rows)?;
        let grown = filled.size().saturating_sub(*bytes);
        let mut has_memory = self.reserved.try_grow(grown).is_ok();
        if !has_memory && self.reserved.size() < LEAST {
            self.reserved.grow(grown);
            has_memory = true;
        }
        if has_memory {
            *bytes += grown;
        } else {
            filled.finish_buffered_batch()?;
        }
        while let Some(whole) = filled.next_completed_batch() {
            // What was reserved for the record batch while it was filled is reserved while it waits.
            let left = filled.size().min(*bytes);
            self.reserved.shrink(*bytes - left);
            *bytes = left;
            self.add(number, whole, has_memory, scratch)?;
        }
        Ok(())
    }

    /// Adds a record batch to those that are ready, in memory or stored. The output is locked.
    fn add(
        &self,
        number: usize,
        rows: RecordBatch,
        has_memory: bool,
        scratch: &mut Vec<u8>,
    ) -> Result<()> {
        let bytes = rows.get_array_memory_size();
        let ready = if has_memory
            && (self.state().outputs[number].ready.len() < WAITING
                || self.reserved.size() < self.spare)
            && self.reserved.try_grow(bytes).is_ok()
        {
            Ready::InMemory(rows, bytes)
        } else {
            let stored = StoredRows::store(&rows, &self.store()?, scratch);
            Ready::Stored(stored.map_err(datafusion_error)?)
        };
        let output = &mut self.state().outputs[number];
        output.ready.push_back(ready);
        output.waker.take().into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Returns the pool in which rows are stored.
    fn store(&self) -> Result<Pool> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Workspace { pool, .. }) = &*store {
            return Ok(pool.clone());
        }
        let opened = Workspace::open(&self.context, "WindrowExchange store", 1, &self.metrics)?;
        Ok(store.insert(opened).pool.clone())
    }

    /// Hands over the last rows of an output.
    fn finish(&self, number: usize) -> Result<Option<RecordBatch>> {
        let Filling { rows, bytes } = &mut *self.filling(number);
        self.reserved.shrink(std::mem::take(bytes));
        let Some(mut filled) = rows.take() else { return Ok(None) };
        filled.finish_buffered_batch()?;
        Ok(filled.next_completed_batch())
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
        let is_full = |exchange: Arc<Exchange>| exchange.state().is_full();
        if !exchange.upgrade().is_some_and(is_full) {
            return;
        }
        told.await;
    }
}

impl State {
    /// Returns true if every output that was not dropped has a record batch.
    fn is_full(&self) -> bool {
        self.outputs.iter().all(|output| output.is_dropped || !output.ready.is_empty())
    }

    /// Returns true if an output does not take rows as fast as they come.
    fn is_crowded(&self) -> bool {
        self.outputs.iter().any(|output| output.ready.len() >= WAITING)
    }

    fn wake_all(&mut self) {
        self.outputs.iter_mut().filter_map(|output| output.waker.take()).for_each(Waker::wake);
    }
}

/// The work of one input.
struct Source {
    partitioner: Partitioner,
    hashes: Vec<u64>,
    ids: Vec<u32>,
    /// Memory to store rows.
    scratch: Vec<u8>,
}

impl Source {
    fn new(partitions: usize) -> Self {
        let partitioner = Partitioner::ids(partitions).keeping(SPLIT).pinning();
        Self { partitioner, hashes: Vec::new(), ids: Vec::new(), scratch: Vec::new() }
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
        parts
            .occupied()
            .try_for_each(|(number, rows)| exchange.fill(number, rows, &mut self.scratch))
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
}

impl Taker {
    fn poll(&self, context: &Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        let exchange = &self.exchange;
        let mut state = exchange.state();
        exchange.start(&mut state);
        if let Some(error) = &state.failed {
            return Poll::Ready(Some(Err(DataFusionError::from(error))));
        }
        let is_last = state.running == 0;
        let output = &mut state.outputs[self.number];
        let ready = output.ready.pop_front();
        if ready.is_none() && !is_last {
            output.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        drop(state);
        exchange.room.notify_waiters();
        let rows = match ready {
            Some(Ready::InMemory(rows, bytes)) => {
                exchange.reserved.shrink(bytes);
                Some(rows)
            }
            Some(Ready::Stored(rows)) => Some(rows.read().map_err(datafusion_error)?),
            None => exchange.finish(self.number)?,
        };
        let returned = rows.as_ref().map_or(0, RecordBatch::num_rows);
        exchange.metrics.baseline.record_output(returned);
        Poll::Ready(rows.map(Ok))
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
        for ready in dropped.ready {
            if let Ready::InMemory(_, bytes) = ready {
                exchange.reserved.shrink(bytes);
            }
        }
        exchange.room.notify_waiters();
    }
}
