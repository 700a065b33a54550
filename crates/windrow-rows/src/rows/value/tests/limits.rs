//! Limits of types, and bytes that no encoder writes.

use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type};
use arrow_schema::{DataType, Field};

use super::super::{ValueReader, reader};
use super::read;
use crate::error::{Error, Result};
use crate::order::code::Node;

/// A reader of one type, for one value at a time.
struct One(Box<dyn ValueReader>, Node);

impl One {
    fn of(data_type: &DataType) -> Self {
        Self(reader(data_type).unwrap(), Node::of(data_type).unwrap())
    }

    fn read(&mut self, bytes: &[u8]) -> Result<()> {
        read(&mut *self.0, &self.1, &[bytes.to_vec()]).map(|_| ())
    }
}

fn list(element: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("item", element, true)))
}

#[test]
fn keys_run_out() {
    let data_type = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::UInt8));
    let mut one = One::of(&data_type);
    // Placeholders take no key, so all 128 keys are left.
    one.0.fill(1, true).unwrap();
    (0..128).for_each(|value| one.read(&[1, value]).unwrap());
    one.read(&[1, 7]).unwrap();
    assert!(matches!(one.read(&[1, 128]), Err(Error::Value { .. })));
    let mut one = One::of(&data_type);
    (0..128).for_each(|value| one.read(&[1, value]).unwrap());
    let array = one.0.finish().unwrap();
    assert_eq!(array.as_dictionary::<Int8Type>().values().len(), 128);
    assert_eq!(array.len(), 128);
}

#[test]
fn run_ends_run_out() {
    let ends = Arc::new(Field::new("run_ends", DataType::Int16, false));
    let values = Arc::new(Field::new("values", DataType::UInt8, true));
    let mut one = One::of(&DataType::RunEndEncoded(ends, values));
    (0..i16::MAX).for_each(|_| one.read(&[1, 5]).unwrap());
    assert!(matches!(one.read(&[1, 5]), Err(Error::Value { .. })));
    let array = one.0.finish().unwrap();
    assert_eq!(array.len(), i16::MAX as usize);
    assert_eq!(array.as_run::<Int16Type>().values().len(), 1, "equal neighbours are one run");
}

#[test]
fn fixed_sizes_do_not_multiply() {
    let fixed =
        |inner| DataType::FixedSizeList(Arc::new(Field::new("item", inner, true)), i32::MAX);
    let mut one = One::of(&fixed(fixed(DataType::Int64)));
    assert!(matches!(one.read(&[0]), Err(Error::Value { .. })));
}

#[test]
fn other_spellings_are_corrupt() {
    let corrupt = |data_type: &DataType, bytes: &[u8]| {
        let mut one = One::of(data_type);
        let read = one.read(bytes).and_then(|()| one.0.finish().map(|_| ()));
        assert!(matches!(read, Err(Error::Corrupt { .. })), "{data_type} {bytes:?}");
    };
    corrupt(&DataType::Boolean, &[1, 2]);
    corrupt(&DataType::Int8, &[2, 0]);
    corrupt(&DataType::Utf8, &[1, 0xfd, 1]);
    corrupt(&DataType::Utf8View, &[1, 0xc5, b'a', 1]);
    corrupt(&list(DataType::Int8), &[1, 2]);
    corrupt(&list(DataType::Int8), &[1, 1, 1, 7]);
    let nothing = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Null));
    One::of(&nothing).read(&[]).unwrap();
}

#[test]
fn a_null_where_none_is_allowed_is_corrupt() {
    let fields = vec![Field::new("a", DataType::Int8, false)];
    let mut one = One::of(&DataType::Struct(fields.into()));
    one.read(&[1, 0]).unwrap();
    assert!(matches!(one.0.finish(), Err(Error::Corrupt { .. })));
}
