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

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrowPrimitiveType, RecordBatch, downcast_primitive};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use super::lanes::{Form, RAW, bits, slot_code, slot_form};
use super::lines::Line;
use crate::kernel::rows::{Code, Lane, LaneBlocks, Lanes, put_growing};
use crate::order::code::PayloadCode;
use crate::order::{Layout, Tail};

/// What the rows of a layout are, if they are numbers and nothing else.
#[derive(Debug)]
pub(super) struct Numbers {
    /// Bytes of a row in which no number takes a byte more than most.
    stride: usize,
    runs: Vec<Run>,
}

/// Adjacent numbers of one width.
#[derive(Debug)]
struct Run {
    width: usize,
    columns: Vec<Column>,
    /// How they are written where none is null.
    blocks: LaneBlocks,
}

/// A column of numbers in the record batch.
#[derive(Clone, Copy, Debug)]
struct Column {
    index: usize,
    code: Code,
    values: Values,
}

/// The values of an array and its nulls, if it is of the type that this is for: to find out which one an array is
/// of takes ten times as long.
type Values = fn(&dyn Array) -> Option<(&[u8], Option<&NullBuffer>)>;

fn values_of(data_type: &DataType) -> Option<Values> {
    fn of<T: ArrowPrimitiveType>(array: &dyn Array) -> Option<(&[u8], Option<&NullBuffer>)> {
        let array = array.as_primitive_opt::<T>()?;
        Some((array.values().inner().as_slice(), array.nulls()))
    }
    macro_rules! function {
        ($kind:ty) => {
            Some(of::<$kind> as Values)
        };
    }
    downcast_primitive! { data_type => (function), _ => None }
}

impl Numbers {
    /// The rows of `layout`, which stand alone, if they are numbers.
    pub(super) fn of_rows(layout: &Layout) -> Option<Self> {
        if layout.time().is_some() || layout.tail() != Tail::None {
            return None;
        }
        let mut runs: Vec<(usize, Vec<Column>)> = Vec::new();
        let mut add = |width: usize, index: usize, code: Code| {
            let values = values_of(layout.schema().field(index).data_type())?;
            let column = Column { index, code, values };
            match runs.last_mut() {
                Some((last, columns)) if *last == width => columns.push(column),
                _ => runs.push((width, vec![column])),
            }
            Some(())
        };
        for slot in layout.slots() {
            match slot_form(slot) {
                Form::Numbers(width) if !slot.has_marker() => {
                    add(width, slot.column, slot_code(slot))?;
                }
                _ => return None,
            }
        }
        for &(column, code) in layout.payload() {
            match code {
                PayloadCode::Fixed(width @ (4 | 8 | 16)) => add(width, column, RAW)?,
                _ => return None,
            }
        }
        let stride = runs.iter().map(|(width, columns)| width * columns.len()).sum();
        let runs = runs.into_iter().map(|(width, columns)| Run::new(width, columns)).collect();
        (layout.shape().common == Some(stride)).then_some(Self { stride, runs })
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
    pub(super) fn lines<'a>(&'a self, batch: &'a RecordBatch) -> Option<Vec<Line<'a>>> {
        // Collecting options would find room for the columns of a few rows again and again.
        let mut lines = Vec::with_capacity(self.runs.len());
        for run in &self.runs {
            lines.push(Line::Numbers(run.lanes(batch)?));
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

impl Run {
    fn new(width: usize, columns: Vec<Column>) -> Self {
        let codes = columns.iter().map(|column| column.code);
        Self { width, blocks: LaneBlocks::without_nulls(codes, width), columns }
    }

    /// Its columns in `batch`.
    fn lanes<'a>(&'a self, batch: &'a RecordBatch) -> Option<Lanes<'a>> {
        let mut lanes = Vec::with_capacity(self.columns.len());
        let mut nulls = false;
        for column in &self.columns {
            let lane = column.lane(batch)?;
            nulls |= lane.valid.is_some();
            lanes.push(lane);
        }
        let rows = batch.num_rows();
        Some(match nulls {
            true => Lanes::new(lanes, self.width, rows),
            false => Lanes::without_nulls(lanes, &self.blocks, rows),
        })
    }
}

impl Column {
    /// The column of `batch` as a lane.
    fn lane<'a>(&self, batch: &'a RecordBatch) -> Option<Lane<'a>> {
        let (values, nulls) = (self.values)(batch.column(self.index).as_ref())?;
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        if nulls.is_some() && !self.code.escapes {
            return None;
        }
        Some(Lane { values, valid: nulls.map(bits), code: self.code })
    }
}
