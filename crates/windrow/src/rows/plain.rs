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
//! Texts go before numbers, since they may overwrite what is behind them. Whatever else there may be in a
//! record batch, even a single null, is for the general encoder: no batch is written in part.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::{ByteArrayType, LargeUtf8Type, Utf8Type};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, GenericByteArray, PrimitiveArray, RecordBatch,
    downcast_primitive,
};
use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_schema::{DataType, SchemaRef};

use super::encode::time_slot;
use super::lanes::{Form, RAW, slot_code, slot_form, tile_rows};
use super::text;
use super::tile::{TILE, Tile};
use crate::error::Result;
use crate::kernel::rows::text::put_texts;
use crate::kernel::rows::{Code, MOST, Plain, Span, Strided};
use crate::order::code::OrderedCode;
use crate::order::{Layout, Sequence, Slot, Tail};

/// Writes rows of numbers, text and a diff.
#[derive(Debug)]
pub(crate) struct PlainEncoder {
    layout: Layout,
    parts: Vec<Part>,
    /// Bytes of a row without its texts.
    fixed: usize,
    /// The schema that came last, which fits the layout.
    schema: Option<SchemaRef>,
    /// Where the texts of a tile are in each column, and where its rows are written.
    spans: Vec<Vec<Span>>,
    cursors: Vec<[usize; TILE]>,
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
    columns: Vec<(Find, Vec<usize>)>,
    plain: Plain,
}

/// Finds the values of columns of the type that it is for, and puts them in order to where it is told; false if
/// one is of another type, or has nulls.
type Find = for<'a> fn(&'a [ArrayRef], &[usize], &mut [&'a [u8]]) -> bool;

fn find_of(data_type: &DataType) -> Option<Find> {
    fn find<'a, T: ArrowPrimitiveType>(
        arrays: &'a [ArrayRef],
        columns: &[usize],
        out: &mut [&'a [u8]],
    ) -> bool {
        columns.iter().zip(out).all(|(&column, out)| {
            let array = arrays[column].as_ref().as_any().downcast_ref::<PrimitiveArray<T>>();
            array.filter(|array| !has_nulls(array.nulls())).is_some_and(|array| {
                *out = array.values().inner().as_slice();
                true
            })
        })
    }
    macro_rules! function {
        ($kind:ty) => {
            Some(find::<$kind> as Find)
        };
    }
    downcast_primitive! { data_type => (function), _ => None }
}

fn has_nulls(nulls: Option<&NullBuffer>) -> bool {
    nulls.is_some_and(|nulls| nulls.null_count() > 0)
}

/// A column of text.
#[derive(Debug)]
struct Text {
    column: usize,
    descending: bool,
    texts: FindTexts,
}

/// Finds the bytes of texts, and adds where those of some rows are; nothing if the array is of another type,
/// or has nulls.
type FindTexts = for<'a> fn(&'a dyn Array, Range<usize>, &mut Vec<Span>) -> Option<&'a [u8]>;

fn texts_of(data_type: &DataType) -> Option<FindTexts> {
    fn find<'a, T: ByteArrayType>(
        array: &'a dyn Array,
        rows: Range<usize>,
        spans: &mut Vec<Span>,
    ) -> Option<&'a [u8]> {
        let array = array.as_any().downcast_ref::<GenericByteArray<T>>()?;
        if has_nulls(array.nulls()) {
            return None;
        }
        let ends = array.value_offsets()[rows.start..=rows.end].windows(2);
        spans.extend(ends.map(|ends| (ends[0].as_usize(), ends[1].as_usize())));
        Some(array.value_data())
    }
    match data_type {
        DataType::Utf8 => Some(find::<Utf8Type>),
        DataType::LargeUtf8 => Some(find::<LargeUtf8Type>),
        _ => None,
    }
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
        let parts =
            runs.into_iter().map(|run| Part::of(schema, run)).collect::<Option<Vec<_>>>()?;
        if parts.iter().filter_map(Part::text).count() > MOST {
            return None;
        }
        let numbers = |part: &Part| match part {
            Part::Numbers(numbers) => numbers.plain.bytes(),
            Part::Text(_) => 1,
        };
        Some(Self {
            fixed: parts.iter().map(numbers).sum(),
            spans: parts.iter().filter_map(Part::text).map(|_| Vec::new()).collect(),
            layout: layout.clone(),
            parts,
            schema: None,
            cursors: vec![[0; TILE]],
        })
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Fails unless a record batch of `schema` is one of the layout.
    fn check_schema(&mut self, schema: &SchemaRef) -> Result<()> {
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
        // Of one part there is nothing in tiles.
        let most = if self.parts.len() == 1 { rows.len() } else { tile_rows(stride) };
        for start in rows.clone().step_by(most.max(1)) {
            let tile = start..rows.end.min(start + most);
            let mut places = Strided { first: (start - rows.start) * stride, stride };
            for part in &self.parts {
                let Part::Numbers(numbers) = part else { return Ok(false) };
                let mut columns = [&[][..]; MOST];
                let Some(columns) = numbers.find(batch.columns(), &mut columns) else {
                    return Ok(false);
                };
                numbers.plain.put(columns, tile.clone(), places, out);
                places.first += numbers.plain.bytes();
            }
        }
        Ok(true)
    }

    /// Writes the rows of `batch` to `out` from the last of `starts` on, and adds where they end to `starts`;
    /// `spare` bytes a row, of all the rows that start there, are left free at the end of `out`. False, and
    /// nothing added, if there is no room for that; or if the batch is for the general encoder: something in
    /// it is null.
    ///
    /// # Errors
    /// [`crate::Error::SchemaMismatch`].
    pub(crate) fn write_varying(
        &mut self,
        batch: &RecordBatch,
        out: &mut [u8],
        starts: &mut Vec<u32>,
        spare: usize,
    ) -> Result<bool> {
        self.check_schema(batch.schema_ref())?;
        let (rows, before) = (batch.num_rows(), starts.len());
        for start in (0..rows).step_by(TILE) {
            let tile = start..rows.min(start + TILE);
            if self.write_tile(batch, tile, out, starts, spare).is_none() {
                starts.truncate(before);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// As [`PlainEncoder::write_varying`], up to [`TILE`] rows.
    fn write_tile(
        &mut self,
        batch: &RecordBatch,
        rows: Range<usize>,
        out: &mut [u8],
        starts: &mut Vec<u32>,
        spare: usize,
    ) -> Option<()> {
        let columns = batch.columns();
        let texts = self.parts.iter().filter_map(Part::text);
        let mut data = [&[][..]; MOST];
        for ((data, spans), text) in data.iter_mut().zip(&mut self.spans).zip(texts) {
            spans.clear();
            *data = (text.texts)(columns[text.column].as_ref(), rows.clone(), spans)?;
        }
        let mut end = *starts.last()? as usize;
        let cursors = &mut self.cursors[0][..rows.len()];
        if let [spans] = &self.spans[..] {
            for (cursor, &(start, stop)) in cursors.iter_mut().zip(spans) {
                *cursor = end;
                end += self.fixed + (stop - start);
                starts.push(end as u32);
            }
        } else {
            for (at, cursor) in cursors.iter_mut().enumerate() {
                *cursor = end;
                let texts = self.spans.iter().map(|spans| spans[at].1 - spans[at].0);
                end += self.fixed + texts.sum::<usize>();
                starts.push(end as u32);
            }
        }
        if end + (starts.len() - 1) * spare > out.len() {
            return None;
        }
        let mut tile = Tile { rows, parts: &mut self.cursors, part: 0, distance: 0, out };
        // What varies first: it may overwrite what stands behind it, which is written after it.
        let mut texts = data.iter().zip(&self.spans);
        for part in &self.parts {
            match part {
                Part::Numbers(numbers) => tile.distance += numbers.plain.bytes(),
                Part::Text(text) => {
                    let (data, spans) = texts.next()?;
                    text.put(data, spans, &mut tile);
                }
            }
        }
        (tile.part, tile.distance) = (0, 0);
        for part in &self.parts {
            match part {
                Part::Numbers(numbers) => {
                    let mut values = [&[][..]; MOST];
                    let values = numbers.find(columns, &mut values)?;
                    let rows = tile.rows.clone();
                    let (places, out) = tile.places();
                    numbers.plain.put(values, rows, places, out);
                    tile.distance += numbers.plain.bytes();
                }
                Part::Text(_) => (tile.part, tile.distance) = (tile.part + 1, 0),
            }
        }
        Some(())
    }
}

/// Columns of one part, and the codes of numbers, as they are collected.
enum Run {
    Numbers { width: usize, columns: Vec<(usize, Code)> },
    Text { column: usize, descending: bool },
}

/// Puts a slot behind the others; nothing if it is neither a number nor a text, or may be null.
fn add_slot(runs: &mut Vec<Run>, slot: &Slot) -> Option<()> {
    match (slot_form(slot), slot.code) {
        _ if slot.nullable => return None,
        (Form::Numbers(width), _) => add_number(runs, width, slot.column, slot_code(slot)),
        (_, OrderedCode::Text) => {
            runs.push(Run::Text { column: slot.column, descending: slot.descending });
        }
        _ => return None,
    }
    Some(())
}

fn add_number(runs: &mut Vec<Run>, width: usize, column: usize, code: Code) {
    match runs.last_mut() {
        Some(Run::Numbers { width: last, columns }) if *last == width && columns.len() < MOST => {
            columns.push((column, code));
        }
        _ => runs.push(Run::Numbers { width, columns: vec![(column, code)] }),
    }
}

impl Part {
    fn of(schema: &SchemaRef, run: Run) -> Option<Self> {
        let data_type = |column: usize| schema.field(column).data_type();
        Some(match run {
            Run::Text { column, descending } => {
                Self::Text(Text { column, descending, texts: texts_of(data_type(column))? })
            }
            Run::Numbers { width, columns } => {
                let codes = columns.iter().map(|&(_, code)| code).collect();
                let mut by_type: Vec<(Find, Vec<usize>)> = Vec::new();
                let mut last = None;
                for (column, _) in columns {
                    match by_type.last_mut() {
                        Some((_, same)) if last == Some(data_type(column)) => same.push(column),
                        _ => by_type.push((find_of(data_type(column))?, vec![column])),
                    }
                    last = Some(data_type(column));
                }
                Self::Numbers(Numbers { columns: by_type, plain: Plain::new(codes, width) })
            }
        })
    }

    fn text(&self) -> Option<&Text> {
        match self {
            Self::Text(text) => Some(text),
            Self::Numbers(_) => None,
        }
    }
}

impl Numbers {
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

impl Text {
    /// Writes the texts of a tile, which are at `spans` of `data`, and goes on to the next part.
    fn put(&self, data: &[u8], spans: &[Span], tile: &mut Tile<'_>) {
        let is_first = tile.part == 0;
        let (distance, cursors, out) = tile.next_part();
        cursors.iter_mut().for_each(|cursor| *cursor += distance);
        if is_first {
            let flip = if self.descending { 0xff } else { 0 };
            return put_texts(data, spans, text::form(flip), cursors, out);
        }
        // What is behind is written already.
        for (&(start, end), cursor) in spans.iter().zip(cursors) {
            let value = &data[start..end];
            *cursor += text::encode(OrderedCode::Text, self.descending, value, &mut out[*cursor..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{
        Float64Array, Int32Array, Int64Array, LargeStringArray, StringArray, UInt64Array,
    };

    use super::*;
    use crate::order::{Order, asc, desc};
    use crate::rows::Encoder;

    const ROWS: i64 = 300;

    fn batch(from: i64, null: bool) -> RecordBatch {
        let b = (0..ROWS).map(|row| (!null || row != 7).then_some((row - 20) as i32));
        let text = |row: i64| "length ".repeat((row * row % 17) as usize) + &row.to_string();
        let columns: [(&str, ArrayRef, bool); 8] = [
            (
                "a",
                Arc::new(Float64Array::from_iter_values((0..ROWS).map(|x| 3.5 - x as f64))),
                false,
            ),
            ("b", Arc::new(Int32Array::from_iter(b)), null),
            ("c", Arc::new(Int32Array::from_iter_values(0..ROWS as i32)), false),
            ("s", Arc::new(StringArray::from_iter_values((0..ROWS).map(text))), false),
            (
                "l",
                Arc::new(LargeStringArray::from_iter_values((0..ROWS).map(|x| text(ROWS - x)))),
                false,
            ),
            ("t", Arc::new(UInt64Array::from_iter_values((0..ROWS as u64).map(|x| x * x))), false),
            ("u", Arc::new(UInt64Array::from_iter_values(0..ROWS as u64)), false),
            ("d", Arc::new(Int64Array::from_iter_values((0..ROWS).map(|x| x - from))), false),
        ];
        RecordBatch::try_from_iter_with_nullable(columns).unwrap()
    }

    /// The rows of the general encoder, and where they end.
    fn encoded(layout: &Layout, batch: &RecordBatch) -> (Vec<u8>, Vec<u32>) {
        let encoder = Encoder::new(layout);
        let prepared = encoder.prepare(batch, 0).unwrap();
        let mut starts = vec![0];
        let mut rows = vec![0; prepared.add_ends(0, &mut starts)];
        encoder.encode(&prepared, 0..batch.num_rows(), &mut rows);
        (rows, starts)
    }

    #[test]
    fn numbers_are_those_of_the_general_encoder() {
        let whole = batch(9, false).project(&[0, 1, 2, 5, 6, 7]).unwrap();
        let layout = Order::by([asc("c"), desc("a"), asc("b")]).time("t").diff("d");
        let layout = layout.bind(&whole.schema()).unwrap();
        let stride = layout.stride().unwrap();
        let mut plain = PlainEncoder::new(&layout).unwrap();
        for batch in [whole.clone(), whole.slice(3, 17), whole.slice(5, 0)] {
            let expected = encoded(&layout, &batch).0;
            let mut got = vec![0; expected.len()];
            assert!(plain.write(&batch, 0..batch.num_rows(), &mut got).unwrap());
            assert_eq!(got, expected);
        }
        let mut got = vec![0; 40 * stride];
        assert!(plain.write(&whole, 100..140, &mut got).unwrap());
        assert_eq!(got, encoded(&layout, &whole.slice(100, 40)).0);
        // A null where none may be is for the general encoder to refuse.
        let nulls = batch(9, true).project(&[0, 1, 2, 5, 6, 7]).unwrap();
        assert!(!plain.write(&nulls, 0..40, &mut got).unwrap());
    }

    #[test]
    fn texts_are_those_of_the_general_encoder() {
        let whole = batch(9, false);
        for order in [[asc("s"), desc("a"), desc("l")], [asc("b"), desc("s"), asc("c")]] {
            let layout = Order::by(order).time("t").diff("d").bind(&whole.schema()).unwrap();
            let mut plain = PlainEncoder::new(&layout).unwrap();
            for (batch, spare) in [(&whole, 4), (&whole.slice(3, 17), 0), (&whole.slice(5, 0), 9)] {
                let (expected, ends) = encoded(&layout, batch);
                let room = expected.len() + spare * batch.num_rows();
                // Behind another row, with just enough room and with one byte less.
                let (mut got, mut starts) = (vec![0; 10 + spare + room], vec![0, 10]);
                assert!(plain.write_varying(batch, &mut got, &mut starts, spare).unwrap());
                assert_eq!(got[10..10 + expected.len()], expected);
                assert!(starts[1..].iter().zip(&ends).all(|(start, end)| *start == end + 10));
                assert_eq!(starts.len(), ends.len() + 1);
                if batch.num_rows() > 0 {
                    let mut starts = vec![0, 10];
                    got.pop();
                    assert!(!plain.write_varying(batch, &mut got, &mut starts, spare).unwrap());
                    assert_eq!(starts, [0, 10]);
                }
            }
            let (mut out, mut starts) = (vec![0; 1 << 16], vec![0]);
            let nulls = batch(9, true);
            assert!(!plain.write_varying(&nulls, &mut out, &mut starts, 4).unwrap());
            assert_eq!(starts, [0]);
        }
    }

    #[test]
    fn other_layouts_have_none() {
        let nullable = batch(9, true);
        let layout = Order::by("b").diff("d").bind(&nullable.schema()).unwrap();
        assert!(PlainEncoder::new(&layout).is_none());
        let layout = Order::by("a").bind(&batch(9, false).schema()).unwrap();
        assert!(PlainEncoder::new(&layout).is_none());
    }
}
