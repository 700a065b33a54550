//! The specification: the engine's results, computed by slow and obviously correct code.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, RecordBatch};
use arrow_array::{downcast_dictionary_array, downcast_primitive_array, downcast_run_array};
use arrow_buffer::{ArrowNativeType, ToByteSlice, i256};
use arrow_schema::{DataType, IntervalUnit};

pub(crate) type Row = Vec<Value>;

/// A value independent of its array layout, in the order that Arrow documents for its type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number(i256),
    /// The bits, with negative numbers complemented: totalOrder.
    Float(i64),
    Bytes(Vec<u8>),
    Parts(Vec<Value>),
    Choice(i8, Box<Value>),
}

/// A sort column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct By {
    pub(crate) column: usize,
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

impl By {
    pub(crate) fn ascending(column: usize) -> Self {
        Self { column, descending: false, nulls_first: false }
    }
}

pub(crate) fn compare(by: &[By], a: &Row, b: &Row) -> Ordering {
    let column = |by: &By| order(by, &a[by.column], &b[by.column]);
    by.iter().map(column).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Compares two values. Nulls at every level sort as the column's nulls; lists compare element by
/// element.
fn order(by: &By, a: &Value, b: &Value) -> Ordering {
    let turned = |order: Ordering| if by.descending { order.reverse() } else { order };
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => {
            if by.nulls_first {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
        (_, Value::Null) => {
            if by.nulls_first {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
        (Value::Parts(a), Value::Parts(b)) => {
            let parts = a.iter().zip(b).map(|(a, b)| order(by, a, b)).find(|order| order.is_ne());
            parts.unwrap_or(turned(a.len().cmp(&b.len())))
        }
        (Value::Choice(a_id, a), Value::Choice(b_id, b)) => {
            turned(a_id.cmp(b_id)).then_with(|| order(by, a, b))
        }
        _ => turned(a.cmp(b)),
    }
}

pub(crate) fn sort(by: &[By], mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by(|a, b| compare(by, a, b));
    rows
}

/// Returns the first row of each key in the order of `key` and `then`; of equal rows, the earliest.
pub(crate) fn first(key: &[By], then: &[By], rows: Vec<Row>) -> Vec<Row> {
    let mut rows = sort(&[key, then].concat(), rows);
    rows.dedup_by(|next, first| compare(key, first, next).is_eq());
    rows
}

/// Returns the last row of each key in the order of `key` and `then`; of equal rows, the latest.
pub(crate) fn last(key: &[By], then: &[By], rows: Vec<Row>) -> Vec<Row> {
    let mut rows = sort(&[key, then].concat(), rows);
    rows.reverse();
    rows.dedup_by(|next, first| compare(key, first, next).is_eq());
    rows.reverse();
    rows
}

/// Returns the last row of each key in the order of `key` and `then`. Each null is replaced by the
/// column's last non-null value after the key's last row with `deleted` true.
pub(crate) fn last_known(
    key: &[By],
    then: &[By],
    deleted: Option<usize>,
    rows: Vec<Row>,
) -> Vec<Row> {
    let by = [key, then].concat();
    let deletes = |row: &Row| deleted.is_some_and(|at| row[at] == Value::Bool(true));
    let is_filled = |at: usize| deleted != Some(at) && by.iter().all(|by| by.column != at);
    let mut out: Vec<Row> = Vec::new();
    for mut row in sort(&by, rows) {
        if let Some(before) = out.pop_if(|before| compare(key, before, &row).is_eq())
            && !deletes(&before)
            && !deletes(&row)
        {
            for at in (0..row.len()).filter(|&at| is_filled(at)) {
                if is_null(&row[at]) && !is_null(&before[at]) {
                    row[at] = before[at].clone();
                }
            }
        }
        out.push(row);
    }
    out
}

/// Returns true for a null, and for a union of a null.
fn is_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Choice(_, field) => is_null(field),
        _ => false,
    }
}

/// Returns the rows with nonzero sums of diffs.
pub(crate) fn consolidate(diff: usize, rows: Vec<Row>) -> Vec<Row> {
    let mut sums: BTreeMap<Row, i256> = BTreeMap::new();
    for mut row in rows {
        let Value::Number(number) = std::mem::replace(&mut row[diff], Value::Null) else {
            panic!("a diff is a number");
        };
        *sums.entry(row).or_default() += number;
    }
    let sums = sums.into_iter().filter(|(_, sum)| *sum != i256::ZERO);
    sums.map(|(mut row, sum)| {
        row[diff] = Value::Number(sum);
        row
    })
    .collect()
}

pub(crate) fn rows<'a>(batches: impl IntoIterator<Item = &'a RecordBatch>) -> Vec<Row> {
    let batches = batches.into_iter();
    batches.flat_map(|batch| (0..batch.num_rows()).map(|at| row(batch, at))).collect()
}

/// Panics at the first difference.
#[track_caller]
pub(crate) fn assert_same(got: &[Row], expected: &[Row], what: &dyn std::fmt::Debug) {
    let differ = got.iter().zip(expected).position(|(got, expected)| got != expected);
    if let Some(at) = differ {
        panic!("{what:?}\nrow {at}: got {:?}\nexpected {:?}", got[at], expected[at]);
    }
    assert_eq!(got.len(), expected.len(), "number of rows, {what:?}");
}

fn row(batch: &RecordBatch, at: usize) -> Row {
    batch.columns().iter().map(|column| value(column, at)).collect()
}

pub(crate) fn value(array: &dyn Array, row: usize) -> Value {
    use Value::{Bool, Bytes, Choice, Float, Null, Parts};
    let all = |values: &dyn Array| Parts((0..values.len()).map(|at| value(values, at)).collect());
    // Checks the validity bit; unions and run-end arrays have none, and their values are checked
    // below.
    if array.is_null(row) {
        return Null;
    }
    match array.data_type() {
        DataType::Float16 => {
            let bits = array.as_primitive::<Float16Type>().value(row).to_bits() as i16;
            return Float((bits ^ ((bits >> 15) & i16::MAX)).into());
        }
        DataType::Float32 => {
            let bits = array.as_primitive::<Float32Type>().value(row).to_bits() as i32;
            return Float((bits ^ ((bits >> 31) & i32::MAX)).into());
        }
        DataType::Float64 => {
            let bits = array.as_primitive::<Float64Type>().value(row).to_bits() as i64;
            return Float(bits ^ ((bits >> 63) & i64::MAX));
        }
        _ => {}
    }
    downcast_primitive_array! {
        array => number(array.data_type(), array.value(row).to_byte_slice()),
        DataType::Null => Null,
        DataType::Boolean => Bool(array.as_boolean().value(row)),
        DataType::FixedSizeBinary(_) => Bytes(array.as_fixed_size_binary().value(row).to_vec()),
        DataType::Binary => Bytes(array.as_binary::<i32>().value(row).to_vec()),
        DataType::LargeBinary => Bytes(array.as_binary::<i64>().value(row).to_vec()),
        DataType::BinaryView => Bytes(array.as_binary_view().value(row).to_vec()),
        DataType::Utf8 => Bytes(array.as_string::<i32>().value(row).into()),
        DataType::LargeUtf8 => Bytes(array.as_string::<i64>().value(row).into()),
        DataType::Utf8View => Bytes(array.as_string_view().value(row).into()),
        DataType::List(_) => all(&array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => all(&array.as_list::<i64>().value(row)),
        DataType::ListView(_) => all(&array.as_list_view::<i32>().value(row)),
        DataType::LargeListView(_) => all(&array.as_list_view::<i64>().value(row)),
        DataType::FixedSizeList(_, _) => all(&array.as_fixed_size_list().value(row)),
        DataType::Map(_, _) => all(&array.as_map().value(row)),
        DataType::Struct(_) => {
            let fields = array.as_struct().columns().iter();
            Parts(fields.map(|field| value(field, row)).collect())
        }
        DataType::Union(_, _) => {
            let array = array.as_union();
            Choice(array.type_id(row), Box::new(value(&array.value(row), 0)))
        }
        DataType::Dictionary(_, _) => downcast_dictionary_array! {
            array => value(array.values(), array.keys().value(row).as_usize()),
            other => panic!("{other}"),
        },
        DataType::RunEndEncoded(_, _) => downcast_run_array! {
            array => value(array.values(), array.get_physical_index(row)),
            other => panic!("{other}"),
        },
        other => panic!("{other}"),
    }
}

/// Decodes a little-endian number; intervals become their parts, in Arrow's order.
fn number(data_type: &DataType, bytes: &[u8]) -> Value {
    let part = |range: std::ops::Range<usize>| whole(true, &bytes[range]);
    match data_type {
        DataType::Interval(IntervalUnit::DayTime) => Value::Parts(vec![part(0..4), part(4..8)]),
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            Value::Parts(vec![part(0..4), part(4..8), part(8..16)])
        }
        _ => whole(!data_type.is_unsigned_integer(), bytes),
    }
}

fn whole(signed: bool, bytes: &[u8]) -> Value {
    let negative = signed && bytes[bytes.len() - 1] >= 0x80;
    let mut wide = [if negative { 0xff } else { 0 }; 32];
    wide[..bytes.len()].copy_from_slice(bytes);
    Value::Number(i256::from_le_bytes(wide))
}
