//! The same values in another encoding: dictionaries and run ends to plain arrays, and back.

use arrow_array::ArrayRef;
use arrow_schema::DataType;

use super::value::{reader, write};
use crate::error::Result;

/// The values of `array` as an array of type `to`, which differs in its encoding alone.
pub(super) fn recode(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let (bytes, offsets) = write(array)?;
    let mut reader = reader(to)?;
    for ends in offsets.windows(2) {
        // The nulls of type Null take no bytes; a dictionary over them has a 0 for each.
        let value = if ends[0] == ends[1] { &[0] } else { &bytes[ends[0]..ends[1]] };
        reader.read(&mut &*value)?;
    }
    reader.finish()
}
