//! Record batches prepared for the encoder: resolved columns, and the length of every row.
//!
//! ```text
//! all rows of one length    nothing to add up
//! rows that vary            fixed bytes, sequence, each varying slot and payload
//! ```

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};

use super::bytes::{Each, Visit};
use super::column::Column;
use super::{escape, length, sequence, text};
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
    /// If the last end exceeds 32 bits, the appended ends are invalid.
    pub(crate) fn add_ends(&self, start: usize, ends: &mut Vec<u32>) -> usize {
        let mut end = start;
        let mut add = |length: u32| {
            end += length as usize;
            end as u32
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
        _ => lengths_of(layout, &slots, &payload, sequence, rows, &mut longer)?,
    };
    Ok(Prepared { slots, payload, time, tail, sequence, rows, lengths, longer })
}

/// Computes the length of every row.
fn lengths_of(
    layout: &Layout,
    slots: &[Column],
    payload: &[Column],
    sequence: u64,
    rows: usize,
    longer: &mut [bool],
) -> Result<Lengths> {
    let shape = layout.shape();
    // Lengths may wrap around. `total` detects overflow: no column has 2^63 bytes.
    let mut total = shape.fixed as u64 * rows as u64;
    let mut lengths = vec![shape.fixed as u32; rows];
    if shape.sequence == Sequence::Short {
        total += rows as u64 * sequence::LONGEST as u64;
        add_sequences(&mut lengths, sequence);
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
    // Only a record batch of 2 GiB or more can contain such a long row.
    if total >= LONGEST_ROW as u64 {
        check_lengths(layout, slots, payload, rows)?;
    }
    Ok(Lengths::Each(lengths))
}

/// Fails if a row is too long. Called only for the rare record batches of sufficient size.
fn check_lengths(layout: &Layout, slots: &[Column], payload: &[Column], rows: usize) -> Result<()> {
    let fixed = layout.shape().fixed + sequence::LONGEST + slots.len();
    let mut lengths = vec![fixed as u64; rows];
    for (slot, column) in layout.slots().iter().zip(slots) {
        if let Column::Nested(nested) = column {
            let bodies = nested.lengths.iter();
            lengths.iter_mut().zip(bodies).for_each(|(length, &body)| *length += body as u64);
        }
        let mut lengths = lengths.iter_mut();
        let add = Each(|text: Text<'_>| {
            let own = if text.valid { text::encoded_len(slot.code, text.bytes()) } else { 0 };
            lengths.next().into_iter().for_each(|length| *length += own as u64);
        });
        column.visit(0..rows, add);
    }
    for column in payload {
        let mut lengths = lengths.iter_mut();
        let add = Each(|text: Text<'_>| {
            let own = if text.valid { text.len + length::LONGEST } else { 0 };
            lengths.next().into_iter().for_each(|length| *length += own as u64);
        });
        column.visit(0..rows, add);
    }
    match lengths.iter().enumerate().find(|&(_, &length)| length >= LONGEST_ROW as u64) {
        None => Ok(()),
        Some((row, length)) => Err(Error::Value {
            column: "(row)".into(),
            message: format!("row {row} of a record batch takes {length} bytes, over 2 GiB"),
        }),
    }
}

/// Adds the encoded bytes of each value of `column`, 0 for a null; returns the sum.
fn add_lengths(code: OrderedCode, column: &Column, lengths: &mut [u32]) -> u64 {
    let mut total = 0;
    if let Column::Nested(nested) = column {
        for (length, &body) in lengths.iter_mut().zip(&nested.lengths) {
            total += body as u64;
            *length = length.wrapping_add(body as u32);
        }
        return total;
    }
    if code != OrderedCode::Binary {
        return column.add_lengths(Form::Ended, lengths);
    }
    column.visit(0..lengths.len(), AddEscaped { lengths, total: &mut total });
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

/// Adds the bytes of the short codes of `sequence`, `sequence + 1`, ...
fn add_sequences(mut lengths: &mut [u32], mut sequence: u64) {
    while !lengths.is_empty() {
        let same = sequence::same_len_until(sequence) - sequence;
        let same = usize::try_from(same).map_or(lengths.len(), |s| lengths.len().min(s + 1));
        let (run, rest) = lengths.split_at_mut(same);
        let bytes = sequence::short_len(sequence) as u32;
        run.iter_mut().for_each(|length| *length += bytes);
        sequence = sequence.wrapping_add(same as u64);
        lengths = rest;
    }
}

fn diffs(array: &dyn Array) -> Vec<i64> {
    use arrow_array::types as t;
    use arrow_schema::DataType as T;
    macro_rules! widen {
        ($type:ty) => {
            array.as_primitive::<$type>().values().iter().map(|&diff| i64::from(diff)).collect()
        };
    }
    match array.data_type() {
        T::Int8 => widen!(t::Int8Type),
        T::Int16 => widen!(t::Int16Type),
        T::Int32 => widen!(t::Int32Type),
        T::UInt8 => widen!(t::UInt8Type),
        T::UInt16 => widen!(t::UInt16Type),
        T::UInt32 => widen!(t::UInt32Type),
        _ => widen!(t::Int64Type),
    }
}
