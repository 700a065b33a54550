//! A sample of keys, independent of threads: the rows with the least hashes of their input
//! positions.
//!
//! ```text
//!  place in the input --hash--> 17 4 99 8 23 61     keep the least, as many as fit: 4 8 17
//!                                                   of two samples: merge, keep the least
//! ```
//!
//! Invariant: of all rows seen, in the order of hashes, the sample holds the longest prefix within
//! the limits on rows and bytes. The limits concern the rows alone, not free memory.

use std::collections::BinaryHeap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array, make_array};
use arrow_cast::cast;
use arrow_ord::partition::partition;
use arrow_row::{RowConverter, SortField};
use arrow_schema::{ArrowError, DataType, FieldRef, Schema};
use arrow_select::take::take;
use windrow::{Layout, Order, Partitioner, SortColumn as Column};

use crate::error::{Error, Result};
use crate::nested::strict_cast;

/// Rows for each partition: the size of a partition is then off by some 6 %.
const ROWS_A_PARTITION: usize = 256;
const LEAST_ROWS: usize = 16 << 10;
const MOST_ROWS: usize = 256 << 10;
/// Maximum bytes of a thread's sample: half of the minimum memory for sorting, still unused during
/// the sample.
const MOST_BYTES: usize = 4 << 20;
/// Maximum bytes of a key. Longer keys are omitted: a few of them would fill the whole sample.
const LONGEST: usize = 16 << 10;
/// Bytes of a row in the heap beside its key: hash, pointer, overhead of the allocator.
const OVERHEAD: usize = 48;

/// Keys of some rows of the input.
pub(crate) struct Sample {
    order: Vec<Column>,
    /// Columns of the key, in the layout's schema.
    columns: Vec<usize>,
    layout: Layout,
    partitions: usize,
    converter: RowConverter,
    rows: BinaryHeap<(u64, Box<[u8]>)>,
    bytes: usize,
    /// Rows with a hash of at least `bound` are excluded.
    bound: u64,
}

impl Sample {
    /// Makes an empty sample for ranges of the layout's key.
    pub(super) fn new(layout: &Layout, partitions: usize) -> Result<Self> {
        let columns: Vec<usize> = layout.key().collect();
        let schema = layout.schema();
        let fields = columns.iter().map(|&c| SortField::new(schema.field(c).data_type().clone()));
        let fields = fields.collect();
        Ok(Self {
            order: layout.order().to_vec(),
            columns,
            layout: layout.clone(),
            partitions,
            converter: RowConverter::new(fields).map_err(failed)?,
            rows: BinaryHeap::new(),
            bytes: 0,
            bound: u64::MAX,
        })
    }

    /// Adds rows. `place` is the position of the first row in the input.
    pub(crate) fn push(&mut self, batch: &RecordBatch, place: u64) -> Result<()> {
        // Row by row: converting a whole batch of long keys would double their memory.
        for row in 0..batch.num_rows() {
            let hash = mix(place + row as u64);
            if hash >= self.bound {
                continue;
            }
            let row: Vec<_> = self.columns.iter().map(|&c| batch.column(c).slice(row, 1)).collect();
            let row = self.converter.convert_columns(&row).map_err(failed)?;
            self.add(hash, row.row(0).data().into());
        }
        Ok(())
    }

    /// Adds the rows of a disjoint sample.
    pub(crate) fn merge(&mut self, other: Self) {
        self.bound = self.bound.min(other.bound);
        for (hash, row) in other.rows {
            self.add(hash, row);
        }
    }

    fn add(&mut self, hash: u64, row: Box<[u8]>) {
        if hash >= self.bound || row.len() > LONGEST {
            return;
        }
        let most = (self.partitions.saturating_mul(ROWS_A_PARTITION)).clamp(LEAST_ROWS, MOST_ROWS);
        self.bytes += row.len() + OVERHEAD;
        self.rows.push((hash, row));
        while self.rows.len() > most || self.bytes > MOST_BYTES {
            let Some((hash, row)) = self.rows.pop() else { return };
            self.bytes -= row.len() + OVERHEAD;
            self.bound = hash;
        }
    }

    /// Returns the keys that divide the sample into parts of about equal size.
    pub(super) fn splitters(self) -> Result<RecordBatch> {
        let schema = self.layout.schema().project(&self.columns);
        let schema = Arc::new(schema.map_err(failed)?);
        let parser = self.converter.parser();
        // The order of hashes is the same for any threads, and is needed, since equal keys may
        // differ in bytes.
        let rows = self.rows.into_sorted_vec();
        let rows = rows.iter().map(|(_, row)| parser.parse(row));
        let columns = self.converter.convert_rows(rows).map_err(failed)?;
        // Dictionaries return as plain values, and are divided as such: the sample may have more
        // values than the key type of a dictionary, and not every type can be cast to a dictionary.
        let plain: Vec<FieldRef> = schema.fields().iter().map(plain).collect();
        let plain = Arc::new(Schema::new(plain));
        let columns = columns.iter().zip(plain.fields());
        let columns = columns.map(|(column, field)| cast(column, field.data_type()));
        let columns = columns.collect::<Result<_, _>>().map_err(failed)?;
        let sample = RecordBatch::try_new(Arc::clone(&plain), columns).map_err(failed)?;
        let layout = Order::by(self.order).bind(&plain)?;
        let ranges = Partitioner::range_of_sample(&layout, &sample, self.partitions)?;
        let Some(splitters) = ranges.splitters() else { return Ok(RecordBatch::new_empty(schema)) };
        let columns = splitters.columns().iter().zip(schema.fields());
        let columns = columns.map(|(values, field)| match field.data_type() {
            DataType::Dictionary(keys, _) => encoded(values, keys, field.data_type()),
            _ => Ok(Arc::clone(values)),
        });
        let columns = columns.collect::<Result<_, _>>().map_err(failed)?;
        RecordBatch::try_new(schema, columns).map_err(failed)
    }
}

/// Returns the field without its dictionary.
fn plain(field: &FieldRef) -> FieldRef {
    match field.data_type() {
        DataType::Dictionary(_, values) => {
            Arc::new(field.as_ref().clone().with_data_type(values.as_ref().clone()))
        }
        _ => Arc::clone(field),
    }
}

/// Encodes sorted `values` as a dictionary of the type `to`, with each distinct value once.
fn encoded(values: &ArrayRef, keys: &DataType, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let runs = partition(std::slice::from_ref(values))?.ranges();
    let firsts: UInt64Array = runs.iter().map(|run| run.start as u64).collect();
    let places = runs.iter().enumerate().flat_map(|(place, run)| run.clone().map(move |_| place));
    let nulls = values.logical_nulls();
    let places = places.enumerate().map(|(row, place)| {
        let valid = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        valid.then_some(place as u64)
    });
    let places: ArrayRef = Arc::new(places.collect::<UInt64Array>());
    let places = strict_cast(&places, keys)?.to_data();
    let data = places.into_builder().data_type(to.clone());
    let data = data.add_child_data(take(values, &firsts, None)?.to_data()).build()?;
    Ok(make_array(data))
}

fn failed(error: ArrowError) -> Error {
    Error::data(format!("a sample of the key: {error}"))
}

/// A pseudorandom bijection: one step of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn mix(place: u64) -> u64 {
    let z = place.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    fn batch(rows: std::ops::Range<i64>) -> RecordBatch {
        let name = |row: i64| format!("{row:x}").repeat(row as usize % 90);
        let columns: [(&str, ArrayRef); 2] = [
            ("a", Arc::new(Int64Array::from_iter_values(rows.clone()))),
            ("b", Arc::new(StringArray::from_iter_values(rows.map(name)))),
        ];
        RecordBatch::try_from_iter(columns).expect("two columns")
    }

    #[test]
    fn a_sample_does_not_depend_on_who_drew_it() {
        let layout = Order::by(["b", "a"]).bind(&batch(0..1).schema()).expect("a layout");
        const ROWS: i64 = 100_000;
        let mut one = Sample::new(&layout, 7).expect("a sample");
        one.push(&batch(0..ROWS), 0).expect("pushed");
        assert!(one.rows.len() <= LEAST_ROWS && one.bytes <= MOST_BYTES);
        let expected = one.splitters().expect("splitters");
        assert_eq!(expected.num_rows(), 6);
        let mut threads = [(); 3].map(|()| Sample::new(&layout, 7).expect("a sample"));
        for (index, start) in (0..ROWS as usize).step_by(1000).rev().enumerate() {
            let rows = batch(start as i64..start as i64 + 1000);
            threads[index * index % 3].push(&rows, start as u64).expect("pushed");
        }
        let [mut first, second, third] = threads;
        first.merge(third);
        first.merge(second);
        assert_eq!(first.splitters().expect("splitters"), expected);
    }

    #[test]
    fn ranges_are_of_about_one_size() {
        let layout = Order::by([windrow::desc("a")]).bind(&batch(0..1).schema()).expect("bound");
        let mut sample = Sample::new(&layout, 10).expect("a sample");
        sample.push(&batch(0..50_000), 0).expect("pushed");
        let splitters = sample.splitters().expect("splitters");
        let splitters = splitters.column(0).as_primitive::<Int64Type>().values();
        for (index, splitter) in splitters.iter().enumerate() {
            let expected = 50_000 - 5_000 * (index as i64 + 1);
            assert!((splitter - expected).abs() < 1_000, "{index}: {splitter}");
        }
    }
}
