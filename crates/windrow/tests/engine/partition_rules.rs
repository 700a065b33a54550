//! Rules of partitions: ranges against a slow search, samples, turns, and refused inputs.

use std::sync::Arc;

use crate::common::arrays::{Rng, array_of, data_type};
use crate::common::model::{By, Row, assert_same, compare, rows};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Schema};
use arrow_select::concat::concat_batches;
use windrow::{Error, Order, PartitionBuilder, Partitioner, Pool, Result, SortColumn, asc};

fn numbers(values: Vec<Option<i64>>) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int64Array::from(values));
    RecordBatch::try_from_iter_with_nullable([("n", numbers, true)]).unwrap()
}

/// Returns a random type allowed as a key.
fn key_type(rng: &mut Rng) -> DataType {
    loop {
        let depth = rng.below(3);
        let found = data_type(rng, depth);
        // Arrow loses the rows of values without bytes.
        if !found.to_string().contains("FixedSizeBinary(0)") {
            let codes = DataType::Dictionary(Box::new(DataType::Int32), Box::new(found.clone()));
            return if rng.below(4) == 0 { codes } else { found };
        }
    }
}

#[test]
fn ranges_are_what_a_search_finds() {
    let mut rng = Rng::new(1);
    for round in 0..300 {
        let columns: Vec<(String, ArrayRef)> = (0..1 + rng.below(3))
            .map(|index| {
                let key = key_type(&mut rng);
                (format!("c{index}"), array_of(&mut rng, &key, true, 200))
            })
            .collect();
        let by: Vec<By> = (0..columns.len())
            .map(|column| By { column, descending: rng.flip(), nulls_first: rng.flip() })
            .collect();
        let order: Vec<SortColumn> = by
            .iter()
            .map(|by| SortColumn {
                descending: by.descending,
                nulls_first: by.nulls_first,
                ..asc(format!("c{}", by.column))
            })
            .collect();
        let columns = columns.into_iter().map(|(name, array)| (name, array, true));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let layout = Order::by(order).bind(&batch.schema()).unwrap();
        let all = rows([&batch]);
        let mut sorted: Vec<u64> = (0..100).map(|_| rng.below(200) as u64).collect();
        sorted.sort_by(|&a, &b| compare(&by, &all[a as usize], &all[b as usize]));
        sorted.truncate([0, 1, 5, 24, 60][rng.below(5)]);
        let splitters: Vec<_> = sorted.iter().map(|&row| batch.slice(row as usize, 1)).collect();
        let splitters = concat_batches(&batch.schema(), &splitters).unwrap();
        let mut partitioner = Partitioner::range(&layout, &splitters).unwrap();
        assert_eq!(partitioner.partitions(), sorted.len() + 1);
        let mut ids = Vec::new();
        partitioner.assign(&batch, &mut ids).unwrap();
        let splitters: Vec<&Row> = sorted.iter().map(|&row| &all[row as usize]).collect();
        for (row, id) in all.iter().zip(ids) {
            let expected = splitters.iter().filter(|s| compare(&by, s, row).is_le()).count();
            assert_eq!(id as usize, expected, "round {round}, {by:?}, {row:?}");
        }
    }
}

#[test]
fn samples_cut_evenly_and_can_be_had_elsewhere() {
    let mut rng = Rng::new(2);
    let values = (0..20_000).map(|_| (rng.below(50) > 0).then(|| rng.next() as i64)).collect();
    let batch = numbers(values);
    let layout = Order::by("n").bind(&batch.schema()).unwrap();
    let mut sampled = Partitioner::range_of_sample(&layout, &batch.slice(0, 4000), 16).unwrap();
    let parts = sampled.split(&batch).unwrap();
    assert_eq!(parts.partitions(), 16);
    assert!(parts.iter().all(|part| (900..1700).contains(&part.num_rows())));
    let mut same = Partitioner::range(&layout, sampled.splitters().unwrap()).unwrap();
    assert_eq!(same.split(&batch).unwrap().batch(), parts.batch());
    // Without rows to sample, all rows go to the first partition, and all later partitions are
    // empty.
    let mut empty = Partitioner::range_of_sample(&layout, &batch.slice(0, 0), 3).unwrap();
    let parts = empty.split(&batch).unwrap();
    assert_eq!(parts.offsets(), [0, 20_000, 20_000, 20_000]);
    assert_eq!(parts.batch().column(0).to_data(), batch.column(0).to_data());
}

#[test]
fn splitters_that_make_no_sense_are_errors() {
    let batch = numbers(vec![Some(1), Some(2), None]);
    let layout = Order::by("n").bind(&batch.schema()).unwrap();
    let falling = numbers(vec![Some(1), Some(5), Some(4)]);
    let found = Partitioner::range(&layout, &falling);
    assert!(matches!(found, Err(Error::OutOfOrder { row: 2, .. })));
    let other: ArrayRef = Arc::new(StringArray::from(vec!["1"]));
    let other = RecordBatch::try_from_iter([("n", other)]).unwrap();
    assert!(matches!(Partitioner::range(&layout, &other), Err(Error::SchemaMismatch { .. })));
    let none = RecordBatch::new_empty(Arc::new(Schema::empty()));
    assert!(matches!(Partitioner::range(&layout, &none), Err(Error::MissingColumn { .. })));
    let wrong = Partitioner::range(&layout, &batch).unwrap().split(&other);
    assert!(matches!(wrong, Err(Error::SchemaMismatch { .. })));
}

#[test]
fn samples_are_not_cut_into_more_partitions_than_there_can_be() {
    let batch = numbers(vec![Some(1), Some(2)]);
    let layout = Order::by("n").bind(&batch.schema()).unwrap();
    for partitions in [0, (1 << 24) + 1, usize::MAX] {
        for sample in [batch.slice(0, 0), batch.clone()] {
            let made = Partitioner::range_of_sample(&layout, &sample, partitions);
            assert!(matches!(made, Err(Error::InvalidOrder(_))), "{partitions}");
        }
    }
}

#[test]
fn nulls_and_the_first_row_go_to_every_partition() {
    let mut rng = Rng::new(5);
    for _ in 0..100 {
        let partitions = 1 + rng.below(9);
        let key = key_type(&mut rng);
        let column = |rng: &mut Rng, data_type: &DataType| {
            let columns = ["a", "b"].map(|name| (name, array_of(rng, data_type, true, 50), true));
            RecordBatch::try_from_iter_with_nullable(columns).unwrap()
        };
        let batches = [(); 3].map(|()| column(&mut rng, &key));
        let layout = Order::by(["a"]).bind(&batches[0].schema()).unwrap();
        let mut plain = Partitioner::hash(&layout, partitions);
        let mut partitioner = plain.clone().replicate_nulls_and_any();
        let pool = Pool::unlimited();
        let schema = batches[0].schema();
        let builder = PartitionBuilder::new(partitioner.clone(), &schema, &pool);
        let mut builder = builder.unwrap();
        let mut expected = vec![Vec::new(); partitions];
        let mut split = expected.clone();
        for (index, batch) in batches.iter().enumerate() {
            let mut ids = Vec::new();
            plain.assign(batch, &mut ids).unwrap();
            let nulls = batch.column(0).logical_nulls();
            for (row, values) in rows([batch]).into_iter().enumerate() {
                let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
                for (partition, expected) in expected.iter_mut().enumerate() {
                    if is_null || index + row == 0 || ids[row] as usize == partition {
                        expected.push(values.clone());
                    }
                }
            }
            for (partition, slice) in partitioner.split(batch).unwrap().occupied() {
                split[partition].extend(rows([&slice]));
            }
            builder.push(batch).unwrap();
        }
        for (partition, expected) in expected.iter().enumerate() {
            assert_same(&split[partition], expected, &(partition, &key));
            let chunks: Result<Vec<_>> = builder.flush(partition).unwrap().collect();
            assert_same(&rows(&chunks.unwrap()), expected, &(partition, &key));
        }
    }
}

#[test]
fn turns_go_on_from_one_record_batch_to_the_next() {
    let batch = numbers((0..10).map(Some).collect());
    let mut partitioner = Partitioner::round_robin(4);
    let sizes = |partitioner: &mut Partitioner| {
        partitioner.split(&batch).unwrap().iter().map(|p| p.num_rows()).collect::<Vec<_>>()
    };
    assert_eq!(sizes(&mut partitioner), [3, 3, 2, 2]);
    assert_eq!(sizes(&mut partitioner), [2, 2, 3, 3]);
    let mut fresh = Partitioner::round_robin(3);
    let parts = fresh.split(&batch).unwrap();
    assert_eq!(parts.partition(1), numbers(vec![Some(1), Some(4), Some(7)]));
}

/// Rows already in the order of their partitions are not moved, whatever the source of the ids.
#[test]
fn rows_in_order_stay_where_they_are() {
    let batch = numbers((0..5000).map(Some).collect());
    let place = |batch: &RecordBatch| batch.column(0).to_data().buffers()[0].as_ptr();
    let constant = Partitioner::ids(9).split_by_ids(&batch, &[7; 5000]).unwrap();
    assert_eq!(place(constant.batch()), place(&batch));
    assert_eq!(constant.partition(7), batch);
    let layout = Order::by("n").bind(&batch.schema()).unwrap();
    let ranges = Partitioner::range(&layout, &numbers(vec![Some(10), Some(4000)])).unwrap();
    let parts = { ranges }.split(&batch).unwrap();
    assert_eq!(place(parts.batch()), place(&batch));
    assert_eq!(parts.offsets(), [0, 10, 4000, 5000]);
}

#[test]
fn views_that_pin_much_more_than_they_use_are_compacted() {
    let long: Vec<String> = (0..1000).map(|row| format!("{row} {}", "x".repeat(100))).collect();
    let all: ArrayRef = Arc::new(arrow_array::StringViewArray::from_iter_values(&long));
    let batch = RecordBatch::try_from_iter([("v", all)]).unwrap();
    let few = batch.slice(0, 100);
    let ids: Vec<u32> = (0..1000).map(|row| row % 3).rev().collect();
    let pinned = |parts: &windrow::Partitioned| parts.batch().column(0).get_buffer_memory_size();
    let shared = Partitioner::ids(3).split_by_ids(&batch, &ids).unwrap();
    let copied = Partitioner::ids(3).split_by_ids(&few, &ids[..100]).unwrap();
    assert!(pinned(&shared) > 100_000 && pinned(&copied) < 20_000);
    assert_eq!(copied.partition(ids[0] as usize).column(0).len(), 34);
    let left = Partitioner::ids(3).pinning().split_by_ids(&few, &ids[..100]).unwrap();
    assert!(pinned(&left) > 100_000);
    assert_eq!(left.batch(), copied.batch());
}
