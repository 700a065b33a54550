//! The bytes themselves, written by hand from docs/row-format.md.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, MapBuilder, StringBuilder};
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::*;
use arrow_schema::{DataType, Field, UnionFields};

use super::encode;

#[test]
fn flat() {
    assert_eq!(encode(&NullArray::new(1)), [Vec::<u8>::new()]);
    assert_eq!(encode(&BooleanArray::from(vec![Some(true), None])), [vec![1, 1], vec![0]]);
    assert_eq!(
        encode(&Int32Array::from(vec![Some(-2), None])),
        [vec![1, 0x7f, 0xff, 0xff, 0xfe], vec![0]]
    );
    assert_eq!(encode(&Float32Array::from(vec![-0.0])), [[1, 0x7f, 0xff, 0xff, 0xff]]);
    assert_eq!(encode(&StringArray::from(vec!["ab", ""])), [vec![1, b'c', b'd', 1], vec![1, 1]]);
    assert_eq!(encode(&BinaryArray::from(vec![&[0, 2, 9][..]])), [[1, 2, 1, 2, 3, 9, 1]]);
}

#[test]
fn nested() {
    let mut list = ListBuilder::new(StringBuilder::new());
    list.append_value([Some("ab"), None]);
    list.append_null();
    assert_eq!(encode(&list.finish()), [vec![1, 1, 1, b'c', b'd', 1, 1, 0, 0], vec![0]]);

    let mut map = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    map.keys().append_value("k");
    map.values().append_null();
    map.append(true).unwrap();
    assert_eq!(encode(&map.finish()), [[1, 1, 1, 1, b'm', 1, 0, 0]]);

    let empty = StructArray::new_empty_fields(2, Some(vec![true, false].into()));
    assert_eq!(encode(&empty), [[1], [0]]);
}

#[test]
fn encodings_are_transparent() {
    let plain = StringArray::from(vec![Some("a"), Some("a"), None]);
    let keyed: DictionaryArray<Int8Type> = [Some("a"), Some("a"), None].into_iter().collect();
    let runs: RunArray<Int32Type> = [Some("a"), Some("a"), None].into_iter().collect();
    assert_eq!(encode(&keyed), encode(&plain));
    assert_eq!(encode(&runs), encode(&plain));

    let keys = Int8Array::from(vec![Some(0), None]);
    let nothing = DictionaryArray::new(keys, Arc::new(NullArray::new(1)));
    assert_eq!(encode(&nothing), [Vec::<u8>::new(), Vec::new()]);
}

#[test]
fn a_null_key_is_not_a_null_in_a_union() {
    let field = |name| Field::new(name, DataType::Int8, true);
    let fields = UnionFields::try_new([3, 7], [field("a"), field("b")]).unwrap();
    let child = || Arc::new(Int8Array::from(vec![None, Some(5)])) as ArrayRef;
    let union = UnionArray::try_new(fields, vec![3, 7].into(), None, vec![child(), child()]);
    let union = union.unwrap();
    assert_eq!(encode(&union), [vec![4, 0], vec![8, 1, 0x85]]);

    let keys = Int8Array::from(vec![Some(0), None, Some(1)]);
    let keyed = DictionaryArray::new(keys, Arc::new(union));
    assert_eq!(encode(&keyed), [vec![4, 0], vec![0], vec![8, 1, 0x85]]);
}
