//! Write buffers: several buffers, and sorted input without a sort.

use proptest::prelude::*;

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn of_many_buffers_is_the_model(
        mut changes in prop::collection::vec((0..300u64, 0..4u64, 0..3u64, -2..3i64), 1..900),
        sorted in 0usize..900,
        piece in 1usize..200,
        (chunk, buffers) in (200usize..1500, 1usize..6),
    ) {
        // Some buffers are in order, and some are not.
        let rest = changes.split_off(sorted.min(changes.len()));
        changes.sort_unstable();
        changes.dedup_by_key(|change| (change.0, change.1, change.2));
        changes.extend(rest);
        for keys in ALL_KEYS {
            let pool = staging(chunk, buffers * chunk);
            let mut batcher: Batcher = Batcher::new(&keys.layout(), &pool);
            for piece in changes.chunks(piece) {
                batcher.push(&keys.record_batch(piece)).unwrap();
            }
            prop_assert_eq!(keys.read(batcher.finish().unwrap()).unwrap(), keys.model(&changes));
        }
    }
}

#[test]
fn what_comes_in_order_is_one_run() {
    let changes: Vec<Change> = (0..5000).map(|key| (key, 1, 2, 1)).collect();
    for keys in ALL_KEYS {
        let pool = staging(3200, 3 * 3200);
        let mut batcher: Batcher = Batcher::new(&keys.layout(), &pool);
        for piece in changes.chunks(70) {
            batcher.push(&keys.record_batch(piece)).unwrap();
        }
        let batch = batcher.finish().unwrap();
        assert_eq!(batch.runs(), 1);
        let (chunks, bytes) = (batch.chunks().unwrap(), batch.bytes().unwrap() as usize);
        assert!(chunks <= 3 * bytes / 3200 + 2, "{chunks} chunks of {bytes} bytes");
        assert_eq!(keys.read(batch).unwrap(), keys.model(&changes));
    }
}

#[test]
fn the_order_may_end_with_any_push() {
    const PUSHES: usize = 200;
    for keys in ALL_KEYS {
        // The order of rows is checked for some pushes at a time.
        for (last, change) in [1, 2, 29, 30, PUSHES - 1].into_iter().flat_map(|last| {
            [(0, 1, 2, 1), (last as u64 * 7 - 1, 1, 2, 5), (9999, 1, 2, 0)].map(|c| (last, c))
        }) {
            let pool = tiny(32 << 10);
            let mut changes: Vec<Change> =
                (0..PUSHES as u64 * 7).map(|key| (key, 1, 2, 1)).collect();
            let mut batcher: Batcher = Batcher::new(&keys.layout(), &pool);
            changes[last * 7] = change;
            for piece in changes.chunks(7) {
                batcher.push(&keys.record_batch(piece)).unwrap();
            }
            assert_eq!(keys.read(batcher.finish().unwrap()).unwrap(), keys.model(&changes));
        }
    }
}

#[test]
fn a_null_refuses_a_record_batch_as_a_whole() {
    let keys = Keys::Numbers;
    // Capacity for a few rows: the record batch does not fit after the first one.
    let pool = Pool::unlimited();
    let tight = staging(320, 320);
    for pool in [pool, tight] {
        let mut batcher: Batcher = Batcher::new(&keys.layout(), &pool);
        let few: Vec<Change> = (0..7).map(|key| (key, 1, 2, 1)).collect();
        batcher.push(&keys.record_batch(&few)).unwrap();
        let whole = keys.record_batch(&few);
        let null: ArrayRef =
            Arc::new(UInt64Array::from_iter((0..7).map(|at| (at != 6).then_some(at))));
        let columns: Vec<ArrayRef> =
            std::iter::once(null).chain(whole.columns()[1..].to_vec()).collect();
        let names = ["key", "value", "time", "diff"].into_iter().zip(columns);
        let damaged = RecordBatch::try_from_iter(names).unwrap();
        assert!(batcher.push(&damaged).is_err());
        batcher.push(&whole).unwrap();
        let twice = [few.clone(), few].concat();
        assert_eq!(keys.read(batcher.finish().unwrap()).unwrap(), keys.model(&twice));
    }
}
