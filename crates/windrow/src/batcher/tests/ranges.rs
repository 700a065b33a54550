//! Merges on several threads: the same rows as on one.

use proptest::prelude::*;

use super::*;

/// All rows of a batch, in record batches of 100.
fn record_batches(batch: Batch) -> Vec<RecordBatch> {
    batch.record_batches(100).unwrap().collect::<std::result::Result<_, _>>().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn sums_meet_in_one_range(
        inputs in prop::collection::vec(
            prop::collection::vec((0..60u64, 0..3u64, 0..3u64, -2..3i64), 0..400), 0..6),
        chunk in 1usize..2000,
        threads in 2usize..6,
    ) {
        for keys in ALL_KEYS {
            let pool = Pool::tiny(chunk);
            let batches = inputs.iter().map(|input| batch_of(keys, &pool, input));
            let settled = Batch::union(&keys.layout(), &pool, batches).settle_on(threads).unwrap();
            let expected = keys.model(&inputs.concat());
            prop_assert_eq!(settled.rows(), Some(expected.len() as u64));
            prop_assert_eq!(keys.read(settled).unwrap(), expected);
        }
    }

    #[test]
    fn keys_meet_in_one_range(
        inputs in prop::collection::vec(
            prop::collection::vec((0..20u64, 0..50u64), 0..400), 2..5),
        chunk in 1usize..2000,
        threads in 2usize..6,
    ) {
        let record_batch = |rows: &[(u64, u64)]| {
            let keys = rows.iter().map(|row| "k".repeat(row.0 as usize));
            let values = rows.iter().map(|row| row.1).collect::<Vec<_>>();
            RecordBatch::try_from_iter_with_nullable([
                ("key", Arc::new(StringArray::from_iter_values(keys)) as ArrayRef, false),
                ("value", Arc::new(UInt64Array::from(values)) as ArrayRef, false),
            ])
            .unwrap()
        };
        for order in [Order::by("key"), Order::by("key").first(), Order::by("key").last()] {
            let layout = order.bind(&record_batch(&[]).schema()).unwrap();
            let pool = Pool::tiny(chunk);
            let union = || {
                let batch = |rows: &Vec<(u64, u64)>| {
                    let mut batcher = Batcher::new(&layout, &pool);
                    rows.chunks(50).for_each(|rows| batcher.push(&record_batch(rows)).unwrap());
                    batcher.finish().unwrap().settle().unwrap()
                };
                Batch::union(&layout, &pool, inputs.iter().map(batch))
            };
            let settled = union().settle_on(threads).unwrap();
            prop_assert_eq!(record_batches(settled), record_batches(union().settle().unwrap()));
        }
    }
}
