//! Columns of values that nobody thought of, of every width and with nulls in any place: they decode
//! to what they were, rows compare and sort as arrow-row's do, and `compat` writes arrow-row's bytes.

#![no_main]

use std::sync::Arc;

use arrow_row::{RowConverter, SortField};
use libfuzzer_sys::fuzz_target;
use windrow::arrow_array::types::{Int16Type, Int32Type};
use windrow::arrow_array::{
    ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, Decimal128Array, DictionaryArray,
    FixedSizeBinaryArray, Int8Array, Int16Array, Int32Array, Int64Array, ListArray, RecordBatch,
    StringArray, StructArray, UInt64Array,
};
use windrow::arrow_schema::{DataType, Field, Schema, SortOptions};
use windrow::{Order, RowEncoder, SortColumn, argsort, compat};

/// Bytes that are used up from the front; zeros when there are no more.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (front, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        front
    }

    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or_default()
    }

    /// Up to 16 bytes, most often few: values near zero and near the ends of their range.
    fn number(&mut self) -> i128 {
        let shape = self.byte();
        let mut bytes = [if shape & 64 > 0 { 0xff } else { 0 }; 16];
        let found = self.take(usize::from(shape) % 17);
        bytes[..found.len()].copy_from_slice(found);
        i128::from_le_bytes(bytes)
    }

    /// Short as a rule, up to 127 bytes.
    fn text(&mut self) -> &'a [u8] {
        let shape = self.byte();
        self.take(usize::from(if shape < 128 { shape % 13 } else { shape - 128 }))
    }
}

/// A column of `rows` values of a kind; no nulls if it is not `nullable`.
fn column(kind: u8, nullable: bool, rows: usize, bytes: &mut Bytes<'_>) -> ArrayRef {
    let valid: Vec<bool> =
        (0..rows).map(|_| !nullable || !bytes.byte().is_multiple_of(8)).collect();
    macro_rules! each {
        ($Array:ty, $value:expr) => {
            Arc::new(
                valid
                    .iter()
                    .map(|&valid| {
                        let value = $value;
                        valid.then_some(value)
                    })
                    .collect::<$Array>(),
            )
        };
    }
    match kind % 14 {
        0 => each!(BooleanArray, bytes.byte() > 99),
        1 => each!(Int8Array, bytes.byte() as i8),
        2 => each!(Int16Array, bytes.number() as i16),
        3 => each!(Int32Array, bytes.number() as i32),
        4 => each!(Int64Array, bytes.number() as i64),
        5 => each!(UInt64Array, bytes.number() as u64),
        6 => each!(Decimal128Array, bytes.number()),
        7 => each!(BinaryArray, bytes.text()),
        8 => each!(BinaryViewArray, bytes.text()),
        9 => each!(StringArray, String::from_utf8_lossy(bytes.text())),
        10 => {
            let values: Vec<_> =
                valid.iter().map(|&valid| valid.then(|| bytes.number().to_le_bytes())).collect();
            let values = values.iter().map(|value| value.as_ref().map(|value| &value[..5]));
            Arc::new(
                FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, 5)
                    .expect("five bytes each"),
            )
        }
        11 => {
            let words = (0..rows).map(|_| String::from_utf8_lossy(bytes.take(2)));
            let words: Vec<_> =
                words.zip(&valid).map(|(word, &valid)| valid.then_some(word)).collect();
            let words = words.iter().map(Option::as_deref);
            Arc::new(words.collect::<DictionaryArray<Int16Type>>())
        }
        12 => {
            let lists = valid.iter().map(|&valid| {
                let items: Vec<_> =
                    (0..bytes.byte() % 4).map(|_| Some(bytes.number() as i32)).collect();
                valid.then_some(items)
            });
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists))
        }
        _ => {
            let fields = [(kind, true), (kind / 14, true)]
                .map(|(kind, nullable)| column(kind % 12, nullable, rows, bytes));
            let names = fields.iter().zip(["a", "b"]);
            let names =
                names.map(|(array, name)| Field::new(name, array.data_type().clone(), true));
            let nulls = nullable.then(|| valid.clone().into());
            Arc::new(StructArray::new(names.collect(), fields.into(), nulls))
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&[shape, rows, front], bytes)) = data.split_first_chunk() else { return };
    let mut bytes = Bytes(bytes);
    let (mut fields, mut arrays, mut by) = (vec![], vec![], vec![]);
    for index in 0..1 + shape % 5 {
        let choice = bytes.byte();
        let nullable = choice & 1 > 0;
        let array = column(bytes.byte(), nullable, rows.into(), &mut bytes);
        let name = format!("c{index}");
        fields.push(Field::new(&name, array.data_type().clone(), nullable));
        by.push(SortColumn { name, descending: choice & 2 > 0, nulls_first: choice & 4 > 0 });
        arrays.push(array);
    }
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(schema, arrays).expect("columns as the schema has them");
    let front = usize::from(front % 16).min(batch.num_rows());
    let batch = batch.slice(front, batch.num_rows() - front);

    // Keys and payload: the first columns are compared, the others only come back.
    let keys = 1 + usize::from(shape / 5) % by.len();
    let layout = Order::by(by[..keys].to_vec()).bind(&batch.schema()).expect("every type is a key");
    let encoder = RowEncoder::new(&layout);
    let rows = encoder.encode(&batch).expect("values have rows");
    let back = encoder.decode(&rows, 0..rows.len()).expect("rows have values");
    assert_eq!(back, batch);
    assert_eq!(encoder.decode_rows(rows.iter()).expect("rows have values"), batch);

    let options = |column: &SortColumn| SortOptions {
        descending: column.descending,
        nulls_first: column.nulls_first,
    };
    let types: Vec<(DataType, SortOptions)> = batch
        .columns()
        .iter()
        .zip(&by)
        .map(|(array, by)| (array.data_type().clone(), options(by)))
        .collect();
    let theirs = |columns: usize| {
        let fields = types[..columns].iter().cloned();
        let fields =
            fields.map(|(data_type, options)| SortField::new_with_options(data_type, options));
        RowConverter::new(fields.collect()).expect("arrow-row has rows of these types")
    };
    let whole = theirs(types.len());
    let expected = whole.convert_columns(batch.columns()).expect("values have rows");
    let ours =
        types.iter().cloned().map(|(data_type, options)| compat::SortField { data_type, options });
    let converter = compat::Converter::new(ours.collect()).expect("every type has a row");
    let found = converter.encode(batch.columns()).expect("values have rows");
    assert!((0..batch.num_rows()).all(|row| found.row(row) == expected.row(row).as_ref()));
    assert_eq!(
        converter.decode(&found, 0..found.len()).expect("rows have values"),
        batch.columns()
    );
    let again =
        converter.decode_rows(expected.iter().map(|row| row.data())).expect("rows have values");
    assert_eq!(again, batch.columns());

    // The order of the keys, as arrow-row's bytes have it.
    let key = theirs(keys).convert_columns(&batch.columns()[..keys]).expect("values have rows");
    let mut order: Vec<u32> = (0..batch.num_rows() as u32).collect();
    order.sort_by(|&a, &b| key.row(a as usize).cmp(&key.row(b as usize)));
    let found = argsort(&layout, &batch).expect("values can be sorted");
    assert_eq!(found.values().as_ref(), order);
});
