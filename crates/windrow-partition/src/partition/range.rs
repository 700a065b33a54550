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
use arrow_schema::Schema;

use super::keys::{KeyColumn, Values, compare};
use super::nested::select;
use windrow_kernel::partition::search::count_not_above;
use windrow_rows::engine::Names;
use windrow_rows::{Error, Layout, Result};

/// Splitters, and the layout of their order.
#[derive(Clone, Debug)]
pub(super) struct Range {
    layout: Layout,
    pub(super) splitters: RecordBatch,
    keys: Vec<KeyColumn>,
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
        let slots = layout.key_slots().iter().zip(splitters.columns());
        let keys = slots.map(|(slot, column)| KeyColumn::new(slot, column));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let falls = |row: &usize| compare(&keys, row - 1, &keys, *row).is_gt();
        if let Some(row) = (1..splitters.num_rows()).find(falls) {
            return Err(Error::OutOfOrder { input: 0, row: row as u64 });
        }
        Ok(Self { layout: layout.clone(), splitters, keys })
    }

    /// Chooses splitters that cut the rows of `sample` into `partitions` parts of about equal size.
    pub(super) fn of_sample(
        layout: &Layout,
        sample: &RecordBatch,
        partitions: usize,
    ) -> Result<Self> {
        let keys = keys(layout, sample)?;
        let mut rows: Vec<usize> = (0..sample.num_rows()).collect();
        rows.sort_unstable_by(|&a, &b| compare(&keys, a, &keys, b));
        let cuts = (1..partitions)
            .map(|cut| (cut as u128 * rows.len() as u128 / partitions as u128) as usize);
        let cuts = cuts.filter_map(|cut| rows.get(cut)).map(|&row| row as u64);
        let cuts: Vec<u64> = cuts.collect();
        let columns: Vec<usize> = layout.key().collect();
        let schema = Arc::new(sample.schema().project(&columns)?);
        let columns = columns.iter().map(|&column| select(sample.column(column), &cuts));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(cuts.len()));
        Self::new(layout, &RecordBatch::try_new_with_options(schema, columns, &options)?)
    }

    /// Writes for every row the number of splitters not above the row.
    pub(super) fn ids(&self, batch: &RecordBatch, ids: &mut [u32]) -> Result<()> {
        let keys = keys(&self.layout, batch)?;
        if let ([column], [splitters]) = (keys.as_slice(), self.keys.as_slice())
            && let (Values::Words(words), Values::Words(cuts)) = (&column.values, &splitters.values)
        {
            let nulls = (0..cuts.len()).filter(|&cut| splitters.is_null(cut)).count();
            let (cuts, base) = match splitters.nulls_first {
                true => (&cuts[nulls..], nulls as u32),
                false => (&cuts[..cuts.len() - nulls], 0),
            };
            count_not_above(cuts, words, base, ids);
            if let Some(valid) = &column.nulls {
                let of_null = if splitters.nulls_first { nulls } else { self.splitters.num_rows() };
                for row in (0..ids.len()).filter(|&row| valid.is_null(row)) {
                    ids[row] = of_null as u32;
                }
            }
            return Ok(());
        }
        for (row, id) in ids.iter_mut().enumerate() {
            let (mut low, mut high) = (0, self.splitters.num_rows());
            while low < high {
                let middle = low.midpoint(high);
                if compare(&self.keys, middle, &keys, row).is_le() {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            *id = low as u32;
        }
        Ok(())
    }
}

fn keys(layout: &Layout, batch: &RecordBatch) -> Result<Vec<KeyColumn>> {
    let schema: &Schema = batch.schema_ref();
    layout.check_schema(schema)?;
    let slots = layout.key_slots().iter();
    slots.map(|slot| KeyColumn::new(slot, batch.column(slot.column))).collect()
}
