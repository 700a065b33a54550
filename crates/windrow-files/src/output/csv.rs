//! CSV options: converts or rejects values that [`csv_lines`](super::csv_lines) cannot write under
//! the options.
//!
//! With a decimal comma, fractions become text. Without quotes, two kinds of values would be read
//! back differently and are errors: text equal to the null marker, and fields that need quotes.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::input::CsvOptions;
use crate::settings::Setting;

/// Returns the schema of a batch converted by [`shown`].
pub(super) fn shown_schema(schema: &SchemaRef, csv: &CsvOptions) -> SchemaRef {
    if !csv.decimal_comma {
        return Arc::clone(schema);
    }
    let field = |field: &Arc<Field>| match has_fractions(field.data_type()) {
        true => Arc::new(Field::clone(field).with_data_type(DataType::Utf8)),
        false => Arc::clone(field),
    };
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}

/// Converts fractions in `batch` to text.
///
/// # Errors
/// `Data`, with the name of a column that has a value to be read back differently.
pub(super) fn shown(batch: &RecordBatch, csv: &CsvOptions) -> Result<RecordBatch> {
    check(batch, csv)?;
    if !csv.decimal_comma {
        return Ok(batch.clone());
    }
    let columns = batch.columns().iter().map(|column| match has_fractions(column.data_type()) {
        true => with_commas(column),
        false => Ok(Arc::clone(column)),
    });
    let schema = shown_schema(batch.schema_ref(), csv);
    let columns = columns.collect::<Result<Vec<_>, _>>();
    let shown = columns.and_then(|columns| RecordBatch::try_new(schema, columns));
    shown.map_err(|error| Error::data(error.to_string()))
}

/// Returns an error for a header that would be read back differently.
///
/// # Errors
/// `Usage`, with the name of the column.
pub(super) fn check_names(schema: &Schema, csv: &CsvOptions) -> Result<()> {
    let unfit = |field: &&Arc<Field>| csv.quote.is_none() && needs_quotes(field.name(), csv);
    match schema.fields().iter().find(unfit) {
        Some(field) if csv.has_header => Err(Error::usage(format!(
            "the name of column {:?} needs quotes, and {} says that there are none",
            field.name(),
            Setting::CsvQuote
        ))),
        _ => Ok(()),
    }
}

fn has_fractions(kind: &DataType) -> bool {
    kind.is_floating() || kind.is_decimal()
}

fn with_commas(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let text = cast(column, &DataType::Utf8)?;
    let text = text.as_string::<i32>().iter().map(|value| Some(value?.replace('.', ",")));
    Ok(Arc::new(text.collect::<StringArray>()))
}

fn check(batch: &RecordBatch, csv: &CsvOptions) -> Result<()> {
    if csv.quote.is_some() {
        return Ok(());
    }
    let (null, is_alone) = (csv.null_text(), batch.num_columns() == 1);
    for (column, field) in batch.columns().iter().zip(batch.schema_ref().fields()) {
        if is_alone && null.is_empty() && column.null_count() > 0 {
            return Err(unfit(field, "a null, which would be an empty line", Setting::CsvQuote));
        }
        let fault = find(column, |value| {
            if value == null {
                Some((format!("the text {value:?}, which stands for null"), Setting::CsvNull))
            } else if needs_quotes(value, csv) || is_alone && value.is_empty() {
                let head: String = value.chars().take(40).collect();
                Some((format!("{head:?}, which needs quotes"), Setting::CsvQuote))
            } else {
                None
            }
        });
        if let Some((what, setting)) = fault {
            return Err(unfit(field, &what, setting));
        }
    }
    Ok(())
}

fn unfit(field: &Field, what: &str, setting: Setting) -> Error {
    Error::data(format!("column {:?} holds {what}; give {setting} another value", field.name()))
}

fn needs_quotes(value: &str, csv: &CsvOptions) -> bool {
    value.bytes().any(|byte| byte == csv.separator() || matches!(byte, b'\n' | b'\r'))
}

/// Returns the first result of `look` on the text of `column`.
fn find<T>(column: &ArrayRef, look: impl Fn(&str) -> Option<T>) -> Option<T> {
    match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().iter().flatten().find_map(look),
        DataType::LargeUtf8 => column.as_string::<i64>().iter().flatten().find_map(look),
        DataType::Utf8View => column.as_string_view().iter().flatten().find_map(look),
        DataType::Dictionary(..) => find(column.as_any_dictionary().values(), look),
        _ => None,
    }
}
