//! Splits of arrays that nobody thought of: every row is in the partition it was given to, in the
//! order it had, with the values it had; ids that are no partition are errors.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use windrow::arrow_array::cast::AsArray;
use windrow::arrow_array::types::{Int16Type, UInt64Type};
use windrow::arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, Decimal128Array, DictionaryArray,
    Int16Array, Int32Array, RecordBatch, UInt64Array,
};
use windrow::{Error, Partitioner};

/// Columns whose values follow from the bytes, and the number of the row in front.
fn record_batch(bytes: &[u8]) -> RecordBatch {
    let valid = |row: usize| bytes[row] % 7 > 0;
    let text = |row: usize| {
        let len = usize::from(bytes[row]) % 40;
        valid(row).then(|| &bytes[row..bytes.len().min(row + len)])
    };
    let rows = bytes.len();
    let keys: Int16Array =
        (0..rows).map(|row| valid(row).then_some(i16::from(bytes[row] % 3))).collect();
    let words: ArrayRef = Arc::new(BinaryArray::from(vec![&b"a"[..], b"bc", b"def"]));
    let columns: Vec<ArrayRef> = vec![
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
    let names = (0..columns.len()).map(|index| format!("c{index}"));
    let columns = names.zip(columns).map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(columns).expect("columns of one length")
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
