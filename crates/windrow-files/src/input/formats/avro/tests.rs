//! Tests of schemas' shapes, walks through blocks, and damaged blocks.

use arrow_avro::compression::CompressionCodec as Codec;

use super::blocks::{Block, Header, Plain, plain};
use super::shape::{Shape, long};
use crate::thrift::put_integer;

#[test]
fn numbers_there_and_back() {
    for value in [0, -1, 1, 63, 64, -64, -65, i64::from(i32::MIN), i64::MIN, i64::MAX] {
        let mut bytes = Vec::new();
        put_integer(value, &mut bytes);
        bytes.push(7);
        let mut rest = bytes.as_slice();
        assert_eq!((long(&mut rest), rest), (Some(value), &[7][..]));
    }
    assert_eq!(long(&mut &[0x80; 20][..]), None);
    assert_eq!(long(&mut &[0x80][..]), None);
}

fn shape(fields: &str) -> Result<Shape, String> {
    Shape::parse(&format!(
        r#"{{"type": "record", "name": "R", "namespace": "a.b", "fields": [{fields}]}}"#
    ))
}

fn field(kind: &str) -> String {
    format!(r#"{{"name": "f", "type": {kind}}}"#)
}

#[test]
fn schemas_have_shapes() {
    let varints = || Box::new(Shape::Varint);
    for (kind, expected) in [
        ("\"long\"", Shape::Varint),
        (r#"{"type": "int", "logicalType": "date"}"#, Shape::Varint),
        (r#"{"type": {"type": "string"}}"#, Shape::Bytes),
        (r#"["null", "double"]"#, Shape::Union(vec![Shape::Fixed(0), Shape::Fixed(8)])),
        (r#"{"type": "array", "items": "int"}"#, Shape::Array(varints())),
        (r#"{"type": "map", "values": "long"}"#, Shape::Map(varints())),
        (r#"{"type": "fixed", "name": "F", "size": 12}"#, Shape::Fixed(12)),
        (r#"{"type": "enum", "name": "E", "symbols": ["A"]}"#, Shape::Varint),
    ] {
        assert_eq!(shape(&field(kind)), Ok(Shape::Record(vec![expected])), "{kind}");
    }
    // A defined name, without and with the record's namespace.
    let fixed = r#"{"type": "fixed", "name": "F", "size": 3}"#;
    for name in ["\"F\"", "\"a.b.F\""] {
        let both = shape(&format!("{}, {}", field(fixed), field(name)));
        assert_eq!(both, Ok(Shape::Record(vec![Shape::Fixed(3), Shape::Fixed(3)])));
    }
    let deep =
        format!("{}\"int\"{}", r#"{"type": "array", "items": "#.repeat(100), "}".repeat(100));
    for (fields, part) in [
        (field("\"R\""), "contains itself"),
        (field("\"Nope\""), "defined nowhere"),
        (field(&deep), "61 deep"),
        (field(r#"{"type": "fixed", "name": "F"}"#), "\"size\""),
        (field(r#"{"type": "array"}"#), "\"items\""),
        (field("7"), "none"),
        ("{}".to_owned(), "\"type\""),
    ] {
        let error = shape(&fields).unwrap_err();
        assert!(error.contains(part), "{fields}: {error}");
    }
    assert!(Shape::parse("\"long\"").unwrap_err().contains("no record"));
    assert!(Shape::parse("{").unwrap_err().contains("no JSON"));
}

#[test]
fn blocks_have_the_rows_that_they_say() {
    let rows = shape(&field(r#"{"type": "array", "items": ["null", "string"]}"#)).unwrap();
    // [null, "ab"], followed by [].
    let block = [4, 0, 2, 4, b'a', b'b', 0, 0];
    assert_eq!(rows.longest_of(2, &block), Ok(7));
    for (count, bytes) in [(1, &block[..]), (3, &block), (2, &block[..6]), (1, &[2, 8, 0])] {
        assert!(rows.longest_of(count, bytes).is_err(), "{count} {bytes:?}");
    }
    // A run after its length in bytes.
    assert_eq!(rows.longest_of(1, &[3, 4, 0, 0, 0]), Ok(5));
    let mut nulls = Vec::new();
    put_integer(1 << 40, &mut nulls);
    let nothings = shape(&field(r#"{"type": "array", "items": "null"}"#)).unwrap();
    assert!(nothings.longest_of(1, &nulls).is_err());
    assert!(shape("").unwrap().longest_of(1, &[]).unwrap_err().contains("without any bytes"));
}

#[test]
fn what_becomes_longer_than_it_may_is_measured() {
    let text = vec![b'x'; 100_000];
    let packed = zstd::encode_all(&text[..], 1).unwrap();
    let mut snappy = snap::raw::Encoder::new().compress_vec(&text).unwrap();
    snappy.extend_from_slice(&crc32fast::hash(&text).to_be_bytes());
    let packed =
        [(None, text.clone()), (Some(Codec::ZStandard), packed), (Some(Codec::Snappy), snappy)];
    for (codec, packed) in packed {
        let within = |limit| plain(codec, packed.clone(), limit).unwrap();
        assert!(matches!(within(100_000), Plain::Whole(whole) if whole == text), "{codec:?}");
        assert!(matches!(within(99_999), Plain::Longer(100_000)), "{codec:?}");
        if codec.is_some() {
            let mut broken = packed.clone();
            broken.truncate(packed.len() - 3);
            assert!(plain(codec, broken, usize::MAX).is_err(), "{codec:?}");
        }
    }
    // A length beyond the yield of three bytes.
    let bomb = [0xFF, 0xFF, 0xFF, 0x7F, 0, 0, 0, 0];
    assert!(plain(Some(Codec::Snappy), bomb.to_vec(), usize::MAX).is_err());
}

#[test]
fn headers_and_first_blocks() {
    assert!(Header::parse(b"PAR1").is_err_and(|what| what.contains("input_format")));
    assert!(Header::parse(b"Obj\x01\x02").is_err());
    let (block, data) = Block::first(&[4, 6, 1, 2, 3, 9, 9]).unwrap();
    assert_eq!((block.rows, block.bytes, data), (2, 3, &[1, 2, 3][..]));
    assert!(Block::first(&[4, 60, 1]).is_none());
    assert!(Block::first(&[1, 6, 1, 2, 3]).is_none(), "a negative number of rows");
}

/// A schema of 2 KB with millions of values in a row is refused before any decoder allocates
/// memory.
#[test]
fn types_that_multiply_are_refused() {
    let bomb = |deep: usize, fields: &str| {
        let define = |i: usize| {
            let of = if i == 0 { "\"long\"".to_owned() } else { format!("\"r{}\"", i - 1) };
            let fields = fields.replace('T', &of);
            format!(
                "{{\"name\":\"d{i}\",\"type\":{{\"type\":\"record\",\"name\":\"r{i}\",\"fields\":[{fields}]}}}}"
            )
        };
        let fields: Vec<String> = (0..deep).map(define).collect();
        Shape::parse(&format!(
            "{{\"type\":\"record\",\"name\":\"r\",\"fields\":[{}]}}",
            fields.join(",")
        ))
    };
    let two = "{\"name\":\"a\",\"type\":T},{\"name\":\"b\",\"type\":T}";
    assert!(bomb(8, two).is_ok());
    for deep in [16, 60, 500] {
        assert!(bomb(deep, two).unwrap_err().contains("10000 values"), "{deep}");
    }
    // One field of the previous type, any number of times.
    let one = "{\"name\":\"a\",\"type\":T}";
    assert!(bomb(40, one).is_ok());
    assert!(bomb(100, one).unwrap_err().contains("deep"));
}
