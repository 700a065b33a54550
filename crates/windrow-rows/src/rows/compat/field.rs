//! A column of the format: its options, and the bytes and errors that they lead to.

use arrow_schema::{DataType, SortOptions};

use crate::error::Error;

/// Role of columns, in errors.
pub(super) const ROLE: &str = "a row of arrow-row";

/// The marker of a value.
pub(super) const VALUE: u8 = 1;

/// Bytes of a value of type Null.
pub(super) const NOTHING: [u8; 2] = [2, 3];

pub(super) const NOTHING_DESCENDING: [u8; 2] = [!2, !3];

/// The end of a list, and a list without elements.
pub(super) const END: u8 = 1;

/// A column of a [`Converter`](super::Converter): its type and its order.
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

/// Returns the marker of a null.
pub(super) fn null_byte(options: SortOptions) -> u8 {
    if options.nulls_first { 0 } else { 0xff }
}

/// Returns the complement of a column's bytes.
pub(super) fn flip(options: SortOptions) -> u8 {
    if options.descending { 0xff } else { 0 }
}

pub(super) fn corrupt(message: &str) -> Error {
    Error::Corrupt { place: "a row of arrow-row".into(), message: message.into() }
}
