//! The alternatives: scatter loops with cursors, and takes.
//!
//! The loops are in their best form: without bounds checks, with preallocated warm targets. The
//! type [`Set`] guarantees valid ids.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{ArrowNativeType, DataType};

use super::data::Set;

/// A column in a scatter loop.
trait Lane {
    /// # Safety
    /// Ids are below the number of cursors; there are as many ids as rows; no cursor passes the end.
    unsafe fn scatter(&mut self, ids: &[u32], cursors: &mut [u32], by_four: bool);
    fn copy(&mut self);
    fn forget(&mut self);
}

/// Values of a fixed width, and their targets.
struct Values<T>(Vec<T>, Vec<T>);

/// Bits, eight in a byte.
struct Bits(Values<u8>);

/// Scatter loops over the columns of one record batch.
pub(super) struct Loops {
    lanes: Vec<Box<dyn Lane>>,
    rows: usize,
    partitions: usize,
    cursors: Vec<u32>,
    ends: Vec<u32>,
    ids: Vec<u32>,
}

impl Loops {
    /// Copies the columns of `batch`. Returns `None` if a column type has no loop.
    pub(super) fn new(batch: &RecordBatch, partitions: usize) -> Option<Self> {
        let mut lanes = Vec::new();
        for column in batch.columns() {
            lanes.push(lane(column)?);
            lanes.extend(column.nulls().map(|nulls| bits(nulls.inner().values())));
        }
        let (cursors, ends, ids) = Default::default();
        Some(Self { lanes, rows: batch.num_rows(), partitions, cursors, ends, ids })
    }

    /// `out[cursor[id]++] = in`, one row at a time or four.
    ///
    /// # Panics
    /// If the number of ids or of partitions differs from this instance's.
    pub(super) fn scatter(&mut self, set: Set<'_>, by_four: bool) {
        assert_eq!(set.partitions(), self.partitions);
        // SAFETY: the ids of a set are below its number of partitions.
        unsafe { self.move_all(set.ids(), self.partitions, by_four) };
    }

    /// The seed's method for few partitions: deals rows to `fanout` cursors per partition.
    ///
    /// # Panics
    /// As [`Loops::scatter`].
    pub(super) fn striped(&mut self, set: Set<'_>) {
        let mut fanout = 1;
        while self.partitions > 1 && self.partitions * fanout * 2 <= 256 {
            fanout *= 2;
        }
        if fanout == 1 {
            return self.scatter(set, true);
        }
        assert_eq!(set.partitions(), self.partitions);
        let mut striped = std::mem::take(&mut self.ids);
        striped.clear();
        let stripes = set.ids().iter().zip(0u32..);
        striped.extend(stripes.map(|(id, row)| id * fanout as u32 + (row & (fanout as u32 - 1))));
        // SAFETY: the id is below the partitions; times the fanout plus less than the fanout.
        unsafe { self.move_all(&striped, self.partitions * fanout, true) };
        self.ids = striped;
    }

    /// Replaces the targets by untouched memory.
    pub(super) fn forget(&mut self) {
        self.lanes.iter_mut().for_each(|lane| lane.forget());
    }

    /// Copies the columns to the same targets, in row order.
    pub(super) fn copy(&mut self) {
        self.lanes.iter_mut().for_each(|lane| lane.copy());
    }

    /// # Safety
    /// Ids are below `partitions`.
    unsafe fn move_all(&mut self, ids: &[u32], partitions: usize, by_four: bool) {
        assert_eq!(ids.len(), self.rows);
        self.ends.clear();
        self.ends.resize(partitions + 1, 0);
        for &id in ids {
            // SAFETY: as the caller promised.
            unsafe { *self.ends.get_unchecked_mut(id as usize + 1) += 1 };
        }
        for index in 1..=partitions {
            self.ends[index] += self.ends[index - 1];
        }
        for lane in &mut self.lanes {
            self.cursors.clear();
            self.cursors.extend_from_slice(&self.ends[..partitions]);
            // SAFETY: ids are below `partitions`, and columns are as long as the ids. A cursor
            // starts at its partition's start and advances once per row, so it stays below the
            // number of rows.
            unsafe { lane.scatter(ids, &mut self.cursors, by_four) };
        }
    }
}

fn lane(column: &ArrayRef) -> Option<Box<dyn Lane>> {
    fn values<T: ArrowNativeType>(column: &ArrayRef) -> Option<Box<dyn Lane>> {
        let from = column.to_data().buffers()[0].typed_data::<T>()[..column.len()].to_vec();
        Some(Box::new(Values(from, vec![T::default(); column.len()])))
    }
    match column.data_type() {
        DataType::Boolean => Some(bits(column.as_boolean().values().values())),
        DataType::Int32 => values::<i32>(column),
        DataType::Int64 => values::<i64>(column),
        DataType::Decimal128(_, _) | DataType::Utf8View => values::<i128>(column),
        _ => None,
    }
}

fn bits(bytes: &[u8]) -> Box<dyn Lane> {
    Box::new(Bits(Values(bytes.to_vec(), vec![0; bytes.len()])))
}

impl<T: Copy + Default> Lane for Values<T> {
    unsafe fn scatter(&mut self, ids: &[u32], cursors: &mut [u32], by_four: bool) {
        let Self(from, to) = self;
        // SAFETY: as the caller promised.
        unsafe {
            let mut row = 0;
            while by_four && row + 4 <= ids.len() {
                // Loads four rows before their stores, as in the seed.
                let at = [0, 1, 2, 3].map(|k| *ids.get_unchecked(row + k) as usize);
                let values = [0, 1, 2, 3].map(|k| *from.get_unchecked(row + k));
                for (at, value) in at.into_iter().zip(values) {
                    let cursor = cursors.get_unchecked_mut(at);
                    *to.get_unchecked_mut(*cursor as usize) = value;
                    *cursor += 1;
                }
                row += 4;
            }
            while row < ids.len() {
                let cursor = cursors.get_unchecked_mut(*ids.get_unchecked(row) as usize);
                *to.get_unchecked_mut(*cursor as usize) = *from.get_unchecked(row);
                *cursor += 1;
                row += 1;
            }
        }
    }

    fn copy(&mut self) {
        self.1.copy_from_slice(&self.0);
    }

    fn forget(&mut self) {
        self.1 = vec![T::default(); self.0.len()];
    }
}

impl Lane for Bits {
    unsafe fn scatter(&mut self, ids: &[u32], cursors: &mut [u32], _by_four: bool) {
        let Values(from, to) = &mut self.0;
        to.fill(0);
        for (row, &id) in ids.iter().enumerate() {
            // SAFETY: as the caller promised.
            unsafe {
                let cursor = cursors.get_unchecked_mut(id as usize);
                let at = *cursor as usize;
                *cursor += 1;
                let bit = (*from.get_unchecked(row / 8) >> (row % 8)) & 1;
                *to.get_unchecked_mut(at / 8) |= bit << (at % 8);
            }
        }
    }

    fn copy(&mut self) {
        self.0.copy();
    }

    fn forget(&mut self) {
        self.0.forget();
    }
}

/// Takes every column once in the order of partitions, and slices the result for each partition
/// with rows, like DataFusion's repartition. `lists` has a list of rows for each partition, reused
/// across record batches.
pub(super) fn grouped(
    lists: &mut [Vec<u32>],
    batch: &RecordBatch,
    ids: &[u32],
) -> Vec<(usize, Vec<ArrayRef>)> {
    lists.iter_mut().for_each(Vec::clear);
    for (row, &id) in (0u32..).zip(ids) {
        lists[id as usize].push(row);
    }
    let mut all = Vec::with_capacity(ids.len());
    let mut ranges = Vec::new();
    for (partition, rows) in lists.iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
        ranges.push((partition, all.len(), rows.len()));
        all.extend_from_slice(rows);
    }
    let all = UInt32Array::from(all);
    let taken = |column: &ArrayRef| take(column, &all, None).expect("rows are in the record batch");
    let columns: Vec<ArrayRef> = batch.columns().iter().map(taken).collect();
    let slice = |(partition, start, len)| {
        (partition, columns.iter().map(|column| column.slice(start, len)).collect())
    };
    ranges.into_iter().map(slice).collect()
}
