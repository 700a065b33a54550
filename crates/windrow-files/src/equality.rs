//! Equality of floats as in SQL: one zero, and one NaN greater than all numbers.
//!
//! The engine's order is IEEE totalOrder, with different -0.0 and 0.0, and several different NaN.
//! Values are normalized first, where they are looked up, or where rows are compared for equality.

use std::sync::Arc;

use arrow_array::ArrowNativeTypeOp;
use arrow_array::cast::AsArray;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, LargeListArray, LargeListViewArray, ListArray,
    ListViewArray, MapArray, PrimitiveArray, RecordBatch, StructArray,
};
use arrow_cast::cast;
use arrow_schema::ArrowError;
use arrow_schema::{DataType, Schema};

/// Equality and order of floats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FloatOrder {
    /// IEEE 754 totalOrder: all floats differ. Negative NaN first, -0.0 before 0.0, positive NaN
    /// last.
    #[default]
    Total,
    /// As in SQL: -0.0 equals 0.0, and all NaN are one value, the greatest.
    Sql,
}

/// Returns the type of the values, without dictionary or run-end encoding.
pub(crate) fn plain_type(kind: &DataType) -> &DataType {
    match kind {
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::RunEndEncoded(_, values) => plain_type(values.data_type()),
        kind => kind,
    }
}

/// Returns the members of `columns` with floats in `schema`, at any depth.
pub(crate) fn floats(schema: &Schema, columns: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let has_floats = |column: &usize| {
        let field = schema.fields().get(*column);
        field.is_some_and(|field| holds_floats(field.data_type()))
    };
    columns.into_iter().filter(has_floats).collect()
}

/// Returns true if values of `kind` are floats, or contain floats.
pub(crate) fn holds_floats(kind: &DataType) -> bool {
    match plain_type(kind) {
        DataType::Struct(fields) => fields.iter().any(|field| holds_floats(field.data_type())),
        DataType::List(of)
        | DataType::LargeList(of)
        | DataType::ListView(of)
        | DataType::LargeListView(of)
        | DataType::FixedSizeList(of, _)
        | DataType::Map(of, _) => holds_floats(of.data_type()),
        kind => kind.is_floating(),
    }
}

/// Normalizes zeros and NaN in the columns `floats` of `batch`.
pub(crate) fn with_one_form(
    batch: &RecordBatch,
    floats: &[usize],
) -> Result<RecordBatch, ArrowError> {
    if floats.is_empty() {
        return Ok(batch.clone());
    }
    let mut values = batch.columns().to_vec();
    floats.iter().for_each(|&column| values[column] = one_form(&values[column]));
    RecordBatch::try_new(batch.schema(), values)
}

/// Normalizes zeros and NaN in `values`.
pub(crate) fn one_form(values: &ArrayRef) -> ArrayRef {
    fn of<T: ArrowPrimitiveType>(values: &ArrayRef, nan: T::Native) -> ArrayRef
    where
        T::Native: PartialOrd,
    {
        let values: &PrimitiveArray<T> = values.as_primitive();
        let zero = T::Native::ZERO;
        Arc::new(values.unary::<_, T>(|value| match value.partial_cmp(&zero) {
            None => nan,
            Some(std::cmp::Ordering::Equal) => zero,
            Some(_) => value,
        }))
    }
    match values.data_type() {
        DataType::Float16 => of::<Float16Type>(values, Half::NAN),
        DataType::Float32 => of::<Float32Type>(values, f32::NAN),
        DataType::Float64 => of::<Float64Type>(values, f64::NAN),
        kind if !holds_floats(kind) => ArrayRef::clone(values),
        DataType::Struct(fields) => {
            let parts = values.as_struct();
            let columns = parts.columns().iter().map(one_form).collect();
            // The length is derived from the members: a struct with floats has at least one.
            Arc::new(StructArray::new(fields.clone(), columns, parts.nulls().cloned()))
        }
        DataType::List(of) => {
            let list = values.as_list::<i32>();
            let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
            Arc::new(ListArray::new(Arc::clone(of), offsets, one_form(list.values()), nulls))
        }
        DataType::LargeList(of) => {
            let list = values.as_list::<i64>();
            let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
            Arc::new(LargeListArray::new(Arc::clone(of), offsets, one_form(list.values()), nulls))
        }
        DataType::ListView(of) => {
            let list = values.as_list_view::<i32>();
            let (offsets, sizes) = (list.offsets().clone(), list.sizes().clone());
            let (items, nulls) = (one_form(list.values()), list.nulls().cloned());
            Arc::new(ListViewArray::new(Arc::clone(of), offsets, sizes, items, nulls))
        }
        DataType::LargeListView(of) => {
            let list = values.as_list_view::<i64>();
            let (offsets, sizes) = (list.offsets().clone(), list.sizes().clone());
            let (items, nulls) = (one_form(list.values()), list.nulls().cloned());
            Arc::new(LargeListViewArray::new(Arc::clone(of), offsets, sizes, items, nulls))
        }
        DataType::FixedSizeList(of, length) => {
            let list = values.as_fixed_size_list();
            let (items, nulls) = (one_form(list.values()), list.nulls().cloned());
            Arc::new(FixedSizeListArray::new(Arc::clone(of), *length, items, nulls))
        }
        DataType::Map(of, sorted) => {
            let map = values.as_map();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            let entries = one_form(&entries).as_struct().clone();
            let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
            Arc::new(MapArray::new(Arc::clone(of), offsets, entries, nulls, *sorted))
        }
        DataType::Dictionary(..) => {
            let dictionary = values.as_any_dictionary();
            dictionary.with_values(one_form(dictionary.values()))
        }
        DataType::RunEndEncoded(_, field) => {
            let kind = values.data_type();
            let plain = cast(values, field.data_type()).map(|plain| one_form(&plain));
            // Both casts exist for the types with floats.
            plain.and_then(|plain| cast(&plain, kind)).unwrap_or_else(|_| ArrayRef::clone(values))
        }
        _ => ArrayRef::clone(values),
    }
}

type Half = <Float16Type as ArrowPrimitiveType>::Native;

#[cfg(test)]
mod tests {
    use arrow_array::Float64Array;
    use arrow_buffer::OffsetBuffer;
    use arrow_schema::{Field, Fields};

    use super::*;

    #[test]
    fn zeros_and_nans_become_one() {
        let odd = f64::from_bits(0xfff8_0000_0000_0001);
        let values: ArrayRef =
            Arc::new(Float64Array::from(vec![Some(-0.0), Some(0.0), Some(odd), None, Some(1.5)]));
        let found = one_form(&values);
        let bits: Vec<_> =
            found.as_primitive::<Float64Type>().iter().map(|v| v.map(f64::to_bits)).collect();
        let expected = [Some(0.0), Some(0.0), Some(f64::NAN), None, Some(1.5)];
        assert_eq!(bits, expected.map(|v: Option<f64>| v.map(f64::to_bits)));
        let kind = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Float64));
        let found = one_form(&cast(&values, &kind).unwrap());
        assert_eq!(found.data_type(), &kind);
        assert_eq!(cast(&found, &DataType::Float64).unwrap().len(), 5);
    }

    #[test]
    fn so_do_those_within_structs_lists_and_maps() {
        let floats =
            |values: [f64; 2]| -> ArrayRef { Arc::new(Float64Array::from(values.to_vec())) };
        let item = |name: &str| Arc::new(Field::new(name, DataType::Float64, true));
        let of_struct = |values| -> ArrayRef {
            Arc::new(StructArray::new(Fields::from(vec![item("x")]), vec![floats(values)], None))
        };
        let of_list = |values| -> ArrayRef {
            let offsets = OffsetBuffer::from_lengths([1, 1]);
            Arc::new(ListArray::new(item("item"), offsets, floats(values), None))
        };
        let of_fixed = |values| -> ArrayRef {
            Arc::new(FixedSizeListArray::new(item("item"), 1, floats(values), None))
        };
        let of_map = |values| -> ArrayRef {
            let fields = Fields::from(vec![
                Field::new("key", DataType::Float64, false),
                Field::new("value", DataType::Float64, true),
            ]);
            let entries =
                StructArray::new(fields.clone(), vec![floats([1.0, 2.0]), floats(values)], None);
            let of = Arc::new(Field::new("entries", DataType::Struct(fields), false));
            Arc::new(MapArray::new(of, OffsetBuffer::from_lengths([1, 1]), entries, None, false))
        };
        let odd = [-0.0, f64::from_bits(0xfff8_0000_0000_0001)];
        let makes: [&dyn Fn([f64; 2]) -> ArrayRef; 4] = [&of_struct, &of_list, &of_fixed, &of_map];
        for make in makes {
            let (found, expected) = (one_form(&make(odd)), make([0.0, f64::NAN]));
            assert_eq!(found.to_data(), expected.to_data(), "{:?}", found.data_type());
        }
    }
}
