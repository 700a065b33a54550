//! The converter of arrow-row under its own names, based on [`super::Converter`].
//!
//! ```text
//! before   use arrow_row::{RowConverter, SortField};
//! after    use windrow_rows::compat::{RowConverter, SortField};
//! ```
//!
//! As in arrow-row, dictionaries are decoded as their values: [`super::Converter`] keeps
//! dictionaries.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BinaryArray};
use arrow_buffer::MutableBuffer;
use arrow_schema::ArrowError;

use super::converter::Converter;
use super::field::SortField;
use super::node;
use super::rows::{Config, Row, Rows, check_same};
use crate::error::{Error, Result};
use crate::order::types::without_dictionaries;
use crate::rows::Rows as Bytes;

/// Converts columns to rows and back: `arrow_row::RowConverter` in another implementation.
///
/// ```
/// # use std::sync::Arc;
/// # use windrow_rows::arrow_array::{ArrayRef, StringArray};
/// # use windrow_rows::arrow_schema::DataType;
/// use windrow_rows::compat::{RowConverter, SortField};
///
/// let converter = RowConverter::new(vec![SortField::new(DataType::Utf8)])?;
/// let column: ArrayRef = Arc::new(StringArray::from(vec!["b", "a"]));
/// let rows = converter.convert_columns(&[Arc::clone(&column)])?;
/// assert!(rows.row(1) < rows.row(0));
/// assert_eq!(converter.convert_rows(&rows)?, [column]);
/// # Ok::<(), windrow_rows::arrow_schema::ArrowError>(())
/// ```
///
/// # Cost
/// As [`Converter`], and a copy of the rows if [`RowConverter::append`] adds to existing rows.
/// [`Rows`] hold up to 4 GiB, plus four bytes a row unless all rows have one length.
#[derive(Debug)]
pub struct RowConverter {
    /// Converters of the columns as given, and as decoded.
    converters: Config,
}

impl RowConverter {
    /// Creates a converter of columns of these types.
    ///
    /// # Errors
    /// [`ArrowError::NotYetImplemented`] if a type has no rows.
    pub fn new(fields: Vec<SortField>) -> Result<Self, ArrowError> {
        let flat = |field: &SortField| SortField {
            data_type: without_dictionaries(&field.data_type),
            options: field.options,
        };
        let flat = Converter::new(fields.iter().map(flat).collect()).map_err(arrow)?;
        let own = Converter::new(fields).map_err(arrow)?;
        Ok(Self { converters: Arc::new([own, flat]) })
    }

    /// Returns true if all of these columns are supported.
    pub fn supports_fields(fields: &[SortField]) -> bool {
        fields.iter().all(|field| node::Node::of(&field.data_type).is_some())
    }

    /// Encodes `columns`.
    ///
    /// # Errors
    /// [`ArrowError::InvalidArgumentError`] if the columns differ in number, types or lengths, or
    /// if the rows take over 4 GiB.
    pub fn convert_columns(&self, columns: &[ArrayRef]) -> Result<Rows, ArrowError> {
        let mut rows = self.empty_rows(0, 0);
        self.append(&mut rows, columns)?;
        Ok(rows)
    }

    /// Appends the rows of `columns` to `rows`.
    ///
    /// # Errors
    /// As [`RowConverter::convert_columns`]; `rows` then keeps its earlier rows.
    ///
    /// # Panics
    /// If another converter has written `rows`.
    pub fn append(&self, rows: &mut Rows, columns: &[ArrayRef]) -> Result<(), ArrowError> {
        check_same(&rows.config, &self.converters);
        let [own, _] = &*self.converters;
        let appended = match rows.num_rows() {
            0 => own.encode_into(columns, &mut rows.bytes),
            _ => own.encode(columns).and_then(|more| rows.bytes.extend(&more)),
        };
        appended.map_err(arrow)
    }

    /// Decodes `rows`, with dictionaries as their values.
    ///
    /// # Errors
    /// [`ArrowError::ParseError`] if a parsed row does not belong to this converter;
    /// [`ArrowError::InvalidArgumentError`] if a column cannot hold as many bytes.
    ///
    /// # Panics
    /// If another converter has written the rows.
    pub fn convert_rows<'a, I>(&self, rows: I) -> Result<Vec<ArrayRef>, ArrowError>
    where
        I: IntoIterator<Item = Row<'a>>,
    {
        let [_, flat] = &*self.converters;
        let rows = rows.into_iter().map(|row| {
            check_same(row.config, &self.converters);
            row.data
        });
        flat.decode_rows(rows).map_err(arrow)
    }

    /// Creates empty rows, with capacity for `row_capacity` rows of `data_capacity` bytes in all.
    pub fn empty_rows(&self, row_capacity: usize, data_capacity: usize) -> Rows {
        let mut bytes = Bytes::default();
        bytes.reserve(row_capacity, data_capacity);
        Rows { bytes, config: Arc::clone(&self.converters) }
    }

    /// Makes rows of an array from [`Rows::try_into_binary`]. Conversion detects other arrays.
    ///
    /// # Panics
    /// If a value is null.
    pub fn from_binary(&self, array: BinaryArray) -> Rows {
        assert_eq!(array.null_count(), 0, "can't construct Rows instance from array with nulls");
        let offsets = array.value_offsets();
        let first = offsets[0];
        let mut bytes = MutableBuffer::new(0);
        bytes.extend_from_slice(&array.value_data()[first as usize..offsets[array.len()] as usize]);
        let ends = offsets[1..].iter().map(|end| (end - first) as u32).collect();
        Rows { bytes: Bytes::from_parts(bytes, ends), config: Arc::clone(&self.converters) }
    }

    /// Returns a parser, which makes rows of bytes.
    pub fn parser(&self) -> RowParser {
        RowParser { config: Arc::clone(&self.converters) }
    }

    /// Returns a parser like [`RowConverter::parser`]: conversion validates UTF-8, at little cost.
    pub fn parser_skip_utf8_validation(&self) -> RowParser {
        self.parser()
    }

    /// Estimates the bytes of the converter in memory, `Self` included.
    pub fn size(&self) -> usize {
        let fields = self.converters.iter().flat_map(Converter::fields);
        size_of::<Self>() + fields.map(SortField::size).sum::<usize>()
    }
}

/// A parser that makes rows of bytes, returned by [`RowConverter::parser`].
#[derive(Debug)]
pub struct RowParser {
    config: Config,
}

impl RowParser {
    /// Makes a row of `bytes`. Conversion detects invalid rows.
    pub fn parse<'a>(&'a self, bytes: &'a [u8]) -> Row<'a> {
        Row { data: bytes, config: &self.config }
    }
}

/// Converts the error to the kind that arrow-row would report.
pub(super) fn arrow(error: Error) -> ArrowError {
    match error {
        Error::Arrow(error) => error,
        Error::UnsupportedColumn { .. } => ArrowError::NotYetImplemented(error.to_string()),
        Error::Corrupt { .. } => ArrowError::ParseError(error.to_string()),
        other => ArrowError::InvalidArgumentError(other.to_string()),
    }
}
