//! The alternatives: scatter loops with cursors, and takes.
//!
//! The loops are in their best form: without bounds checks, with preallocated warm targets. The
//! type [`Set`] guarantees valid ids.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::DataType;

use super::data::Set;

/// A column in a scatter loop: values of a fixed width, or bits.
enum Lane {
    Bits(Vec<u8>, Vec<u8>),
    Four(Vec<u32>, Vec<u32>),
    Eight(Vec<u64>, Vec<u64>),
    Sixteen(Vec<u128>, Vec<u128>),
}

/// Scatter loops over the columns of one record batch.
pub(super) struct Loops {
    lanes: Vec<Lane>,
    rows: usize,
    partitions: usize,
    cursors: Vec<u32>,
    ends: Vec<u32>,
    ids: Vec<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unroll {
    No,
    Four,
}

impl Loops {
    /// Copies the columns of `batch`. Returns `None` if a column type has no loop.
    pub(super) fn new(batch: &RecordBatch, partitions: usize) -> Option<Self> {
        let mut lanes = Vec::new();
        for column in batch.columns() {
            lanes.push(lane(column)?);
            if let Some(nulls) = column.nulls() {
                lanes.push(bits(nulls.inner().values()));
            }
        }
        Some(Self {
            lanes,
            rows: batch.num_rows(),
            partitions,
            cursors: Vec::new(),
            ends: Vec::new(),
            ids: Vec::new(),
        })
    }

    /// `out[cursor[id]++] = in`.
    ///
    /// # Panics
    /// If the number of ids or of partitions differs from this instance's.
    pub(super) fn scatter(&mut self, set: Set<'_>, unroll: Unroll) {
        assert_eq!(set.partitions(), self.partitions);
        // SAFETY: the ids of a set are below its number of partitions.
        unsafe { self.move_all(set.ids(), self.partitions, unroll) };
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
            return self.scatter(set, Unroll::Four);
        }
        assert_eq!(set.partitions(), self.partitions);
        let mut striped = std::mem::take(&mut self.ids);
        striped.clear();
        let stripes = set.ids().iter().zip(0u32..);
        striped.extend(stripes.map(|(id, row)| id * fanout as u32 + (row & (fanout as u32 - 1))));
        // SAFETY: the id is below the partitions; times the fanout plus less than the fanout.
        unsafe { self.move_all(&striped, self.partitions * fanout, Unroll::Four) };
        self.ids = striped;
    }

    /// Replaces the targets by untouched memory.
    pub(super) fn forget(&mut self) {
        for lane in &mut self.lanes {
            match lane {
                Lane::Bits(_, to) => *to = vec![0; to.len()],
                Lane::Four(_, to) => *to = vec![0; to.len()],
                Lane::Eight(_, to) => *to = vec![0; to.len()],
                Lane::Sixteen(_, to) => *to = vec![0; to.len()],
            }
        }
    }

    /// Copies the columns to the same targets, in row order.
    pub(super) fn copy(&mut self) {
        for lane in &mut self.lanes {
            match lane {
                Lane::Bits(from, to) => to.copy_from_slice(from),
                Lane::Four(from, to) => to.copy_from_slice(from),
                Lane::Eight(from, to) => to.copy_from_slice(from),
                Lane::Sixteen(from, to) => to.copy_from_slice(from),
            }
        }
    }

    /// # Safety
    /// Ids are below `partitions`.
    unsafe fn move_all(&mut self, ids: &[u32], partitions: usize, unroll: Unroll) {
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
            unsafe {
                match lane {
                    Lane::Bits(from, to) => scatter_bits(from, to, ids, &mut self.cursors),
                    Lane::Four(from, to) => scatter(from, to, ids, &mut self.cursors, unroll),
                    Lane::Eight(from, to) => scatter(from, to, ids, &mut self.cursors, unroll),
                    Lane::Sixteen(from, to) => scatter(from, to, ids, &mut self.cursors, unroll),
                }
            }
        }
    }
}

fn lane(column: &ArrayRef) -> Option<Lane> {
    let data = column.to_data();
    let rows = column.len();
    macro_rules! lane {
        ($lane:ident, $type:ty, $values:expr) => {{
            let values: Vec<$type> = $values;
            Some(Lane::$lane(values, vec![0; rows]))
        }};
    }
    match column.data_type() {
        DataType::Boolean => Some(bits(column.as_boolean().values().values())),
        DataType::Int32 => {
            lane!(
                Four,
                u32,
                data.buffers()[0].typed_data::<i32>().iter().map(|&v| v as u32).collect()
            )
        }
        DataType::Int64 => {
            lane!(
                Eight,
                u64,
                data.buffers()[0].typed_data::<i64>().iter().map(|&v| v as u64).collect()
            )
        }
        DataType::Decimal128(_, _) => lane!(
            Sixteen,
            u128,
            data.buffers()[0].typed_data::<i128>().iter().map(|&v| v as u128).collect()
        ),
        DataType::Utf8View => lane!(Sixteen, u128, column.as_string_view().views().to_vec()),
        _ => None,
    }
}

fn bits(bytes: &[u8]) -> Lane {
    Lane::Bits(bytes.to_vec(), vec![0; bytes.len()])
}

/// # Safety
/// Ids are below the number of cursors; `from` and `to` are as long as `ids`; no cursor passes
/// their end.
unsafe fn scatter<T: Copy>(
    from: &[T],
    to: &mut [T],
    ids: &[u32],
    cursors: &mut [u32],
    unroll: Unroll,
) {
    // SAFETY: as the caller promised.
    unsafe {
        let put = |row: usize, to: &mut [T], cursors: &mut [u32]| {
            let cursor = cursors.get_unchecked_mut(*ids.get_unchecked(row) as usize);
            *to.get_unchecked_mut(*cursor as usize) = *from.get_unchecked(row);
            *cursor += 1;
        };
        let mut row = 0;
        if unroll == Unroll::Four {
            while row + 4 <= ids.len() {
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
        }
        while row < ids.len() {
            put(row, to, cursors);
            row += 1;
        }
    }
}

/// # Safety
/// As [`scatter`], of bits.
unsafe fn scatter_bits(from: &[u8], to: &mut [u8], ids: &[u32], cursors: &mut [u32]) {
    to.fill(0);
    // SAFETY: as the caller promised.
    unsafe {
        for (row, &id) in ids.iter().enumerate() {
            let cursor = cursors.get_unchecked_mut(id as usize);
            let at = *cursor as usize;
            *cursor += 1;
            let bit = (*from.get_unchecked(row / 8) >> (row % 8)) & 1;
            *to.get_unchecked_mut(at / 8) |= bit << (at % 8);
        }
    }
}

/// Lists of rows, reused across record batches.
pub(super) struct Lists {
    rows: Vec<Vec<u32>>,
}

impl Lists {
    pub(super) fn new(partitions: usize) -> Self {
        Self { rows: vec![Vec::new(); partitions] }
    }

    fn fill(&mut self, ids: &[u32]) {
        self.rows.iter_mut().for_each(Vec::clear);
        for (row, &id) in (0u32..).zip(ids) {
            self.rows[id as usize].push(row);
        }
    }

    /// Takes every column for every partition.
    pub(super) fn take(&mut self, batch: &RecordBatch, ids: &[u32]) -> Vec<Vec<ArrayRef>> {
        self.fill(ids);
        let lists = self.rows.iter().filter(|rows| !rows.is_empty());
        lists.map(|rows| taken(batch, &UInt32Array::from(rows.clone()))).collect()
    }

    /// Takes every column once and slices the result, like DataFusion's repartition.
    pub(super) fn grouped(&mut self, batch: &RecordBatch, ids: &[u32]) -> Vec<Vec<ArrayRef>> {
        self.fill(ids);
        let mut all = Vec::with_capacity(ids.len());
        let mut ranges = Vec::new();
        for rows in self.rows.iter().filter(|rows| !rows.is_empty()) {
            ranges.push((all.len(), rows.len()));
            all.extend_from_slice(rows);
        }
        let columns = taken(batch, &UInt32Array::from(all));
        let slice = |(start, len)| columns.iter().map(|column| column.slice(start, len)).collect();
        ranges.into_iter().map(slice).collect()
    }
}

fn taken(batch: &RecordBatch, rows: &UInt32Array) -> Vec<ArrayRef> {
    let columns = batch.columns().iter();
    columns.map(|column| take(column, rows, None).expect("rows are in the record batch")).collect()
}
