//! Builders: gather many record batches into chunks of each partition, within a budget.
//!
//! ```text
//!                 staged record batches, until a split pays
//!  push(batch) --> | batch | batch | batch | --split--> partition 0 | block | block |
//!                                                       partition 1 | block | block | block |
//!                                                       ...    largest first, when memory is short
//!                                                                        |  ^
//!  flush(partition) <-- chunks of about the target, as record batches    v  |
//!                                                                    pool's store
//! ```
//!
//! A record batch split over thousands of partitions leaves a few rows for each: too few to send,
//! to write or to keep as arrays. So record batches are staged and split together. Their rows wait
//! as bytes, in a block of `flat` for each partition and split. When the budget is used up, the
//! largest partitions go to the store until half of the memory is free: a hot key is stored at once
//! and in large pieces, and small partitions are stored once they have grown.
//!
//! Invariant: the rows of a partition come out in input order. Leases stay within the budget but
//! for one chunk, whatever the number of partitions and the distribution of rows.

use std::collections::VecDeque;

use arrow_array::{Array, RecordBatch};
use arrow_buffer::Buffer;
use arrow_schema::SchemaRef;

use super::concat::concat_batches;
use super::flat;
use super::partitioner::Partitioner;
use super::replicate::replicated;
use super::splitter::checked_partitions;
use super::stored;
use super::waiting::Waiting;
use windrow_pool::{Extent, Lease, Pool};
use windrow_rows::engine::check_fields;
use windrow_rows::{Error, Result};

/// Default bytes of a chunk, unless the budget is small.
const TARGET: usize = 1 << 20;
/// Maximum bytes of a chunk: offsets of 32 bits must suffice for the strings of a chunk.
const LARGEST_TARGET: usize = 256 << 20;
/// A chunk takes at most this part of the budget, and so do staged record batches.
const CHUNKS_PER_BUDGET: usize = 16;
/// Maximum bytes of staged record batches: beyond, splits get no cheaper.
const STAGED: usize = 16 << 20;
/// Minimum of the bytes that may be staged.
const LEAST_STAGED: usize = 64 << 10;
/// Rows that a piece of a record batch may become where rows go to every partition.
const REPLICATED: usize = 64 << 10;
/// Bytes of each lease.
const STEP: usize = 64 << 10;

/// Gathers record batches into chunks of each partition, within the budget of a pool.
///
/// ```
/// # use std::sync::Arc;
/// # use windrow_rows::arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use windrow_partition::{PartitionBuilder, Partitioner};
/// use windrow_pool::{Budget, Pool};
/// use windrow_rows::Order;
///
/// # let users = Int64Array::from_iter_values(0..1000);
/// # let batch = RecordBatch::try_from_iter([("user", Arc::new(users) as ArrayRef)])?;
/// # let reader = vec![batch.clone(); 10];
/// # let mut sent = 0;
/// let layout = Order::by(["user"]).bind(&batch.schema())?;
/// let pool = Pool::in_dir(std::env::temp_dir(), Budget::bytes(16 << 20))?;
/// let mut builder =
///     PartitionBuilder::new(Partitioner::hash(&layout, 2048), &batch.schema(), &pool)?;
/// for batch in reader {
///     builder.push(&batch)?;
/// }
/// for partition in 0..builder.partitions() {
///     for chunk in builder.flush(partition)? {
///         // send `chunk`, a record batch of about 1 MiB, to whoever takes `partition`
///         # sent += chunk?.num_rows();
///     }
/// }
/// # assert_eq!(sent, 10_000);
/// # Ok::<(), windrow_rows::Error>(())
/// ```
///
/// The budget covers record batches from their push until their split, and rows that wait in
/// memory. Flushed rows belong to the caller.
///
/// # Cost
/// Three copies of the rows, one more each for rows that are stored and read back, and about 0.5 us
/// for each column, partition and split.
#[derive(Debug)]
pub struct PartitionBuilder {
    partitioner: Partitioner,
    schema: SchemaRef,
    pool: Pool,
    target: usize,
    staged: Vec<RecordBatch>,
    ids: Vec<u32>,
    /// Bytes of the staged record batches.
    staged_bytes: usize,
    waiting: Vec<Waiting>,
    /// Bytes of memory of all waiting rows.
    held: usize,
    /// Leases for `held` and `staged_bytes`, of [`STEP`] bytes each.
    leases: Vec<Lease>,
    block: Vec<u8>,
    /// True if rows were lost to an error.
    lost: bool,
}

impl PartitionBuilder {
    /// Creates a builder with the partitions of `partitioner`, for record batches of `schema`.
    /// Chunks have the same schema; other metadata of record batches is dropped.
    ///
    /// # Errors
    /// [`Error::InvalidOrder`] for zero or more than 2^24 partitions.
    pub fn new(mut partitioner: Partitioner, schema: &SchemaRef, pool: &Pool) -> Result<Self> {
        checked_partitions(partitioner.partitions())?;
        partitioner.splitter.memory.keep_little();
        let mut waiting = Vec::new();
        waiting.resize_with(partitioner.partitions(), Waiting::default);
        let target = TARGET.min(pool.budget().limit() / CHUNKS_PER_BUDGET).max(1);
        let held = waiting.len() * size_of::<Waiting>();
        Ok(Self {
            partitioner,
            schema: SchemaRef::clone(schema),
            pool: pool.clone(),
            target,
            staged: Vec::new(),
            ids: Vec::new(),
            staged_bytes: 0,
            waiting,
            held,
            leases: Vec::new(),
            block: Vec::new(),
            lost: false,
        })
    }

    /// Sets the approximate bytes of a chunk: 1 MiB by default, at most 256 MiB and a sixteenth of
    /// the budget. A chunk is smaller at the end of a partition, or if dictionaries would have more
    /// values than keys. A chunk is larger by up to the rows of one split.
    #[must_use]
    pub fn chunk_bytes(mut self, bytes: usize) -> Self {
        let most = LARGEST_TARGET.min(self.pool.budget().limit() / CHUNKS_PER_BUDGET);
        self.target = bytes.clamp(1, most.max(1));
        self
    }

    /// Returns the number of partitions.
    pub fn partitions(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the number of waiting rows of `partition`, without staged record batches, which are
    /// split later. After [`PartitionBuilder::settle`], all rows are counted.
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn rows(&self, partition: usize) -> usize {
        self.waiting[partition].rows
    }

    /// Estimates the bytes of [`PartitionBuilder::rows`], in memory and on disk.
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn bytes(&self, partition: usize) -> usize {
        self.waiting[partition].bytes
    }

    /// Adds the rows of `batch`, each to the partition that the partitioner assigns.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] if columns have other names or types, [`Error::Value`] for a null
    /// where the schema has none, [`Error::InvalidOrder`] if the partitioner needs given ids: no
    /// row was added. [`Error::TempSpace`] and [`Error::Io`] if rows cannot be stored,
    /// [`Error::Arrow`] if record batches do not fit into one (strings too long for their offsets):
    /// rows may be lost, and any later call then returns [`Error::Lost`].
    pub fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        self.check_schema(batch)?;
        let mut ids = Vec::new();
        self.partitioner.assign(batch, &mut ids)?;
        let Some(all) = self.partitioner.replicated_rows(batch) else {
            return self.stage(batch, &ids);
        };
        // A row may become as many as there are partitions.
        let (partitions, rows) = (self.partitions(), batch.num_rows());
        let step = (REPLICATED / partitions).max(1);
        for start in (0..rows).step_by(step) {
            let len = step.min(rows - start);
            let (piece, all) = (batch.slice(start, len), all.slice(start, len));
            let rows = replicated(&piece, &ids[start..start + len], &all, partitions);
            self.lost |= rows.is_err();
            let (piece, ids) = rows?;
            self.stage(&piece, &ids)?;
        }
        Ok(())
    }

    /// Adds the rows of `batch`: row `i` to partition `ids[i]`, whatever the partitioner's rule.
    ///
    /// # Errors
    /// As [`PartitionBuilder::push`]. [`Error::PartitionOutOfRange`] for an id without a partition,
    /// [`Error::InvalidOrder`] if the numbers of ids and of rows differ: no row was added.
    pub fn push_by_ids(&mut self, batch: &RecordBatch, ids: &[u32]) -> Result<()> {
        self.check_schema(batch)?;
        if ids.len() != batch.num_rows() {
            let message = format!("{} ids for {} rows", ids.len(), batch.num_rows());
            return Err(Error::InvalidOrder(message));
        }
        let partitions = self.partitions();
        if let Some(row) = ids.iter().position(|&id| id as usize >= partitions) {
            return Err(Error::PartitionOutOfRange { row, id: ids[row], partitions });
        }
        self.stage(batch, ids)
    }

    /// Splits the staged record batches. Every flush settles, and so does a push once enough is
    /// staged.
    ///
    /// # Errors
    /// As [`PartitionBuilder::push`].
    pub fn settle(&mut self) -> Result<()> {
        self.guarded(Self::split_staged)
    }

    /// Does `work` unless a call before failed, after which no more is done.
    fn guarded<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        if self.lost {
            return Err(Error::Lost);
        }
        let done = work(self);
        self.lost = done.is_err();
        done
    }

    fn split_staged(&mut self) -> Result<()> {
        let (staged, ids) = (std::mem::take(&mut self.staged), std::mem::take(&mut self.ids));
        self.split_all(staged, &ids)?;
        self.staged_bytes = 0;
        self.pay()
    }

    /// Splits record batches as one, or as several if they do not fit into one.
    fn split_all(&mut self, mut batches: Vec<RecordBatch>, ids: &[u32]) -> Result<()> {
        let batch = match batches.as_slice() {
            [] => return Ok(()),
            [batch] => batch.clone(),
            // One copy, and one split: separate splits would leave a few rows for each partition.
            all => match concat_batches(&self.schema, all)? {
                Some(batch) => batch,
                None => {
                    let back = batches.split_off(batches.len() / 2);
                    let rows = batches.iter().map(RecordBatch::num_rows).sum();
                    self.split_all(batches, &ids[..rows])?;
                    return self.split_all(back, &ids[rows..]);
                }
            },
        };
        drop(batches);
        let parts = self.partitioner.splitter.split(batch, ids)?;
        let mut block = std::mem::take(&mut self.block);
        let mut writer = flat::Writer::new(parts.batch());
        for partition in (0..parts.partitions()).filter(|&p| !parts.rows(p).is_empty()) {
            block.clear();
            writer.write(parts.rows(partition), &mut block)?;
            let waiting = &mut self.waiting[partition];
            let before = waiting.held();
            waiting.push(&block, parts.rows(partition).len(), self.target);
            self.held = self.held - before + waiting.held();
            self.pay()?;
        }
        self.block = block;
        Ok(())
    }

    /// Takes all rows of `partition` so far, in input order, as record batches of about the target
    /// size. Partitions may be flushed in any order, and repeatedly.
    ///
    /// # Errors
    /// As [`PartitionBuilder::push`]; the chunks return [`Error::Corrupt`] or [`Error::Io`] if
    /// stored rows cannot be read back.
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn flush(&mut self, partition: usize) -> Result<PartitionChunks> {
        self.settle()?;
        self.flush_split(partition)
    }

    /// Takes the rows of `partition` that were split so far, which [`PartitionBuilder::rows`] counts.
    /// Unlike [`PartitionBuilder::flush`], leaves staged record batches for a later split with more
    /// rows.
    ///
    /// # Errors
    /// As [`PartitionBuilder::flush`].
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn flush_split(&mut self, partition: usize) -> Result<PartitionChunks> {
        self.guarded(|builder| builder.take(partition))
    }

    fn take(&mut self, partition: usize) -> Result<PartitionChunks> {
        let mut waiting = std::mem::take(&mut self.waiting[partition]);
        self.held -= waiting.held();
        waiting.seal();
        let stored: usize = waiting.stored.iter().map(Extent::len).sum();
        let held: usize = waiting.sealed.iter().map(Vec::capacity).sum();
        // Stored rows are read back chunk by chunk: memory for two chunks must be free.
        let room = stored.min(2 * self.target) + held;
        self.free(room)?;
        self.pay()?;
        Ok(PartitionChunks {
            schema: SchemaRef::clone(&self.schema),
            pool: self.pool.clone(),
            target: self.target,
            stored: waiting.stored,
            sealed: waiting.sealed,
            ready: VecDeque::new(),
            _lease: self.pool.budget().lease(held),
        })
    }

    fn check_schema(&self, batch: &RecordBatch) -> Result<()> {
        check_fields(&self.schema, batch.schema_ref())?;
        let fields = self.schema.fields().iter().zip(batch.columns());
        for (field, column) in fields.filter(|(field, _)| !field.is_nullable()) {
            if column.logical_null_count() > 0 {
                return Err(Error::Value {
                    column: field.name().clone(),
                    message: "a null in a column that must not have one".into(),
                });
            }
        }
        Ok(())
    }

    /// Stages `batch` for the next split, in pieces that fit one split.
    fn stage(&mut self, batch: &RecordBatch, ids: &[u32]) -> Result<()> {
        self.guarded(|builder| builder.stage_pieces(batch, ids))
    }

    fn stage_pieces(&mut self, batch: &RecordBatch, ids: &[u32]) -> Result<()> {
        let rows = batch.num_rows();
        if rows == 0 {
            return Ok(());
        }
        let most = (self.pool.budget().limit() / CHUNKS_PER_BUDGET).clamp(LEAST_STAGED, STAGED);
        let bytes = used_bytes(batch).max(1);
        let step = (rows as u128 * most as u128 / bytes as u128).clamp(1, rows as u128) as usize;
        for start in (0..rows).step_by(step) {
            let len = step.min(rows - start);
            let bytes = (bytes as u128 * len as u128 / rows as u128) as usize;
            if self.staged_bytes + bytes > most {
                self.settle()?;
            }
            self.staged.push(batch.slice(start, len));
            self.ids.extend_from_slice(&ids[start..start + len]);
            self.staged_bytes += bytes + len * size_of::<u32>();
            self.pay()?;
        }
        Ok(())
    }

    /// Leases used memory, and returns unused leases; stores rows if the budget is exhausted.
    fn pay(&mut self) -> Result<()> {
        // A split copies staged record batches twice.
        let steps = |this: &Self| (this.held + 3 * this.staged_bytes).div_ceil(STEP);
        while self.leases.len() < steps(self) {
            match self.pool.budget().try_lease(STEP) {
                Some(lease) => self.leases.push(lease),
                None if self.pool.release_recycled_beyond(0) > 0 || self.store_largest()? => {}
                // Nothing is left to store: leases the minimum beyond the budget.
                None => self.leases.push(self.pool.budget().lease(STEP)),
            }
        }
        self.leases.truncate(steps(self));
        Ok(())
    }

    /// Stores rows until `bytes` of the budget are free, or nothing is left to store.
    fn free(&mut self, bytes: usize) -> Result<()> {
        self.pay()?;
        let limit = self.pool.budget().limit();
        while self.pool.budget().used().saturating_add(bytes) > limit && self.store_largest()? {
            self.pay()?;
        }
        Ok(())
    }

    /// Stores the largest partitions, until half of the held bytes are stored. Returns false if
    /// there was nothing to store.
    fn store_largest(&mut self) -> Result<bool> {
        let sizes = self.waiting.iter().map(Waiting::storable).enumerate();
        let mut sizes: Vec<(usize, usize)> = sizes
            .filter(|&(_, bytes)| bytes > 0)
            .map(|(partition, bytes)| (bytes, partition))
            .collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let half = sizes.iter().map(|(bytes, _)| bytes).sum::<usize>() / 2;
        let mut stored = 0;
        for &(bytes, partition) in &sizes {
            let waiting = &mut self.waiting[partition];
            self.held -= waiting.held();
            let done = waiting.store(&self.pool);
            self.held += waiting.held();
            done?;
            stored += bytes;
            if stored >= half {
                break;
            }
        }
        Ok(stored > 0)
    }
}

impl Drop for PartitionBuilder {
    fn drop(&mut self) {
        // Buffers of rows that were read back keep their leases while they may be reused.
        self.pool.release_recycled();
    }
}

/// Estimates the bytes that the rows of `batch` use.
fn used_bytes(batch: &RecordBatch) -> usize {
    let columns = batch.columns().iter();
    columns
        .map(|column| {
            let data = column.to_data();
            data.get_slice_memory_size().unwrap_or_else(|_| data.get_array_memory_size())
        })
        .sum()
}

/// The rows of a partition, as record batches, returned by [`PartitionBuilder::flush`]. Ends after
/// the first error.
#[derive(Debug)]
#[must_use = "its rows are nowhere else"]
pub struct PartitionChunks {
    schema: SchemaRef,
    pool: Pool,
    target: usize,
    stored: VecDeque<Extent>,
    sealed: VecDeque<Vec<u8>>,
    /// Chunks that were read together with an earlier chunk.
    ready: VecDeque<RecordBatch>,
    _lease: Lease,
}

impl PartitionChunks {
    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.stored.is_empty() && self.sealed.is_empty() && self.ready.is_empty()
    }

    /// Takes the oldest blocks.
    fn take(&mut self) -> Result<Option<Buffer>> {
        if let Some(extent) = self.stored.pop_front() {
            return Ok(Some(stored::read(&self.pool, &extent, 0)?));
        }
        Ok(self.sealed.pop_front().map(Buffer::from_vec))
    }

    fn chunk(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(chunk) = self.ready.pop_front() {
            return Ok(Some(chunk));
        }
        let mut blocks = Vec::new();
        let mut bytes = 0;
        while bytes < self.target {
            let Some(more) = self.take()? else { break };
            bytes += more.len();
            blocks.push(more);
        }
        if !blocks.is_empty() {
            flat::read(&self.schema, &blocks, false, &mut self.ready)?;
        }
        Ok(self.ready.pop_front())
    }
}

impl Iterator for PartitionChunks {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        let chunk = self.chunk();
        if chunk.is_err() {
            // The taken blocks are lost, so the remaining rows are not the answer.
            self.stored.clear();
            self.sealed.clear();
        }
        chunk.transpose()
    }
}
