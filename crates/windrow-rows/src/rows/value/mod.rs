//! Readers of values of any Arrow type: decode the ordered codes of `rows/nested`, many rows at
//! once.
//!
//! ```text
//! codes    | 01 code | 00 | 01 code |  --read_codes-->  reader  --finish-->  array of its type
//! ```
//!
//! Keys are read this way, and so are columns that take no part in the order: their codes are the
//! codes of an ascending key with nulls first.
//!
//! Invariant: values come back with the same bits, elements, and nulls at every level. Codes
//! contain neither the values under nulls, nor the slots of dictionary values, nor the boundaries
//! of runs. Readers choose these anew: each distinct value once, in the order of arrival; each run
//! of equal values once.

mod bytes;
mod encoded;
mod flat;
mod interner;
mod list;
mod reader;
mod record;
#[cfg(test)]
mod tests;
mod union;
pub(super) mod wire;

pub(crate) use interner::Interner;
pub(super) use list::{add_ends, list_array};

use arrow_array::{downcast_integer, downcast_run_end_index};
use arrow_schema::DataType;

use crate::error::Result;
use crate::order::types::{Lists, Physical};
pub(crate) use reader::ValueReader;

/// Creates a reader of values of type `data_type`, for arrays of exactly this type.
pub(crate) fn reader(data_type: &DataType) -> Result<Box<dyn ValueReader>> {
    macro_rules! dictionary {
        ($t:ty, $values:ident) => {
            Box::new(encoded::DictionaryReader::<$t>::new(data_type, reader($values)?))
        };
    }
    macro_rules! runs {
        ($t:ty, $values:ident) => {
            Box::new(encoded::RunReader::<$t>::new(data_type, reader($values.data_type())?))
        };
    }
    let unsupported = || wire::unsupported(data_type, "held in a row");
    let physical = Physical::of(data_type).ok_or_else(unsupported)?;
    Ok(match physical {
        Physical::Null => Box::<flat::NullReader>::default(),
        Physical::Boolean => Box::new(flat::BooleanReader::new()),
        Physical::Number(width, _) | Physical::FixedBinary(width) => {
            Box::new(flat::FixedReader::new(data_type, width))
        }
        Physical::Bytes(..) => Box::new(bytes::BytesReader::new(data_type)),
        Physical::List(Lists::Small | Lists::SmallViews | Lists::Map, field) => {
            Box::new(list::ListReader::<i32>::new(data_type, reader(field.data_type())?))
        }
        Physical::List(Lists::Large | Lists::LargeViews, field) => {
            Box::new(list::ListReader::<i64>::new(data_type, reader(field.data_type())?))
        }
        Physical::FixedList(field, size) => Box::new(record::FixedListReader::new(
            data_type,
            field,
            size,
            reader(field.data_type())?,
        )),
        Physical::Struct(fields) => {
            let readers = fields.iter().map(|field| reader(field.data_type()));
            Box::new(record::StructReader::new(fields, readers.collect::<Result<_>>()?))
        }
        Physical::Union(fields, mode) => {
            let children = fields.iter().map(|(_, field)| reader(field.data_type()));
            let children = children.collect::<Result<Vec<_>>>()?;
            Box::new(union::UnionReader::new(data_type, fields, mode, children))
        }
        Physical::Dictionary(key, values) => downcast_integer! {
            key => (dictionary, values),
            _ => return Err(unsupported()),
        },
        Physical::Runs(ends, values) => downcast_run_end_index! {
            ends.data_type() => (runs, values),
            _ => return Err(unsupported()),
        },
    })
}
