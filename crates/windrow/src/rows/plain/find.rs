//! Where the values of columns lie: all that is left to find out of a record batch whose layout is known.
//!
//! ```text
//! RecordBatch   column a --> | values |            column s --> | offsets | bytes |
//! ```
//!
//! The types are looked up when the layout is; what is asked of a record batch is whether its arrays are of
//! these, and have no nulls.

use arrow_array::types::{ByteArrayType, LargeUtf8Type, Utf8Type};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, GenericByteArray, PrimitiveArray, downcast_primitive,
};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

/// Finds the values of columns of the type that it is for, and puts them in order to where it is told; false if
/// one is of another type, or has nulls.
pub(super) type FindNumbers = for<'a> fn(&'a [ArrayRef], &[usize], &mut [&'a [u8]]) -> bool;

/// The function for numbers of a type.
pub(super) fn numbers_of(data_type: &DataType) -> Option<FindNumbers> {
    fn find<'a, T: ArrowPrimitiveType>(
        arrays: &'a [ArrayRef],
        columns: &[usize],
        out: &mut [&'a [u8]],
    ) -> bool {
        // In this form the two halves of a type's number are compared, each of which was written on its own.
        // Compared as a whole they have to be in memory first: to seal 12 columns in order took a third longer.
        columns.iter().zip(out).all(|(&column, out)| {
            let array = arrays[column].as_ref().as_any().downcast_ref::<PrimitiveArray<T>>();
            array.filter(|array| !has_nulls(array.nulls())).is_some_and(|array| {
                *out = array.values().inner().as_slice();
                true
            })
        })
    }
    macro_rules! function {
        ($kind:ty) => {
            Some(find::<$kind> as FindNumbers)
        };
    }
    downcast_primitive! { data_type => (function), _ => None }
}

/// The texts of a column: text `i` is what stands between offset `i` and the next one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Texts<'a> {
    Small(&'a [i32], &'a [u8]),
    Large(&'a [i64], &'a [u8]),
}

/// Finds the texts of a column; nothing if it is of another type, or has nulls.
pub(super) type FindTexts = for<'a> fn(&'a dyn Array) -> Option<Texts<'a>>;

/// The function for texts of a type.
pub(super) fn texts_of(data_type: &DataType) -> Option<FindTexts> {
    fn find<T: ByteArrayType>(array: &dyn Array) -> Option<(&[T::Offset], &[u8])> {
        let array = array.as_any().downcast_ref::<GenericByteArray<T>>()?;
        (!has_nulls(array.nulls())).then(|| (array.value_offsets(), array.value_data()))
    }
    fn small(array: &dyn Array) -> Option<Texts<'_>> {
        find::<Utf8Type>(array).map(|(offsets, bytes)| Texts::Small(offsets, bytes))
    }
    fn large(array: &dyn Array) -> Option<Texts<'_>> {
        find::<LargeUtf8Type>(array).map(|(offsets, bytes)| Texts::Large(offsets, bytes))
    }
    match data_type {
        DataType::Utf8 => Some(small),
        DataType::LargeUtf8 => Some(large),
        _ => None,
    }
}

fn has_nulls(nulls: Option<&NullBuffer>) -> bool {
    nulls.is_some_and(|nulls| nulls.null_count() > 0)
}
