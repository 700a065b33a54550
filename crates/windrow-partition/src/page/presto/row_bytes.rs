//! Memory that rows take, estimated before a value is repeated.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, GenericListArray, OffsetSizeTrait};
use arrow_schema::DataType;

use super::block::width;

/// Sums the bytes of an array's strings or binaries; nulls have no bytes.
pub(super) fn text_bytes(array: &ArrayRef) -> usize {
    (0..array.len()).map(|row| text(array, row).len()).sum()
}

/// Returns the bytes of a string or a binary; a null has no bytes.
pub(super) fn text(array: &ArrayRef, row: usize) -> &[u8] {
    use DataType as D;
    if array.is_null(row) {
        return &[];
    }
    match array.data_type() {
        D::Utf8 => array.as_string::<i32>().value(row).as_bytes(),
        D::LargeUtf8 => array.as_string::<i64>().value(row).as_bytes(),
        D::Utf8View => array.as_string_view().value(row).as_bytes(),
        D::Binary => array.as_binary::<i32>().value(row),
        D::LargeBinary => array.as_binary::<i64>().value(row),
        D::BinaryView => array.as_binary_view().value(row),
        D::FixedSizeBinary(_) => array.as_fixed_size_binary().value(row),
        _ => &[],
    }
}

/// Estimates the bytes of a row in an array: values, offsets and nulls of all levels.
pub(super) fn row_bytes(array: &ArrayRef, row: usize) -> usize {
    /// Bytes of an offset or a view, and of a null, in each level.
    const LEVEL: usize = 17;
    use DataType as D;
    fn rows(elements: &ArrayRef, from: usize, to: usize) -> usize {
        (from..to).map(|row| row_bytes(elements, row)).sum()
    }
    fn of_list<O: OffsetSizeTrait>(list: &GenericListArray<O>, row: usize) -> usize {
        let ends = list.value_offsets();
        rows(list.values(), ends[row].as_usize(), ends[row + 1].as_usize())
    }
    let nested = match array.data_type() {
        other if width(other).is_some() => width(other).unwrap_or(0),
        D::List(_) => of_list(array.as_list::<i32>(), row),
        D::LargeList(_) => of_list(array.as_list::<i64>(), row),
        D::FixedSizeList(_, size) => {
            let list = array.as_fixed_size_list();
            let from = list.value_offset(row) as usize;
            rows(list.values(), from, from + *size as usize)
        }
        D::Map(..) => {
            let map = array.as_map();
            let (from, to) = (map.value_offsets()[row], map.value_offsets()[row + 1]);
            let column = |column| rows(column, from as usize, to as usize);
            column(map.keys()) + column(map.values())
        }
        D::Struct(_) => {
            array.as_struct().columns().iter().map(|column| row_bytes(column, row)).sum()
        }
        D::FixedSizeBinary(size) => *size as usize,
        // Repeated rows share their values.
        D::Dictionary(..) | D::RunEndEncoded(..) => 8,
        _ => text(array, row).len(),
    };
    LEVEL + nested
}
