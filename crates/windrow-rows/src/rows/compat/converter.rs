//! The converter: columns to rows of the format, and back.

use std::ops::Range;

use arrow_array::ArrayRef;
use arrow_schema::{Field, Fields};

use super::decode::parts;
use super::field::{ROLE, SortField};
use super::framing::ArrowRow;
use super::node::Node;
use super::strip::{Strip, strips};
use crate::error::{Error, Result};
use crate::rows::Rows as Bytes;
use crate::rows::encoded::{finish, finish_strided, room};
use crate::rows::lines::Line;
use crate::rows::nested::Tree;
use crate::rows::read::Reader;
use crate::rows::value::wire::unsupported;
use windrow_kernel::rows::Strided;

/// Rows of a tile, for rows of one length: stretches of columns are long enough for prefetching,
/// and the tile stays in the second-level cache.
const STRIDED_ROWS: usize = 384;

/// Rows of a tile, for rows that vary.
const TILE_ROWS: usize = 128;

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
    pub(super) fields: Vec<(SortField, Node)>,
    /// The fields as columns to decode.
    columns: Fields,
    /// Bytes of every row, if all rows have one length.
    stride: Option<usize>,
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

    pub(super) fn fields(&self) -> impl Iterator<Item = &SortField> {
        self.fields.iter().map(|(field, _)| field)
    }

    /// Creates a reader of `rows` rows of `bytes` in all.
    fn reader(&self, rows: usize, bytes: usize) -> Result<Reader<'_>> {
        let varying = self.fields.iter().filter(|(_, node)| node.same_len().is_none()).count();
        let parts = parts(&self.fields, &self.columns, rows, bytes / varying.max(1))?;
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
