//! Conversion of columns into Parquet types for all readers.
//!
//! ```text
//!  date in milliseconds                    date in days
//!  time, timestamp in seconds              in milliseconds
//!  dictionary of string or binary views    dictionary of strings or binary
//!  dictionary of durations, of times       their values
//!    with a zone, of the above but views,
//!    of what is not [readable] as one
//!  runs                                    their values
//! ```
//!
//! To some readers, the types on the left would be plain numbers or times in another zone, or would
//! be unreadable. The same holds inside structs, lists and maps.

use std::convert::Infallible;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use arrow_select::take::take;

use super::views::own;
use crate::error::{Error, Result};
use crate::input::readable;
use crate::nested::{child_fields, strict_cast, with_children, with_fields, with_type};

/// Returns the schema of a file for rows of `schema`.
pub(super) fn storable(schema: &SchemaRef) -> SchemaRef {
    let fields: Vec<FieldRef> = schema.fields().iter().map(storable_field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn storable_field(field: &FieldRef) -> FieldRef {
    let data_type = storable_type(field.data_type());
    if data_type == *field.data_type() { Arc::clone(field) } else { with_type(field, data_type) }
}

fn storable_type(data_type: &DataType) -> DataType {
    use DataType as D;
    match data_type {
        D::Date64 => D::Date32,
        D::Time32(TimeUnit::Second) => D::Time32(TimeUnit::Millisecond),
        D::Timestamp(TimeUnit::Second, zone) => D::Timestamp(TimeUnit::Millisecond, zone.clone()),
        D::Dictionary(_, values) => {
            let plain = storable_type(values);
            // The Arrow schema distinguishes these from numbers and from UTC, but readers in C++ do
            // not look inside a dictionary there.
            let hidden = matches!(plain, D::Duration(_) | D::Timestamp(_, Some(_)));
            if plain == **values && !hidden { readable(data_type) } else { plain }
        }
        D::RunEndEncoded(_, values) => storable_type(values.data_type()),
        nested => {
            let Ok(stored) =
                with_fields(nested, |field| Ok::<_, Infallible>(storable_field(field)));
            stored
        }
    }
}

/// Converts a column to `field`, a [storable] field.
pub(super) fn stored(field: &Field, column: &ArrayRef) -> Result<ArrayRef> {
    converted(column, field.data_type()).map_err(|error| {
        Error::data(format!(
            "column {:?} is {} in Parquet, which has no {}, and does not hold all of its values: \
             {error}; write Arrow, or leave it out with `select`",
            field.name(),
            field.data_type(),
            column.data_type()
        ))
    })
}

fn converted(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    match array.data_type() {
        // Converts the rows' values: the dictionary may have many more values than rows.
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            converted(&take(dictionary.values(), dictionary.keys(), None)?, to)
        }
        DataType::RunEndEncoded(_, values) => {
            converted(&strict_cast(array, values.data_type())?, to)
        }
        DataType::Struct(_)
        | DataType::List(_)
        | DataType::LargeList(_)
        | DataType::FixedSizeList(..)
        | DataType::Map(..) => {
            let fields = child_fields(to);
            with_children(&own(array)?, to, |child, at| converted(&child, fields[at].data_type()))?
        }
        _ => strict_cast(array, to),
    }
}
