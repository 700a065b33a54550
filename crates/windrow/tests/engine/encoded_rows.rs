//! Encoded rows give the same result as the record batches they were made of, and are read
//! unchanged chunk by chunk. Invalid bytes are refused and leave the batcher unchanged.

use std::sync::Arc;

use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt64Array};
use windrow::{
    Antichain, Batch, Batcher, Budget, ChunkReader, Error, ForceSpill, Layout, Order, Pool,
    PoolOptions, RowEncoder, key_len,
};

/// Unordered changes, some of which add up or cancel.
fn changes(text: bool, from: u64) -> RecordBatch {
    let numbers = |f: &dyn Fn(u64) -> u64| -> Vec<u64> {
        (from..from + 3_000).map(|n| f(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40)).collect()
    };
    let key: ArrayRef = match text {
        false => Arc::new(UInt64Array::from(numbers(&|n| n % 500))),
        true => Arc::new(StringArray::from_iter_values(
            numbers(&|n| n % 500).into_iter().map(|n| format!("{n}{}", "x".repeat(n as usize % 9))),
        )),
    };
    let diffs = Int64Array::from_iter_values((0..3_000).map(|n| if n % 3 == 0 { -1 } else { 1 }));
    RecordBatch::try_from_iter([
        ("key", key),
        ("value", Arc::new(UInt64Array::from(numbers(&|n| n % 3))) as ArrayRef),
        ("time", Arc::new(UInt64Array::from(numbers(&|n| n % 4))) as ArrayRef),
        ("diff", Arc::new(diffs) as ArrayRef),
    ])
    .unwrap()
}

fn layout(batch: &RecordBatch) -> Layout {
    Order::by("key").time("time").diff("diff").bind(&batch.schema()).unwrap()
}

/// Returns the end of each row.
fn ends(layout: &Layout, rows: &windrow::Rows) -> Vec<u32> {
    let mut end = 0;
    let ends = rows.iter().map(|row| {
        end += row.len() as u32;
        end
    });
    if layout.stride().is_some() { Vec::new() } else { ends.collect() }
}

fn pools() -> [Pool; 3] {
    let small = PoolOptions::new().chunk_bytes(100);
    let spilled = PoolOptions::new().chunk_bytes(4 << 10).policy(ForceSpill);
    [
        Pool::unlimited(),
        Pool::new(Budget::unlimited(), small).unwrap(),
        Pool::new(Budget::bytes(8 << 20), spilled).unwrap(),
    ]
}

fn columns(batch: Batch) -> RecordBatch {
    let schema = batch.layout().schema().clone();
    let batches: Vec<_> = batch.record_batches(1_000).unwrap().map(Result::unwrap).collect();
    RecordBatch::try_new(
        schema.clone(),
        (0..schema.fields().len())
            .map(|column| {
                let parts: Vec<_> =
                    batches.iter().map(|batch| batch.column(column).as_ref()).collect();
                arrow_select::concat::concat(&parts).unwrap()
            })
            .collect(),
    )
    .unwrap()
}

#[test]
fn come_to_the_same_as_record_batches() {
    for text in [false, true] {
        let all = [changes(text, 0), changes(text, 10_000)];
        let layout = layout(&all[0]);
        let encoder = RowEncoder::new(&layout);
        for pool in pools() {
            let mut plain = Batcher::new(&layout, &Pool::unlimited());
            let mut encoded = Batcher::new(&layout, &pool);
            for batch in &all {
                plain.push(batch).unwrap();
                let rows = encoder.encode(batch).unwrap();
                encoded.push_rows(rows.bytes(), &ends(&layout, &rows)).unwrap();
            }
            for upper in [Antichain::at(2), Antichain::new()] {
                let (plain, encoded) = (plain.seal(&upper).unwrap(), encoded.seal(&upper).unwrap());
                let reader = ChunkReader::new(&encoded).unwrap();
                let mut rows: Vec<Vec<u8>> = Vec::new();
                for chunk in 0..reader.chunks() {
                    let chunk_rows = reader.read(chunk).unwrap();
                    assert!(!chunk_rows.is_empty());
                    let row = |row| [chunk_rows.body(row), chunk_rows.end(row)].concat();
                    rows.extend((0..chunk_rows.len()).map(row));
                    if let Some(last) = reader.last_row(chunk) {
                        assert_eq!(last, rows.last().unwrap());
                    }
                }
                assert!(reader.read(reader.chunks()).is_err());
                assert_eq!(rows.len(), reader.rows());
                assert!(rows.is_sorted_by_key(|row| row[..row.len() - 8].to_vec()));
                let decoded = encoder.decode_rows(rows.iter().map(Vec::as_slice)).unwrap();
                let plain = columns(plain);
                assert_eq!(decoded, plain);
                assert_eq!(columns(encoded), plain);
                let key = |row: &Vec<u8>| row[..key_len(&layout, row)].to_vec();
                let keys: Vec<_> = rows.iter().map(key).collect();
                assert!(keys.is_sorted());
            }
        }
    }
}

#[test]
fn other_bytes_are_refused() {
    for text in [false, true] {
        let batch = changes(text, 0);
        let layout = layout(&batch);
        let rows = RowEncoder::new(&layout).encode(&batch).unwrap();
        let (bytes, ends) = (rows.bytes(), ends(&layout, &rows));
        let mut batcher = Batcher::new(&layout, &Pool::unlimited());
        let corrupt = |result| matches!(result, Err(Error::Corrupt { .. }));
        assert!(corrupt(batcher.push_rows(&bytes[1..], &ends)));
        if text {
            assert!(corrupt(batcher.push_rows(bytes, &ends[1..ends.len() - 1])));
            let mut swapped = ends.clone();
            swapped.swap(3, 4);
            assert!(corrupt(batcher.push_rows(bytes, &swapped)));
            let mut shifted = ends.clone();
            shifted[3] += 1;
            assert!(corrupt(batcher.push_rows(bytes, &shifted)));
            // A key without an end.
            assert!(corrupt(batcher.push_rows(&[9; 40], &[40])));
            assert!(corrupt(batcher.push_rows(&[1], &[1])));
            assert!(corrupt(batcher.push_rows(&[], &[0])));
        }
        batcher.push_rows(bytes, &ends).unwrap();
        assert!(batcher.finish().unwrap().settle().unwrap().rows() > Some(0));
        let keep = Order::by("key").bind(&batch.schema()).unwrap();
        let refused = Batcher::new(&keep, &Pool::unlimited()).push_rows(bytes, &ends);
        assert!(matches!(refused, Err(Error::InvalidOrder(_))));
    }
}
