//! Partition ids by the position of the key among splitters.
//!
//! ```text
//! splitters      10     20     20     35
//! partition   0   |  1   |  2   |  3   |  4        a row of key 20 goes to partition 3:
//!                                                  the number of splitters not above it
//! ```
//!
//! Invariant: splitters ascend; partitions ascend with the keys, and equal keys share one.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema, SchemaRef};

use super::nested::select;
use windrow_rows::engine::{Names, Slot};
use windrow_rows::{Error, Layout, Order, Result, RowEncoder, Rows, SortColumn};

/// Rows encoded at a time.
const BLOCK: usize = 4096;

/// Splitters, and the layout of their order.
#[derive(Clone, Debug)]
pub(super) struct Range {
    layout: Layout,
    pub(super) splitters: RecordBatch,
    encoder: Arc<Encoder>,
    /// The encoded splitters after their first eight bytes, which decide most comparisons.
    cuts: Vec<(u64, Vec<u8>)>,
}

impl Range {
    /// Makes ranges between splitters: rows with at least the columns of the key, by name.
    pub(super) fn new(layout: &Layout, splitters: &RecordBatch) -> Result<Self> {
        let mut columns = Vec::new();
        let names = Names::of(splitters.schema_ref());
        for column in layout.key() {
            let field = layout.schema().field(column);
            let (index, got) = names.find(field.name())?;
            if got.data_type() != field.data_type() {
                return Err(Error::SchemaMismatch {
                    expected: format!("{:?}: {}", field.name(), field.data_type()),
                    got: format!("{:?}: {}", got.name(), got.data_type()),
                });
            }
            columns.push(index);
        }
        let splitters = splitters.project(&columns)?;
        let encoder = Encoder::new(layout)?;
        let cuts = encoder.encode(&splitters)?;
        let falls = |row: &usize| cuts.compare(row - 1, *row).is_gt();
        if let Some(row) = (1..cuts.len()).find(falls) {
            return Err(Error::OutOfOrder { input: 0, row: row as u64 });
        }
        let cuts = cuts.iter().map(|cut| (word(cut), cut.to_vec())).collect();
        Ok(Self { layout: layout.clone(), splitters, encoder: Arc::new(encoder), cuts })
    }

    /// Chooses splitters that cut the rows of `sample` into `partitions` parts of about equal size.
    pub(super) fn of_sample(
        layout: &Layout,
        sample: &RecordBatch,
        partitions: usize,
    ) -> Result<Self> {
        layout.check_schema(sample.schema_ref())?;
        let columns: Vec<usize> = layout.key().collect();
        let keys = Encoder::new(layout)?.encode(&sample.project(&columns)?)?;
        let mut rows: Vec<usize> = (0..sample.num_rows()).collect();
        rows.sort_unstable_by(|&a, &b| keys.compare(a, b));
        let cuts = (1..partitions)
            .map(|cut| (cut as u128 * rows.len() as u128 / partitions as u128) as usize);
        let cuts = cuts.filter_map(|cut| rows.get(cut)).map(|&row| row as u64);
        let cuts: Vec<u64> = cuts.collect();
        let schema = Arc::new(sample.schema().project(&columns)?);
        let columns = columns.iter().map(|&column| select(sample.column(column), &cuts));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(cuts.len()));
        Self::new(layout, &RecordBatch::try_new_with_options(schema, columns, &options)?)
    }

    /// Writes for every row the number of splitters not above the row.
    pub(super) fn ids(&self, batch: &RecordBatch, ids: &mut [u32]) -> Result<()> {
        self.layout.check_schema(batch.schema_ref())?;
        let keys = batch.project(&self.layout.key().collect::<Vec<_>>())?;
        for (block, ids) in ids.chunks_mut(BLOCK).enumerate() {
            let rows = self.encoder.encode(&keys.slice(block * BLOCK, ids.len()))?;
            for (row, id) in rows.iter().zip(ids) {
                let key = (word(row), row);
                *id = self.cuts.partition_point(|(word, cut)| (*word, &cut[..]) <= key) as u32;
            }
        }
        Ok(())
    }
}

/// Encodes the columns of a key, any of which may hold nulls.
#[derive(Debug)]
struct Encoder {
    schema: SchemaRef,
    rows: RowEncoder,
}

impl Encoder {
    fn new(layout: &Layout) -> Result<Self> {
        let slots = layout.key_slots();
        let field = |(at, slot): (usize, &Slot)| {
            let data_type = layout.schema().field(slot.column).data_type();
            Field::new(at.to_string(), data_type.clone(), true)
        };
        let schema = Arc::new(Schema::new(slots.iter().enumerate().map(field).collect::<Vec<_>>()));
        let column = |(at, slot): (usize, &Slot)| SortColumn {
            name: at.to_string(),
            descending: slot.descending,
            nulls_first: slot.nulls_first,
        };
        let order = Order::by(slots.iter().enumerate().map(column).collect::<Vec<_>>());
        Ok(Self { rows: RowEncoder::new(&order.bind(&schema)?), schema })
    }

    fn encode(&self, keys: &RecordBatch) -> Result<Rows> {
        let options = RecordBatchOptions::new().with_row_count(Some(keys.num_rows()));
        let (schema, columns) = (Arc::clone(&self.schema), keys.columns().to_vec());
        self.rows.encode(&RecordBatch::try_new_with_options(schema, columns, &options)?)
    }
}

/// Returns the first eight bytes of a row, with zeros after its end.
fn word(row: &[u8]) -> u64 {
    match row.first_chunk() {
        Some(word) => u64::from_be_bytes(*word),
        None => row
            .iter()
            .enumerate()
            .fold(0, |word, (at, &byte)| word | u64::from(byte) << (56 - 8 * at)),
    }
}
