//! Record batches prepared for the encoder: resolved columns, and the length of every row.
//!
//! ```text
//! all rows of one length    nothing to add up
//! rows that vary            fixed bytes, sequence, each varying slot and payload
//! ```

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch, downcast_integer};
use arrow_buffer::ArrowNativeType;

use super::bytes::{Each, Visit};
use super::column::Column;
use super::{escape, length, sequence};
use crate::error::{Error, Result};
use crate::order::code::OrderedCode;
use crate::order::{Layout, Sequence, Tail};
use windrow_kernel::rows::exact::{Text, add_escaped};
use windrow_kernel::rows::lengths::Form;
use windrow_kernel::rows::text::ESCAPE;

/// Rows must be shorter: chunks address bytes with 32 bits.
const LONGEST_ROW: usize = 1 << 31;

/// A record batch ready to be written.
pub struct Prepared {
    pub(super) slots: Vec<Column>,
    pub(super) payload: Vec<Column>,
    pub(super) time: Option<Column>,
    pub(super) tail: TailColumn,
    pub(super) sequence: u64,
    pub(super) rows: usize,
    pub(super) lengths: Lengths,
    /// Slots with a value that takes an extra byte.
    pub(super) longer: Vec<bool>,
}

pub(super) enum Lengths {
    Same(u32),
    Each(Vec<u32>),
}

pub(super) enum TailColumn {
    None,
    Tombstone(arrow_buffer::BooleanBuffer),
    /// One vector for each lane.
    Diffs(Vec<Vec<i64>>),
}

impl Prepared {
    /// Returns the number of rows.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Returns the bytes of row `index`.
    pub fn row_len(&self, index: usize) -> usize {
        match &self.lengths {
            Lengths::Same(length) => *length as usize,
            Lengths::Each(lengths) => lengths[index] as usize,
        }
    }

    /// Appends the end of each row, with the first row starting at `start`; returns the last end.
    pub fn add_ends<E>(&self, start: usize, ends: &mut Vec<E>, of: impl Fn(usize) -> E) -> usize {
        let mut end = start;
        let mut add = |length: u32| {
            end += length as usize;
            of(end)
        };
        match &self.lengths {
            Lengths::Same(length) => ends.extend((0..self.rows).map(|_| add(*length))),
            Lengths::Each(lengths) => ends.extend(lengths.iter().map(|&length| add(length))),
        }
        end
    }

    /// Returns the bytes of every row, if all rows have one length.
    pub fn stride(&self) -> Option<usize> {
        match &self.lengths {
            Lengths::Same(length) => Some(*length as usize),
            Lengths::Each(_) => None,
        }
    }
}

/// Resolves the columns of `batch`, whose first row is number `sequence` of the input. With
/// `assume`, no value is expected to take an extra byte if all rows then have one length;
/// [`Encoder::encode`](super::encode::Encoder::encode) reports a wrong assumption.
pub(super) fn prepare(
    layout: &Layout,
    batch: &RecordBatch,
    sequence: u64,
    assume: bool,
) -> Result<Prepared> {
    layout.check_schema(batch.schema_ref())?;
    let required = |column: usize, nullable: bool| {
        let array = batch.column(column);
        if !nullable && array.logical_null_count() > 0 {
            return Err(Error::Value {
                column: layout.schema().field(column).name().clone(),
                message: "a null in a column that must not have one".into(),
            });
        }
        Ok(array)
    };
    let slots = layout
        .slots()
        .iter()
        .map(|slot| Column::ordered(required(slot.column, slot.nullable)?, slot))
        .collect::<Result<Vec<_>>>()?;
    let payload = layout
        .payload()
        .iter()
        .map(|&(column, code)| {
            let nullable = layout.schema().field(column).is_nullable();
            Column::payload(required(column, nullable)?, code)
        })
        .collect::<Result<Vec<_>>>()?;
    let time =
        layout.time().map(|column| Column::plain_values(required(column, false)?)).transpose()?;
    let tail = match layout.tail() {
        Tail::None => TailColumn::None,
        Tail::Tombstone(column) => {
            TailColumn::Tombstone(required(*column, false)?.as_boolean().values().clone())
        }
        Tail::Diffs(of) => {
            let lane = |&column: &usize| Ok(diffs(required(column, false)?.as_ref()));
            TailColumn::Diffs(of.columns.iter().map(lane).collect::<Result<_>>()?)
        }
    };
    let rows = batch.num_rows();
    let mut longer = vec![false; slots.len()];
    let shape = layout.shape();
    let lengths = match shape.common.and_then(|length| u32::try_from(length).ok()) {
        Some(length) if assume || shape.stride.is_some() => Lengths::Same(length),
        _ => {
            let (lengths, total) =
                lengths_of(layout, &slots, &payload, sequence, rows, &mut longer);
            if total >= LONGEST_ROW as u64 {
                check_rows(layout, batch, sequence, total)?;
            }
            Lengths::Each(lengths)
        }
    };
    Ok(Prepared { slots, payload, time, tail, sequence, rows, lengths, longer })
}

/// Fails if a row of a record batch of `total` bytes is too long. Looks at halves: few have as many
/// bytes.
fn check_rows(layout: &Layout, batch: &RecordBatch, sequence: u64, total: u64) -> Result<()> {
    let (rows, half) = (batch.num_rows(), batch.num_rows() / 2);
    if rows == 1 {
        return Err(Error::Value {
            column: "(row)".into(),
            message: format!("a row of a record batch takes {total} bytes, over 2 GiB"),
        });
    }
    prepare(layout, &batch.slice(0, half), sequence, false)?;
    prepare(layout, &batch.slice(half, rows - half), sequence, false)?;
    Ok(())
}

/// Computes the length of every row, and the sum.
fn lengths_of(
    layout: &Layout,
    slots: &[Column],
    payload: &[Column],
    sequence: u64,
    rows: usize,
    longer: &mut [bool],
) -> (Vec<u32>, u64) {
    let shape = layout.shape();
    // Lengths may wrap around. `total` detects overflow: no column has 2^63 bytes.
    let mut total = shape.fixed as u64 * rows as u64;
    let mut lengths = vec![shape.fixed as u32; rows];
    if shape.sequence == Sequence::Short {
        let same = sequence::same_len(sequence, rows);
        for (length, row) in lengths.iter_mut().zip(0..) {
            let own = same.unwrap_or_else(|| sequence::short_len(sequence.wrapping_add(row)));
            total += own as u64;
            *length += own as u32;
        }
    }
    for ((slot, column), longer) in layout.slots().iter().zip(slots).zip(longer) {
        if slot.escapes {
            *longer = escape::add_longer(slot, column, &mut lengths);
        } else if slot.code.varies() {
            total += add_lengths(slot.code, column, &mut lengths);
        }
    }
    for (&(_, code), column) in layout.payload().iter().zip(payload) {
        if code.varies() {
            let mut lengths = lengths.iter_mut();
            let add = Each(|text: Text<'_>| {
                let Some(length) = lengths.next() else { return };
                let bytes = text.len * usize::from(text.valid);
                let own = length::len_of(bytes) + bytes;
                total += own as u64;
                *length = length.wrapping_add(own as u32);
            });
            column.visit(0..rows, add);
        }
    }
    (lengths, total)
}

/// Adds the encoded bytes of each value of `column`, 0 for a null; returns the sum.
fn add_lengths(code: OrderedCode, column: &Column, lengths: &mut [u32]) -> u64 {
    let mut total = 0;
    match (column, code) {
        (Column::Nested(nested), _) => {
            for (length, &body) in lengths.iter_mut().zip(&nested.lengths) {
                total += body as u64;
                *length = length.wrapping_add(body as u32);
            }
        }
        (_, OrderedCode::Binary) => {
            column.visit(0..lengths.len(), AddEscaped { lengths, total: &mut total });
        }
        _ => total = column.add_lengths(Form::Ended, lengths),
    }
    total
}

/// Adds the encoded bytes of strings with escapes.
struct AddEscaped<'a> {
    lengths: &'a mut [u32],
    total: &'a mut u64,
}

impl Visit for AddEscaped<'_> {
    #[inline]
    fn visit<'a>(self, strings: impl Iterator<Item = Text<'a>> + Clone) {
        *self.total += add_escaped(strings, ESCAPE, self.lengths);
    }
}

fn diffs(array: &dyn Array) -> Vec<i64> {
    macro_rules! widened {
        ($type:ty) => {
            array.as_primitive::<$type>().values().iter().filter_map(|diff| diff.to_i64()).collect()
        };
    }
    downcast_integer! {
        array.data_type() => (widened),
        _ => Vec::new(),
    }
}
