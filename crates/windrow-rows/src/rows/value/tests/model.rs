//! The model of values, in forty slow lines: the specification of the codec.

use arrow_array::cast::AsArray;
use arrow_array::{Array, downcast_dictionary_array, downcast_primitive_array, downcast_run_array};
use arrow_buffer::{ArrowNativeType, ToByteSlice};
use arrow_schema::DataType;

/// A value without its layout.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Logical {
    Null,
    Bits(Vec<u8>),
    Parts(Vec<Logical>),
    Choice(i8, Box<Logical>),
}

pub(super) fn logical(array: &dyn Array, row: usize) -> Logical {
    use Logical::{Bits, Choice, Null, Parts};
    let all =
        |values: &dyn Array| Parts((0..values.len()).map(|row| logical(values, row)).collect());
    // The physical bit: unions and run-end arrays have none, and their values are examined.
    if array.is_null(row) {
        return Null;
    }
    downcast_primitive_array! {
        array => Bits(array.value(row).to_byte_slice().to_vec()),
        DataType::Null => Null,
        DataType::Boolean => Bits(vec![array.as_boolean().value(row).into()]),
        DataType::FixedSizeBinary(_) => Bits(array.as_fixed_size_binary().value(row).to_vec()),
        DataType::Binary => Bits(array.as_binary::<i32>().value(row).to_vec()),
        DataType::LargeBinary => Bits(array.as_binary::<i64>().value(row).to_vec()),
        DataType::BinaryView => Bits(array.as_binary_view().value(row).to_vec()),
        DataType::Utf8 => Bits(array.as_string::<i32>().value(row).into()),
        DataType::LargeUtf8 => Bits(array.as_string::<i64>().value(row).into()),
        DataType::Utf8View => Bits(array.as_string_view().value(row).into()),
        DataType::List(_) => all(&array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => all(&array.as_list::<i64>().value(row)),
        DataType::ListView(_) => all(&array.as_list_view::<i32>().value(row)),
        DataType::LargeListView(_) => all(&array.as_list_view::<i64>().value(row)),
        DataType::FixedSizeList(_, _) => all(&array.as_fixed_size_list().value(row)),
        DataType::Map(_, _) => all(&array.as_map().value(row)),
        DataType::Struct(_) => {
            let fields = array.as_struct().columns().iter();
            Parts(fields.map(|field| logical(field, row)).collect())
        }
        DataType::Union(_, _) => {
            let array = array.as_union();
            Choice(array.type_id(row), Box::new(logical(&array.value(row), 0)))
        }
        DataType::Dictionary(_, _) => downcast_dictionary_array! {
            array => logical(array.values(), array.keys().value(row).as_usize()),
            other => panic!("{other}"),
        },
        DataType::RunEndEncoded(_, _) => downcast_run_array! {
            array => logical(array.values(), array.get_physical_index(row)),
            other => panic!("{other}"),
        },
        other => panic!("{other}"),
    }
}
