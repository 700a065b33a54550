//! How the values of a column are read, and what all parsers of values share.

use std::sync::Arc;

use arrow_array::builder::PrimitiveBuilder;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, ArrayRef, StringArray};
use arrow_schema::{ArrowError, DataType, Field};

use crate::input::text::named::TypesAt;
use crate::nested::strict_cast;

/// The reason for refusing a value, to follow the value in a message.
pub(crate) type Fault = String;

/// The syntax of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writing {
    Csv,
    /// Numbers and strings alike; an integer in a column of times counts units of the type that a
    /// user names.
    Json,
}

/// How to read the values of a column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) writing: Writing,
    /// Whether the type was inferred.
    pub(crate) guessed: bool,
    /// The named types of the column's members.
    pub(crate) named: TypesAt<'a>,
    /// Whether empty text is null in columns of types other than text.
    pub(crate) blank_is_null: bool,
    /// Whether a comma precedes the fraction.
    pub(crate) decimal_comma: bool,
    /// Whether the decoder may take a null for text: a null in quotes.
    pub(crate) of_fields: bool,
}

impl<'a> Reading<'a> {
    pub(crate) fn of(writing: Writing) -> Self {
        Self {
            writing,
            guessed: false,
            named: TypesAt::default(),
            blank_is_null: false,
            decimal_comma: false,
            of_fields: false,
        }
    }

    /// Returns the reading of a column or member, derived from the reading of all.
    pub(crate) fn at(self, field: &Field) -> Self {
        let guessed = self.guessed && !self.named.has(field);
        Self { guessed, named: self.named.within(field), ..self }
    }
}

/// Casts with arrow.
pub(crate) fn cast_strictly(values: &dyn Array, kind: &DataType) -> Result<ArrayRef, Fault> {
    strict_cast(values, kind).map_err(|fault| match fault {
        ArrowError::CastError(what) => what,
        other => other.to_string(),
    })
}

/// Parses every non-null value.
pub(crate) fn each<T: ArrowPrimitiveType>(
    text: &StringArray,
    kind: &DataType,
    mut parse: impl FnMut(&str) -> Result<T::Native, Fault>,
) -> Result<ArrayRef, Fault> {
    let mut values = PrimitiveBuilder::<T>::with_capacity(text.len()).with_data_type(kind.clone());
    for value in text {
        let parsed = value.map(|value| {
            parse(value).map_err(|fault| match fault.as_str() {
                "" => format!("{value:?} is no value of its type, {kind}"),
                fault => format!("{value:?} {fault}"),
            })
        });
        values.append_option(parsed.transpose()?);
    }
    Ok(Arc::new(values.finish()))
}

/// Returns the fault of a value outside of its type.
pub(crate) fn no_value() -> Fault {
    Fault::new()
}
