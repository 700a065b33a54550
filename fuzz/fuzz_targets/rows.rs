//! Rows, rows of arrow-row and layout headers that nobody wrote: errors or values, never a panic; and
//! what is read as a value is written as a row that reads back the same.

#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use windrow::arrow_schema::{DataType as T, Field, Fields, Schema, SortOptions};
use windrow::compat::{Converter, SortField};
use windrow::{Layout, Order, RowEncoder, asc, desc};

fn types() -> Vec<T> {
    let item = |data_type| Arc::new(Field::new("item", data_type, true));
    let entries = Fields::from(vec![
        Field::new("keys", T::Int64, false),
        Field::new("values", T::Utf8, true),
    ]);
    vec![
        T::UInt64,
        T::Int32,
        T::Float64,
        T::Boolean,
        T::Decimal128(38, 4),
        T::Utf8,
        T::Binary,
        T::FixedSizeBinary(3),
        T::List(item(T::Utf8)),
        T::Struct(Fields::from(vec![
            Field::new("a", T::Int16, true),
            Field::new("b", T::Binary, true),
        ])),
        T::Dictionary(Box::new(T::Int8), Box::new(T::Utf8)),
        T::FixedSizeList(item(T::Float32), 2),
        T::List(item(T::Int32)),
        T::Utf8View,
        T::BinaryView,
        T::Map(Arc::new(Field::new("entries", T::Struct(entries), false)), false),
    ]
}

/// One encoder for each pair of types, the first one the key.
static ENCODERS: LazyLock<Vec<(RowEncoder, Converter)>> = LazyLock::new(|| {
    let mut out = Vec::new();
    for (a, first) in types().into_iter().enumerate() {
        for (b, second) in types().into_iter().enumerate() {
            let nullable = (a + b) % 3 > 0;
            let schema = Schema::new(vec![
                Field::new("a", first.clone(), nullable),
                Field::new("b", second.clone(), true),
            ]);
            let key = if b % 2 == 0 { asc("a") } else { desc("a").nulls_first() };
            let layout: Layout = Order::by(key).bind(&schema).expect("every type is a key");
            let fields = [first.clone(), second].map(|data_type| SortField {
                data_type,
                options: SortOptions { descending: b % 2 == 0, nulls_first: a % 2 == 0 },
            });
            let converter = Converter::new(fields.into()).expect("every type has a row");
            out.push((RowEncoder::new(&layout), converter));
        }
    }
    out
});

/// Rows of two words of bits, and a few more.
const MANY: usize = 133;

fuzz_target!(|data: &[u8]| {
    let _header = Layout::from_bytes(data);
    let Some((&choice, rest)) = data.split_first() else { return };
    let (encoder, converter) = &ENCODERS[usize::from(choice) % ENCODERS.len()];
    let (front, back) = rest.split_at(rest.len() / 2);
    for rows in [vec![rest], vec![front, back]] {
        if let Ok(batch) = encoder.decode_rows(rows.iter().copied()) {
            let written = encoder.encode(&batch).expect("a value has a row");
            let again = encoder.decode(&written, 0..written.len()).expect("a row has a value");
            assert_eq!(encoder.encode(&again).expect("a value has a row").bytes(), written.bytes());
        }
        if let Ok(columns) = converter.decode_rows(rows.iter().copied()) {
            let written = converter.encode(&columns).expect("a value has a row");
            converter.decode(&written, 0..written.len()).expect("a row has a value");
        }
    }
    // As many as kernels read at once, all alike: what one of them is all of them are.
    if rest.len() < 1 << 10 {
        let one = converter.decode_rows([rest]).is_ok();
        assert_eq!(converter.decode_rows([rest; MANY]).is_ok(), one);
        let one = encoder.decode_rows([rest]).is_ok();
        assert_eq!(encoder.decode_rows([rest; MANY]).is_ok(), one);
    }
});
