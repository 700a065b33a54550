//! Concatenation of arrays, unless their dictionaries have more values together than keys.
//!
//! ```text
//! keys of Int8    | 100 values | + | 100 others |     no: 200 values, 128 keys
//!                 | 100 values | + | the same   |     100 values
//! ```
//!
//! Arrow finds equal values when it merges dictionaries of bytes and numbers, alone or in lists,
//! maps, structs and runs. Other dictionaries are appended, and Arrow panics if the values are too
//! many: such arrays are not passed to Arrow.

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, SchemaRef};

use windrow_rows::Result;

/// Concatenates `batches`. Returns `None` if the rows do not fit into one record batch.
pub(super) fn concat_batches(
    schema: &SchemaRef,
    batches: &[RecordBatch],
) -> Result<Option<RecordBatch>> {
    let rows = batches.iter().map(RecordBatch::num_rows).sum();
    let columns = (0..schema.fields().len()).map(|index| {
        let arrays: Vec<&dyn Array> =
            batches.iter().map(|batch| batch.column(index).as_ref()).collect();
        concat(&arrays).transpose()
    });
    let Some(columns) = columns.map(Option::transpose).collect::<Result<Option<Vec<_>>>>()? else {
        return Ok(None);
    };
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(Some(RecordBatch::try_new_with_options(SchemaRef::clone(schema), columns, &options)?))
}

/// Concatenates `arrays`. Returns `None` if the values do not fit into one array.
pub(super) fn concat(arrays: &[&dyn Array]) -> Result<Option<ArrayRef>> {
    if arrays.first().is_some_and(|array| has_dictionaries(array.data_type())) {
        let data: Vec<ArrayData> = arrays.iter().map(|array| array.to_data()).collect();
        if !fit(&data.iter().collect::<Vec<_>>(), true) {
            return Ok(None);
        }
    }
    match arrow_select::concat::concat(arrays) {
        Err(ArrowError::DictionaryKeyOverflowError) => Ok(None),
        array => Ok(Some(array?)),
    }
}

fn has_dictionaries(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Dictionary(_, _))
        || children(data_type).into_iter().any(has_dictionaries)
}

/// Returns the types of the children of an array of `data_type`.
pub(super) fn children(data_type: &DataType) -> Vec<&DataType> {
    use DataType as T;
    match data_type {
        T::List(field) | T::LargeList(field) | T::ListView(field) | T::LargeListView(field) => {
            vec![field.data_type()]
        }
        T::FixedSizeList(field, _) | T::Map(field, _) => vec![field.data_type()],
        T::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
        T::Union(fields, _) => fields.iter().map(|(_, field)| field.data_type()).collect(),
        T::Dictionary(_, values) => vec![values],
        T::RunEndEncoded(ends, values) => vec![ends.data_type(), values.data_type()],
        _ => Vec::new(),
    }
}

/// Returns false if Arrow would panic because dictionaries are too large together. `merged` is true
/// where Arrow merges dictionaries.
fn fit(arrays: &[&ArrayData], merged: bool) -> bool {
    use DataType as T;
    let Some(first) = arrays.first() else { return true };
    let child = |index: usize| -> Vec<&ArrayData> {
        arrays.iter().map(|array| &array.child_data()[index]).collect()
    };
    if let T::Dictionary(keys, values) = first.data_type() {
        let merges = merged
            && (values.is_primitive()
                || matches!(**values, T::Utf8 | T::LargeUtf8 | T::Binary | T::LargeBinary));
        let all = child(0);
        let count: usize = all.iter().map(|values| values.len()).sum();
        return merges || all.iter().all(|v| v.ptr_eq(all[0])) || count <= most_values(keys);
    }
    let merged = merged
        && matches!(
            first.data_type(),
            T::List(_) | T::LargeList(_) | T::Map(_, _) | T::Struct(_) | T::RunEndEncoded(_, _)
        );
    (0..first.child_data().len()).all(|index| fit(&child(index), merged))
}

/// Returns the number of values that keys of a type distinguish.
fn most_values(keys: &DataType) -> usize {
    let bits = keys.primitive_width().map_or(0, |bytes| bytes as u32 * 8);
    let bits = if keys.is_signed_integer() { bits - 1 } else { bits };
    1usize.checked_shl(bits).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::{Int8Type, UInt8Type};
    use arrow_array::{DictionaryArray, FixedSizeListArray, StringViewArray, StructArray};
    use arrow_schema::Field;

    use super::*;

    fn texts(range: std::ops::Range<usize>) -> ArrayRef {
        let texts: Vec<String> = range.map(|number| number.to_string()).collect();
        Arc::new(
            texts.iter().map(|text| Some(text.as_str())).collect::<DictionaryArray<Int8Type>>(),
        )
    }

    /// Returns a dictionary of views, which Arrow does not merge.
    fn views(range: std::ops::Range<usize>) -> ArrayRef {
        let values: StringViewArray =
            range.clone().map(|number| Some(number.to_string())).collect();
        let keys = (0..range.len() as u8).collect::<Vec<_>>().into();
        Arc::new(DictionaryArray::<UInt8Type>::new(keys, Arc::new(values)))
    }

    fn in_pairs(array: ArrayRef) -> ArrayRef {
        let field = Arc::new(Field::new_list_field(array.data_type().clone(), true));
        Arc::new(FixedSizeListArray::new(field, 2, array, None))
    }

    fn in_struct(array: ArrayRef) -> ArrayRef {
        let field = Arc::new(Field::new("a", array.data_type().clone(), true));
        Arc::new(StructArray::new(vec![field].into(), vec![array], None))
    }

    #[test]
    fn dictionaries_go_together_while_there_are_keys() {
        for wrap in [|array| array, in_pairs, in_struct] {
            let joined = |a: &ArrayRef, b: &ArrayRef| {
                let array = concat(&[&wrap(a.clone()), &wrap(b.clone())]).unwrap();
                array.map(|array| array.len())
            };
            let all = wrap(texts(0..100)).len() * 2;
            assert_eq!(joined(&texts(0..100), &texts(100..200)), None);
            assert_eq!(
                joined(&texts(0..100), &texts(0..100)).is_some(),
                wrap(texts(0..2)).len() == 2
            );
            let same = texts(0..100);
            assert_eq!(joined(&same, &same), Some(all));
            assert_eq!(joined(&texts(0..50), &texts(50..128)), Some(wrap(texts(0..128)).len()));
            assert_eq!(
                joined(&views(0..128), &views(128..256)),
                Some(wrap(views(0..128)).len() * 2)
            );
            assert_eq!(joined(&views(0..130), &views(128..258)), None);
        }
    }

    #[test]
    fn keys_tell_so_many_values_apart() {
        for (keys, most) in [
            (DataType::Int8, 128),
            (DataType::UInt8, 256),
            (DataType::Int16, 32_768),
            (DataType::UInt64, usize::MAX),
        ] {
            assert_eq!(most_values(&keys), most);
        }
    }
}
