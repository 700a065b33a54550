//! One run of an operator: its inputs pushed side by side, then rows merged, decoded and handed on.
//!
//! ```text
//! input 0 --task--> pusher \                                    decode
//! input 1 --task--> pusher  > batcher --settle--> slab by slab <        > in order --> record batches
//! input 2 --task--> pusher /                                    decode
//! ```
//! Pushing is done where the input is polled, as stock operators do it, and decoding by tasks beside that. What may take
//! long or wait for a disk - settling, merging - is done on threads that may block; none of these calls waits for another
//! task, so they end whatever else runs. Record batches come out of the allocator where those of the input went into it:
//! threads that may block are many, each with a heap of its own, and what such a heap has held once it keeps. A stream
//! that is dropped ends its tasks, and with them its memory.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use datafusion::common::runtime::{JoinSet, SpawnedTask};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, Gauge, MetricBuilder, Time,
};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use tokio::sync::mpsc;
use windrow::{Batch, Batcher, Decoder, Finish, Pool, Pusher, Slab, Slabs, merge_in};

use crate::error::{datafusion_error, engine_error};
use crate::memory::Workspace;
use crate::shape::Shape;

/// Rows of one input are numbered with this many bits, inputs with the others: equal rows come in the order of their
/// inputs, and of the rows there.
const ROW_BITS: u32 = 40;
/// Record batches that are decoded beside each other.
const DECODED_AHEAD: usize = 2;
/// Bytes of rows that become one record batch at the most: of wide rows there are fewer.
const MOST_SLAB_BYTES: usize = 16 << 20;
/// The same where memory has a limit, as far as it is a small part of that.
const MOST_LIMITED_SLAB_BYTES: usize = 4 << 20;
const LEAST_SLAB_BYTES: usize = 256 << 10;
const SLABS_PER_BUDGET: usize = 16;
/// Record batches that are there at a time: those that are decoded, and the consumer's.
const RECORD_BATCHES: usize = DECODED_AHEAD + 1;

/// What one partition of an operator is to do.
pub(crate) struct Run {
    pub(crate) shape: Arc<Shape>,
    pub(crate) context: Arc<TaskContext>,
    /// What the memory pool calls it.
    pub(crate) name: String,
    /// Partitions of the operator that run beside each other.
    pub(crate) sharers: usize,
    pub(crate) fetch: Option<usize>,
    pub(crate) metrics: RunMetrics,
}

/// What `EXPLAIN ANALYZE` shows of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunMetrics {
    pub(crate) baseline: BaselineMetrics,
    /// Chunks that were written out.
    spill_count: Count,
    /// Bytes that they took on disk.
    spilled_bytes: Count,
    peak: Gauge,
}

impl RunMetrics {
    pub(crate) fn new(set: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        Self {
            baseline: BaselineMetrics::new(set, partition),
            spill_count: MetricBuilder::new(set).spill_count(partition),
            spilled_bytes: MetricBuilder::new(set).spilled_bytes(partition),
            peak: MetricBuilder::new(set).peak_memory_usage("peak_mem_used", partition),
        }
    }

    fn elapsed(&self) -> Time {
        self.baseline.elapsed_compute().clone()
    }

    /// Takes over what the pool of the run counted, once.
    fn record(&self, workspace: &Workspace) {
        let stats = workspace.pool().stats();
        self.spill_count.add(stats.spills as usize);
        self.spilled_bytes.add(stats.stored_bytes);
        self.peak.set_max(stats.peak_leased);
    }
}

impl Run {
    /// The rows of `inputs`, as they come out. Nothing happens before they are polled.
    pub(crate) fn sorted(
        self,
        inputs: Vec<SendableRecordBatchStream>,
    ) -> impl Stream<Item = Result<RecordBatch>> + Send {
        let sorted = async move {
            let workspace = Workspace::open(&self.context, self.name.clone(), self.sharers)?;
            let workspace = Arc::new(Held { workspace, metrics: self.metrics.clone() });
            let (batch, bytes) = self.pushed(inputs, &workspace).await?;
            let slabs = stream::try_unfold(self.merging(batch, bytes, &workspace), Merging::next);
            Ok::<_, DataFusionError>(self.decoded(slabs))
        };
        stream::once(sorted).try_flatten()
    }

    /// The rows of `inputs`, which are in order, merged as they come.
    pub(crate) fn merged(
        self,
        inputs: Vec<SendableRecordBatchStream>,
    ) -> impl Stream<Item = Result<RecordBatch>> + Send {
        let merged = async move {
            let workspace = Workspace::open(&self.context, self.name.clone(), self.sharers)?;
            let workspace = Arc::new(Held { workspace, metrics: self.metrics.clone() });
            let mut tasks = JoinSet::new();
            let arriving = |input| Arriving::spawn(input, &self.shape, &mut tasks);
            let inputs: Vec<Arriving> = inputs.into_iter().map(arriving).collect();
            let inputs = inputs.into_iter().enumerate();
            let batch = merge_in(self.shape.layout(), workspace.pool(), inputs);
            let bytes = slab_bytes(workspace.pool());
            workspace.set_aside_for(RECORD_BATCHES * bytes)?;
            let slabs = slabs_of(self.merging(batch, bytes, &workspace))?;
            // The tasks go with the rows that come of them.
            let rows = self.decoded(slabs).map(move |batch| {
                let _tasks = &tasks;
                batch
            });
            Ok::<_, DataFusionError>(rows)
        };
        stream::once(merged).try_flatten()
    }

    /// All rows of `inputs`, to be merged, and bytes of them that may come out at once.
    async fn pushed(
        &self,
        inputs: Vec<SendableRecordBatchStream>,
        workspace: &Arc<Held>,
    ) -> Result<(Batch, usize)> {
        let batcher: Batcher = Batcher::new(self.shape.layout(), workspace.pool());
        let pushers = batcher.pushers(inputs.len());
        let mut tasks = JoinSet::new();
        for (number, (input, pusher)) in inputs.into_iter().zip(pushers).enumerate() {
            let push = Push {
                shape: Arc::clone(&self.shape),
                workspace: Arc::clone(workspace),
                pusher,
                sequence: (number as u64) << ROW_BITS,
                elapsed: self.metrics.elapsed(),
            };
            tasks.spawn(push.all(input));
        }
        while let Some(pushed) = tasks.join_next().await {
            pushed.map_err(unwound)??;
        }
        let (elapsed, workspace) = (self.metrics.elapsed(), Arc::clone(workspace));
        let rows = self.context.session_config().batch_size();
        blocking(move || {
            let _timer = elapsed.timer();
            let bytes = slab_bytes(workspace.pool());
            workspace.set_aside_for(RECORD_BATCHES * bytes)?;
            let mut batch = batcher.finish().map_err(datafusion_error)?;
            if workspace.gives_way() {
                // A merge holds a chunk of each run, which may be all there are; of one run the others can leave.
                batch = batch.settle().map_err(datafusion_error)?;
                workspace.set_aside_for(RECORD_BATCHES * bytes.min(bytes_of(&batch, rows)))?;
            }
            workspace.tell();
            Ok((batch, bytes))
        })
        .await
    }

    /// The last merge of `batch`, of which so many bytes come out at once at the most.
    fn merging(&self, batch: Batch, bytes: usize, workspace: &Arc<Held>) -> Merging {
        Merging {
            slabs: batch.slabs(Finish::Log),
            rows: self.context.session_config().batch_size(),
            bytes,
            left: self.fetch,
            elapsed: self.metrics.elapsed(),
            workspace: Arc::clone(workspace),
        }
    }

    /// Slabs as record batches.
    fn decoded<S>(&self, slabs: S) -> impl Stream<Item = Result<RecordBatch>> + Send + use<S>
    where
        S: Stream<Item = Result<Slab>> + Send + 'static,
    {
        let decoding = Arc::new(Decoding {
            shape: Arc::clone(&self.shape),
            decoders: Mutex::default(),
            elapsed: self.metrics.elapsed(),
        });
        let baseline = self.metrics.baseline.clone();
        slabs
            .boxed()
            .map(move |slab| {
                let decoding = Arc::clone(&decoding);
                async move {
                    let slab = slab?;
                    let decoded = SpawnedTask::spawn(async move { decoding.decode(&slab) });
                    decoded.join_unwind().await.map_err(unwound)?
                }
            })
            .buffered(DECODED_AHEAD)
            .inspect_ok(move |batch| baseline.record_output(batch.num_rows()))
    }
}

/// Bytes of rows that become one record batch at the most.
fn slab_bytes(pool: &Pool) -> usize {
    match pool.budget().is_limited() {
        true => (pool.budget().limit() / SLABS_PER_BUDGET)
            .clamp(LEAST_SLAB_BYTES, MOST_LIMITED_SLAB_BYTES),
        false => MOST_SLAB_BYTES,
    }
}

/// Bytes that `rows` of a settled batch take as a record batch, by the mean of all of them.
fn bytes_of(batch: &Batch, rows: usize) -> usize {
    let (Some(bytes), Some(all)) = (batch.bytes(), batch.rows()) else { return usize::MAX };
    let mean = usize::try_from(bytes.div_ceil(all.max(1))).unwrap_or(usize::MAX);
    // Arrays are as large as rows, and rounded up.
    mean.saturating_add(mean / 4).saturating_mul(rows)
}

/// A workspace whose counters become metrics when nobody holds it any more.
pub(crate) struct Held {
    workspace: Workspace,
    metrics: RunMetrics,
}

impl std::ops::Deref for Held {
    type Target = Workspace;

    fn deref(&self) -> &Workspace {
        &self.workspace
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.metrics.record(&self.workspace);
    }
}

/// One input on its way into a batcher.
struct Push {
    shape: Arc<Shape>,
    workspace: Arc<Held>,
    pusher: Pusher,
    /// The place of the next row.
    sequence: u64,
    elapsed: Time,
}

impl Push {
    async fn all(mut self, mut input: SendableRecordBatchStream) -> Result<()> {
        while let Some(batch) = input.next().await {
            self.push(&batch?)?;
        }
        // What the input holds is not needed while the last rows are put in order.
        drop(input);
        let _timer = self.elapsed.timer();
        self.pusher.flush().map_err(datafusion_error)
    }

    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let _timer = self.elapsed.timer();
        let rows = self.shape.rows(batch)?;
        self.pusher.push(&rows, self.sequence).map_err(datafusion_error)?;
        self.sequence += rows.num_rows() as u64;
        self.workspace.tell();
        Ok(())
    }
}

/// The last merge, as far as it has come.
struct Merging {
    slabs: Slabs,
    rows: usize,
    bytes: usize,
    /// Rows that are still to come out, if not all.
    left: Option<usize>,
    elapsed: Time,
    workspace: Arc<Held>,
}

impl Merging {
    /// The next rows, on a thread that may block.
    async fn next(mut self) -> Result<Option<(Slab, Self)>> {
        blocking(move || Ok(self.merged()?.map(|slab| (slab, self)))).await
    }

    fn merged(&mut self) -> Result<Option<Slab>> {
        let rows = self.left.map_or(self.rows, |left| left.min(self.rows));
        if rows == 0 {
            return Ok(None);
        }
        let _timer = self.elapsed.timer();
        let slab = self.slabs.next(rows, self.bytes).map_err(datafusion_error)?;
        self.workspace.tell();
        let taken = slab.as_ref().map_or(0, Slab::rows);
        self.left = self.left.map(|left| left.saturating_sub(taken));
        Ok(slab)
    }
}

/// What `merging` yields, on a thread of its own: it waits for inputs, which other blocking calls may stand behind.
/// The thread ends when nobody takes the rows any more, or no more come.
fn slabs_of(mut merging: Merging) -> Result<impl Stream<Item = Result<Slab>> + Send> {
    let (sender, receiver) = mpsc::channel(1);
    let merge = move || {
        while let Some(slab) = merging.merged().transpose() {
            let failed = slab.is_err();
            if sender.blocking_send(slab).is_err() || failed {
                break;
            }
        }
    };
    std::thread::Builder::new().name("windrow-merge".into()).spawn(merge)?;
    Ok(stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|slab| (slab, receiver))
    }))
}

/// An input that is in order, as a thread reads it that may wait. Its end is sent, too: a task that ends without it
/// was ended, and rows are missing.
struct Arriving {
    batches: mpsc::Receiver<Option<Result<RecordBatch>>>,
}

impl Arriving {
    fn spawn(
        mut input: SendableRecordBatchStream,
        shape: &Arc<Shape>,
        tasks: &mut JoinSet<()>,
    ) -> Self {
        let (sender, batches) = mpsc::channel(1);
        let shape = Arc::clone(shape);
        tasks.spawn(async move {
            while let Some(batch) = input.next().await {
                let rows = batch.and_then(|batch| shape.rows(&batch));
                if sender.send(Some(rows)).await.is_err() {
                    return;
                }
            }
            // Nobody may be there to hear of it.
            let _ = sender.send(None).await;
        });
        Self { batches }
    }
}

impl Iterator for Arriving {
    type Item = windrow::Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.batches.blocking_recv() {
            Some(batch) => batch.map(|batch| batch.map_err(engine_error)),
            None => Some(Err(windrow::Error::Lost)),
        }
    }
}

/// Decoders, one for each thread that decodes at a time.
struct Decoding {
    shape: Arc<Shape>,
    decoders: Mutex<Vec<Decoder>>,
    elapsed: Time,
}

impl Decoding {
    fn decode(&self, slab: &Slab) -> Result<RecordBatch> {
        let _timer = self.elapsed.timer();
        let idle = self.decoders.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut decoder = idle.map_or_else(|| self.shape.decoder(), Ok)?;
        let decoded = decoder.decode(slab).map_err(datafusion_error);
        self.decoders.lock().unwrap_or_else(PoisonError::into_inner).push(decoder);
        self.shape.named(&decoded?)
    }
}

/// Calls `work` on a thread that may block. It is not ended if nobody waits for it any more.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    SpawnedTask::spawn_blocking(work).join_unwind().await.map_err(unwound)?
}

/// A task that did not end by itself.
fn unwound(error: tokio::task::JoinError) -> DataFusionError {
    if error.is_panic() {
        std::panic::resume_unwind(error.into_panic());
    }
    DataFusionError::ExecutionJoin(Box::new(error))
}
