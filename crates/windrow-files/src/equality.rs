//! Equality of floats as SQL has it: one zero, and one NaN that is greater than all numbers.
//!
//! The order of the engine is IEEE totalOrder, which tells -0.0 from 0.0 and NaN from NaN. Where values are looked
//! for, or rows are to be equal, they are brought to one form first.

use std::sync::Arc;

use arrow_array::ArrowNativeTypeOp;
use arrow_array::cast::AsArray;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch};
use arrow_cast::cast;
use arrow_schema::ArrowError;
use arrow_schema::{DataType, Schema};

/// Which floats are equal in an order, and where they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FloatOrder {
    /// IEEE 754 totalOrder: all of them differ; NaN of the negative sign first, -0.0 before 0.0, NaN last.
    #[default]
    Total,
    /// As in SQL: -0.0 is 0.0, and all NaN are one value, the greatest.
    Sql,
}

/// The type of values, however they are encoded.
pub(crate) fn plain_type(kind: &DataType) -> &DataType {
    match kind {
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::RunEndEncoded(_, values) => plain_type(values.data_type()),
        kind => kind,
    }
}

/// Those of `columns` that are floats in `schema`.
pub(crate) fn floats(schema: &Schema, columns: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let is_float = |column: &usize| {
        let field = schema.fields().get(*column);
        field.is_some_and(|field| plain_type(field.data_type()).is_floating())
    };
    columns.into_iter().filter(is_float).collect()
}

/// `batch` with one zero and one NaN in the `floats` of its columns.
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

/// `values` with one zero and one NaN.
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
        DataType::Dictionary(_, kind) if kind.is_floating() => {
            let dictionary = values.as_any_dictionary();
            dictionary.with_values(one_form(dictionary.values()))
        }
        DataType::RunEndEncoded(_, field) if field.data_type().is_floating() => {
            let kind = values.data_type();
            let plain = cast(values, field.data_type()).map(|plain| one_form(&plain));
            // A cast there and back is of types that are known to have both.
            plain.and_then(|plain| cast(&plain, kind)).unwrap_or_else(|_| ArrayRef::clone(values))
        }
        _ => ArrayRef::clone(values),
    }
}

type Half = <Float16Type as ArrowPrimitiveType>::Native;

#[cfg(test)]
mod tests {
    use arrow_array::Float64Array;

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
}
