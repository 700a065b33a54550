//! Rows of one length back to columns: all of a column's values stand at one distance from each other.
//!
//! ```text
//! | a | b | c |      columns of 4, 8 or 16 bytes, or Booleans, next to each other: by the kernels
//! | a | b | c |      other numbers: one column of a tile of rows at a time
//! | a | b | c |      the rest: as rows of any length
//! ```

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, make_array};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, MutableBuffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use super::builder::Builder;
use super::decode::corrupt;
use super::fixed::{Word, with_word};
use super::lanes::{self, Form};
use super::recode::recode;
use super::text;
use crate::error::Result;
use crate::kernel::rows::{
    BitOut, Code, LaneOut, Strided, Word as Lane, take, take_bits, take_growing, take_wide,
};
use crate::order::code::{OrderedCode, plain_type};
use crate::order::{Layout, Sequence, Slot, Tail};

/// Bytes of rows that are read by all columns in turn: half of a first-level cache.
const TILE_BYTES: usize = 16 << 10;

/// Rows of one length, one behind the other.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) stride: usize,
    pub(super) count: usize,
}

impl Rows<'_> {
    /// Rows of a tile: whole words of bits.
    fn tile(self) -> usize {
        (TILE_BYTES / self.stride.max(1)).next_multiple_of(64).max(64)
    }
}

/// Reads the slots that `builders` want into `ready`, as far as that is possible for all rows at once.
/// True if there is more in the rows that is wanted or has to be checked.
pub(super) fn take_slots(
    layout: &Layout,
    builders: &[Option<Builder>],
    rows: Rows<'_>,
    ready: &mut [Option<ArrayRef>],
) -> Result<bool> {
    let mut first = 0;
    let mut rest = layout.time().is_some() || layout.tail() != Tail::None;
    let mut cells = Vec::new();
    for run in lanes::slot_runs(layout) {
        let slots = &layout.slots()[run.columns];
        first += usize::from(slots[0].has_marker());
        let start = first;
        first += slots.iter().map(|slot| slot.code.width()).sum::<usize>();
        let wanted = slots.iter().any(|slot| builders[slot.column].is_some());
        match (slots, run.form) {
            _ if !wanted => {}
            (_, Form::Numbers(width)) if !slots[0].has_marker() => {
                let columns: Vec<_> =
                    slots.iter().map(|slot| (slot.column, lanes::slot_code(slot))).collect();
                let take = match width {
                    4 => take_run::<u32>,
                    8 => take_run::<u64>,
                    _ => take_wide_run,
                };
                take(layout, &columns, start, rows, ready)?;
            }
            (_, Form::Booleans) => take_booleans(layout, slots, start, rows, ready)?,
            ([slot], _) if matches!(slot.code, OrderedCode::Fixed(..)) => {
                cells.push(Cells::new(slot, start, rows.count));
            }
            _ => rest = true,
        }
    }
    for start in (0..rows.count).step_by(rows.tile()) {
        let count = rows.tile().min(rows.count - start);
        let bytes = &rows.bytes[start * rows.stride..][..count * rows.stride];
        cells.iter_mut().try_for_each(|cells| cells.take(Rows { bytes, count, ..rows }))?;
    }
    for cells in cells {
        let column = cells.slot.column;
        ready[column] = Some(cells.finish(layout, rows.count)?);
    }
    Ok(rest || layout.payload().iter().any(|(column, _)| builders[*column].is_some()))
}

/// Reads rows of numbers of eight bytes, some of which take a byte more; nothing if there is more to the
/// layout.
pub(super) fn take_longer(
    layout: &Layout,
    builders: &[Option<Builder>],
    bytes: &[u8],
    start: usize,
    ends: &[u32],
) -> Result<Option<Vec<Option<ArrayRef>>>> {
    let slots = layout.slots();
    let all = lanes::slot_runs(layout).iter().all(|run| run.form == Form::Numbers(8));
    let more =
        !layout.payload().is_empty() || layout.time().is_some() || layout.tail() != Tail::None;
    if !all || more || slots.iter().any(Slot::has_marker) || layout.sequence() != Sequence::None {
        return Ok(None);
    }
    let codes: Vec<Code> = slots.iter().map(lanes::slot_code).collect();
    let starts = std::iter::once(start).chain(ends.iter().map(|&end| end as usize));
    let rows = starts.zip(ends).map(|(start, &end)| start..end as usize);
    let (mut values, mut valid) = (vec![Vec::new(); codes.len()], vec![Vec::new(); codes.len()]);
    let rows: Vec<_> = rows.collect();
    if !take_growing(&codes, rows.into_iter(), bytes, &mut values, &mut valid) {
        return Err(corrupt("a number is cut off or has no such code"));
    }
    let mut ready = vec![None; builders.len()];
    for (slot, (values, valid)) in slots.iter().zip(values.into_iter().zip(valid)) {
        if builders[slot.column].is_some() {
            let bits = BooleanBuffer::new(Buffer::from_vec(valid), 0, ends.len());
            let nulls = Some(NullBuffer::new(bits)).filter(|nulls| nulls.null_count() > 0);
            let data_type = layout.schema().field(slot.column).data_type();
            let values = Buffer::from_vec(values);
            ready[slot.column] = Some(numbers(values, nulls, ends.len(), data_type)?);
        }
    }
    Ok(Some(ready))
}

/// A column that the kernels have no path for.
struct Cells<'a> {
    slot: &'a Slot,
    /// From the start of a row to the value.
    first: usize,
    values: MutableBuffer,
    /// Validity; empty if the column has no nulls.
    valid: Vec<u64>,
}

impl<'a> Cells<'a> {
    fn new(slot: &'a Slot, first: usize, rows: usize) -> Self {
        let words = rows.div_ceil(64);
        let bytes = slot.code.width() * rows;
        let valid = Vec::with_capacity(if slot.nullable { words } else { 0 });
        Self { slot, first, values: MutableBuffer::new(bytes), valid }
    }

    /// Reads a tile: behind whole words of bits.
    fn take(&mut self, rows: Rows<'_>) -> Result<()> {
        let Slot { descending, nullable, escapes, code, .. } = *self.slot;
        let (first, up) = (self.first, self.slot.nulls_first);
        let cells = || rows.bytes.chunks_exact(rows.stride);
        if nullable && !escapes {
            let null = text::markers(self.slot).0;
            self.valid.extend(words(cells().map(|row| row[first - 1] != null), rows.count));
        }
        match code {
            OrderedCode::Fixed(width, kind) => with_word!(width, W => {
                let start = self.values.len();
                self.values.resize(start + rows.count * W::BYTES, 0);
                let targets = self.values[start..].chunks_exact_mut(W::BYTES);
                let pairs = cells().map(|row| &row[first..first + W::BYTES]).zip(targets);
                if !escapes {
                    pairs.for_each(|(cell, target)| {
                        W::read_big(cell).value(kind, descending).write_native(target);
                    });
                    return Ok(());
                }
                let mut fits = true;
                let valid = pairs.map(|(cell, target)| {
                    let code = W::read_big(cell);
                    let (edge, null) = (code.is_edge(), code.is_zero() == up);
                    fits &= !edge | null;
                    if !edge {
                        code.step(!up).value(kind, descending).write_native(target);
                    }
                    !edge
                });
                self.valid.extend(words(valid, rows.count));
                if !fits {
                    return Err(corrupt("a number is cut off"));
                }
            }),
            _ => {}
        }
        Ok(())
    }

    fn finish(self, layout: &Layout, rows: usize) -> Result<ArrayRef> {
        let bits = |words: Buffer| BooleanBuffer::new(words, 0, rows);
        let nulls = (!self.valid.is_empty())
            .then(|| NullBuffer::new(bits(Buffer::from_vec(self.valid))))
            .filter(|nulls| nulls.null_count() > 0);
        let data_type = layout.schema().field(self.slot.column).data_type();
        numbers(self.values.into(), nulls, rows, data_type)
    }
}

/// Bits, 64 at a time.
#[inline(always)]
fn words(mut bits: impl Iterator<Item = bool>, count: usize) -> impl Iterator<Item = u64> {
    (0..count).step_by(64).map(move |first| {
        let mut word = 0;
        if count - first >= 64 {
            // A known number of turns: unrolled.
            for bit in 0..64 {
                word |= u64::from(bits.next() == Some(true)) << bit;
            }
        } else {
            for bit in 0..count - first {
                word |= u64::from(bits.next() == Some(true)) << bit;
            }
        }
        word
    })
}

/// Reads adjacent columns of one width, whose first begins at `first` of a row.
fn take_run<T: Lane + ArrowNativeType>(
    layout: &Layout,
    columns: &[(usize, Code)],
    first: usize,
    rows: Rows<'_>,
    ready: &mut [Option<ArrayRef>],
) -> Result<()> {
    let words = rows.count.div_ceil(64);
    let mut read: Vec<(Vec<T>, Vec<u64>)> = columns
        .iter()
        .map(|(_, code)| {
            let words = if code.escapes { words } else { 0 };
            (Vec::with_capacity(rows.count), Vec::with_capacity(words))
        })
        .collect();
    let mut valid_of_tile: Vec<Vec<u64>> = vec![Vec::new(); columns.len()];
    // Rows of a tile are read by all blocks of columns while they are in the cache.
    for start in (0..rows.count).step_by(rows.tile()) {
        let count = rows.tile().min(rows.count - start);
        let mut lanes: Vec<LaneOut<'_, T>> = read
            .iter_mut()
            .zip(&mut valid_of_tile)
            .zip(columns)
            .map(|(((values, _), valid), &(_, code))| LaneOut { values, valid, code })
            .collect();
        let places = Strided { first: first + start * rows.stride, stride: rows.stride };
        if !take(&mut lanes, count, places, rows.bytes) {
            return Err(corrupt("a number is cut off"));
        }
        for (((_, valid), words), (_, code)) in read.iter_mut().zip(&valid_of_tile).zip(columns) {
            if code.escapes {
                valid.extend_from_slice(&words[..count.div_ceil(64)]);
            }
        }
    }
    for ((values, valid), &(column, code)) in read.into_iter().zip(columns) {
        let bits = || BooleanBuffer::new(Buffer::from_vec(valid), 0, rows.count);
        let nulls = code.escapes.then(|| NullBuffer::new(bits()));
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        let data_type = layout.schema().field(column).data_type();
        ready[column] = Some(numbers(Buffer::from_vec(values), nulls, rows.count, data_type)?);
    }
    Ok(())
}

/// As [`take_run`], of numbers of sixteen bytes without nulls.
fn take_wide_run(
    layout: &Layout,
    columns: &[(usize, Code)],
    first: usize,
    rows: Rows<'_>,
    ready: &mut [Option<ArrayRef>],
) -> Result<()> {
    let mut read = vec![Vec::with_capacity(rows.count); columns.len()];
    for start in (0..rows.count).step_by(rows.tile()) {
        let count = rows.tile().min(rows.count - start);
        let mut places = Strided { first: first + start * rows.stride, stride: rows.stride };
        for (values, (_, code)) in read.iter_mut().zip(columns) {
            take_wide(code, count, places, rows.bytes, values);
            places.first += size_of::<u128>();
        }
    }
    for (values, &(column, _)) in read.into_iter().zip(columns) {
        let data_type = layout.schema().field(column).data_type();
        ready[column] = Some(numbers(Buffer::from_vec(values), None, rows.count, data_type)?);
    }
    Ok(())
}

/// Reads adjacent Booleans, whose first begins at `first` of a row, behind its marker if it has one.
fn take_booleans(
    layout: &Layout,
    slots: &[Slot],
    first: usize,
    rows: Rows<'_>,
    ready: &mut [Option<ArrayRef>],
) -> Result<()> {
    let words = rows.count.div_ceil(64);
    let mut read = vec![Vec::with_capacity(words); slots.len()];
    let lanes = read.iter_mut().zip(slots);
    let mut lanes: Vec<BitOut<'_>> =
        lanes.map(|(bits, slot)| BitOut { bits, zero: 0, flip: slot.descending }).collect();
    let places = Strided { first, stride: rows.stride };
    take_bits(&mut lanes, rows.count, places, rows.bytes);
    let bits = |words| BooleanBuffer::new(Buffer::from_vec(words), 0, rows.count);
    let mut valid = None;
    if slots[0].has_marker() {
        let mut words = Vec::with_capacity(words);
        let marker = BitOut { bits: &mut words, zero: text::markers(&slots[0]).0, flip: false };
        take_bits(&mut [marker], rows.count, Strided { first: first - 1, ..places }, rows.bytes);
        valid = Some(NullBuffer::new(bits(words))).filter(|nulls| nulls.null_count() > 0);
    }
    for (words, slot) in read.into_iter().zip(slots) {
        // Only the first of a run may have a marker.
        let array: ArrayRef = Arc::new(BooleanArray::new(bits(words), valid.take()));
        let data_type = layout.schema().field(slot.column).data_type();
        ready[slot.column] = Some(as_type(array, data_type)?);
    }
    Ok(())
}

/// The array of values of fixed width.
fn numbers(
    values: Buffer,
    nulls: Option<NullBuffer>,
    rows: usize,
    data_type: &DataType,
) -> Result<ArrayRef> {
    let plain = plain_type(data_type).clone();
    let data = ArrayData::builder(plain).len(rows).add_buffer(values).nulls(nulls);
    as_type(make_array(data.build()?), data_type)
}

/// The same values as dictionary or run ends, if that is their type.
fn as_type(array: ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if array.data_type() == data_type { Ok(array) } else { recode(&array, data_type) }
}
