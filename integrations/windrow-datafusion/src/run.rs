//! One run of an operator: pushes all inputs in parallel, then merges, decodes and emits rows.
//!
//! ```text
//! input 0 --task--> pusher \                             decode
//! input 1 --task--> pusher  > batcher --settle--> slabs <        > in order --> record batches
//! input 2 --task--> pusher /                             decode
//! ```
//! Pushing happens where the input is polled, as in stock operators; separate tasks decode.
//! Compacting and merging may take long or wait for a disk, and run on blocking threads. No
//! blocking call waits for a task, so each one ends whatever else runs. Output record batches are
//! allocated on the threads that also allocated the input's: blocking threads are many, each with
//! its own heap, and a heap keeps memory once allocated. Dropping a stream ends its tasks and frees
//! their memory.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use datafusion::common::runtime::{JoinSet, SpawnedTask};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::Time;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use tokio::sync::mpsc;
use windrow::{Batch, Batcher, Decoder, Finish, Pool, Slab, Slabs, merge_in};

use crate::error::{datafusion_error, engine_error};
use crate::memory::{RunMetrics, Workspace};
use crate::shape::Shape;

/// Bits of a row number within an input; the input number takes the upper bits. Equal rows keep the
/// order of inputs, and of rows within an input.
const ROW_BITS: u32 = 40;
/// Record batches decoded in parallel.
const DECODED_AHEAD: usize = 2;
/// Maximum bytes of rows of a record batch; wide rows make smaller batches.
const MOST_SLAB_BYTES: usize = 16 << 20;
/// The maximum under a memory limit, unless `SLABS_PER_BUDGET` gives less.
const MOST_LIMITED_SLAB_BYTES: usize = 4 << 20;
const LEAST_SLAB_BYTES: usize = 256 << 10;
const SLABS_PER_BUDGET: usize = 16;
/// Record batches alive at a time: the decoded ones and the consumer's.
const RECORD_BATCHES: usize = DECODED_AHEAD + 1;

/// The parameters of one partition of an operator.
pub(crate) struct Run {
    pub(crate) shape: Arc<Shape>,
    pub(crate) context: Arc<TaskContext>,
    /// The consumer's name in the memory pool.
    pub(crate) name: String,
    /// Number of partitions of the operator that run in parallel.
    pub(crate) sharers: usize,
    pub(crate) fetch: Option<usize>,
    pub(crate) metrics: RunMetrics,
}

impl Run {
    /// Sorts the rows of `inputs`. Nothing runs before the first poll.
    pub(crate) fn sorted(
        self,
        inputs: Vec<SendableRecordBatchStream>,
    ) -> impl Stream<Item = Result<RecordBatch>> + Send {
        let sorted = async move {
            let workspace = Arc::new(self.workspace()?);
            let (batch, bytes) = self.pushed(inputs, &workspace).await?;
            let slabs = stream::try_unfold(self.merging(batch, bytes, &workspace), Merging::next);
            Ok::<_, DataFusionError>(self.decoded(slabs))
        };
        stream::once(sorted).try_flatten()
    }

    /// Merges the rows of `inputs`, which must be sorted, as the rows arrive.
    pub(crate) fn merged(
        self,
        inputs: Vec<SendableRecordBatchStream>,
    ) -> impl Stream<Item = Result<RecordBatch>> + Send {
        let merged = async move {
            let workspace = Arc::new(self.workspace()?);
            let mut tasks = JoinSet::new();
            let arriving = |input| arriving(input, &self.shape, &mut tasks);
            let inputs: Vec<_> = inputs.into_iter().map(arriving).collect();
            let inputs = inputs.into_iter().enumerate();
            let batch = merge_in(&self.shape.layout, &workspace.pool, inputs);
            let bytes = slab_bytes(&workspace.pool);
            workspace.set_aside_for(RECORD_BATCHES * bytes)?;
            let slabs = slabs_of(self.merging(batch, bytes, &workspace))?;
            // The tasks live as long as the stream of rows.
            let rows = self.decoded(slabs).map(move |batch| {
                let _tasks = &tasks;
                batch
            });
            Ok::<_, DataFusionError>(rows)
        };
        stream::once(merged).try_flatten()
    }

    fn workspace(&self) -> Result<Workspace> {
        Workspace::open(&self.context, &self.name, self.sharers, &self.metrics)
    }

    /// Pushes all rows of `inputs`, and returns a batch to merge and the maximum bytes of one
    /// output block.
    async fn pushed(
        &self,
        inputs: Vec<SendableRecordBatchStream>,
        workspace: &Arc<Workspace>,
    ) -> Result<(Batch, usize)> {
        let batcher: Batcher = Batcher::new(&self.shape.layout, &workspace.pool);
        let pushers = batcher.pushers(inputs.len());
        let mut tasks = JoinSet::new();
        for (number, (mut input, mut pusher)) in inputs.into_iter().zip(pushers).enumerate() {
            let (shape, workspace) = (Arc::clone(&self.shape), Arc::clone(workspace));
            let (elapsed, mut sequence) = (self.metrics.elapsed(), (number as u64) << ROW_BITS);
            tasks.spawn(async move {
                while let Some(batch) = input.next().await.transpose()? {
                    let _timer = elapsed.timer();
                    let rows = shape.rows(&batch)?;
                    pusher.push(&rows, sequence).map_err(datafusion_error)?;
                    sequence += rows.num_rows() as u64;
                    workspace.tell();
                }
                // Frees the memory of the input before the last rows are sorted.
                drop(input);
                let _timer = elapsed.timer();
                pusher.flush().map_err(datafusion_error)
            });
        }
        while let Some(pushed) = tasks.join_next().await {
            pushed.map_err(unwound)??;
        }
        let (elapsed, workspace) = (self.metrics.elapsed(), Arc::clone(workspace));
        let rows = self.context.session_config().batch_size();
        blocking(move || {
            let _timer = elapsed.timer();
            let bytes = slab_bytes(&workspace.pool);
            workspace.set_aside_for(RECORD_BATCHES * bytes)?;
            let mut batch = batcher.finish().map_err(datafusion_error)?;
            if workspace.adopted.is_some() {
                // A merge pins a chunk of each run, possibly all chunks; with a single run, all
                // other chunks can be spilled.
                batch = batch.settle().map_err(datafusion_error)?;
                workspace.set_aside_for(RECORD_BATCHES * bytes.min(bytes_of(&batch, rows)))?;
            }
            workspace.tell();
            Ok((batch, bytes))
        })
        .await
    }

    /// Creates the last merge of `batch`, with output blocks of at most `bytes` bytes.
    fn merging(&self, batch: Batch, bytes: usize, workspace: &Arc<Workspace>) -> Merging {
        Merging {
            slabs: batch.slabs(Finish::Log),
            rows: self.context.session_config().batch_size(),
            bytes,
            left: self.fetch,
            elapsed: self.metrics.elapsed(),
            workspace: Arc::clone(workspace),
        }
    }

    /// Decodes slabs into record batches.
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

/// Returns the maximum bytes of rows of one record batch.
fn slab_bytes(pool: &Pool) -> usize {
    match pool.budget().is_limited() {
        true => (pool.budget().limit() / SLABS_PER_BUDGET)
            .clamp(LEAST_SLAB_BYTES, MOST_LIMITED_SLAB_BYTES),
        false => MOST_SLAB_BYTES,
    }
}

/// Estimates the bytes of `rows` rows of a compacted batch as a record batch, from the mean row.
fn bytes_of(batch: &Batch, rows: usize) -> usize {
    let (Some(bytes), Some(all)) = (batch.bytes(), batch.rows()) else { return usize::MAX };
    let mean = usize::try_from(bytes.div_ceil(all.max(1))).unwrap_or(usize::MAX);
    // Arrays take about as many bytes as rows, rounded up.
    mean.saturating_add(mean / 4).saturating_mul(rows)
}

/// The state of the last merge.
struct Merging {
    slabs: Slabs,
    rows: usize,
    bytes: usize,
    /// Rows left to emit, if limited.
    left: Option<usize>,
    elapsed: Time,
    workspace: Arc<Workspace>,
}

impl Merging {
    /// Merges the next rows on a blocking thread.
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

/// Runs `merging` on its own thread: the merge waits for inputs, and the inputs' blocking calls
/// could queue after a blocking task. The thread ends when the receiver is dropped, or after the
/// last rows.
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

/// Returns the rows of a sorted input, for a thread that may block. The end of the input is sent
/// explicitly: a closed channel without an end means an aborted task and missing rows.
fn arriving(
    mut input: SendableRecordBatchStream,
    shape: &Arc<Shape>,
    tasks: &mut JoinSet<()>,
) -> impl Iterator<Item = windrow::Result<RecordBatch>> + Send + use<> {
    let (sender, mut batches) = mpsc::channel::<Option<Result<RecordBatch>>>(1);
    let shape = Arc::clone(shape);
    tasks.spawn(async move {
        while let Some(batch) = input.next().await {
            let rows = batch.and_then(|batch| shape.rows(&batch));
            if sender.send(Some(rows)).await.is_err() {
                return;
            }
        }
        // The receiver may be gone already.
        let _ = sender.send(None).await;
    });
    std::iter::from_fn(move || match batches.blocking_recv() {
        Some(batch) => batch.map(|batch| batch.map_err(engine_error)),
        None => Some(Err(windrow::Error::Lost)),
    })
}

/// A pool of decoders, one for each thread that decodes at the same time.
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

/// Runs `work` on a blocking thread. The work continues even if the returned future is dropped.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    SpawnedTask::spawn_blocking(work).join_unwind().await.map_err(unwound)?
}

/// Converts the error of a task that panicked or was aborted.
fn unwound(error: tokio::task::JoinError) -> DataFusionError {
    if error.is_panic() {
        std::panic::resume_unwind(error.into_panic());
    }
    DataFusionError::ExecutionJoin(Box::new(error))
}
