//! Rows in the format of arrow-row 59, byte for byte, written faster.
//!
//! ```text
//! arrow_row::RowConverter::convert_columns(columns)  ==  Converter::encode(columns), byte for byte
//! ```
//!
//! Stored or sent rows keep their meaning, so a program can switch one side at a time, by its
//! imports alone: [`RowConverter`], [`SortField`], [`Rows`], [`Row`], [`OwnedRow`] and
//! [`RowParser`] are arrow-row's names for the same types. [`Converter`] lies below: it writes to
//! the [`crate::Rows`] of this crate, in reused memory, and keeps dictionaries.
//!
//! [`crate::RowEncoder`] has the better format: shorter, faster to write, and aware of nullability.
//! Unlike arrow-row, decoding returns errors instead of panics where rows are damaged.

mod blocks;
mod decode;
mod dictionaries;
mod framing;
mod inner;
mod lists;
mod node;
mod row_converter;
mod rows;
mod strip;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub use self::row_converter::{RowConverter, RowParser};
pub use self::rows::{OwnedRow, Row, Rows, RowsIter};

use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field, Fields, SortOptions};

use self::framing::ArrowRow;
use self::node::Node;
use self::strip::{Strip, strips};
use super::Rows as Bytes;
use super::encoded::{finish, finish_strided, room};
use super::lines::Line;
use super::nested::Tree;
use super::read::Reader;
use super::value::wire::unsupported;
use crate::error::{Error, Result};
use windrow_kernel::rows::Strided;

/// Rows of a tile, for rows of one length: stretches of columns are long enough for prefetching,
/// and the tile stays in the second-level cache.
const STRIDED_ROWS: usize = 384;
/// Rows of a tile, for rows that vary.
const TILE_ROWS: usize = 128;
/// Role of columns, in errors.
const ROLE: &str = "a row of arrow-row";
/// The marker of a value.
const VALUE: u8 = 1;
/// Bytes of a value of type Null.
const NOTHING: [u8; 2] = [2, 3];
const NOTHING_DESCENDING: [u8; 2] = [!2, !3];
/// The end of a list, and a list without elements.
const END: u8 = 1;

/// A column of a [`Converter`]: its type and its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortField {
    /// The type of the column.
    pub data_type: DataType,
    /// Direction and position of nulls, as in arrow-row.
    pub options: SortOptions,
}

impl SortField {
    /// Creates an ascending column, nulls first.
    pub fn new(data_type: DataType) -> Self {
        Self::new_with_options(data_type, SortOptions::default())
    }

    /// Creates a column with this direction and position of nulls.
    pub fn new_with_options(data_type: DataType, options: SortOptions) -> Self {
        Self { data_type, options }
    }

    /// Returns the bytes of the field in memory, `Self` included.
    pub fn size(&self) -> usize {
        self.data_type.size() + size_of::<Self>() - size_of::<DataType>()
    }
}

/// Encodes columns in the format of `arrow_row::RowConverter`, and decodes rows.
///
/// ```
/// # use std::sync::Arc;
/// # use windrow_rows::arrow_array::{ArrayRef, Int32Array};
/// # use windrow_rows::arrow_schema::{DataType, SortOptions};
/// use windrow_rows::compat::{Converter, SortField};
///
/// let column: ArrayRef = Arc::new(Int32Array::from(vec![Some(7), None]));
/// let field = SortField { data_type: DataType::Int32, options: SortOptions::default() };
/// let converter = Converter::new(vec![field])?;
/// let rows = converter.encode(&[Arc::clone(&column)])?;
/// assert_eq!(rows.row(0), [1, 0x80, 0, 0, 7]);
/// assert_eq!(&converter.decode(&rows, 0..2)?, &[column]);
/// # Ok::<(), windrow_rows::Error>(())
/// ```
///
/// # Cost
/// Columns of one length are written in one pass, several adjacent columns at once; strings, nested
/// and encoded columns in two passes, the first for their lengths. Values inside lists and
/// dictionaries are encoded beforehand and copied: during a call, they take as much memory as in
/// the rows.
pub struct Converter {
    fields: Vec<(SortField, Node)>,
    /// The fields as columns to decode.
    columns: Fields,
    /// Bytes of every row, if all rows have one length.
    stride: Option<usize>,
}

/// Returns the marker of a null.
fn null_byte(options: SortOptions) -> u8 {
    if options.nulls_first { 0 } else { 0xff }
}

/// Returns the complement of a column's bytes.
fn flip(options: SortOptions) -> u8 {
    if options.descending { 0xff } else { 0 }
}

impl Converter {
    /// Creates a converter of columns of these types.
    ///
    /// # Errors
    /// [`Error::UnsupportedColumn`] if arrow-row has no code for a type.
    pub fn new(fields: Vec<SortField>) -> Result<Self> {
        let with_node = |field: SortField| match Node::of(&field.data_type) {
            Some(node) => Ok((field, node)),
            None => Err(unsupported(&field.data_type, ROLE)),
        };
        let fields: Vec<(SortField, Node)> =
            fields.into_iter().map(with_node).collect::<Result<_>>()?;
        let column = |(field, _): &(SortField, Node)| {
            Field::new(field.data_type.to_string(), field.data_type.clone(), true)
        };
        Ok(Self {
            columns: fields.iter().map(column).collect(),
            stride: fields.iter().map(|(_, node)| node.same_len()).sum(),
            fields,
        })
    }

    /// Encodes `columns`, which must have one length.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] if the columns differ in number, types or lengths;
    /// [`Error::Value`] if the rows take over 4 GiB.
    pub fn encode(&self, columns: &[ArrayRef]) -> Result<Bytes> {
        let mut rows = Bytes::default();
        self.encode_into(columns, &mut rows)?;
        Ok(rows)
    }

    /// Replaces `rows` by the rows of `columns`, in the same memory.
    ///
    /// # Errors
    /// As [`Converter::encode`]; `rows` is then empty.
    pub fn encode_into(&self, columns: &[ArrayRef], rows: &mut Bytes) -> Result<()> {
        rows.clear();
        let count = self.check(columns)?;
        let fields = self.fields.iter().zip(columns);
        let columns: Vec<Tree<ArrowRow>> = fields
            .map(|((field, _), array)| Tree::of(array, ArrowRow(field.options)))
            .collect::<Result<_>>()?;
        let strips = strips(&columns, count);
        if let Some(stride) = strips.iter().map(Strip::width).sum::<Option<usize>>() {
            let out = room(rows, stride * count)?;
            let tile_rows = match strips[..] {
                [Strip::Line(Line::Bytes(_))] => count.max(1),
                _ => STRIDED_ROWS,
            };
            for first in (0..count).step_by(tile_rows) {
                let tile = first..(first + tile_rows).min(count);
                let mut at = first * stride;
                for strip in &strips {
                    strip.put(tile.clone(), Strided { first: at, stride }, out);
                    at += strip.width().unwrap_or(0);
                }
            }
            finish_strided(rows, count, stride);
            return Ok(());
        }
        let picks: Vec<usize> = (0..count).collect();
        let fixed: usize = strips.iter().filter_map(Strip::width).sum();
        let mut lengths = vec![fixed as u32; count];
        let varying = strips.iter().map(|strip| strip.add_lengths(&picks, &mut lengths));
        let total = varying.fold((fixed * count) as u64, u64::saturating_add);
        let out = room(rows, usize::try_from(total).unwrap_or(usize::MAX))?;
        let (mut cursors, mut next) = ([0; TILE_ROWS], 0);
        for (picks, lengths) in picks.chunks(TILE_ROWS).zip(lengths.chunks(TILE_ROWS)) {
            let cursors = &mut cursors[..picks.len()];
            for (cursor, &length) in cursors.iter_mut().zip(lengths) {
                *cursor = next;
                next += length as usize;
            }
            let rows = picks[0]..picks[0] + picks.len();
            strips.iter().for_each(|strip| strip.put_at(rows.clone(), picks, cursors, out));
        }
        finish(rows, lengths);
        Ok(())
    }

    /// Decodes a range of rows.
    ///
    /// # Cost
    /// One pass over the rows. Unions and runs are read value by value, which is slower; every
    /// value of a dictionary is looked up in a table of earlier values.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the rows do not belong to this converter; [`Error::Value`] if a column
    /// cannot hold as many bytes: decode fewer rows.
    ///
    /// # Panics
    /// If the range is out of bounds.
    pub fn decode(&self, rows: &Bytes, range: Range<usize>) -> Result<Vec<ArrayRef>> {
        let rows = rows.stretch(range);
        let (count, bytes) = rows.size();
        let mut reader = self.reader(count, bytes)?;
        reader.read_stretch(&rows)?;
        finished(reader)
    }

    /// Decodes rows that lie anywhere, also rows of arrow-row.
    ///
    /// # Errors
    /// As [`Converter::decode`].
    pub fn decode_rows<'a>(
        &self,
        rows: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Vec<ArrayRef>> {
        let rows: Vec<&[u8]> = rows.into_iter().collect();
        let mut reader = self.reader(rows.len(), rows.iter().map(|row| row.len()).sum())?;
        reader.read_anywhere(&rows, self.stride)?;
        finished(reader)
    }

    fn fields(&self) -> impl Iterator<Item = &SortField> {
        self.fields.iter().map(|(field, _)| field)
    }

    /// Creates a reader of `rows` rows of `bytes` in all.
    fn reader(&self, rows: usize, bytes: usize) -> Result<Reader<'_>> {
        let varying = self.fields.iter().filter(|(_, node)| node.same_len().is_none()).count();
        let parts = decode::parts(&self.fields, &self.columns, rows, bytes / varying.max(1))?;
        Ok(Reader::new(parts, self.columns.clone()))
    }

    fn check(&self, columns: &[ArrayRef]) -> Result<usize> {
        let mismatch = |expected: String, got: String| Err(Error::SchemaMismatch { expected, got });
        if columns.len() != self.fields.len() {
            let count = |count: usize| format!("{count} columns");
            return mismatch(count(self.fields.len()), count(columns.len()));
        }
        let count = columns.first().map_or(0, |column| column.len());
        for ((field, _), column) in self.fields.iter().zip(columns) {
            if !field.data_type.equals_datatype(column.data_type()) {
                return mismatch(field.data_type.to_string(), column.data_type().to_string());
            }
            if column.len() != count {
                return mismatch(format!("{count} rows"), format!("{} rows", column.len()));
            }
        }
        Ok(count)
    }
}

impl std::fmt::Debug for Converter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.fields()).finish()
    }
}

/// Builds the decoded columns.
fn finished(reader: Reader<'_>) -> Result<Vec<ArrayRef>> {
    let columns = reader.finish()?.into_iter().map(|column| match column {
        Some(column) => column,
        None => unreachable!("a part for each column"),
    });
    Ok(columns.collect())
}

fn corrupt(message: &str) -> Error {
    Error::Corrupt { place: "a row of arrow-row".into(), message: message.into() }
}
