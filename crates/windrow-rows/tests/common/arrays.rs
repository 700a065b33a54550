//! Random arrays of random types, with all that a layout may hide: values under nulls, elements
//! between lists, overlapping views, unused and repeated dictionary values, equal runs side by side.

use std::sync::Arc;

use arrow_array::types::{Int8Type, Int32Type, UInt16Type, UInt64Type};
use arrow_array::*;
use arrow_buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{
    DataType, Field, FieldRef, Fields, IntervalUnit, TimeUnit, UnionFields, UnionMode,
};

/// splitmix64: small, and the same everywhere.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(crate) fn flip(&mut self) -> bool {
        self.below(2) == 0
    }
}

/// A slice of a random array.
pub(crate) fn array(rng: &mut Rng) -> ArrayRef {
    let data_type = data_type(rng, 3);
    let (len, front, back) = (rng.below(12), rng.below(4), rng.below(4));
    array_of(rng, &data_type, true, front + len + back).slice(front, len)
}

pub(crate) fn data_type(rng: &mut Rng, depth: usize) -> DataType {
    // Few leaves while there is depth left, or most types would be flat.
    if depth == 0 || rng.below(6) == 0 {
        return leaf(rng);
    }
    let depth = depth - 1;
    let element = |rng: &mut Rng| field(rng, "item", depth);
    match rng.below(11) {
        0 => DataType::List(element(rng)),
        1 => DataType::LargeList(element(rng)),
        2 => DataType::ListView(element(rng)),
        3 => DataType::LargeListView(element(rng)),
        4 => {
            let size = rng.below(4) as i32;
            DataType::FixedSizeList(element(rng), size)
        }
        5 => {
            let count = rng.below(4);
            DataType::Struct((0..count).map(|i| field(rng, &format!("f{i}"), depth)).collect())
        }
        6 => {
            let key = data_type(rng, depth);
            let key = if can_refuse_nulls(&key) { key } else { DataType::Utf8 };
            let key = Arc::new(Field::new("the key", key, false));
            let entries = DataType::Struct(vec![key, field(rng, "the value", depth)].into());
            DataType::Map(Arc::new(Field::new("pairs", entries, false)), rng.flip())
        }
        7 | 8 => {
            let ids: &[i8] = [&[0, 1, 2][..], &[127], &[9, 4, 126]][rng.below(3)];
            let fields: Vec<_> = ids.iter().map(|i| field(rng, &format!("u{i}"), depth)).collect();
            let mode = [UnionMode::Sparse, UnionMode::Dense][rng.below(2)];
            DataType::Union(UnionFields::try_new(ids.iter().copied(), fields).unwrap(), mode)
        }
        9 => {
            let keys = [DataType::Int8, DataType::Int32, DataType::UInt16, DataType::UInt64];
            let keys = keys[rng.below(4)].clone();
            DataType::Dictionary(Box::new(keys), Box::new(data_type(rng, depth)))
        }
        _ => {
            let ends = [DataType::Int16, DataType::Int32, DataType::Int64][rng.below(3)].clone();
            let ends = Arc::new(Field::new("my ends", ends, false));
            DataType::RunEndEncoded(ends, field(rng, "my values", depth))
        }
    }
}

fn leaf(rng: &mut Rng) -> DataType {
    use DataType::*;
    let unit =
        [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond]
            [rng.below(4)];
    let small = rng.below(3) as i32;
    let zone = [None, Some("+02:00".into()), Some("Europe/Paris".into())][rng.below(3)].clone();
    let leaves = [
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
        Decimal32(7, 2),
        Decimal64(12, -3),
        Decimal128(30, 5),
        Decimal256(70, 9),
        Date32,
        Date64,
        Time32(TimeUnit::Second),
        Time32(TimeUnit::Millisecond),
        Time64(TimeUnit::Microsecond),
        Time64(TimeUnit::Nanosecond),
        Timestamp(unit, zone),
        Duration(unit),
        Interval(IntervalUnit::YearMonth),
        Interval(IntervalUnit::DayTime),
        Interval(IntervalUnit::MonthDayNano),
        FixedSizeBinary(small),
        Binary,
        LargeBinary,
        BinaryView,
        Utf8,
        LargeUtf8,
        Utf8View,
        Null,
        Utf8,
        Boolean,
    ];
    leaves[rng.below(leaves.len())].clone()
}

fn field(rng: &mut Rng, name: &str, depth: usize) -> FieldRef {
    let data_type = data_type(rng, depth);
    let nullable = !can_refuse_nulls(&data_type) || rng.flip();
    let field = Field::new(name, data_type, nullable);
    Arc::new(field.with_metadata([("of".to_owned(), name.to_owned())].into()))
}

/// Whether an array of this type can be without nulls. Types without a validity of their own take
/// their nulls from below.
fn can_refuse_nulls(data_type: &DataType) -> bool {
    let sure = |field: &Field| !field.is_nullable() && can_refuse_nulls(field.data_type());
    match data_type {
        DataType::Null => false,
        DataType::Dictionary(_, values) => can_refuse_nulls(values),
        DataType::RunEndEncoded(_, values) => sure(values),
        DataType::Union(fields, _) => fields.iter().all(|(_, field)| sure(field)),
        _ => true,
    }
}

fn nulls(rng: &mut Rng, nullable: bool, len: usize) -> Option<NullBuffer> {
    (nullable && rng.flip()).then(|| NullBuffer::from_iter((0..len).map(|_| rng.below(3) > 0)))
}

pub(crate) fn array_of(
    rng: &mut Rng,
    data_type: &DataType,
    nullable: bool,
    len: usize,
) -> ArrayRef {
    let valid = nulls(rng, nullable, len);
    macro_rules! primitive {
        ($t:ty) => {{
            let width = size_of::<<$t as ArrowPrimitiveType>::Native>();
            let mut values = MutableBuffer::new(0);
            for _ in 0..len {
                // Few different ones, so that many are equal; NaN among the floats.
                let byte = [0, 1, 0x7f, 0xff][rng.below(4)];
                (0..width).for_each(|i| values.push(if i == 0 { byte } else { byte ^ 0x80 }));
            }
            let values = ScalarBuffer::new(values.into(), 0, len);
            let array = PrimitiveArray::<$t>::new(values, valid);
            Arc::new(array.with_data_type(data_type.clone()))
        }};
    }
    macro_rules! text {
        ($t:ty) => {
            Arc::new(<$t>::from_iter((0..len).map(|row| {
                let value = ["", "a", "é", "twelve bytes", "more than twelve bytes"][rng.below(5)];
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
            let bytes: Vec<u8> = (0..len * *width as usize).map(|_| rng.below(2) as u8).collect();
            let values = Buffer::from_vec(bytes);
            Arc::new(FixedSizeBinaryArray::try_new_with_len(*width, values, valid, len).unwrap())
        }
        DataType::Binary => text!(BinaryArray),
        DataType::LargeBinary => text!(LargeBinaryArray),
        DataType::BinaryView => text!(BinaryViewArray),
        DataType::Utf8 => text!(StringArray),
        DataType::LargeUtf8 => text!(LargeStringArray),
        DataType::Utf8View => text!(StringViewArray),
        DataType::List(field) => Arc::new(list::<i32>(rng, field, valid, len)),
        DataType::LargeList(field) => Arc::new(list::<i64>(rng, field, valid, len)),
        DataType::ListView(field) => Arc::new(view::<i32>(rng, field, valid, len)),
        DataType::LargeListView(field) => Arc::new(view::<i64>(rng, field, valid, len)),
        DataType::FixedSizeList(field, size) => {
            let values = array_of_field(rng, field, len * *size as usize);
            let field = field.clone();
            let array = FixedSizeListArray::try_new_with_length(field, *size, values, valid, len);
            Arc::new(array.unwrap())
        }
        DataType::Map(field, ordered) => {
            let (field, ordered) = (field.clone(), *ordered);
            let (_, offsets, entries, valid) = list::<i32>(rng, &field, valid, len).into_parts();
            let entries = cast::AsArray::as_struct(&entries).clone();
            Arc::new(MapArray::new(field, offsets, entries, valid, ordered))
        }
        DataType::Struct(fields) => {
            let columns = fields.iter().map(|field| array_of_field(rng, field, len)).collect();
            let fields: Fields = fields.clone();
            Arc::new(StructArray::try_new_with_length(fields, columns, valid, len).unwrap())
        }
        DataType::Union(fields, mode) => union(rng, fields, *mode, len),
        DataType::Dictionary(keys, values) => {
            let count = 1 + rng.below(5);
            let values = array_of(rng, values, nullable, count);
            let keys_of: Vec<usize> = (0..len).map(|_| rng.below(count)).collect();
            macro_rules! dictionary {
                ($t:ty) => {{
                    let keys = keys_of.iter().map(|key| *key as _).collect::<Vec<_>>();
                    let keys = PrimitiveArray::<$t>::new(keys.into(), valid);
                    Arc::new(DictionaryArray::new(keys, values))
                }};
            }
            match keys.as_ref() {
                DataType::Int8 => dictionary!(Int8Type),
                DataType::UInt16 => dictionary!(UInt16Type),
                DataType::UInt64 => dictionary!(UInt64Type),
                _ => dictionary!(Int32Type),
            }
        }
        DataType::RunEndEncoded(ends, values) => {
            let mut cuts: Vec<usize> = (1..len).filter(|_| rng.below(3) == 0).collect();
            cuts.extend((len > 0).then_some(len));
            let values = array_of_field(rng, values, cuts.len());
            let cuts: ArrayRef = match ends.data_type() {
                DataType::Int16 => Arc::new(Int16Array::from_iter_values(cuts.iter().map(|c| *c as i16))),
                DataType::Int32 => Arc::new(Int32Array::from_iter_values(cuts.iter().map(|c| *c as i32))),
                _ => Arc::new(Int64Array::from_iter_values(cuts.iter().map(|c| *c as i64))),
            };
            let data = ArrayData::builder(data_type.clone())
                .len(len)
                .child_data(vec![cuts.to_data(), values.to_data()]);
            make_array(data.build().unwrap())
        }
        other => panic!("{other}"),
    }
}

fn array_of_field(rng: &mut Rng, field: &Field, len: usize) -> ArrayRef {
    array_of(rng, field.data_type(), field.is_nullable(), len)
}

/// Lists that do not start at the first element, and have elements under nulls.
fn list<O: OffsetSizeTrait>(
    rng: &mut Rng,
    field: &FieldRef,
    valid: Option<NullBuffer>,
    len: usize,
) -> GenericListArray<O> {
    let mut end = rng.below(3);
    let mut offsets = vec![O::usize_as(end)];
    for _ in 0..len {
        end += rng.below(4);
        offsets.push(O::usize_as(end));
    }
    let spare = rng.below(3);
    let values = array_of_field(rng, field, end + spare);
    let offsets = OffsetBuffer::new(offsets.into());
    GenericListArray::new(field.clone(), offsets, values, valid)
}

/// Views in any order, overlapping.
fn view<O: OffsetSizeTrait>(
    rng: &mut Rng,
    field: &FieldRef,
    valid: Option<NullBuffer>,
    len: usize,
) -> GenericListViewArray<O> {
    let values = array_of_field(rng, field, 8);
    let starts: Vec<usize> = (0..len).map(|_| rng.below(8)).collect();
    let sizes = starts.iter().map(|start| O::usize_as(rng.below((9 - start).min(4)))).collect();
    let starts = starts.iter().map(|start| O::usize_as(*start)).collect();
    GenericListViewArray::new(field.clone(), starts, sizes, values, valid)
}

fn union(rng: &mut Rng, fields: &UnionFields, mode: UnionMode, len: usize) -> ArrayRef {
    let dense = mode == UnionMode::Dense;
    let rows = if dense { 3 } else { len };
    let children = fields.iter().map(|(_, field)| array_of_field(rng, field, rows)).collect();
    let known: Vec<i8> = fields.iter().map(|(id, _)| id).collect();
    let ids = (0..len).map(|_| known[rng.below(known.len())]).collect();
    let offsets = dense.then(|| (0..len).map(|_| rng.below(3) as i32).collect());
    Arc::new(UnionArray::try_new(fields.clone(), ids, offsets, children).unwrap())
}
