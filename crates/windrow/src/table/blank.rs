//! Columns without a value of their own, for deletions: zeros, empty texts, empty lists.

use arrow_array::{Array, ArrayRef, make_array, new_empty_array, new_null_array};
use arrow_schema::{ArrowError, DataType};

/// Returns `len` values of a type, none of them null.
pub(super) fn blank(data_type: &DataType, len: usize) -> Result<ArrayRef, ArrowError> {
    if len == 0 {
        return Ok(new_empty_array(data_type));
    }
    // Nulls have zeros beneath.
    let nulls = new_null_array(data_type, len).to_data();
    let children = nulls.child_data();
    let mut blanks = Vec::with_capacity(children.len());
    for (at, child) in children.iter().enumerate() {
        blanks.push(match data_type {
            DataType::RunEndEncoded(..) if at == 0 => child.clone(),
            // All keys are zero.
            DataType::Dictionary(..) => blank(child.data_type(), 1)?.to_data(),
            _ => blank(child.data_type(), child.len())?.to_data(),
        });
    }
    Ok(make_array(nulls.into_builder().nulls(None).child_data(blanks).build()?))
}
