//! What a type cannot hold, and bytes that ask for too much.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type};
use arrow_schema::{DataType, Field};

use super::super::wire::put_len;
use super::super::{ValueReader, reader};
use super::encode;
use crate::error::{Error, Result};

fn read(reader: &mut dyn ValueReader, mut bytes: &[u8]) -> Result<()> {
    reader.read(&mut bytes)
}

fn read_one(data_type: &DataType, bytes: &[u8]) -> Result<()> {
    read(&mut *reader(data_type).unwrap(), bytes)
}

fn list(element: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("item", element, true)))
}

fn counted(marker: u8, len: usize) -> Vec<u8> {
    let mut bytes = vec![marker];
    put_len(len, &mut bytes);
    bytes
}

#[test]
fn keys_run_out() {
    let data_type = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::UInt8));
    let mut reader = reader(&data_type).unwrap();
    // Placeholders take no key, so all 128 are left.
    reader.fill(1).unwrap();
    (0..128).for_each(|value| read(&mut *reader, &[1, value]).unwrap());
    read(&mut *reader, &[1, 7]).unwrap();
    assert!(matches!(read(&mut *reader, &[1, 128]), Err(Error::Value { .. })));
    let array = reader.finish().unwrap();
    assert_eq!(array.as_dictionary::<Int8Type>().values().len(), 128);
    assert_eq!(array.len(), 130);
}

#[test]
fn run_ends_run_out() {
    let ends = Arc::new(Field::new("run_ends", DataType::Int16, false));
    let values = Arc::new(Field::new("values", DataType::UInt8, true));
    let mut reader = reader(&DataType::RunEndEncoded(ends, values)).unwrap();
    (0..i16::MAX).for_each(|_| read(&mut *reader, &[1, 5]).unwrap());
    assert!(matches!(read(&mut *reader, &[1, 5]), Err(Error::Value { .. })));
    let array = reader.finish().unwrap();
    assert_eq!(array.len(), i16::MAX as usize);
    assert_eq!(array.as_run::<Int16Type>().values().len(), 1, "equal neighbours are one run");
}

#[test]
fn offsets_run_out() {
    let most = i32::MAX as usize;
    let mut reader = reader(&list(DataType::Null)).unwrap();
    read(&mut *reader, &counted(1, most)).unwrap();
    assert!(matches!(read(&mut *reader, &counted(1, 1)), Err(Error::Value { .. })));
    let array = reader.finish().unwrap();
    assert_eq!(array.as_list::<i32>().value_length(0), i32::MAX);
    // Two billion nulls, at the cost of none.
    assert_eq!(encode(&array), [counted(1, most)]);
}

#[test]
fn lengths_are_not_believed() {
    for data_type in [DataType::Utf8, DataType::BinaryView, list(DataType::Int64)] {
        for len in [5, u32::MAX as usize, usize::MAX] {
            let bytes = counted(1, len);
            let read = read_one(&data_type, &bytes);
            assert!(matches!(read, Err(Error::Corrupt { .. })), "{data_type} {len}");
        }
    }
}

#[test]
fn fixed_sizes_do_not_multiply() {
    let fixed =
        |inner| DataType::FixedSizeList(Arc::new(Field::new("item", inner, true)), i32::MAX);
    let data_type = fixed(fixed(DataType::Int64));
    assert!(matches!(read_one(&data_type, &[0]), Err(Error::Value { .. })));
}

#[test]
fn other_spellings_are_corrupt() {
    let corrupt = |data_type: &DataType, bytes: &[u8]| {
        assert!(matches!(read_one(data_type, bytes), Err(Error::Corrupt { .. })), "{bytes:?}");
    };
    corrupt(&DataType::Boolean, &[1, 2]);
    corrupt(&DataType::Int8, &[2, 0]);
    corrupt(&DataType::Utf8, &[1, 1, 0xff]);
    corrupt(&DataType::Utf8View, &[1, 2, 0xc3, b'a']);
    corrupt(&DataType::Binary, &[1, 0x81, 0x00, b'a']);
    corrupt(&DataType::Binary, &[[1].as_slice(), &[0xff; 9], &[2]].concat());
    let nothing = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Null));
    corrupt(&nothing, &[1]);
}

#[test]
fn a_null_where_none_is_allowed_is_corrupt() {
    let fields = vec![Field::new("a", DataType::Int8, false)];
    let mut reader = reader(&DataType::Struct(fields.into())).unwrap();
    read(&mut *reader, &[1, 0]).unwrap();
    assert!(matches!(reader.finish(), Err(Error::Corrupt { .. })));
}
