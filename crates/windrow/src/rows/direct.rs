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

use super::lanes::{Form, RAW, bits, slot_code, slot_form};
use super::lines::Line;
use crate::kernel::rows::{Code, Lane, Lanes, put_growing};
use crate::order::code::PayloadCode;
use crate::order::{Layout, Slot, Tail};

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
