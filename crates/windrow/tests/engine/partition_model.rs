//! Splits against a slow model: rows of any type, sliced anywhere, for 1 to 65,536 partitions and
//! ids of any shape; order within partitions; refused inputs.

use std::sync::Arc;

use crate::common::arrays::{Rng, array_of, data_type};
use crate::common::engine::cases;
use crate::common::model::{Row, assert_same, rows};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_schema::{DataType, Field, Fields, Schema};
use proptest::prelude::*;
use windrow::{Error, Partitioned, Partitioner};

const COUNTS: [usize; 16] = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 64, 255, 257, 1000, 65_536];

/// Returns the rows of a partition.
fn model(all: &[Row], ids: &[u32], partition: u32) -> Vec<Row> {
    let rows = all.iter().zip(ids).filter(|(_, id)| **id == partition);
    rows.map(|(row, _)| row.clone()).collect()
}

fn ids(rng: &mut Rng, rows: usize, partitions: usize) -> Vec<u32> {
    let shape = rng.below(7);
    let mut last = 0;
    let mut ids: Vec<u32> = (0..rows)
        .map(|row| {
            let uniform = rng.below(partitions);
            last = match shape {
                0 | 1 => uniform,
                2 if rng.below(10) > 0 => partitions - 1,
                3 => row % partitions,
                4 if rng.below(20) > 0 => last,
                5 => partitions / 2,
                _ => uniform,
            };
            last as u32
        })
        .collect();
    if shape == 6 {
        ids.sort_unstable();
    }
    ids
}

fn record_batch(rng: &mut Rng, types: &[DataType], rows: usize) -> RecordBatch {
    let columns: Vec<(Field, ArrayRef)> = types
        .iter()
        .enumerate()
        .map(|(index, data_type)| {
            let (front, back) = (rng.below(70), rng.below(4));
            let nullable = rng.flip();
            let array = array_of(rng, data_type, nullable, front + rows + back).slice(front, rows);
            // Types without a bitmap have nulls even if none are requested.
            (Field::new(format!("c{index}"), data_type.clone(), true), array)
        })
        .collect();
    let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let schema = Arc::new(Schema::new(Fields::from(fields)));
    RecordBatch::try_new_with_options(schema, columns, &options).unwrap()
}

/// Returns partitions with rows, and a few without.
fn looked_at(ids: &[u32], partitions: usize) -> Vec<u32> {
    let mut some: Vec<u32> = ids.to_vec();
    some.extend([0, partitions as u32 - 1, partitions as u32 / 2]);
    some.sort_unstable();
    some.dedup();
    some
}

#[track_caller]
fn check(batch: &RecordBatch, ids: &[u32], partitions: usize, parts: &Partitioned) {
    let types: Vec<&DataType> = batch.columns().iter().map(|c| c.data_type()).collect();
    let what = (partitions, types);
    assert_eq!(parts.partitions(), partitions);
    assert_eq!(parts.batch().schema(), batch.schema());
    assert_eq!(parts.batch().num_rows(), batch.num_rows());
    let all = rows([batch]);
    let mut seen = 0;
    for partition in looked_at(ids, partitions) {
        let expected = model(&all, ids, partition);
        let part = parts.partition(partition as usize);
        assert_same(&rows([&part]), &expected, &what);
        for (column, array) in part.columns().iter().enumerate() {
            assert_eq!(parts.null_count(partition as usize, column), array.null_count());
        }
        seen += expected.len();
    }
    assert_eq!(seen, batch.num_rows(), "{what:?}");
    for (before, after) in batch.columns().iter().zip(parts.batch().columns()) {
        after.to_data().validate_full().unwrap();
        assert_eq!(before.null_count(), after.null_count());
        if before.null_count() == 0 && !before.is_empty() && !ids.is_sorted() {
            assert!(after.nulls().is_none(), "{what:?}");
        }
    }
    assert_eq!(parts.occupied().map(|(_, part)| part.num_rows()).sum::<usize>(), ids.len());
    assert!(parts.offsets().is_sorted());
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn any_types_any_count_any_slice(
        seed: u64,
        partitions in prop_oneof![1usize..20, 20usize..1100, 1usize..=65_536],
        columns in 0usize..4,
        most in prop_oneof![1usize..70, 70usize..600],
    ) {
        let mut rng = Rng::new(seed);
        let types: Vec<DataType> = (0..columns).map(|_| data_type(&mut rng, 3)).collect();
        let mut partitioner = Partitioner::ids(partitions);
        let mut before = Vec::new();
        for _ in 0..3 {
            let rows = rng.below(most);
            let batch = record_batch(&mut rng, &types, rows);
            let ids = ids(&mut rng, rows, partitions);
            let parts = partitioner.split_by_ids(&batch, &ids).unwrap();
            check(&batch, &ids, partitions, &parts);
            before.push((batch, ids, parts));
        }
        // Memory is reused, but not while an array shares it.
        for (batch, ids, parts) in &before {
            check(batch, ids, partitions, parts);
        }
    }

    #[test]
    fn rows_of_a_partition_keep_their_order(
        seed: u64,
        partitions in prop_oneof![1usize..20, 20usize..1100, 1usize..=65_536],
        rows in prop_oneof![0usize..300, 300usize..20_000, Just(65_536), 65_537usize..70_000],
    ) {
        let mut rng = Rng::new(seed);
        let numbers = UInt32Array::from_iter_values(0..rows as u32);
        let batch = RecordBatch::try_from_iter([("n", Arc::new(numbers) as ArrayRef)]).unwrap();
        let ids = ids(&mut rng, rows, partitions);
        let parts = Partitioner::ids(partitions).split_by_ids(&batch, &ids).unwrap();
        let mut expected: Vec<u32> = (0..rows as u32).collect();
        expected.sort_by_key(|&row| ids[row as usize]);
        let moved = parts.batch().column(0).as_primitive::<UInt32Type>();
        prop_assert_eq!(moved.values(), expected.as_slice());
        for (&id, partition) in ids.iter().zip(0..).take(50) {
            let rows = &moved.values()[parts.rows(id as usize)];
            prop_assert!(rows.is_sorted() && rows.contains(&partition));
        }
    }
}

/// Types with kernels of their own.
fn flat_types() -> Vec<DataType> {
    use DataType::*;
    let coded = |values| Dictionary(Box::new(UInt16), Box::new(values));
    vec![
        Boolean,
        Int8,
        Int16,
        Int32,
        Int64,
        Decimal128(20, 2),
        Decimal256(50, 2),
        FixedSizeBinary(5),
        FixedSizeBinary(12),
        Utf8,
        LargeUtf8,
        Utf8View,
        coded(Utf8),
        Struct(Fields::from(vec![
            Field::new("a", Int32, true),
            Field::new("b", Boolean, true),
            Field::new("c", Struct(Fields::from(vec![Field::new("d", Binary, true)])), true),
        ])),
    ]
}

#[test]
fn record_batches_of_usual_length() {
    let mut rng = Rng::new(2);
    for partitions in COUNTS {
        let mut partitioner = Partitioner::ids(partitions);
        for _ in 0..3 {
            let rows = 2000 + rng.below(3000);
            let batch = record_batch(&mut rng, &flat_types(), rows);
            let ids = ids(&mut rng, rows, partitions);
            let parts = partitioner.split_by_ids(&batch, &ids).unwrap();
            check(&batch, &ids, partitions, &parts);
        }
    }
}

/// Compares properties of the result: the model would be too slow.
#[test]
fn record_batches_of_many_chunks() {
    use arrow_array::types::Int32Type;
    use arrow_array::{BooleanArray, Int32Array, StringArray};
    let mut rng = Rng::new(3);
    for (rows, partitions) in [
        (65_536, 16),
        (65_537, 1),
        (65_537, 2),
        (65_537, 100),
        (200_000, 3),
        (200_000, 1000),
        (200_000, 5000),
        (200_000, 8192),
        (200_000, 8193),
        (200_000, 65_536),
    ] {
        let numbers = UInt32Array::from_iter_values(0..rows as u32);
        let odd = BooleanArray::from_iter((0..rows).map(|row| Some(row % 3 == 1)));
        let text = StringArray::from_iter(
            (0..rows).map(|row| (row % 5 > 0).then(|| format!("{row} {}", "x".repeat(row % 40)))),
        );
        let holes = Int32Array::from_iter((0..rows as i32).map(|row| (row % 7 > 0).then_some(row)));
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("numbers", Arc::new(numbers) as ArrayRef, false),
            ("odd", Arc::new(odd) as ArrayRef, false),
            ("text", Arc::new(text) as ArrayRef, true),
            ("holes", Arc::new(holes) as ArrayRef, true),
        ])
        .unwrap();
        let ids: Vec<u32> = (0..rows).map(|_| rng.below(partitions) as u32).collect();
        let parts = Partitioner::ids(partitions).split_by_ids(&batch, &ids).unwrap();
        let mut expected: Vec<u32> = (0..rows as u32).collect();
        expected.sort_by_key(|&row| ids[row as usize]);
        let moved = parts.batch();
        assert_eq!(moved.column(0).as_primitive::<UInt32Type>().values(), expected.as_slice());
        for (at, row) in expected.into_iter().map(|row| row as usize).enumerate() {
            assert_eq!(moved.column(1).as_boolean().value(at), row % 3 == 1);
            let text = moved.column(2).as_string::<i32>();
            assert_eq!(text.is_null(at), row % 5 == 0);
            if row % 5 > 0 {
                assert_eq!(text.value(at), format!("{row} {}", "x".repeat(row % 40)));
            }
            let holes = moved.column(3).as_primitive::<Int32Type>();
            assert_eq!(
                holes.is_valid(at).then(|| holes.value(at) as usize),
                (row % 7 > 0).then_some(row)
            );
        }
        for partition in 0..partitions {
            let expected = ids.iter().filter(|&&id| id as usize == partition).count();
            assert_eq!(parts.rows(partition).len(), expected);
            if partition == 100 {
                break;
            }
        }
        moved.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
    }
}

#[test]
fn memory_is_not_taken_again_while_rows_are_in_it() {
    let mut rng = Rng::new(8);
    let types = [DataType::Int64, DataType::Utf8, DataType::Boolean, DataType::Utf8View];
    for bytes in [0, 100_000, 1 << 30] {
        let mut partitioner = Partitioner::ids(5).keeping(bytes);
        let mut held = std::collections::VecDeque::new();
        for turn in 0..60 {
            let batch = record_batch(&mut rng, &types, 500 + turn % 3 * 700);
            let ids: Vec<u32> = (0..batch.num_rows()).map(|_| rng.below(5) as u32).collect();
            let parts = partitioner.split_by_ids(&batch, &ids).unwrap();
            let expected = Partitioner::ids(5).split_by_ids(&batch, &ids).unwrap();
            // A slice keeps the memory that all slices share.
            held.push_back((parts.partition(turn % 5), expected.partition(turn % 5)));
            if held.len() > turn % 12 {
                held.pop_front();
            }
            assert!(held.iter().all(|(found, expected)| found == expected), "{bytes} {turn}");
        }
        let elsewhere = std::thread::spawn(move || held.iter().all(|(a, b)| a == b));
        drop(partitioner);
        assert!(elsewhere.join().unwrap());
    }
}

#[test]
fn a_column_that_is_there_twice_is_permuted_once() {
    let mut rng = Rng::new(9);
    let types = [
        DataType::Int64,
        DataType::Boolean,
        DataType::Utf8,
        DataType::new_list(DataType::Int32, true),
    ];
    let once = record_batch(&mut rng, &types, 700);
    let ids = ids(&mut rng, 700, 6);
    let twice: Vec<ArrayRef> =
        [1, 0, 2, 1, 3, 0, 2, 3, 1].iter().map(|&at| Arc::clone(once.column(at))).collect();
    let names = (0..twice.len()).map(|at| format!("c{at}"));
    let twice = RecordBatch::try_from_iter(names.zip(twice)).unwrap();
    let expected = Partitioner::ids(6).split_by_ids(&once, &ids).unwrap();
    let parts = Partitioner::ids(6).split_by_ids(&twice, &ids).unwrap();
    for (at, first) in [1, 0, 2, 1, 3, 0, 2, 3, 1].into_iter().enumerate() {
        assert_eq!(parts.batch().column(at), expected.batch().column(first));
    }
    for (at, earlier) in [(3, 0), (5, 1), (6, 2), (7, 4), (8, 0)] {
        assert!(Arc::ptr_eq(parts.batch().column(at), parts.batch().column(earlier)), "{at}");
    }
}

#[test]
fn ids_out_of_range_are_errors() {
    let mut rng = Rng::new(4);
    for rows in [1, 7, 600, 6000, 70_000] {
        let batch = record_batch(&mut rng, &[DataType::Int32], rows);
        for (partitions, spread) in
            [1, 2, 3, 4, 16, 17, 500, 5000].into_iter().flat_map(|p| [(p, 1), (p, p)])
        {
            let mut ids: Vec<u32> = (0..rows).map(|_| rng.below(spread) as u32).collect();
            let row = rng.below(rows);
            let mut partitioner = Partitioner::ids(partitions);
            for outside in [partitions as u32, 1 << 8 | 1 << 13, u32::MAX] {
                ids[row] = outside;
                let found = partitioner.split_by_ids(&batch, &ids);
                let Err(Error::PartitionOutOfRange { row: at, id, partitions: of }) = found else {
                    panic!("{found:?}")
                };
                assert_eq!((at, id, of), (row, outside, partitions));
            }
            ids[row] = 0;
            assert!(partitioner.split_by_ids(&batch, &ids).is_ok());
            let all: Vec<u32> = ids.iter().map(|id| id + 256 * (1 + rng.below(3) as u32)).collect();
            let found = partitioner.split_by_ids(&batch, &all);
            let is_refused = matches!(found, Err(Error::PartitionOutOfRange { row: 0, .. }));
            assert!(is_refused || partitions > 256);
        }
        let short = vec![0; rows - 1];
        let found = Partitioner::ids(2).split_by_ids(&batch, &short);
        assert!(matches!(found, Err(Error::InvalidOrder(_))));
        for none in [0, (1 << 24) + 1] {
            let found = Partitioner::ids(none).split_by_ids(&batch, &vec![0; rows]);
            assert!(matches!(found, Err(Error::InvalidOrder(_))));
        }
        assert!(matches!(Partitioner::ids(2).split(&batch), Err(Error::InvalidOrder(_))));
    }
}

/// Runs repeat a value without its bytes; separated rows of a run do not.
#[test]
fn offsets_that_outgrow_their_type_are_errors() {
    use arrow_array::{Int32Array, ListArray, NullArray, RunArray};
    use arrow_buffer::OffsetBuffer;
    let long = 1 << 20;
    let item = Arc::new(Field::new("item", DataType::Null, true));
    let values = Arc::new(NullArray::new(2 * long));
    let lists = ListArray::new(item, OffsetBuffer::from_lengths([long, long]), values, None);
    let texts = arrow_array::StringArray::from_iter_values(["a".repeat(long), "b".repeat(long)]);
    let values: [ArrayRef; 2] = [Arc::new(lists), Arc::new(texts)];
    for values in values {
        let runs = RunArray::try_new(&Int32Array::from(vec![3000, 6000]), values.as_ref()).unwrap();
        let batch = RecordBatch::try_from_iter([("r", Arc::new(runs) as ArrayRef)]).unwrap();
        let ids: Vec<u32> = (0..6000).map(|row| u32::from(row % 3000 >= 1500)).collect();
        // Neighbours of one run form a run again, so these runs stay as they are.
        let parts = Partitioner::ids(2).split_by_ids(&batch, &ids).unwrap();
        assert_eq!((parts.rows(0).len(), parts.rows(1).len()), (3000, 3000));
        let ids: Vec<u32> = (0..6000).map(|row| row % 3000).collect();
        let found = Partitioner::ids(3000).split_by_ids(&batch, &ids);
        assert!(matches!(found, Err(Error::Value { .. } | Error::Arrow(_))), "{found:?}");
    }
}
