//! Rows of one length back to columns: all of a column's values stand at one distance from each other.
//!
//! ```text
//! | a | b | c |      columns of 4, 8 or 16 bytes, or Booleans, next to each other: by the kernels
//! | a | b | c |      other numbers: one column of a tile of rows at a time
//! | a | b | c |      the rest: as rows of any length
//! ```

use arrow_array::ArrayRef;
use arrow_buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer};

use super::builder::Builder;
use super::columns::{self, numbers};
use super::decode::corrupt;
use super::fixed::{Word, with_word};
use super::lanes::{self, Form};
use super::text;
use crate::error::Result;
use crate::kernel::rows::{Code, Strided, take_growing};
use crate::kernel::values::Values;
use crate::order::code::OrderedCode;
use crate::order::{Layout, Sequence, Slot, Tail};

/// Bytes of rows that are read by all columns in turn: a quarter of a second-level cache, so that each column
/// is written for long enough to be worth fetching ahead. 20 % faster than 16 KiB for 50 columns.
const TILE_BYTES: usize = 256 << 10;

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
        let places = |first: usize| Strided { first, stride: rows.stride };
        let marked = slots[0].has_marker().then(|| places(start - 1));
        let run_rows = columns::Rows {
            bytes: rows.bytes,
            places: places(start),
            count: rows.count,
            tile: rows.tile(),
        };
        match slots {
            _ if !wanted => {}
            _ if columns::take_slots(layout, (run.form, slots), marked, run_rows, ready)? => {}
            [slot] if matches!(slot.code, OrderedCode::Fixed(..)) => {
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
    let mut values: Vec<Values<u64>> =
        codes.iter().map(|_| Values::with_capacity(ends.len())).collect();
    let mut valid = vec![Vec::new(); codes.len()];
    if !take_growing(&codes, start, ends, bytes, &mut values, &mut valid) {
        return Err(corrupt("a number is cut off or has no such code"));
    }
    let mut ready = vec![None; builders.len()];
    for (slot, (values, valid)) in slots.iter().zip(values.into_iter().zip(valid)) {
        if builders[slot.column].is_some() {
            let bits = BooleanBuffer::new(Buffer::from_vec(valid), 0, ends.len());
            let nulls = Some(NullBuffer::new(bits)).filter(|nulls| nulls.null_count() > 0);
            let data_type = layout.schema().field(slot.column).data_type();
            ready[slot.column] = Some(numbers(values.into(), nulls, ends.len(), data_type)?);
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
        let OrderedCode::Fixed(width, kind) = code else { return Ok(()) };
        with_word!(width, W => {
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
        });
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
