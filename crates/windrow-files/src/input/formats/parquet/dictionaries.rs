//! Dictionary columns supported by the Parquet reader underneath: dictionaries of text, binary,
//! integers, floats, dates and times. Unsupported dictionaries make the reader fail, or panic, at
//! the first page, although writers of Arrow data may put any dictionary type into a footer. Such
//! columns are read as plain values.

use arrow_schema::DataType;
use parquet::errors::Result;

use crate::input::row_groups::Footer;
use crate::nested::with_type;

use super::int96::with_leaves;

/// Returns the footer with readable column types.
pub(super) fn settled(footer: Footer) -> Result<Footer> {
    with_leaves(&footer, |_, field| with_type(field, readable(field.data_type())))
}

/// Returns the type in which a leaf column can be read.
pub(crate) fn readable(data_type: &DataType) -> DataType {
    use DataType as D;
    let D::Dictionary(key, values) = data_type else {
        return data_type.clone();
    };
    let of = |values: DataType| D::Dictionary(key.clone(), Box::new(values));
    match values.as_ref() {
        D::Utf8View => of(D::Utf8),
        D::BinaryView => of(D::Binary),
        D::Utf8 | D::LargeUtf8 | D::Binary | D::LargeBinary | D::Float32 | D::Float64 => {
            data_type.clone()
        }
        values if values.is_integer() => data_type.clone(),
        D::Date32 | D::Date64 | D::Time32(_) | D::Time64(_) | D::Timestamp(..) | D::Duration(_) => {
            data_type.clone()
        }
        _ => values.as_ref().clone(),
    }
}
