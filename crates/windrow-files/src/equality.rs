//! Equality of floats as in SQL: one zero, and one NaN greater than all numbers.
//!
//! The engine's order is IEEE totalOrder, with different -0.0 and 0.0, and several different NaN.
//! Values are normalized first, where they are looked up, or where rows are compared for equality.

use std::cmp::Ordering;
use std::convert::Infallible;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float16Type, Float32Type, Float64Type};
use arrow_array::{ArrayRef, ArrowNativeTypeOp, PrimitiveArray, RecordBatch};
use arrow_schema::{ArrowError, DataType, Schema};

use crate::nested::{child_fields, with_children};

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
    let kind = plain_type(kind);
    let within = child_fields(kind);
    kind.is_floating() || within.iter().any(|field| holds_floats(field.data_type()))
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
    normalized(values, true)
}

/// Replaces all NaN in `values` by a single one.
pub(crate) fn one_nan(values: &ArrayRef) -> ArrayRef {
    normalized(values, false)
}

fn normalized(values: &ArrayRef, zeros: bool) -> ArrayRef {
    fn of<T>(values: &ArrayRef, zeros: bool, nan: T::Native) -> ArrayRef
    where
        T: ArrowPrimitiveType<Native: PartialOrd>,
    {
        let values: &PrimitiveArray<T> = values.as_primitive();
        let zero = T::Native::ZERO;
        Arc::new(values.unary::<_, T>(|value| match value.partial_cmp(&zero) {
            None => nan,
            Some(Ordering::Equal) if zeros => zero,
            Some(_) => value,
        }))
    }
    match values.data_type() {
        DataType::Float16 => of::<Float16Type>(values, zeros, Half::NAN),
        DataType::Float32 => of::<Float32Type>(values, zeros, f32::NAN),
        DataType::Float64 => of::<Float64Type>(values, zeros, f64::NAN),
        kind if !holds_floats(kind) => ArrayRef::clone(values),
        kind => {
            let part = |part: ArrayRef, _| Ok::<_, Infallible>(normalized(&part, zeros));
            let Ok(whole) = with_children(values, kind, part);
            whole.expect("parts of the types and lengths that there were")
        }
    }
}

type Half = <Float16Type as ArrowPrimitiveType>::Native;

#[cfg(test)]
mod tests {
    use arrow_array::{FixedSizeListArray, Float64Array, ListArray, MapArray, StructArray};
    use arrow_buffer::OffsetBuffer;
    use arrow_cast::cast;
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
        let field = |name, kind, nullable| Arc::new(Field::new(name, kind, nullable));
        let ends = field("run_ends", DataType::Int32, false);
        let kind = DataType::RunEndEncoded(ends, field("values", DataType::Float64, true));
        let found = one_form(&cast(&values, &kind).unwrap().slice(1, 4));
        assert_eq!(found.data_type(), &kind);
        let plain = cast(&found, &DataType::Float64).unwrap();
        let plain: Vec<_> = plain.as_primitive::<Float64Type>().iter().collect();
        assert_eq!((plain[0].map(f64::to_bits), plain[2], plain[3]), (Some(0), None, Some(1.5)));
        assert!(plain[1].is_some_and(f64::is_nan));
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

    #[test]
    fn all_nan_are_one() {
        let quiet = f64::from_bits(0xfff8_0000_0000_0001);
        let values: ArrayRef = Arc::new(Float64Array::from(vec![quiet, f64::NAN, -0.0]));
        let values = one_nan(&values);
        let values = values.as_primitive::<Float64Type>();
        assert_eq!(values.value(0).to_bits(), values.value(1).to_bits());
        assert!(values.value(2).is_sign_negative());
    }
}
