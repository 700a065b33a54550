//! The bytes of arrow-row 59, for its users: the same rows, written faster.
//!
//! ```text
//! arrow_row::RowConverter::convert_columns(columns)  ==  Converter::encode(columns), byte for byte
//! ```
//!
//! Rows that were stored or sent keep their meaning, so a program can switch one side at a time.
//! [`crate::RowEncoder`] has the better format: shorter, faster to write, and it knows nullability.
//! Unlike arrow-row, decoding returns the types that went in, dictionaries too, and errors instead of
//! panics.

mod blocks;
mod node;
#[cfg(test)]
mod tests;

use std::ops::Range;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, SortOptions};

use self::node::Node;
use super::Rows;
use super::column::Column;
use super::encoded::{finish, finish_strided, room};
use super::fixed::{Word, with_word};
use super::lanes::slot_code;
use super::value;
use crate::error::{Error, Result};
use crate::kernel::rows::{Bits, Lane, Strided, put_cells};
use crate::order::Slot;
use crate::order::code::{Kind, OrderedCode};

/// Bytes of rows written column by column before going on to the next ones.
const TILE_BYTES: usize = 16 << 10;
/// The marker of a value.
const VALUE: u8 = 1;

/// A column of a [`Converter`]: its type and its place in the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortField {
    /// The type of the column.
    pub data_type: DataType,
    /// Direction and place of nulls, as arrow-row takes them.
    pub options: SortOptions,
}

/// Encodes columns to the bytes of `arrow_row::RowConverter`, and decodes them.
///
/// ```
/// # use std::sync::Arc;
/// # use windrow::arrow_array::{ArrayRef, Int32Array};
/// # use windrow::arrow_schema::{DataType, SortOptions};
/// use windrow::compat::{Converter, SortField};
///
/// let column: ArrayRef = Arc::new(Int32Array::from(vec![Some(7), None]));
/// let field = SortField { data_type: DataType::Int32, options: SortOptions::default() };
/// let converter = Converter::new(vec![field])?;
/// let rows = converter.encode(&[Arc::clone(&column)])?;
/// assert_eq!(rows.row(0), [1, 0x80, 0, 0, 7]);
/// assert_eq!(&converter.decode(&rows, 0..2)?, &[column]);
/// # Ok::<(), windrow::Error>(())
/// ```
pub struct Converter {
    fields: Vec<(SortField, Node)>,
}

/// The marker of a null.
fn null_byte(options: SortOptions) -> u8 {
    if options.nulls_first { 0 } else { 0xff }
}

impl Converter {
    /// A converter of columns of these types.
    ///
    /// # Errors
    /// [`Error::UnsupportedColumn`] if arrow-row has no code for a type.
    pub fn new(fields: Vec<SortField>) -> Result<Self> {
        let with_node = |field: SortField| match Node::of(&field.data_type) {
            Some(node) => Ok((field, node)),
            None => Err(Error::UnsupportedColumn {
                column: field.data_type.to_string(),
                data_type: field.data_type,
                role: "a row of arrow-row",
            }),
        };
        Ok(Self { fields: fields.into_iter().map(with_node).collect::<Result<_>>()? })
    }

    /// The rows of `columns`, which are of one length.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] if number, types or lengths of the columns are others;
    /// [`Error::Value`] if the rows take over 4 GiB.
    pub fn encode(&self, columns: &[ArrayRef]) -> Result<Rows> {
        let mut rows = Rows::default();
        self.encode_into(columns, &mut rows)?;
        Ok(rows)
    }

    /// The rows of `columns` in place of those in `rows`, whose memory is used again.
    ///
    /// # Errors
    /// As [`Converter::encode`]; there are no rows then.
    pub fn encode_into(&self, columns: &[ArrayRef], rows: &mut Rows) -> Result<()> {
        rows.clear();
        let count = self.check(columns)?;
        let fields = self.fields.iter().zip(columns);
        let columns: Vec<Source> = fields
            .map(|((field, node), array)| Source::new(field, node, array))
            .collect::<Result<_>>()?;
        let widths: Option<Vec<usize>> = columns.iter().map(Source::width).collect();
        if let Some(widths) = widths {
            let stride = widths.iter().sum();
            let out = room(rows, stride * count)?;
            let tile = (TILE_BYTES / usize::max(stride, 1)).max(16);
            for first in (0..count).step_by(tile) {
                let tile = first..(first + tile).min(count);
                let mut at = first * stride;
                for (column, width) in columns.iter().zip(&widths) {
                    column.put_strided(tile.clone(), Strided { first: at, stride }, out);
                    at += width;
                }
            }
            finish_strided(rows, count, stride);
            return Ok(());
        }
        let mut starts = Vec::with_capacity(count);
        let mut end = 0;
        for row in 0..count {
            starts.push(end);
            end += columns.iter().map(|column| column.len_of(row)).sum::<usize>();
        }
        let ends: Vec<usize> =
            starts.iter().skip(1).copied().chain((count > 0).then_some(end)).collect();
        let out = room(rows, end)?;
        out.fill(0);
        for column in &columns {
            for (row, cursor) in starts.iter_mut().enumerate() {
                *cursor += column.put(row, &mut out[*cursor..]);
            }
        }
        finish(rows, &ends);
        Ok(())
    }

    /// The columns of some rows.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if these are not rows of this converter; [`Error::Value`] if a column
    /// cannot hold so much: decode fewer rows.
    ///
    /// # Panics
    /// If there are no such rows.
    pub fn decode(&self, rows: &Rows, range: Range<usize>) -> Result<Vec<ArrayRef>> {
        assert!(range.start <= range.end && range.end <= rows.len(), "rows {range:?}");
        self.decode_rows(range.map(|index| rows.row(index)))
    }

    /// The columns of rows that lie anywhere: those of arrow-row too.
    ///
    /// # Errors
    /// As [`Converter::decode`].
    pub fn decode_rows<'a>(
        &self,
        rows: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Vec<ArrayRef>> {
        let mut readers = self
            .fields
            .iter()
            .map(|(field, _)| value::reader(&field.data_type))
            .collect::<Result<Vec<_>>>()?;
        let mut bytes = Vec::new();
        for mut row in rows {
            for ((field, node), reader) in self.fields.iter().zip(&mut readers) {
                bytes.clear();
                node.read(&mut row, field.options, &mut bytes)?;
                reader.read(&mut &bytes[..])?;
            }
            if !row.is_empty() {
                return Err(corrupt("a row does not end where its columns do"));
            }
        }
        readers.iter_mut().map(|reader| reader.finish()).collect()
    }

    fn check(&self, columns: &[ArrayRef]) -> Result<usize> {
        let mismatch = |expected: String, got: String| Err(Error::SchemaMismatch { expected, got });
        if columns.len() != self.fields.len() {
            let count = |count: usize| format!("{count} columns");
            return mismatch(count(self.fields.len()), count(columns.len()));
        }
        let count = columns.first().map_or(0, |column| column.len());
        for ((field, _), column) in self.fields.iter().zip(columns) {
            if field.data_type != *column.data_type() {
                return mismatch(field.data_type.to_string(), column.data_type().to_string());
            }
            if column.len() != count {
                return mismatch(format!("{count} rows"), format!("{} rows", column.len()));
            }
        }
        Ok(count)
    }
}

/// A column made ready: resolved to plain values, or coded already.
struct Source {
    options: SortOptions,
    code: Option<OrderedCode>,
    column: Column,
}

impl Source {
    fn new(field: &SortField, node: &Node, array: &ArrayRef) -> Result<Self> {
        let options = field.options;
        if let Node::Plain(code) = node
            && !field.data_type.is_nested()
            && !matches!(field.data_type, DataType::Dictionary(..))
        {
            return Ok(Self { options, code: Some(*code), column: Column::plain_values(array)? });
        }
        let writer = value::writer(array)?;
        let (mut value, mut bytes) = (Vec::new(), Vec::new());
        let mut offsets = Vec::with_capacity(array.len() + 1);
        offsets.push(0);
        for row in 0..array.len() {
            value.clear();
            writer.write(row, &mut value);
            node.put(&mut &value[..], options, &mut bytes)?;
            offsets.push(bytes.len());
        }
        Ok(Self { options, code: None, column: Column::Value { bytes, offsets, nulls: None } })
    }

    /// Bytes of every value, marker included, if they are the same.
    fn width(&self) -> Option<usize> {
        match (self.code?, &self.column) {
            (code, Column::Fixed { .. } | Column::Bool { .. }) => Some(1 + code.width()),
            _ => None,
        }
    }

    fn len_of(&self, row: usize) -> usize {
        match &self.column {
            Column::Value { offsets, .. } => offsets[row + 1] - offsets[row],
            Column::Bytes { nulls, .. } if nulls.as_ref().is_some_and(|n| n.is_null(row)) => 1,
            Column::Bytes { values, .. } => blocks::encoded_len(values.get(row).len()),
            _ => self.width().unwrap_or(0),
        }
    }

    /// Writes the value of `row` to the start of `out`, which is zeroed; returns its bytes.
    fn put(&self, row: usize, out: &mut [u8]) -> usize {
        let flip = if self.options.descending { 0xff } else { 0 };
        match &self.column {
            Column::Value { bytes, offsets, .. } => {
                let bytes = &bytes[offsets[row]..offsets[row + 1]];
                out[..bytes.len()].copy_from_slice(bytes);
                bytes.len()
            }
            Column::Bytes { nulls, .. } if nulls.as_ref().is_some_and(|n| n.is_null(row)) => {
                out[0] = null_byte(self.options);
                1
            }
            Column::Bytes { values, .. } => blocks::put(values.get(row), flip, out),
            _ => {
                let width = self.width().unwrap_or(0);
                self.put_strided(row..row + 1, Strided { first: 0, stride: width }, out);
                width
            }
        }
    }

    /// Writes a column of fixed width.
    fn put_strided(&self, rows: Range<usize>, places: Strided, out: &mut [u8]) {
        let null = null_byte(self.options);
        let nulls = self.column.nulls();
        if let (
            Some(
                code @ OrderedCode::Fixed(
                    width @ (4 | 8),
                    Kind::Signed | Kind::Unsigned | Kind::Float,
                ),
            ),
            Column::Fixed { values, nulls },
        ) = (self.code, &self.column)
        {
            let slot = Slot { descending: self.options.descending, ..Slot::of_number(0, code) };
            let valid =
                nulls.as_ref().map(|nulls| Bits { bytes: nulls.validity(), first: nulls.offset() });
            let lane = Lane { values, valid, code: slot_code(&slot) };
            put_cells(&lane, width, rows, null, places, out);
            return;
        }
        let at = |index: usize| places.first + index * places.stride;
        for (index, row) in rows.clone().enumerate() {
            let valid = nulls.is_none_or(|nulls| nulls.is_valid(row));
            out[at(index)] = if valid { VALUE } else { null };
        }
        let places = Strided { first: places.first + 1, ..places };
        let at = |index: usize| places.first + index * places.stride;
        let flip = if self.options.descending { 0xff } else { 0 };
        match (self.code, &self.column) {
            (Some(OrderedCode::Fixed(width, kind)), Column::Fixed { values, .. }) => {
                with_word!(width, W => {
                    for (index, row) in rows.enumerate() {
                        let target = &mut out[at(index)..at(index) + W::BYTES];
                        if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                            target.fill(0);
                            continue;
                        }
                        let value = W::read_native(&values[row * W::BYTES..(row + 1) * W::BYTES]);
                        value.code(kind, self.options.descending).write_big(target);
                    }
                });
            }
            (Some(OrderedCode::FixedBinary(width)), Column::Fixed { values, .. }) => {
                for (index, row) in rows.enumerate() {
                    let target = &mut out[at(index)..at(index) + width];
                    let null = nulls.is_some_and(|nulls| nulls.is_null(row));
                    let value = &values[row * width..(row + 1) * width];
                    for (target, value) in target.iter_mut().zip(value) {
                        *target = if null { 0 } else { value ^ flip };
                    }
                }
            }
            (_, Column::Bool { values, .. }) => {
                for (index, row) in rows.enumerate() {
                    let null = nulls.is_some_and(|nulls| nulls.is_null(row));
                    out[at(index)] = if null { 0 } else { u8::from(values.value(row)) ^ flip };
                }
            }
            _ => {}
        }
    }
}

fn corrupt(message: &str) -> Error {
    Error::Corrupt { place: "a row of arrow-row".into(), message: message.into() }
}
