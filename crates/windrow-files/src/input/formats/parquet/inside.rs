//! Lengths of the rows of a page, found by reading its levels and values.
//!
//! ```text
//! repetition levels   0 1 1 0 0 1        a row begins at each 0
//! definition levels   3 3 3 3 1 3        a value is present at each maximum (here 3)
//! values              a b c d   e
//! rows                [a b c] [d] [- e]  -> spans of rows
//! ```
//! Invariant: the rows of a span together have less than [`GRAIN`] bytes, or the span is a single
//! row, or the span joins neighbours of about the same mean. So the mean of a span hides no long
//! row beside short rows.

use std::iter;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page as Body, PageReader};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::reader::SerializedPageReader;

use crate::input::source::random::RandomFile;
use crate::thrift::Thrift;

use super::pages::Page;

/// Bytes of values decoded at a time.
pub(super) const BATCH_BYTES: u64 = 2 << 20;

/// Bytes of rows, per leaf, whose distribution does not matter.
const GRAIN: u64 = BATCH_BYTES / 8;

/// Consecutive rows of about the same length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) rows: u64,
    bytes: u64,
    /// Bytes of the longest row.
    pub(super) longest: u64,
}

impl Span {
    /// Returns the mean bytes of a row.
    pub(super) fn width(&self) -> u64 {
        self.bytes.div_ceil(self.rows.max(1)).max(1)
    }

    fn and(self, other: Self) -> Self {
        Self {
            rows: self.rows + other.rows,
            bytes: self.bytes.saturating_add(other.bytes),
            longest: self.longest.max(other.longest),
        }
    }
}

/// The rows of a page.
#[derive(Debug, Default)]
pub(super) struct Inside {
    closed: Vec<Span>,
    open: Span,
    /// The current row. Items in front of the first row, of which the previous page has the start,
    /// are a span of no row.
    row: Span,
}

impl Inside {
    /// Reads `page` of `chunk`. An item takes `fixed` bytes besides the value; a value of unknown
    /// length takes `mean` bytes. Returns `None` if the encoding hides the lengths of the rows.
    pub(super) fn of(
        file: &Arc<RandomFile>,
        chunk: &ColumnChunkMetaData,
        page: &Page,
        fixed: u64,
        mean: u64,
    ) -> Option<Self> {
        let column = chunk.column_descr();
        let (most_repeats, most_nulls) = (column.max_rep_level(), column.max_def_level());
        let (encoding, repeats, nulls, values) = match read(file, chunk, page)? {
            Body::DictionaryPage { .. } => return None,
            Body::DataPage { buf, encoding, def_level_encoding, rep_level_encoding, .. } => {
                let old = |encoding, levels| levels > 0 && encoding != Encoding::RLE;
                if old(rep_level_encoding, most_repeats) || old(def_level_encoding, most_nulls) {
                    return None;
                }
                let (repeats, rest) = levels(&buf, most_repeats)?;
                let (nulls, values) = levels(&rest, most_nulls)?;
                (encoding, repeats, nulls, values)
            }
            Body::DataPageV2 {
                buf, encoding, rep_levels_byte_len, def_levels_byte_len, ..
            } => {
                let repeats = usize::try_from(rep_levels_byte_len).ok()?;
                let values = repeats.checked_add(usize::try_from(def_levels_byte_len).ok()?)?;
                if values > buf.len() {
                    return None;
                }
                (encoding, buf.slice(..repeats), buf.slice(repeats..values), buf.slice(values..))
            }
        };
        let is_plain = encoding == Encoding::PLAIN && chunk.column_type() == Type::BYTE_ARRAY;
        if !is_plain && most_repeats == 0 {
            return None;
        }
        let mut lengths = strings(&values);
        let mut repeats = Levels::of(&repeats, most_repeats);
        let mut nulls = Levels::of(&nulls, most_nulls);
        let (mut inside, mut left) = (Self::default(), page.values);
        while left > 0 {
            let (repeat, null) = (repeats.run()?, nulls.run()?);
            let count = left.min(repeat.count).min(null.count);
            let (begins, is_present) = (repeat.level == 0, null.level == most_nulls);
            if is_present && is_plain {
                for _ in 0..count {
                    inside.items(begins, 1, fixed.saturating_add(lengths.next()?));
                }
            } else {
                let value = if is_present { mean } else { 0 };
                inside.items(begins, count, fixed.saturating_add(value));
            }
            repeats.run.count -= count;
            nulls.run.count -= count;
            left -= count;
        }
        inside.end_row();
        inside.close_open();
        Some(inside)
    }

    pub(super) fn spans(&self) -> impl Iterator<Item = Span> {
        self.closed.iter().copied()
    }

    /// Adds `count` items of `bytes` each. Each item begins a row, or each one belongs to the
    /// current row.
    fn items(&mut self, begins: bool, count: u64, bytes: u64) {
        if !begins {
            self.row.bytes = self.row.bytes.saturating_add(bytes.saturating_mul(count));
            self.row.longest = self.row.bytes;
            return;
        }
        self.end_row();
        if count > 1 {
            let (rows, all) = (count - 1, bytes.saturating_mul(count - 1));
            self.row = Span { rows, bytes: all, longest: bytes };
            self.end_row();
        }
        self.row = Span { rows: 1, bytes, longest: bytes };
    }

    /// Moves the current row, or some equal rows, to the spans.
    fn end_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        if self.open.bytes.saturating_add(row.bytes) >= GRAIN {
            self.close_open();
        }
        self.open = self.open.and(row);
        if row.bytes >= GRAIN {
            self.close_open();
        }
    }

    fn close_open(&mut self) {
        let span = std::mem::take(&mut self.open);
        match self.closed.last_mut() {
            _ if span == Span::default() => {}
            Some(last) if last.width().ilog2() == span.width().ilog2() => *last = last.and(span),
            _ => self.closed.push(span),
        }
    }
}

/// Returns the longest byte string of the dictionary `page` of `chunk`.
pub(super) fn longest_of_dictionary(
    file: &Arc<RandomFile>,
    chunk: &ColumnChunkMetaData,
    page: &Page,
) -> Option<u64> {
    match read(file, chunk, page)? {
        Body::DictionaryPage { buf, .. } => Some(strings(&buf).max().unwrap_or(0)),
        _ => None,
    }
}

fn read(file: &Arc<RandomFile>, chunk: &ColumnChunkMetaData, page: &Page) -> Option<Body> {
    let at = page.place();
    let place = PageLocation {
        offset: i64::try_from(at.start).ok()?,
        compressed_page_size: i32::try_from(at.end - at.start).ok()?,
        first_row_index: 0,
    };
    let mut pages = SerializedPageReader::new(file.clone(), chunk, 1, Some(vec![place])).ok()?;
    if at.start != chunk.byte_range().0 {
        // The reader takes any bytes in front of the first page for a dictionary.
        pages.skip_next_page().ok()?;
    }
    pages.get_next_page().ok()?
}

/// Splits a page of version 1 into the levels at its start and the rest.
fn levels(bytes: &Bytes, most: i16) -> Option<(Bytes, Bytes)> {
    if most == 0 {
        return Some((Bytes::new(), bytes.clone()));
    }
    let length = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
    let end = length.checked_add(4).filter(|&end| end <= bytes.len())?;
    Some((bytes.slice(4..end), bytes.slice(end..)))
}

/// Returns the lengths of byte strings in plain encoding.
fn strings(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let mut rest = bytes;
    iter::from_fn(move || {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*length);
        rest = behind.get(length as usize..)?;
        Some(u64::from(length))
    })
}

/// Repetition or definition levels, in runs: a mixture of run-length encoding and bit packing.
struct Levels<'a> {
    rest: &'a [u8],
    /// Bits of a level.
    width: usize,
    /// The rest of the current run.
    run: Run,
    /// Bit-packed levels behind the current run, from the bit `place` on.
    packed: &'a [u8],
    place: usize,
}

#[derive(Clone, Copy)]
struct Run {
    level: i16,
    count: u64,
}

impl<'a> Levels<'a> {
    fn of(rest: &'a [u8], most: i16) -> Self {
        let width = 16 - most.leading_zeros() as usize;
        let run = Run { level: 0, count: if most == 0 { u64::MAX } else { 0 } };
        Self { rest, width, run, packed: &[], place: 0 }
    }

    /// Returns the current run, which is not empty; `None` at the end or at damage.
    fn run(&mut self) -> Option<Run> {
        if self.run.count == 0 {
            if self.place + self.width > 8 * self.packed.len() {
                self.read()?;
            }
            if self.run.count == 0 {
                let bits = self.place..self.place + self.width;
                let bit = |at: usize| i16::from(self.packed[at / 8] >> (at % 8) & 1);
                let level = bits.rev().fold(0, |level, at| level << 1 | bit(at));
                self.run = Run { level, count: 1 };
                self.place += self.width;
            }
        }
        Some(self.run)
    }

    /// Reads the next run, or the next packed levels.
    fn read(&mut self) -> Option<()> {
        let head = Thrift(&mut self.rest).number().ok()?;
        if head & 1 == 0 {
            let (bytes, rest) = self.rest.split_at_checked(self.width.div_ceil(8))?;
            let level = bytes.iter().rev().fold(0, |level, byte| level << 8 | i16::from(*byte));
            (self.run, self.rest) = (Run { level, count: head >> 1 }, rest);
            return (head > 0).then_some(());
        }
        let length = usize::try_from(head >> 1).ok()?.checked_mul(self.width)?;
        (self.packed, self.rest) = self.rest.split_at(length.min(self.rest.len()));
        self.place = 0;
        (8 * self.packed.len() >= self.width).then_some(())
    }
}

#[cfg(test)]
mod tests;
