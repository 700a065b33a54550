//! Record batches of nothing but numbers to rows, without getting them ready first.
//!
//! To resolve the columns of a record batch takes as long as to encode hundreds of rows. Where
//! every column is a number without a marker, all there is to know follows from the layout, and the
//! values are written where they lie:
//!
//! ```text
//! run       adjacent numbers of one width         (u64, u64, u64 time, i64 diff: one run)
//! write     the run's values  --kernel-->  | a | b | time | diff |   every `stride` bytes
//! ```

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrowPrimitiveType, RecordBatch, downcast_primitive};
use arrow_schema::{DataType, SchemaRef};

use super::encode::time_slot;
use super::lanes::{Form, Line, RAW, bits, put_tiled, slot_code, slot_form};
use crate::error::Result;
use crate::kernel::rows::{Code, Lane, Lanes, put_growing};
use crate::order::code::PayloadCode;
use crate::order::{Layout, Sequence, Slot, Tail};

/// What the rows of a layout are, if they are numbers and nothing else.
#[derive(Debug)]
pub(super) struct Numbers {
    schema: SchemaRef,
    /// Bytes of a row in which no number takes a byte more than most.
    stride: usize,
    runs: Vec<Run>,
}

/// Adjacent numbers of one width.
#[derive(Debug)]
struct Run {
    width: usize,
    columns: Vec<Column>,
}

/// A column of numbers in the record batch.
#[derive(Clone, Copy, Debug)]
struct Column {
    index: usize,
    code: Code,
    values: Values,
}

/// The values of an array, if it is of the type that this is for: to find out which one an array is of
/// takes ten times as long.
type Values = fn(&dyn Array) -> Option<&[u8]>;

fn values_of(data_type: &DataType) -> Option<Values> {
    fn of<T: ArrowPrimitiveType>(array: &dyn Array) -> Option<&[u8]> {
        Some(array.as_primitive_opt::<T>()?.values().inner().as_slice())
    }
    macro_rules! function {
        ($kind:ty) => {
            Some(of::<$kind> as Values)
        };
    }
    downcast_primitive! { data_type => (function), _ => None }
}

impl Numbers {
    fn new(layout: &Layout) -> Self {
        Self { schema: Arc::clone(layout.schema()), stride: 0, runs: Vec::new() }
    }

    /// The rows of `layout`, which stand alone, if they are numbers.
    pub(super) fn of_rows(layout: &Layout) -> Option<Self> {
        if layout.time().is_some() || layout.tail() != Tail::None {
            return None;
        }
        let mut numbers = Self::new(layout);
        layout.slots().iter().try_for_each(|slot| numbers.add_slot(slot))?;
        for &(column, code) in layout.payload() {
            match code {
                PayloadCode::Fixed(width @ (4 | 8 | 16)) => numbers.add(width, column, RAW)?,
                _ => return None,
            }
        }
        (layout.shape().common == Some(numbers.stride)).then_some(numbers)
    }

    fn add_slot(&mut self, slot: &Slot) -> Option<()> {
        match slot_form(slot) {
            Form::Numbers(width) if !slot.has_marker() => {
                self.add(width, slot.column, slot_code(slot))
            }
            _ => None,
        }
    }

    fn add(&mut self, width: usize, index: usize, code: Code) -> Option<()> {
        let values = values_of(self.schema.field(index).data_type())?;
        let column = Column { index, code, values };
        self.stride += width;
        match self.runs.last_mut() {
            Some(run) if run.width == width => run.columns.push(column),
            _ => self.runs.push(Run { width, columns: vec![column] }),
        }
        Some(())
    }

    /// Bytes of a row, if no number takes a byte more.
    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// Bytes that `rows` rows take at the most, and one that may be overwritten.
    pub(super) fn most_bytes(&self, rows: usize) -> usize {
        let columns: usize = self.runs.iter().map(|run| run.columns.len()).sum();
        rows * (self.stride + columns) + 1
    }

    /// The columns of `batch`, which is of the layout's schema. Nothing if it is for the general
    /// encoder: one has a null without a code, or its numbers do not lie one behind the other.
    pub(super) fn lines<'a>(&self, batch: &'a RecordBatch) -> Option<Vec<Line<'a>>> {
        let rows = batch.num_rows();
        // Collecting options would find room for the columns of a few rows again and again.
        let mut lines = Vec::with_capacity(self.runs.len());
        for run in &self.runs {
            let mut lanes = Vec::with_capacity(run.columns.len());
            for column in &run.columns {
                lanes.push(column.lane(batch)?);
            }
            lines.push(Line::Numbers(Lanes::new(lanes, run.width, rows)));
        }
        Some(lines)
    }

    /// Writes rows of `lines`, of which some are longer than [`Numbers::stride`], to `out` from
    /// `at` on, and their ends to `ends`. Returns where the last one ends; nothing if they are not
    /// the kernel's. `out` has room for [`Numbers::most_bytes`].
    pub(super) fn put_growing(
        lines: Vec<Line<'_>>,
        rows: usize,
        at: usize,
        out: &mut [u8],
        ends: &mut Vec<u32>,
    ) -> Option<usize> {
        let numbers = lines.into_iter().map(|line| match line {
            Line::Numbers(lanes) if lanes.width() <= 8 => Some(lanes),
            _ => None,
        });
        put_growing(&numbers.collect::<Option<Vec<_>>>()?, rows, at, out, ends)
    }
}

impl Column {
    /// The column of `batch` as a lane.
    fn lane<'a>(&self, batch: &'a RecordBatch) -> Option<Lane<'a>> {
        let array = batch.column(self.index).as_ref();
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        if nulls.is_some() && !self.code.escapes {
            return None;
        }
        let values = (self.values)(array)?;
        Some(Lane { values, valid: nulls.map(bits), code: self.code })
    }
}

/// Writes rows of numbers and a diff.
#[derive(Debug)]
pub(crate) struct NumberEncoder {
    layout: Layout,
    numbers: Numbers,
    /// The schema that came last, which fits the layout.
    schema: Option<SchemaRef>,
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
        let mut numbers = Numbers::new(layout);
        layout.slots().iter().chain(&time).try_for_each(|slot| numbers.add_slot(slot))?;
        numbers.add(size_of::<i64>(), diff, RAW)?;
        let is_all = numbers.stride == stride;
        is_all.then(|| Self { layout: layout.clone(), numbers, schema: None })
    }

    /// Bytes of a row.
    pub(crate) fn stride(&self) -> usize {
        self.numbers.stride
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
        let Some(lines) = self.numbers.lines(batch) else { return Ok(false) };
        put_tiled(lines.iter(), self.stride(), 0..batch.num_rows(), out);
        Ok(true)
    }
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
