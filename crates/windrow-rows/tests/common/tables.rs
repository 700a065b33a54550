//! Random tables: columns of every orderable type, payload of any type.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::*;
use arrow_buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, IntervalUnit, Schema, TimeUnit};
use arrow_select::take::take;

use super::arrays::{self, Rng};

/// Common prefix of long strings: longer than any prefix that a kernel compares at once.
const COMMON: &str = "https://example.org/a/common/start/of/more/than/forty/bytes/";

/// Returns a table of `rows` rows with orderable columns `k0`, `k1`, ... followed by payload
/// columns `p0`, `p1`, ... Each column has about `distinct` different values.
pub(crate) fn table(
    rng: &mut Rng,
    keys: usize,
    payload: usize,
    rows: usize,
    distinct: usize,
) -> RecordBatch {
    let (front, back) = (rng.below(9), rng.below(9));
    let len = front + rows + back;
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    for index in 0..keys + payload {
        let (name, data_type, nullable, array);
        if index < keys {
            data_type = key_type(rng);
            // The fields of dictionaries and runs of nulls are nullable.
            name = format!("k{index}");
            // Nested values may hold nulls at any level, so their fields are nullable.
            let nested = data_type.is_nested() && !plain_key(&data_type);
            if nested {
                let values = arrays::array_of(rng, &data_type, true, len);
                nullable = true;
                array = values;
            } else {
                nullable = rng.flip() || is_null(&data_type);
                array = key_array(rng, &data_type, nullable, len, distinct);
            }
        } else {
            data_type = arrays::data_type(rng, 2);
            nullable = true;
            name = format!("p{}", index - keys);
            array = arrays::array_of(rng, &data_type, true, len);
        }
        fields.push(Field::new(name, data_type, nullable));
        columns.push(array);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(len));
    let schema = Arc::new(Schema::new(fields));
    RecordBatch::try_new_with_options(schema, columns, &options).unwrap().slice(front, rows)
}

/// Slices `batch` into pieces of up to `most` rows, some of them empty.
pub(crate) fn cut(rng: &mut Rng, batch: &RecordBatch, most: usize) -> Vec<RecordBatch> {
    let mut at = 0;
    let mut out = Vec::new();
    while at < batch.num_rows() {
        let rows = rng.below(most + 1).min(batch.num_rows() - at);
        out.push(batch.slice(at, rows));
        at += rows;
    }
    out
}

/// Returns true for types that [`key_array`] supports.
fn plain_key(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => !values.is_nested(),
        DataType::RunEndEncoded(_, values) => !values.data_type().is_nested(),
        other => !other.is_nested(),
    }
}

fn is_null(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_null(values),
        DataType::RunEndEncoded(_, values) => is_null(values.data_type()),
        other => *other == DataType::Null,
    }
}

/// Returns a random orderable type.
pub(crate) fn key_type(rng: &mut Rng) -> DataType {
    let plain = plain_types()[rng.below(plain_types().len())].clone();
    match rng.below(12) {
        2 | 3 => loop {
            let nested = arrays::data_type(rng, 3);
            if nested.is_nested() {
                return nested;
            }
        },
        0 => DataType::Dictionary(Box::new(DataType::Int32), Box::new(plain)),
        1 => {
            let ends = Arc::new(Field::new("run_ends", DataType::Int32, false));
            DataType::RunEndEncoded(ends, Arc::new(Field::new("values", plain, true)))
        }
        _ => plain,
    }
}

/// Returns every orderable type, encodings aside.
pub(crate) fn plain_types() -> Vec<DataType> {
    use DataType::*;
    use TimeUnit::*;
    vec![
        Null,
        Boolean,
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float16,
        Float32,
        Float64,
        Decimal32(9, 2),
        Decimal64(18, 2),
        Decimal128(38, 10),
        Decimal256(76, -3),
        Date32,
        Date64,
        Time32(Second),
        Time32(Millisecond),
        Time64(Microsecond),
        Time64(Nanosecond),
        Timestamp(Second, None),
        Timestamp(Millisecond, Some("+02:00".into())),
        Timestamp(Nanosecond, Some("Europe/Paris".into())),
        Duration(Microsecond),
        Interval(IntervalUnit::YearMonth),
        Interval(IntervalUnit::DayTime),
        Interval(IntervalUnit::MonthDayNano),
        FixedSizeBinary(0),
        FixedSizeBinary(1),
        FixedSizeBinary(7),
        FixedSizeBinary(40),
        Utf8,
        LargeUtf8,
        Utf8View,
        Binary,
        LargeBinary,
        BinaryView,
    ]
}

/// Returns an array of `len` values, about `distinct` different ones.
pub(crate) fn key_array(
    rng: &mut Rng,
    data_type: &DataType,
    nullable: bool,
    len: usize,
    distinct: usize,
) -> ArrayRef {
    match data_type {
        DataType::Dictionary(_, values) => {
            let values = plain_array(rng, values, nullable, distinct);
            let valid = nulls(rng, nullable, len);
            let keys: Vec<i32> = (0..len).map(|_| rng.below(distinct) as i32).collect();
            let keys = PrimitiveArray::<Int32Type>::new(keys.into(), valid);
            Arc::new(DictionaryArray::new(keys, values))
        }
        DataType::RunEndEncoded(_, values) => {
            let mut ends: Vec<i32> = (1..len as i32).filter(|_| rng.below(3) > 0).collect();
            ends.extend((len > 0).then_some(len as i32));
            let values = key_array(rng, values.data_type(), nullable, ends.len(), distinct);
            let data = ArrayData::builder(data_type.clone())
                .len(len)
                .child_data(vec![Int32Array::from(ends).to_data(), values.to_data()]);
            make_array(data.build().unwrap())
        }
        // Arrow's `take` loses the number of values of width zero.
        DataType::FixedSizeBinary(0) => plain_array(rng, data_type, nullable, len),
        plain => {
            let values = plain_array(rng, plain, nullable, distinct);
            let at = UInt32Array::from_iter_values((0..len).map(|_| rng.below(distinct) as u32));
            take(&values, &at, None).unwrap()
        }
    }
}

fn nulls(rng: &mut Rng, nullable: bool, len: usize) -> Option<NullBuffer> {
    (nullable && rng.flip()).then(|| NullBuffer::from_iter((0..len).map(|_| rng.below(4) > 0)))
}

fn plain_array(rng: &mut Rng, data_type: &DataType, nullable: bool, len: usize) -> ArrayRef {
    let valid = nulls(rng, nullable, len);
    macro_rules! primitive {
        ($t:ty) => {{
            let width = size_of::<<$t as ArrowPrimitiveType>::Native>();
            let mut values = MutableBuffer::new(0);
            for _ in 0..len {
                number(rng, data_type, width).into_iter().for_each(|byte| values.push(byte));
            }
            let values = ScalarBuffer::new(values.into(), 0, len);
            let array = PrimitiveArray::<$t>::new(values, valid);
            Arc::new(array.with_data_type(data_type.clone())) as ArrayRef
        }};
    }
    macro_rules! strings {
        ($t:ty, $value:path) => {
            Arc::new(<$t>::from_iter((0..len).map(|row| {
                let value = $value(rng);
                valid.as_ref().is_none_or(|valid| valid.is_valid(row)).then_some(value)
            })))
        };
    }
    downcast_primitive! {
        data_type => (primitive),
        DataType::Null => Arc::new(NullArray::new(len)),
        DataType::Boolean => {
            let values = BooleanBuffer::from_iter((0..len).map(|_| rng.flip()));
            Arc::new(BooleanArray::new(values, valid))
        }
        DataType::FixedSizeBinary(width) => {
            let bytes: Vec<u8> = (0..len).flat_map(|_| fixed(rng, *width as usize)).collect();
            let values = Buffer::from_vec(bytes);
            Arc::new(FixedSizeBinaryArray::try_new_with_len(*width, values, valid, len).unwrap())
        }
        DataType::Utf8 => strings!(StringArray, text),
        DataType::LargeUtf8 => strings!(LargeStringArray, text),
        DataType::Utf8View => strings!(StringViewArray, text),
        DataType::Binary => strings!(BinaryArray, binary),
        DataType::LargeBinary => strings!(LargeBinaryArray, binary),
        DataType::BinaryView => strings!(BinaryViewArray, binary),
        other => panic!("{other}"),
    }
}

/// Returns the native bytes of a number: small, extreme or random; floats include NaN.
fn number(rng: &mut Rng, data_type: &DataType, width: usize) -> Vec<u8> {
    let random: Vec<u8> = (0..width).map(|_| rng.next() as u8).collect();
    let float = |exponent: u64, bits: u32, rng: &mut Rng| {
        let special = [0, exponent, exponent | 1, exponent | 1 << (bits - 12), 1, 7][rng.below(6)];
        let sign = u64::from(rng.flip()) << (bits - 1);
        Some((special | sign).to_le_bytes()[..width].to_vec())
    };
    let special = match data_type {
        // Zero, infinity, both kinds of NaN, subnormals; each with either sign.
        DataType::Float16 => float(0x7c00, 16, rng),
        DataType::Float32 => float(0x7f80_0000, 32, rng),
        DataType::Float64 => float(0x7ff0_0000_0000_0000, 64, rng),
        _ => None,
    };
    match (rng.below(4), special) {
        (0 | 1, Some(special)) => special,
        (0, None) => random,
        (1, None) => {
            // The least, the greatest, -1 and 0 of signed and unsigned types.
            let fill = [0, 0xff][rng.below(2)];
            let mut bytes = vec![fill; width];
            bytes[width - 1] ^= [0, 0x80][rng.below(2)];
            bytes
        }
        (2, _) => random,
        _ => {
            let fill = [0, 0xff][rng.below(2)];
            random[..1].iter().copied().chain(std::iter::repeat_n(fill, width - 1)).collect()
        }
    }
}

fn fixed(rng: &mut Rng, width: usize) -> Vec<u8> {
    let from = rng.below(width + 1);
    (0..width).map(|at| if at < from { 7 } else { rng.below(3) as u8 }).collect()
}

fn text(rng: &mut Rng) -> String {
    let letters = ["", "\0", "\u{1}", "\u{2}", "a", "z", "é", "~", "\u{10ffff}"];
    match rng.below(6) {
        0 => String::new(),
        1 => format!("{COMMON}{}", rng.below(1000)),
        2 => format!("{}{}", rng.below(10), "twelve bytes"),
        3 => (0..rng.below(200)).map(|_| letters[rng.below(letters.len())]).collect(),
        4 => COMMON[..rng.below(COMMON.len())].to_owned(),
        _ => (0..rng.below(5)).map(|_| letters[rng.below(letters.len())]).collect(),
    }
}

fn binary(rng: &mut Rng) -> Vec<u8> {
    let bytes = [0, 1, 2, 3, 254, 255];
    let start = if rng.below(4) == 0 { COMMON.as_bytes() } else { &[] };
    let len = [0, 1, 3, 40][rng.below(4)];
    let rest = (0..len).map(|_| bytes[rng.below(bytes.len())]);
    start.iter().copied().chain(rest).collect()
}
