//! The result of a split: one permuted record batch, and the position of each partition.
//!
//! ```text
//! batch     | rows of partition 0 | rows of 1 | rows of 3 |
//! offsets   0                     a           b  b        n
//! ```
//!
//! Invariant: offsets ascend from 0 to the number of rows; there is one more offset than
//! partitions.

use std::ops::Range;

use arrow_array::{Array, RecordBatch};

/// A record batch whose rows are grouped by partition.
///
/// A partition is a slice, made on request without copying (about 40 ns a column). All slices share
/// the memory of [`Partitioned::batch`], which is freed when the last slice is dropped.
#[derive(Clone, Debug)]
pub struct Partitioned {
    batch: RecordBatch,
    offsets: Vec<usize>,
}

impl Partitioned {
    pub(super) fn new(batch: RecordBatch, offsets: Vec<usize>) -> Self {
        debug_assert!(offsets.is_sorted() && offsets.first() == Some(&0));
        debug_assert_eq!(offsets.last(), Some(&batch.num_rows()));
        Self { batch, offsets }
    }

    /// Returns the rows of all partitions, one partition after the other.
    pub fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    /// Returns the start of each partition in [`Partitioned::batch`]; after the last, the number of
    /// rows.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// Returns the number of partitions, empty partitions included.
    pub fn partitions(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns the rows of [`Partitioned::batch`] in `partition`.
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn rows(&self, partition: usize) -> Range<usize> {
        self.offsets[partition]..self.offsets[partition + 1]
    }

    /// Returns the rows of `partition`, in their original order, as a slice without a copy.
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn partition(&self, partition: usize) -> RecordBatch {
        let rows = self.rows(partition);
        self.batch.slice(rows.start, rows.len())
    }

    /// Counts the nulls of `column` in `partition`, from the bits of the null buffer, 64 at a time.
    /// Like [`Array::null_count`], ignores the nulls inside dictionaries, runs and unions.
    ///
    /// # Panics
    /// If there is no such partition or column.
    pub fn null_count(&self, partition: usize, column: usize) -> usize {
        let rows = self.rows(partition);
        let nulls = self.batch.column(column).nulls().filter(|nulls| nulls.null_count() > 0);
        nulls.map_or(0, |nulls| {
            rows.len() - nulls.inner().slice(rows.start, rows.len()).count_set_bits()
        })
    }

    /// Iterates over all partitions, empty partitions included.
    pub fn iter(&self) -> Partitions<'_> {
        Partitions { of: self, left: 0..self.partitions() }
    }

    /// Iterates over the partitions with rows, and their numbers.
    pub fn occupied(&self) -> impl Iterator<Item = (usize, RecordBatch)> + '_ {
        let occupied = (0..self.partitions()).filter(|&p| !self.rows(p).is_empty());
        occupied.map(|partition| (partition, self.partition(partition)))
    }
}

impl<'a> IntoIterator for &'a Partitioned {
    type Item = RecordBatch;
    type IntoIter = Partitions<'a>;

    fn into_iter(self) -> Partitions<'a> {
        self.iter()
    }
}

/// An iterator over the partitions of a [`Partitioned`].
#[derive(Clone, Debug)]
pub struct Partitions<'a> {
    of: &'a Partitioned,
    left: Range<usize>,
}

impl Iterator for Partitions<'_> {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        self.left.next().map(|partition| self.of.partition(partition))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.left.size_hint()
    }
}

impl DoubleEndedIterator for Partitions<'_> {
    fn next_back(&mut self) -> Option<RecordBatch> {
        self.left.next_back().map(|partition| self.of.partition(partition))
    }
}

impl ExactSizeIterator for Partitions<'_> {}
