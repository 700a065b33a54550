//! Record batches of nothing but numbers to rows, without getting them ready first.
//!
//! To resolve the columns of a record batch takes as long as to encode hundreds of rows. Where every
//! column is a number of four or eight bytes that is never null, all there is to know follows from the
//! layout, and the values are written where they lie:
//!
//! ```text
//! run       adjacent numbers of one width         (u64, u64, u64 time, i64 diff: one run)
//! write     the run's values  --kernel-->  | a | b | time | diff |   every `stride` bytes
//! ```

use std::sync::Arc;

use arrow_array::{Array, RecordBatch, downcast_primitive_array};
use arrow_schema::{DataType, SchemaRef};

use super::encode::time_slot;
use super::lanes::{Form, RAW, slot_code, slot_form};
use crate::error::Result;
use crate::kernel::rows::{Code, Lane, Lanes, Strided, put};
use crate::order::{Layout, Sequence, Tail};

/// Writes rows of numbers.
#[derive(Debug)]
pub(crate) struct NumberEncoder {
    layout: Layout,
    stride: usize,
    runs: Vec<Run>,
    /// The schema that came last, which fits the layout.
    schema: Option<SchemaRef>,
}

/// Adjacent numbers of one width.
#[derive(Debug)]
struct Run {
    width: usize,
    /// The first one's place in the row.
    at: usize,
    columns: Vec<(usize, Code)>,
}

impl NumberEncoder {
    /// An encoder for rows of `layout`, if they are numbers only.
    pub(crate) fn new(layout: &Layout) -> Option<Self> {
        let stride = layout.shape().stride?;
        let Tail::Diff(diff) = layout.tail() else { return None };
        let plain = layout.payload().is_empty() && layout.sequence() == Sequence::None;
        let whole = *layout.schema().field(diff).data_type() == DataType::Int64;
        if !plain || !whole || layout.slots().iter().any(|slot| slot.nullable) {
            return None;
        }
        let time = layout.time().map(|column| time_slot(layout, column));
        let mut encoder = Self { layout: layout.clone(), stride, runs: Vec::new(), schema: None };
        let mut at = 0;
        for slot in layout.slots().iter().chain(&time) {
            let Form::Numbers(width @ (4 | 8)) = slot_form(slot) else { return None };
            encoder.add(width, at, (slot.column, slot_code(slot)));
            at += width;
        }
        encoder.add(8, at, (diff, RAW));
        (at + 8 == stride).then_some(encoder)
    }

    fn add(&mut self, width: usize, at: usize, column: (usize, Code)) {
        match self.runs.last_mut() {
            Some(run) if run.width == width => run.columns.push(column),
            _ => self.runs.push(Run { width, at, columns: vec![column] }),
        }
    }

    /// Bytes of a row.
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// Writes the rows of `batch` to `out`, which has room for them. False if it is for the general
    /// encoder: something in it is null.
    ///
    /// # Errors
    /// [`crate::Error::SchemaMismatch`].
    pub(crate) fn write(&mut self, batch: &RecordBatch, out: &mut [u8]) -> Result<bool> {
        let schema = batch.schema_ref();
        if !self.schema.as_ref().is_some_and(|known| Arc::ptr_eq(known, schema)) {
            self.layout.check_schema(schema)?;
            self.schema = Some(Arc::clone(schema));
        }
        let rows = batch.num_rows();
        for run in &self.runs {
            let mut lanes = Vec::with_capacity(run.columns.len());
            for &(column, code) in &run.columns {
                let Some(values) = values(batch.column(column).as_ref()) else { return Ok(false) };
                lanes.push(Lane { values, valid: None, code });
            }
            let places = Strided { first: run.at, stride: self.stride };
            put(&Lanes::new(lanes, run.width, rows), 0..rows, places, out);
        }
        Ok(true)
    }
}

/// The values of an array of numbers as bytes, unless something is null.
fn values(array: &dyn Array) -> Option<&[u8]> {
    if array.null_count() > 0 {
        return None;
    }
    downcast_primitive_array!(
        array => Some(array.values().inner().as_slice()),
        _ => None
    )
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Float64Array, Int32Array, Int64Array, UInt64Array};

    use super::*;
    use crate::order::{Order, asc, desc};
    use crate::rows::Encoder;

    fn batch(from: i64, null: bool) -> RecordBatch {
        let b = (0..40).map(|row| (!null || row != 7).then_some(row - 20));
        RecordBatch::try_from_iter_with_nullable([
            (
                "a",
                Arc::new(Float64Array::from_iter_values((0..40).map(|x| 3.5 - f64::from(x))))
                    as ArrayRef,
                false,
            ),
            ("b", Arc::new(Int32Array::from_iter(b)) as ArrayRef, null),
            ("c", Arc::new(Int32Array::from_iter_values(0..40)) as ArrayRef, false),
            (
                "t",
                Arc::new(UInt64Array::from_iter_values((0..40).map(|x| x * x))) as ArrayRef,
                false,
            ),
            (
                "d",
                Arc::new(Int64Array::from_iter_values((0..40).map(|x| x - from))) as ArrayRef,
                false,
            ),
        ])
        .unwrap()
    }

    #[test]
    fn rows_are_those_of_the_general_encoder() {
        let whole = batch(9, false);
        let layout =
            Order::by([asc("c"), desc("a"), asc("b")]).time("t").diff("d").bind(&whole.schema());
        let layout = layout.unwrap();
        let mut numbers = NumberEncoder::new(&layout).unwrap();
        for batch in [whole.clone(), whole.slice(3, 17), whole.slice(5, 0)] {
            let mut got = vec![0; batch.num_rows() * numbers.stride()];
            assert!(numbers.write(&batch, &mut got).unwrap());
            let encoder = Encoder::new(&layout);
            let prepared = encoder.prepare(&batch, 0).unwrap();
            let mut expected = vec![0; got.len()];
            encoder.encode(&prepared, 0..batch.num_rows(), &mut expected);
            assert_eq!(got, expected);
        }
        // A null where none may be is for the general encoder to refuse.
        let mut out = vec![0; 40 * numbers.stride()];
        assert!(!numbers.write(&batch(9, true), &mut out).unwrap());
    }

    #[test]
    fn other_layouts_have_none() {
        let nullable = batch(9, true);
        let layout = Order::by("b").diff("d").bind(&nullable.schema()).unwrap();
        assert!(NumberEncoder::new(&layout).is_none());
        let layout = Order::by("a").bind(&batch(9, false).schema()).unwrap();
        assert!(NumberEncoder::new(&layout).is_none());
    }
}
