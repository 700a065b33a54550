//! Partitioners: rules that assign rows to partitions, and the split by a rule.

use arrow_array::RecordBatch;
use arrow_buffer::BooleanBuffer;

use super::hash::{Hash, VERSION};
use super::memory::Memory;
use super::partitioned::Partitioned;
use super::range::Range;
use super::replicate::{Replicate, replicated};
use super::splitter::{Splitter, checked_partitions};
use windrow_rows::{Error, Layout, Result};

/// Splits record batches into a fixed number of partitions, stably.
///
/// A partitioner keeps its workspace from one split to the next; each thread has its own, as a
/// clone. Partitioners of the same kind, count, seed and round agree, wherever they run.
///
/// ```
/// # use std::sync::Arc;
/// # use windrow_rows::arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use windrow_partition::Partitioner;
/// use windrow_rows::Order;
///
/// # let users = Int64Array::from_iter_values(0..100);
/// # let batch = RecordBatch::try_from_iter([("user", Arc::new(users) as ArrayRef)])?;
/// # let mut written = 0;
/// let layout = Order::by(["user"]).bind(&batch.schema())?;
/// let mut partitioner = Partitioner::hash(&layout, 16);
/// let parts = partitioner.split(&batch)?;
/// for (partition, rows) in parts.occupied() {
///     // write `rows` to wherever `partition` goes
///     # assert_eq!(rows, parts.partition(partition));
///     # written += rows.num_rows();
/// }
/// # assert_eq!(written, 100);
/// # Ok::<(), windrow_rows::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Partitioner {
    rule: Rule,
    /// Set if rows go to every partition.
    replicate: Option<Replicate>,
    pub(super) splitter: Splitter,
    ids: Vec<u32>,
}

#[derive(Clone, Debug)]
enum Rule {
    Hash(Hash),
    Range(Range),
    /// Partition of the next row.
    RoundRobin(u32),
    Given,
}

impl Partitioner {
    /// Version of the hash: ids of one version never change. `docs/partition-hash.md` has the
    /// specification.
    pub const HASH_VERSION: u32 = VERSION;

    /// Assigns rows to `partitions` partitions by a hash of the columns of the layout's key.
    ///
    /// The hash depends on values alone: a value has the same hash in every encoding (plain,
    /// dictionary, run-end, view) and width (of integers, floats and offsets), in every process and
    /// on every machine. All nulls are alike, and so are all NaN; -0.0 is 0.0.
    ///
    /// # Cost
    /// About 0.7 ns a row for one column of fixed width, 3 ns for one of short text.
    pub fn hash(layout: &Layout, partitions: usize) -> Self {
        Self::new(Rule::Hash(Hash::new(layout)), partitions)
    }

    /// Assigns rows to ranges of the layout's key: partition `i` holds the rows from splitter `i -
    /// 1` on, below splitter `i`. There is one more partition than there are splitters.
    ///
    /// `splitters` are rows in the order of the key, with the columns of the key, by name; other
    /// columns are ignored.
    ///
    /// # Cost
    /// The key of each row is encoded, and searched for among the splitters by halving: the first eight
    /// bytes of each decide, unless they are equal.
    ///
    /// # Errors
    /// [`Error::MissingColumn`], [`Error::SchemaMismatch`] if a column is missing or has another
    /// type. [`Error::OutOfOrder`] if splitters do not ascend.
    pub fn range(layout: &Layout, splitters: &RecordBatch) -> Result<Self> {
        let range = Range::new(layout, splitters)?;
        Ok(Self::new(Rule::Range(range), splitters.num_rows() + 1))
    }

    /// Assigns rows to `partitions` ranges, each with about as many rows of `sample`. A key with
    /// more than its share has one partition, and leaves other partitions empty.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] if the sample does not have the layout's schema.
    /// [`Error::InvalidOrder`] for zero or more than 2^24 partitions.
    pub fn range_of_sample(
        layout: &Layout,
        sample: &RecordBatch,
        partitions: usize,
    ) -> Result<Self> {
        checked_partitions(partitions)?;
        let range = Range::of_sample(layout, sample, partitions)?;
        Ok(Self::new(Rule::Range(range), partitions))
    }

    /// Returns the splitters of ranges, from which an equal partitioner can be made elsewhere.
    pub fn splitters(&self) -> Option<&RecordBatch> {
        match &self.rule {
            Rule::Range(range) => Some(&range.splitters),
            _ => None,
        }
    }

    /// Assigns rows in turn: the first to partition 0, the next to partition 1, continued over all
    /// splits.
    pub fn round_robin(partitions: usize) -> Self {
        Self::new(Rule::RoundRobin(0), partitions)
    }

    /// Assigns rows by given ids, with [`Partitioner::split_by_ids`].
    pub fn ids(partitions: usize) -> Self {
        Self::new(Rule::Given, partitions)
    }

    /// Selects another hash function of the same family; 0 by default. Only for hash partitioners.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        if let Rule::Hash(hash) = &mut self.rule {
            hash.seed = seed;
        }
        self
    }

    /// Sets the number of this exchange, from 0. Only for hash partitioners. A round spreads the
    /// rows of one partition of the previous round over all partitions; without rounds, a second
    /// exchange would send all of these rows to one partition again.
    #[must_use]
    pub fn round(mut self, round: u64) -> Self {
        if let Rule::Hash(hash) = &mut self.rule {
            hash.round = round;
        }
        self
    }

    /// Sends rows with a null in the key, and the first row, to every partition: `NOT IN` must know
    /// on each node whether the other side has a null, and whether it has rows at all. Only for hash
    /// partitioners, and for [`Partitioner::split`] and [`PartitionBuilder::push`]; a clone sends
    /// its own first row.
    ///
    /// # Cost
    /// A record batch with such rows is copied once more.
    ///
    /// [`PartitionBuilder::push`]: crate::PartitionBuilder::push
    #[must_use]
    pub fn replicate_nulls_and_any(mut self) -> Self {
        if let Rule::Hash(hash) = &self.rule {
            self.replicate = Some(Replicate::new(&hash.layout));
        }
        self
    }

    /// Finds the rows of the next record batch that go to every partition.
    pub(super) fn replicated_rows(&mut self, batch: &RecordBatch) -> Option<BooleanBuffer> {
        self.replicate.as_mut()?.rows(batch)
    }

    /// Limits the bytes of memory kept for the columns of later record batches. Columns of up to a
    /// quarter of the limit reuse memory, once all slices of an earlier record batch are dropped.
    /// For larger columns the system supplies memory, which takes as long as the split, or longer:
    /// 1 to 2 ns for a value of four bytes.
    ///
    /// By default, as much is kept as recent record batches took, and 32 MiB at least.
    #[must_use]
    pub fn keeping(mut self, bytes: usize) -> Self {
        self.splitter.memory = Memory::keeping(bytes);
        self
    }

    /// Leaves the strings of view columns in the buffers of the record batch, even if these hold much
    /// more: for callers who copy the slices, or drop them soon.
    #[must_use]
    pub fn pinning(mut self) -> Self {
        self.splitter.is_pinning = true;
        self
    }

    fn new(rule: Rule, partitions: usize) -> Self {
        Self { rule, replicate: None, splitter: Splitter::new(partitions), ids: Vec::new() }
    }

    /// Returns the number of partitions.
    pub fn partitions(&self) -> usize {
        self.splitter.partitions
    }

    /// Splits `batch`. Partitions are slices of one permuted record batch, or of `batch` itself if
    /// its rows are already in the order of their partitions.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] if the record batch does not have the layout's schema.
    /// [`Error::InvalidOrder`] if ids must be given, or for zero or more than 2^24 partitions.
    pub fn split(&mut self, batch: &RecordBatch) -> Result<Partitioned> {
        self.split_owned(batch.clone())
    }

    /// Splits `batch` like [`Partitioner::split`], and drops each of its columns once it is
    /// permuted. Where nobody else refers to the columns, the split takes the memory of one column
    /// and of the null buffers beyond that of the record batch, instead of twice its memory.
    ///
    /// # Errors
    /// As [`Partitioner::split`].
    pub fn split_owned(&mut self, batch: RecordBatch) -> Result<Partitioned> {
        if let (1, Rule::Hash(hash)) = (self.splitter.partitions, &self.rule) {
            hash.layout.check_schema(batch.schema_ref())?;
            let offsets = vec![0, batch.num_rows()];
            return Ok(Partitioned::new(batch, offsets));
        }
        let mut ids = std::mem::take(&mut self.ids);
        let done = self.assign(&batch, &mut ids);
        let parts = done.and_then(|()| match self.replicated_rows(&batch) {
            Some(all) => {
                let (batch, ids) = replicated(&batch, &ids, &all, self.splitter.partitions)?;
                self.splitter.split(batch, &ids)
            }
            None => self.splitter.split(batch, &ids),
        });
        self.ids = ids;
        parts
    }

    /// Splits `batch`: row `i` goes to partition `ids[i]`, whatever the partitioner's rule.
    ///
    /// # Errors
    /// [`Error::PartitionOutOfRange`] for an id without a partition. [`Error::InvalidOrder`] if the
    /// numbers of ids and of rows differ, or for zero or more than 2^24 partitions.
    pub fn split_by_ids(&mut self, batch: &RecordBatch, ids: &[u32]) -> Result<Partitioned> {
        self.splitter.split(batch.clone(), ids)
    }

    /// Replaces `ids` by the partition of every row of `batch`: the first half of
    /// [`Partitioner::split`]. Rows that are sent to every partition have the one of their hash.
    ///
    /// # Errors
    /// As [`Partitioner::split`].
    pub fn assign(&mut self, batch: &RecordBatch, ids: &mut Vec<u32>) -> Result<()> {
        let partitions = checked_partitions(self.partitions())?;
        ids.resize(batch.num_rows(), 0);
        match &mut self.rule {
            Rule::Hash(hash) => hash.ids(batch, partitions, ids)?,
            Rule::Range(range) => range.ids(batch, ids)?,
            Rule::RoundRobin(next) => {
                for id in ids {
                    *id = *next;
                    *next = if *next + 1 == partitions { 0 } else { *next + 1 };
                }
            }
            Rule::Given => {
                return Err(Error::InvalidOrder(
                    "these partitions are given row by row: use split_by_ids".into(),
                ));
            }
        }
        Ok(())
    }
}
