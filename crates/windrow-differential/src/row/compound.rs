//! Values composed of other values: tuples, options, lists.

use std::sync::Arc;

use windrow::arrow_schema::{DataType, Field, Fields, UnionFields, UnionMode};

use super::plain::take;
use super::{Form, Row, width_of_both};

/// The byte before each value of a list; [`NO_MORE`] follows the last one.
const MORE: u8 = 1;
const NO_MORE: u8 = 0;
/// Offset of a variant's code from its number.
const FIRST_VARIANT: u8 = 1;

/// Creates a field of a nested type that is never null.
fn field(name: impl Into<String>, data_type: DataType) -> Field {
    // Arrow requires a `Null` column to be nullable.
    let nullable = data_type == DataType::Null;
    Field::new(name, data_type, nullable)
}

/// Returns the type of a struct of `parts`: `Null` without parts, as the struct then has only one
/// value.
pub fn struct_of(parts: Vec<DataType>) -> DataType {
    if parts.is_empty() {
        return DataType::Null;
    }
    let fields = parts.into_iter().enumerate().map(|(at, part)| field(at.to_string(), part));
    DataType::Struct(fields.collect::<Fields>())
}

/// Returns the type of an enum of `variants`.
pub fn enum_of(variants: Vec<DataType>) -> DataType {
    let fields = variants.into_iter().zip(0..).map(|(variant, id): (_, i8)| {
        let field = field(id.to_string(), variant);
        (id, Arc::new(field))
    });
    DataType::Union(fields.collect::<UnionFields>(), UnionMode::Dense)
}

/// Appends the number of a variant. The parts follow, each as a nested value. An enum has this
/// number in place of a marker, at top level as well.
pub fn put_variant(number: u8, out: &mut Vec<u8>) {
    out.push(number + FIRST_VARIANT);
}

/// Reads the number of a variant.
pub fn take_variant(bytes: &mut &[u8]) -> u8 {
    let [code] = *take(bytes);
    code - FIRST_VARIANT
}

impl Row for () {
    const WIDTH: Option<usize> = Some(0);

    fn data_type() -> DataType {
        DataType::Null
    }

    fn columns(_columns: &mut Vec<DataType>) {}

    #[inline(always)]
    fn encode(&self, _form: Form, _out: &mut Vec<u8>) {}

    #[inline(always)]
    fn decode(_form: Form, _bytes: &mut &[u8]) {}
}

macro_rules! tuple {
    ($($part:ident $at:tt),+) => {
        impl<$($part: Row),+> Row for ($($part,)+) {
            const WIDTH: Option<usize> = {
                let width = Some(0);
                $(let width = width_of_both(width, $part::WIDTH);)+
                width
            };

            fn data_type() -> DataType {
                struct_of(vec![$($part::data_type()),+])
            }

            fn columns(columns: &mut Vec<DataType>) {
                $($part::columns(columns);)+
            }

            #[inline(always)]
            fn encode(&self, form: Form, out: &mut Vec<u8>) {
                form.put_marker(out);
                $(self.$at.encode(form, out);)+
            }

            #[inline(always)]
            fn decode(form: Form, bytes: &mut &[u8]) -> Self {
                form.take_marker(bytes);
                ($($part::decode(form, bytes),)+)
            }
        }
    };
}
tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, E 4);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5);

/// `None` sorts first.
impl<A: Row> Row for Option<A> {
    const WIDTH: Option<usize> = None;

    fn data_type() -> DataType {
        enum_of(vec![DataType::Null, A::data_type()])
    }

    fn encode(&self, _form: Form, out: &mut Vec<u8>) {
        match self {
            None => put_variant(0, out),
            Some(value) => {
                put_variant(1, out);
                value.encode(Form::Nested, out);
            }
        }
    }

    fn decode(_form: Form, bytes: &mut &[u8]) -> Self {
        match take_variant(bytes) {
            0 => None,
            _ => Some(A::decode(Form::Nested, bytes)),
        }
    }
}

/// Lists compare element by element; a prefix sorts first.
impl<A: Row> Row for Vec<A> {
    const WIDTH: Option<usize> = None;

    fn data_type() -> DataType {
        DataType::List(Arc::new(field("item", A::data_type())))
    }

    fn encode(&self, form: Form, out: &mut Vec<u8>) {
        form.put_marker(out);
        for value in self {
            out.push(MORE);
            value.encode(Form::Nested, out);
        }
        out.push(NO_MORE);
    }

    fn decode(form: Form, bytes: &mut &[u8]) -> Self {
        form.take_marker(bytes);
        let mut values = Vec::new();
        loop {
            if *take(bytes) == [NO_MORE] {
                return values;
            }
            values.push(A::decode(Form::Nested, bytes));
        }
    }
}
