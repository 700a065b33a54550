//! Small record batches, which wait to be encoded together.

use super::*;
use windrow_pool::{Budget, PoolOptions};
use windrow_rows::{Antichain, Error};

fn numbers(keys: &[Option<u64>], from: u64) -> RecordBatch {
    let places = (from..from + keys.len() as u64).collect::<Vec<_>>();
    RecordBatch::try_from_iter_with_nullable([
        ("key", Arc::new(UInt64Array::from(keys.to_vec())) as ArrayRef, true),
        ("place", Arc::new(UInt64Array::from(places)) as ArrayRef, false),
    ])
    .unwrap()
}

#[test]
fn keep_their_place_among_large_ones() {
    let layout = Order::by("key").bind(&numbers(&[], 0).schema()).unwrap();
    // Shorter and longer than the limit for waiting, without and with nulls.
    let sizes = [1usize, 16, 512, 513, 0, 3, 5000, 100, 100, 4095, 1, 512, 512, 512];
    for chunk in [4096, 1 << 20] {
        let mut batcher = Batcher::new(&layout, &tiny(chunk));
        let mut expected = Vec::new();
        for (round, size) in sizes.iter().cycle().take(50).enumerate() {
            let from = expected.len() as u64;
            let key = |place: u64| {
                let key = place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
                (round % 4 > 0 || key > 5).then_some(key)
            };
            let keys: Vec<_> = (from..from + *size as u64).map(key).collect();
            // Slices keep the whole batch alive.
            let whole = numbers(&[&keys[..], &[Some(9); 3]].concat(), from);
            batcher.push(&whole.slice(0, keys.len())).unwrap();
            expected.extend(keys.into_iter().zip(from..));
        }
        // Nulls sort last.
        expected.sort_by_key(|&(key, place)| (key.is_none(), key, place));
        let mut got = Vec::new();
        for batch in batcher.finish().unwrap().record_batches(1000).unwrap() {
            let batch = batch.unwrap();
            let places = batch.column(1).as_primitive::<UInt64Type>().values();
            let keys = batch.column(0).as_primitive::<UInt64Type>().iter();
            got.extend(keys.zip(places.iter().copied()));
        }
        assert!(got == expected, "out of place");
    }
}

#[test]
fn are_refused_when_they_are_pushed() {
    let keys = Keys::Texts;
    let mut batcher = Batcher::new(&keys.layout(), &tiny(1000));
    let first = [(1, 2, 3, 1), (4, 5, 6, 1)];
    batcher.push(&keys.record_batch(&first)).unwrap();
    let other = Keys::Numbers.record_batch(&[(1, 2, 3, 1)]);
    assert!(matches!(batcher.push(&other), Err(Error::SchemaMismatch { .. })));
    let batch = keys.record_batch(&first);
    let mut columns = batch.columns().to_vec();
    columns[2] = Arc::new(UInt64Array::from(vec![None, Some(1)]));
    let named = ["key", "value", "time", "diff"].into_iter().zip(columns);
    let null = RecordBatch::try_from_iter(named).unwrap();
    assert!(matches!(batcher.push(&null), Err(Error::Value { .. })));
    let second = [(1, 2, 3, 2)];
    batcher.push(&keys.record_batch(&second)).unwrap();
    let model = keys.model(&[&first[..], &second[..]].concat());
    assert_eq!(keys.read(batcher.finish().unwrap()).unwrap(), model);
}

#[test]
fn are_one_run_while_they_go_on_in_order() {
    let each = 40;
    // Two rows per key, distinguished by value, and three per value, distinguished by time.
    let change = |at: u64| (at / 6, at / 3 % 2, at % 3, 1 + at as i64 % 5);
    let sorted: Vec<_> = (0..7 * each).map(change).collect();
    for keys in ALL_KEYS {
        for (at, other) in [
            (0, None),
            // A diff of zero: the very first, the first of a push, and within one.
            (0, Some((0, 0, 0, 0))),
            (2 * each, Some((2 * each / 6, 0, 2, 0))),
            (2 * each + 9, Some((0, 0, 0, 0))),
            // Out of order by key, value and time, at the seam of pushes and within one.
            (3 * each, Some((0, 0, 0, 3))),
            (3 * each + 20, Some((3 * each / 6, 0, 0, 3))),
            (5 * each, Some(change(5 * each - 1))),
            (5 * each + 17, Some(change(5 * each + 16))),
            (7 * each - 1, Some(change(7 * each - 3))),
        ] {
            let mut changes = sorted.clone();
            if let Some(other) = other {
                changes[at as usize] = other;
            }
            let mut batcher = Batcher::new(&keys.layout(), &Pool::unlimited());
            for piece in changes.chunks(each as usize) {
                batcher.push(&keys.record_batch(piece)).unwrap();
            }
            assert_eq!(keys.read(batcher.finish().unwrap()).unwrap(), keys.model(&changes));
        }
    }
}

#[test]
fn many_batches_of_a_few_rows_take_little_memory() {
    for (keys, budget) in
        [(Keys::Numbers, Budget::unlimited()), (Keys::Texts, Budget::bytes(1 << 30))]
    {
        let pool = Pool::new(budget, PoolOptions::default()).unwrap();
        let mut batcher = Batcher::new(&keys.layout(), &pool);
        let mut batches = Vec::new();
        for time in 0..1000 {
            let changes: Vec<Change> = (0..5).map(|key| (key, key, time, 1)).collect();
            batcher.push(&keys.record_batch(&changes)).unwrap();
            batches.push(batcher.seal(&Antichain::at(time + 1)).unwrap());
        }
        drop(batcher);
        pool.release();
        assert!(pool.budget().used() <= 1 << 20, "{}", pool.budget().used());
        assert_eq!(pool.stats().spills, 0);
        for (time, batch) in batches.into_iter().enumerate() {
            assert_eq!(keys.read(batch).unwrap().len(), 5, "{time}");
        }
    }
}
