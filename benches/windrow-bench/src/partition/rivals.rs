//! The alternatives: scatter loops with cursors, and takes.
//!
//! The loops are in their best form: without bounds checks, with preallocated warm targets. The
//! type [`Ids`] guarantees valid ids.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::DataType;

use super::data::Ids;

/// The values of a column, and their targets, both in whole words of 16 bytes.
struct Lane {
    /// Bits of a value.
    width: usize,
    from: Vec<u128>,
    to: Vec<u128>,
}

/// Scatter loops over the columns of one record batch.
pub(super) struct Loops {
    lanes: Vec<Lane>,
    rows: usize,
    cursors: Vec<u32>,
    ends: Vec<u32>,
}

impl Loops {
    /// Copies the columns of `batch`. Returns `None` if a column type has no loop.
    pub(super) fn new(batch: &RecordBatch) -> Option<Self> {
        let mut lanes = Vec::new();
        for column in batch.columns() {
            lanes.push(match column.data_type() {
                DataType::Boolean => lane(1, column.as_boolean().values().values()),
                DataType::Utf8View => lane(128, &column.to_data().buffers()[0]),
                other => lane(other.primitive_width()? * 8, &column.to_data().buffers()[0]),
            });
            lanes.extend(column.nulls().map(|nulls| lane(1, nulls.inner().values())));
        }
        let (cursors, ends) = Default::default();
        Some(Self { lanes, rows: batch.num_rows(), cursors, ends })
    }

    /// `out[cursor[id]++] = in`, one row at a time or four. Returns the number of rows.
    ///
    /// # Panics
    /// If there are not as many ids as rows.
    pub(super) fn scatter(&mut self, all: &Ids, turn: usize, by_four: bool) -> usize {
        let (ids, partitions) = (all.set(turn), all.partitions());
        assert_eq!(ids.len(), self.rows);
        self.ends.clear();
        self.ends.resize(partitions + 1, 0);
        for &id in ids {
            // SAFETY: the ids of a set are below its number of partitions.
            unsafe { *self.ends.get_unchecked_mut(id as usize + 1) += 1 };
        }
        for index in 1..=partitions {
            self.ends[index] += self.ends[index - 1];
        }
        for lane in &mut self.lanes {
            self.cursors.clear();
            self.cursors.extend_from_slice(&self.ends[..partitions]);
            let cursors = &mut self.cursors;
            // SAFETY: ids are below the number of cursors. A lane has a value of its width for each
            // id, as many targets, and their alignment. A cursor starts at its partition's start and
            // advances once per row, so it stays below the number of rows.
            unsafe {
                match lane.width {
                    1 => scatter_bits(lane, ids, cursors),
                    8 => scatter::<u8>(lane, ids, cursors, by_four),
                    16 => scatter::<u16>(lane, ids, cursors, by_four),
                    32 => scatter::<u32>(lane, ids, cursors, by_four),
                    64 => scatter::<u64>(lane, ids, cursors, by_four),
                    _ => scatter::<u128>(lane, ids, cursors, by_four),
                }
            }
        }
        self.rows
    }

    /// Replaces the targets by untouched memory.
    pub(super) fn forget(&mut self) {
        self.lanes.iter_mut().for_each(|lane| lane.to = vec![0; lane.from.len()]);
    }

    /// Copies the columns to the same targets, in row order. Returns the number of rows.
    pub(super) fn copy(&mut self) -> usize {
        self.lanes.iter_mut().for_each(|lane| lane.to.copy_from_slice(&lane.from));
        self.rows
    }
}

fn lane(width: usize, bytes: &[u8]) -> Lane {
    let words = bytes.chunks(16).map(|bytes| {
        let mut word = [0; 16];
        word[..bytes.len()].copy_from_slice(bytes);
        u128::from_ne_bytes(word)
    });
    let from: Vec<u128> = words.collect();
    Lane { width, to: vec![0; from.len()], from }
}

/// # Safety
/// Ids are below the number of cursors; the lane has a value of `T` for each id; no cursor passes the
/// end.
unsafe fn scatter<T: Copy>(lane: &mut Lane, ids: &[u32], cursors: &mut [u32], by_four: bool) {
    let (from, to) = (lane.from.as_ptr().cast::<T>(), lane.to.as_mut_ptr().cast::<T>());
    let mut put = |id: u32, value: T| {
        // SAFETY: as the caller promised.
        unsafe {
            let cursor = cursors.get_unchecked_mut(id as usize);
            *to.add(*cursor as usize) = value;
            *cursor += 1;
        }
    };
    let whole = if by_four { ids.len() / 4 * 4 } else { 0 };
    for (at, ids) in ids[..whole].chunks_exact(4).enumerate() {
        // Loads four rows before their stores, as in Velox.
        // SAFETY: there is a value for each id.
        let values = [0, 1, 2, 3].map(|k| unsafe { *from.add(at * 4 + k) });
        ids.iter().zip(values).for_each(|(&id, value)| put(id, value));
    }
    for (row, &id) in ids.iter().enumerate().skip(whole) {
        // SAFETY: there is a value for each id.
        put(id, unsafe { *from.add(row) });
    }
}

/// # Safety
/// As for [`scatter`], with a bit for each id.
unsafe fn scatter_bits(lane: &mut Lane, ids: &[u32], cursors: &mut [u32]) {
    lane.to.fill(0);
    let (from, to) = (lane.from.as_ptr().cast::<u8>(), lane.to.as_mut_ptr().cast::<u8>());
    for (row, &id) in ids.iter().enumerate() {
        // SAFETY: as the caller promised.
        unsafe {
            let cursor = cursors.get_unchecked_mut(id as usize);
            let at = *cursor as usize;
            *cursor += 1;
            let bit = (*from.add(row / 8) >> (row % 8)) & 1;
            *to.add(at / 8) |= bit << (at % 8);
        }
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
