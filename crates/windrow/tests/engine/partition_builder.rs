//! Chunks of partitions against a slow model, for any types, budgets, codecs and order of flushes;
//! and leases while thousands of partitions share little memory with one hot key.

use std::sync::Arc;

use crate::common::arrays::{Rng, array_of, data_type};
use crate::common::engine::{Way, cases};
use crate::common::model::{Row, assert_same, rows};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, UInt64Type};
use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, StringArray, UInt64Array};
use arrow_schema::DataType;
use proptest::prelude::*;
use windrow::{Budget, Codec, Error, Order, PartitionBuilder, Partitioner, Pool, Result};

fn record_batch(rng: &mut Rng, types: &[DataType], rows: usize) -> RecordBatch {
    let columns = types.iter().enumerate().map(|(index, data_type)| {
        let (front, back) = (rng.below(20), rng.below(4));
        let array = array_of(rng, data_type, true, front + rows + back).slice(front, rows);
        (format!("c{index}"), array, true)
    });
    RecordBatch::try_from_iter_with_nullable(columns.collect::<Vec<_>>()).unwrap()
}

fn flushed(builder: &mut PartitionBuilder, partition: usize) -> Vec<RecordBatch> {
    builder.flush(partition).unwrap().collect::<Result<_>>().unwrap()
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn rows_come_out_in_the_order_they_came_in(
        seed: u64,
        columns in 1usize..4,
        partitions in prop_oneof![1usize..10, 10usize..300],
        chunk in prop_oneof![1usize..3000, Just(1 << 20)],
    ) {
        let mut rng = Rng::new(seed);
        let types: Vec<DataType> = (0..columns).map(|_| data_type(&mut rng, 3)).collect();
        let pool = Way { budget: [1, 200_000, usize::MAX][rng.below(3)], ..Way::any(&mut rng) }.pool();
        let schema = record_batch(&mut rng, &types, 0).schema();
        let builder = PartitionBuilder::new(Partitioner::ids(partitions), &schema, &pool);
        let mut builder = builder.unwrap().chunk_bytes(chunk);
        let mut expected: Vec<Vec<Row>> = vec![Vec::new(); partitions];
        for _ in 0..2 {
            for _ in 0..1 + rng.below(6) {
                let count = rng.below(200);
                let batch = record_batch(&mut rng, &types, count);
                let hot = rng.below(partitions);
                let ids: Vec<u32> = (0..count)
                    .map(|_| if rng.flip() { hot } else { rng.below(partitions) } as u32)
                    .collect();
                builder.push_by_ids(&batch, &ids).unwrap();
                for (row, id) in rows([&batch]).into_iter().zip(ids) {
                    expected[id as usize].push(row);
                }
            }
            // Flushes some partitions, in any order, and some twice; the builder goes on.
            for _ in 0..partitions {
                let partition = rng.below(partitions);
                let chunks = flushed(&mut builder, partition);
                let what = (partition, &types);
                assert_same(&rows(&chunks), &std::mem::take(&mut expected[partition]), &what);
                for chunk in chunks {
                    prop_assert!(chunk.num_rows() > 0);
                    prop_assert_eq!(chunk.schema(), schema.clone());
                    chunk.columns().iter().for_each(|c| c.to_data().validate_full().unwrap());
                }
            }
        }
        for (partition, expected) in expected.into_iter().enumerate() {
            builder.settle().unwrap();
            prop_assert_eq!(builder.rows(partition), expected.len());
            assert_same(&rows(&flushed(&mut builder, partition)), &expected, &partition);
        }
        drop(builder);
        prop_assert_eq!(pool.budget().used(), 0);
    }
}

/// Returns rows of a number and a text derived from it.
fn numbered(first: u64, rows: u64) -> RecordBatch {
    let numbers = UInt64Array::from_iter_values(first..first + rows);
    let texts = StringArray::from_iter_values((first..first + rows).map(|n| format!("row {n}")));
    RecordBatch::try_from_iter([
        ("n", Arc::new(numbers) as ArrayRef),
        ("text", Arc::new(texts) as ArrayRef),
    ])
    .unwrap()
}

#[test]
fn a_hot_key_among_thousands_of_partitions_stays_within_the_budget() {
    for (limit, codec) in [(4 << 20, Codec::None), (8 << 20, Codec::Lz4), (64 << 20, Codec::None)] {
        let mut rng = Rng::new(7);
        let way = Way { budget: limit, codec, ..Way::PLAIN };
        let pool = way.pool();
        let partitions = 2048;
        let schema = numbered(0, 0).schema();
        let mut builder =
            PartitionBuilder::new(Partitioner::ids(partitions), &schema, &pool).unwrap();
        let (mut expected, mut next) = (vec![Vec::new(); partitions], 0);
        for _ in 0..150 {
            let batch = numbered(next, 8192);
            let id = |rng: &mut Rng| if rng.below(10) > 0 { 77 } else { rng.below(partitions) };
            let ids: Vec<u32> = (0..8192).map(|_| id(&mut rng) as u32).collect();
            builder.push_by_ids(&batch, &ids).unwrap();
            for (&id, number) in ids.iter().zip(next..) {
                expected[id as usize].push(number);
            }
            next += 8192;
        }
        for partition in (0..partitions).rev() {
            let mut found = Vec::new();
            for chunk in builder.flush(partition).unwrap() {
                let chunk = chunk.unwrap();
                found.extend_from_slice(chunk.column(0).as_primitive::<UInt64Type>().values());
                let (number, text) = (found[found.len() - 1], chunk.column(1).as_string::<i32>());
                assert_eq!(text.value(chunk.num_rows() - 1), format!("row {number}"));
            }
            assert_eq!(found, expected[partition]);
        }
        let stats = pool.stats();
        assert!(stats.peak_leased <= limit + (1 << 20), "{limit}: {stats:?}");
        assert_eq!(limit < 64 << 20, stats.spilled_bytes > 0, "{stats:?}");
    }
}

#[test]
fn a_builder_takes_only_what_it_was_made_for() {
    let pool = Pool::new(Budget::unlimited(), Default::default()).unwrap();
    let batch = numbered(0, 100);
    let schema = batch.schema();
    for none in [0, (1 << 24) + 1] {
        let found = PartitionBuilder::new(Partitioner::ids(none), &schema, &pool);
        assert!(matches!(found, Err(Error::InvalidOrder(_))));
    }
    let mut builder = PartitionBuilder::new(Partitioner::ids(3), &schema, &pool).unwrap();
    let other = batch.project(&[0]).unwrap();
    let found = builder.push_by_ids(&other, &[0; 100]);
    assert!(matches!(found, Err(Error::SchemaMismatch { .. })));
    assert!(matches!(builder.push_by_ids(&batch, &[0; 99]), Err(Error::InvalidOrder(_))));
    let mut ids = [1; 100];
    ids[40] = 3;
    let found = builder.push_by_ids(&batch, &ids);
    assert!(matches!(found, Err(Error::PartitionOutOfRange { row: 40, id: 3, partitions: 3 })));
    assert!(matches!(builder.push(&batch), Err(Error::InvalidOrder(_))));
    // The refused pushes left no rows.
    assert!((0..3).all(|partition| flushed(&mut builder, partition).is_empty()));

    let layout = Order::by(["n"]).bind(&schema).unwrap();
    let mut partitioner = Partitioner::hash(&layout, 3);
    let mut builder = PartitionBuilder::new(partitioner.clone(), &schema, &pool).unwrap();
    builder.push(&batch).unwrap();
    let parts = partitioner.split(&batch).unwrap();
    for partition in 0..3 {
        let found = flushed(&mut builder, partition);
        assert_same(&rows(&found), &rows([&parts.partition(partition)]), &partition);
    }
}

#[test]
fn dictionaries_that_are_too_large_together_come_out_as_several_chunks() {
    let dictionary = |first: usize| -> ArrayRef {
        let texts: Vec<String> = (first..first + 90).map(|n| format!("text {n}")).collect();
        Arc::new(
            texts.iter().map(|text| Some(text.as_str())).collect::<DictionaryArray<Int8Type>>(),
        )
    };
    let batch = |first: usize| RecordBatch::try_from_iter([("a", dictionary(first))]).unwrap();
    for budget in [1, usize::MAX] {
        let pool = Way { budget, ..Way::any(&mut Rng::new(7)) }.pool();
        let partitioner = Partitioner::ids(3);
        let mut builder = PartitionBuilder::new(partitioner, &batch(0).schema(), &pool).unwrap();
        let mut expected: Vec<Vec<Row>> = vec![Vec::new(); 3];
        // A batch's dictionary fits into one with the next batch's, not with all.
        for first in (0..900).step_by(45) {
            let ids: Vec<u32> = (0..90).map(|row| if row % 5 == 0 { 1 } else { 2 }).collect();
            builder.push_by_ids(&batch(first), &ids).unwrap();
            for (row, id) in rows([&batch(first)]).into_iter().zip(ids) {
                expected[id as usize].push(row);
            }
        }
        for (partition, expected) in expected.into_iter().enumerate() {
            let chunks = flushed(&mut builder, partition);
            assert_same(&rows(&chunks), &expected, &partition);
            assert!(partition < 2 || chunks.len() > 1);
        }
    }
}
