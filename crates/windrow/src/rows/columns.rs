//! Runs of columns out of rows, by the kernels.
//!
//! ```text
//! | .. | a | b | c | .. |      the columns of a run, at one distance from where each row begins
//! | .. | a | b | c | .. |
//!      ^ places
//! ```

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use super::decode::corrupt;
use super::lanes::{self, Form};
use super::recode::recode;
use super::text;
use crate::error::Result;
use crate::kernel::prefetch::prefetch_all;
use crate::kernel::rows::{BitOut, Code, LaneOut, Places, Word, take, take_bits, take_wide};
use crate::kernel::values::Values;
use crate::order::code::plain_type;
use crate::order::{Layout, Slot};

/// Bytes of a row from which on a few columns of many rows are no stream that a CPU recognizes. Fetching the
/// rows of a tile first is 25 % faster for 50 columns, and 5 % slower for 10.
const LONG_STRIDE: usize = 128;

/// Where the columns of a run are.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a, P> {
    pub(super) bytes: &'a [u8],
    pub(super) places: P,
    pub(super) count: usize,
    /// Rows that are read by all columns in turn: whole words of bits.
    pub(super) tile: usize,
}

/// Reads the run of `slots` into `ready`. The first of them may have a marker, which is in front of the place;
/// numbers have none. False if the run is none of the kernels'.
pub(super) fn take_slots<P: Places>(
    layout: &Layout,
    (form, slots): (Form, &[Slot]),
    marked: Option<P>,
    rows: Rows<'_, P>,
    ready: &mut [Option<ArrayRef>],
) -> Result<bool> {
    match form {
        Form::Numbers(width) if marked.is_none() => {
            let columns: Vec<_> =
                slots.iter().map(|slot| (slot.column, lanes::slot_code(slot))).collect();
            let take = match width {
                4 => take_run::<u32, P>,
                8 => take_run::<u64, P>,
                _ => take_wide_run::<P>,
            };
            take(layout, &columns, rows, ready)?;
        }
        Form::Booleans => take_booleans(layout, slots, marked, rows, ready)?,
        Form::Numbers(_) | Form::Other => return Ok(false),
    }
    Ok(true)
}

/// Reads adjacent columns of one width.
fn take_run<T: Word, P: Places>(
    layout: &Layout,
    columns: &[(usize, Code)],
    rows: Rows<'_, P>,
    ready: &mut [Option<ArrayRef>],
) -> Result<()> {
    let words = rows.count.div_ceil(64);
    let mut read: Vec<(Values<T>, Vec<u64>)> = columns
        .iter()
        .map(|(_, code)| {
            let words = if code.escapes { words } else { 0 };
            (Values::with_capacity(rows.count), Vec::with_capacity(words))
        })
        .collect();
    let mut valid_of_tile: Vec<Vec<u64>> = vec![Vec::new(); columns.len()];
    // Rows of a tile are read by all blocks of columns while they are in the cache.
    for start in (0..rows.count).step_by(rows.tile) {
        let count = rows.tile.min(rows.count - start);
        let places = rows.places.behind(start);
        if places.stride().is_some_and(|stride| stride >= LONG_STRIDE) {
            prefetch_all(&rows.bytes[places.place(0)..places.furthest(count)]);
        }
        let mut lanes: Vec<LaneOut<'_, T>> = read
            .iter_mut()
            .zip(&mut valid_of_tile)
            .zip(columns)
            .map(|(((values, _), valid), &(_, code))| LaneOut { values, valid, code })
            .collect();
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
        ready[column] = Some(numbers(values.into(), nulls, rows.count, data_type)?);
    }
    Ok(())
}

/// As [`take_run`], of numbers of sixteen bytes without nulls.
fn take_wide_run<P: Places>(
    layout: &Layout,
    columns: &[(usize, Code)],
    rows: Rows<'_, P>,
    ready: &mut [Option<ArrayRef>],
) -> Result<()> {
    let room = |_: &_| Values::with_capacity(rows.count);
    let mut read: Vec<Values<u128>> = columns.iter().map(room).collect();
    let codes: Vec<Code> = columns.iter().map(|&(_, code)| code).collect();
    for start in (0..rows.count).step_by(rows.tile) {
        let count = rows.tile.min(rows.count - start);
        take_wide(&codes, count, rows.places.behind(start), rows.bytes, &mut read);
    }
    for (values, &(column, _)) in read.into_iter().zip(columns) {
        let data_type = layout.schema().field(column).data_type();
        ready[column] = Some(numbers(values.into(), None, rows.count, data_type)?);
    }
    Ok(())
}

/// Reads adjacent Booleans. The first of them, and no other, may have a marker: they are at `marked`.
fn take_booleans<P: Places>(
    layout: &Layout,
    slots: &[Slot],
    marked: Option<P>,
    rows: Rows<'_, P>,
    ready: &mut [Option<ArrayRef>],
) -> Result<()> {
    let words = rows.count.div_ceil(64);
    let mut read = vec![Vec::with_capacity(words); slots.len()];
    let lanes = read.iter_mut().zip(slots);
    let mut lanes: Vec<BitOut<'_>> =
        lanes.map(|(bits, slot)| BitOut { bits, zero: 0, flip: slot.descending }).collect();
    take_bits(&mut lanes, rows.count, rows.places, rows.bytes);
    let bits = |words| BooleanBuffer::new(Buffer::from_vec(words), 0, rows.count);
    let mut valid = None;
    if let Some(markers) = marked {
        let mut words = Vec::with_capacity(words);
        let marker = BitOut { bits: &mut words, zero: text::markers(&slots[0]).0, flip: false };
        take_bits(&mut [marker], rows.count, markers, rows.bytes);
        valid = Some(NullBuffer::new(bits(words))).filter(|nulls| nulls.null_count() > 0);
    }
    for (words, slot) in read.into_iter().zip(slots) {
        let array: ArrayRef = Arc::new(BooleanArray::new(bits(words), valid.take()));
        let data_type = layout.schema().field(slot.column).data_type();
        ready[slot.column] = Some(as_type(array, data_type)?);
    }
    Ok(())
}

/// The array of values of fixed width.
pub(super) fn numbers(
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
pub(super) fn as_type(array: ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if array.data_type() == data_type { Ok(array) } else { recode(&array, data_type) }
}
