//! The same values in another encoding: dictionaries and run ends to plain arrays, and back.

use arrow_array::ArrayRef;
use arrow_schema::DataType;

use super::value::{reader, writer};
use crate::error::Result;

/// The values of `array` as an array of type `to`, which differs in its encoding alone.
pub(super) fn recode(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let writer = writer(array.as_ref())?;
    let mut reader = reader(to)?;
    let mut bytes = Vec::new();
    for row in 0..array.len() {
        bytes.clear();
        writer.write(row, &mut bytes);
        if bytes.is_empty() {
            // The nulls of type Null take no bytes; a dictionary over them has a 0 for each.
            bytes.push(0);
        }
        reader.read(&mut &bytes[..])?;
    }
    reader.finish()
}
