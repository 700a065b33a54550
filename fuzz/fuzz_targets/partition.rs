//! Splits of arrays that nobody thought of: every row is in the partition it was given to, in the
//! order it had, with the values it had; ids that are no partition are errors; by a hash equal keys go together, and
//! ranges ascend as keys do.

#![no_main]

use std::sync::Arc;

use arrow_buffer::{NullBuffer, OffsetBuffer};
use libfuzzer_sys::fuzz_target;
use windrow::arrow_array::cast::AsArray;
use windrow::arrow_array::types::{Int16Type, UInt64Type};
use windrow::arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, Decimal128Array, DictionaryArray,
    Int16Array, Int32Array, ListArray, RecordBatch, StructArray, UInt64Array,
};
use windrow::arrow_schema::{Field, Fields};
use windrow::{Error, Order, Partitioner, RowEncoder, asc, desc};

/// Columns whose values follow from the bytes, and the number of the row in front.
fn record_batch(bytes: &[u8]) -> RecordBatch {
    let valid = |row: usize| !bytes[row].is_multiple_of(7);
    let text = |row: usize| {
        let len = usize::from(bytes[row]) % 40;
        valid(row).then(|| &bytes[row..bytes.len().min(row + len)])
    };
    let rows = bytes.len();
    let keys: Int16Array =
        (0..rows).map(|row| valid(row).then_some(i16::from(bytes[row] % 3))).collect();
    let words: ArrayRef = Arc::new(BinaryArray::from(vec![&b"a"[..], b"bc", b"def"]));
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(UInt64Array::from_iter_values(0..rows as u64)),
        Arc::new(BooleanArray::from_iter(
            (0..rows).map(|row| valid(row).then_some(bytes[row] > 99)),
        )),
        Arc::new(Int32Array::from_iter_values(bytes.iter().map(|&byte| i32::from(byte) * 70_001))),
        Arc::new(Decimal128Array::from_iter(
            (0..rows).map(|row| valid(row).then_some(i128::from(bytes[row]) << 90)),
        )),
        Arc::new(BinaryArray::from_iter((0..rows).map(text))),
        Arc::new(BinaryViewArray::from_iter((0..rows).map(text))),
        Arc::new(DictionaryArray::<Int16Type>::new(keys, words)),
    ];
    let field = |index: usize| Field::new("item", columns[index].data_type().clone(), true);
    let fields: Fields = vec![field(3), field(4)].into();
    let nulls = NullBuffer::from_iter((0..rows).map(|row| !bytes[row].is_multiple_of(5)));
    let parts = vec![columns[3].clone(), columns[4].clone()];
    let pairs: ArrayRef = Arc::new(StructArray::new(fields, parts, Some(nulls.clone())));
    let ends = (0..=rows).map(|end| (end - end % 3) as i32).collect::<Vec<_>>();
    let ends = OffsetBuffer::new(ends.into());
    let of = (Arc::new(field(6)), columns[6].clone());
    columns.push(Arc::new(ListArray::new(of.0, ends, of.1, Some(nulls))));
    columns.push(pairs);
    let names = (0..columns.len()).map(|index| format!("c{index}"));
    let columns = names.zip(columns).map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(columns).expect("columns of one length")
}

/// Splits by one column, by a hash and in ranges, beside the rows of that column alone.
fn by_rule(batch: &RecordBatch, column: usize, partitions: usize) {
    let field = batch.schema_ref().field(column).clone();
    let order = Order::by(if partitions.is_multiple_of(2) {
        asc(field.name())
    } else {
        desc(field.name())
    });
    let batch = batch.project(&[column]).expect("one of its columns");
    let layout = order.bind(batch.schema_ref()).expect("any type is a key");
    let rows = RowEncoder::new(&layout).encode(&batch).expect("any value has a row");
    let mut sorted: Vec<usize> = (0..rows.len()).collect();
    sorted.sort_by_key(|&row| rows.row(row));
    let (mut hashed, mut ranged) = (Vec::new(), Vec::new());
    Partitioner::hash(&layout, partitions).assign(&batch, &mut hashed).expect("any value");
    let sample = batch.slice(0, batch.num_rows() / 2);
    let ranges = Partitioner::range_of_sample(&layout, &sample, partitions);
    ranges.expect("few partitions").assign(&batch, &mut ranged).expect("any value");
    for pair in sorted.windows(2) {
        let [a, b] = [pair[0], pair[1]];
        assert!(ranged[a] <= ranged[b] && (ranged[b] as usize) < partitions);
        assert!(rows.row(a) != rows.row(b) || (hashed[a], ranged[a]) == (hashed[b], ranged[b]));
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&[low, high, shape], bytes)) = data.split_first_chunk() else { return };
    let partitions = 1 + usize::from(u16::from_le_bytes([low, high]));
    let (ids, bytes) = bytes.split_at(bytes.len() / 2);
    // Two bytes, one byte or a bit of an id, repeated over the rows.
    let id = |row: usize| match (shape % 3, ids) {
        (_, []) => 0,
        (0, ids) => u32::from(ids[row % ids.len()]) << 8 | u32::from(ids[(row + 1) % ids.len()]),
        (1, ids) => u32::from(ids[row % ids.len()]),
        (_, ids) => u32::from(ids[row / 8 % ids.len()] >> (row % 8) & 1),
    };
    let whole = record_batch(bytes);
    let front = usize::from(shape / 3).min(bytes.len());
    let batch = whole.slice(front, bytes.len() - front);
    by_rule(&batch, usize::from(low) % batch.num_columns(), 1 + usize::from(high));
    let ids: Vec<u32> = (0..batch.num_rows()).map(id).collect();
    let split = Partitioner::ids(partitions).split_by_ids(&batch, &ids);
    let parts = match split {
        Err(Error::PartitionOutOfRange { row, id, .. }) => {
            assert!(ids[row] == id && id as usize >= partitions);
            return;
        }
        found => found.expect("ids are the only thing to refuse"),
    };
    assert!(ids.iter().all(|&id| (id as usize) < partitions));
    let mut expected: Vec<usize> = (0..ids.len()).collect();
    expected.sort_by_key(|&row| ids[row]);
    let moved = parts.batch();
    let numbers = moved.column(0).as_primitive::<UInt64Type>();
    for (at, &row) in expected.iter().enumerate() {
        assert_eq!(numbers.value(at), (front + row) as u64);
        assert!(parts.rows(ids[row] as usize).contains(&at));
    }
    for (before, after) in batch.columns().iter().zip(moved.columns()) {
        after.to_data().validate_full().expect("arrays stay valid");
        for (at, &row) in expected.iter().enumerate() {
            assert_eq!(after.slice(at, 1).as_ref(), before.slice(row, 1).as_ref());
        }
    }
});
