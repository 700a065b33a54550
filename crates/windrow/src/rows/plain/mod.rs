//! Record batches of numbers and text without nulls, and their diffs, to rows: without getting them ready
//! first.
//!
//! To resolve the columns of a record batch takes as long as to encode hundreds of rows. Where nothing is
//! null and every column is a number or text, all there is to know beforehand follows from the layout; what
//! is left to each record batch is where its values lie:
//!
//! ```text
//! part      up to eight adjacent numbers of one width; or a text
//! write     find the values of a part  --kernel-->  | a | b | text | time | diff |
//! ```
//!
//! Whatever else there may be in a record batch, even a single null, is for the general encoder: what was written
//! of its rows is then of no use.

mod find;
#[cfg(test)]
mod tests;
mod texts;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};

use super::encode::time_slot;
use super::lanes::{RAW, number_width, slot_code};
use super::lines::tile_rows;
use crate::error::Result;
use crate::kernel::rows::{Code, Places, Strided, put_columns};
use crate::order::code::OrderedCode;
use crate::order::{Layout, Sequence, Slot, Tail};
use find::{FindNumbers, numbers_of};
pub(crate) use texts::Behind;
use texts::Text;

/// Columns of a part, and texts of a row, at the most.
const MOST: usize = 8;

/// Writes rows of numbers, text and a diff.
#[derive(Debug)]
pub(crate) struct PlainEncoder {
    layout: Layout,
    parts: Vec<Part>,
    /// Bytes of a row without its texts, but with their ends.
    fixed: usize,
    /// Rows that are written part by part before going on to the next ones.
    tile: usize,
    /// The schema that came last, which fits the layout.
    schema: Option<SchemaRef>,
    /// Bytes behind the last text.
    behind_texts: usize,
    /// Where what stands between two texts begins in each row.
    between: Vec<Vec<u32>>,
}

/// Columns that are written at once.
#[derive(Debug)]
enum Part {
    Numbers(Numbers),
    Text(Text),
}

/// Adjacent numbers of one width.
#[derive(Debug)]
struct Numbers {
    /// Where they stand in the record batch, by type.
    columns: Vec<(FindNumbers, Vec<usize>)>,
    codes: Vec<Code>,
    width: usize,
}

impl PlainEncoder {
    /// An encoder for rows of `layout`, if they are numbers and text only.
    pub(crate) fn new(layout: &Layout) -> Option<Self> {
        let Tail::Diff(diff) = layout.tail() else { return None };
        let schema = layout.schema();
        let alone = layout.payload().is_empty() && layout.sequence() == Sequence::None;
        if !alone || *schema.field(diff).data_type() != DataType::Int64 {
            return None;
        }
        let mut runs = Vec::new();
        let time = layout.time().map(|column| time_slot(layout, column));
        for slot in layout.slots().iter().chain(&time) {
            add_slot(&mut runs, slot)?;
        }
        add_number(&mut runs, size_of::<i64>(), diff, RAW);
        let runs = runs.into_iter().flat_map(Run::cut);
        let parts = runs.map(|run| Part::of(schema, run)).collect::<Option<Vec<_>>>()?;
        let texts = parts.iter().filter_map(Part::text).count();
        if texts > MOST {
            return None;
        }
        let fixed = parts.iter().map(Part::fixed).sum();
        Some(Self {
            fixed,
            tile: tile_rows(fixed),
            behind_texts: parts.iter().rev().map_while(Part::numbers).map(Numbers::bytes).sum(),
            between: vec![Vec::new(); texts.saturating_sub(1)],
            layout: layout.clone(),
            parts,
            schema: None,
        })
    }

    /// Fails unless a record batch of `schema` is one of the layout.
    pub(crate) fn check_schema(&mut self, schema: &SchemaRef) -> Result<()> {
        if !self.schema.as_ref().is_some_and(|known| Arc::ptr_eq(known, schema)) {
            self.layout.check_schema(schema)?;
            self.schema = Some(Arc::clone(schema));
        }
        Ok(())
    }

    /// Writes `rows` of `batch`, which have one length, to `out`, which has room for them. False if they are
    /// for the general encoder: something in the batch is null.
    ///
    /// # Errors
    /// [`crate::Error::SchemaMismatch`].
    pub(crate) fn write(
        &mut self,
        batch: &RecordBatch,
        rows: Range<usize>,
        out: &mut [u8],
    ) -> Result<bool> {
        self.check_schema(batch.schema_ref())?;
        let stride = self.fixed;
        let (mut tile, mut first) = (rows.start..rows.start, 0);
        let mut columns = [&[][..]; MOST];
        loop {
            tile = tile.end..rows.end.min(tile.end.saturating_add(self.tile));
            let mut places = Strided { first, stride };
            for part in &self.parts {
                let Part::Numbers(numbers) = part else { return Ok(false) };
                let Some(columns) = numbers.find(batch.columns(), &mut columns) else {
                    return Ok(false);
                };
                numbers.put(columns, tile.clone(), places, out);
                places.first += numbers.bytes();
            }
            first += tile.len() * stride;
            if tile.end == rows.end {
                return Ok(true);
            }
        }
    }
}

/// Columns of one part, and the codes of numbers, as they are collected.
enum Run {
    Numbers { width: usize, columns: Vec<(usize, Code)> },
    Text { column: usize, descending: bool },
}

/// Puts a slot behind the others; nothing if it is neither a number nor a text, or may be null.
fn add_slot(runs: &mut Vec<Run>, slot: &Slot) -> Option<()> {
    match (number_width(slot.code), slot.code) {
        _ if slot.nullable => return None,
        (Some(width), _) => add_number(runs, width, slot.column, slot_code(slot)),
        (_, OrderedCode::Text) => {
            runs.push(Run::Text { column: slot.column, descending: slot.descending });
        }
        _ => return None,
    }
    Some(())
}

fn add_number(runs: &mut Vec<Run>, width: usize, column: usize, code: Code) {
    match runs.last_mut() {
        Some(Run::Numbers { width: last, columns }) if *last == width => {
            columns.push((column, code));
        }
        _ => runs.push(Run::Numbers { width, columns: vec![(column, code)] }),
    }
}

impl Run {
    /// What of it is written at once.
    fn cut(self) -> Vec<Self> {
        let Self::Numbers { width, mut columns } = self else { return vec![self] };
        let mut cut = Vec::new();
        while !columns.is_empty() {
            let behind = columns.split_off(columns.len().min(MOST));
            cut.push(Self::Numbers { width, columns: std::mem::replace(&mut columns, behind) });
        }
        cut
    }
}

impl Part {
    fn of(schema: &SchemaRef, run: Run) -> Option<Self> {
        let data_type = |column: usize| schema.field(column).data_type();
        Some(match run {
            Run::Text { column, descending } => {
                Self::Text(Text::of(column, descending, data_type(column))?)
            }
            Run::Numbers { width, columns } => {
                let codes = columns.iter().map(|&(_, code)| code).collect();
                let mut by_type: Vec<(FindNumbers, Vec<usize>)> = Vec::new();
                let mut last = None;
                for (column, _) in columns {
                    match by_type.last_mut() {
                        Some((_, same)) if last == Some(data_type(column)) => same.push(column),
                        _ => by_type.push((numbers_of(data_type(column))?, vec![column])),
                    }
                    last = Some(data_type(column));
                }
                Self::Numbers(Numbers { columns: by_type, codes, width })
            }
        })
    }

    /// Bytes that it takes in every row: of a text its end.
    fn fixed(&self) -> usize {
        self.numbers().map_or(1, Numbers::bytes)
    }

    fn numbers(&self) -> Option<&Numbers> {
        match self {
            Self::Numbers(numbers) => Some(numbers),
            Self::Text(_) => None,
        }
    }

    fn text(&self) -> Option<&Text> {
        match self {
            Self::Text(text) => Some(text),
            Self::Numbers(_) => None,
        }
    }
}

impl Numbers {
    /// Bytes that the columns take in a row.
    fn bytes(&self) -> usize {
        self.codes.len() * self.width
    }

    /// Writes `rows` of `columns`, which were [found](Numbers::find).
    fn put<P: Places>(&self, columns: &[&[u8]], rows: Range<usize>, places: P, out: &mut [u8]) {
        put_columns(columns, &self.codes, self.width, rows, places, out);
    }

    /// The values of the columns, in `out`; nothing if one has nulls.
    #[inline]
    fn find<'o, 'a>(
        &self,
        arrays: &'a [ArrayRef],
        out: &'o mut [&'a [u8]; MOST],
    ) -> Option<&'o [&'a [u8]]> {
        let mut count = 0;
        for (find, columns) in &self.columns {
            let end = count + columns.len();
            if !find(arrays, columns, &mut out[count..end]) {
                return None;
            }
            count = end;
        }
        Some(&out[..count])
    }
}
