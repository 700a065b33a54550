//! Merges on several threads: the same rows as on one thread.

use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;

use super::cursors::spilling;
use super::*;
use crate::batch::{Decoder, Slabs};
use crate::chunk::Finish;
use windrow_pool::{Budget, PoolOptions};
use windrow_rows::Error;

/// Returns all rows of a batch, in record batches of 100.
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
            let pool = tiny(chunk);
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
            let pool = tiny(chunk);
            let union = || {
                let batch = |rows: &Vec<(u64, u64)>| {
                    batch_in(&layout, &pool, rows.chunks(50).map(record_batch))
                };
                Batch::union(&layout, &pool, inputs.iter().map(batch))
            };
            let settled = union().settle_on(threads).unwrap();
            prop_assert_eq!(record_batches(settled), record_batches(union().settle().unwrap()));
        }
    }

    #[test]
    fn rows_that_helpers_merge_are_those_that_one_thread_does(
        inputs in prop::collection::vec(
            prop::collection::vec((0..60u64, 0..3u64, 0..3u64, -2..4i64), 0..300), 0..7),
        chunk in 60usize..2000,
        helpers in 0usize..3,
        most in 0usize..20_000,
        memory in prop::sample::select(&[Memory::Any, Memory::Enough, Memory::None][..]),
        small in any::<bool>(),
        finish in prop::sample::select(&[Finish::Log, Finish::Snapshot, Finish::Counts][..]),
    ) {
        for keys in ALL_KEYS {
            let pool = match memory {
                Memory::Any => tiny(chunk),
                // Pages are evictable, but stay.
                Memory::Enough => {
                    let options = PoolOptions::new().chunk_bytes(chunk);
                    Pool::new(Budget::bytes(16 << 20), options).unwrap()
                }
                Memory::None => spilling(chunk),
            };
            let schema = keys.record_batch(&[]).schema();
            let by = |columns: &[&str]| Order::by(columns);
            let sums = by(&["key", "value"]).time("time").diff("diff");
            let one = by(&["key"]);
            for order in [sums, by(&["key"]), one.clone().first(), one.clone().last(), one.last_known()] {
                let layout = order.bind(&schema).unwrap();
                let union = || {
                    let batch = |rows: &Vec<Change>| {
                        let pieces = rows.chunks(50).map(|rows| keys.record_batch(rows));
                        batch_in(&layout, &pool, pieces)
                    };
                    Batch::union(&layout, &pool, inputs.iter().map(batch))
                };
                let (alone, helped) = (union().slabs(finish), union().slabs(finish));
                let size = if small { 7 } else { 100 };
                let alone = decoded(&layout, alone, size);
                let helped = helped_by(&layout, helped, helpers, most, size);
                prop_assert_eq!(helped, alone);
            }
        }
    }
}

/// Memory for rows.
#[derive(Clone, Copy, Debug)]
enum Memory {
    Any,
    Enough,
    None,
}

/// The contents of blocks of a given number of rows, or the final error.
type Slabbed = (Vec<RecordBatch>, std::result::Result<u64, String>);

fn decoded(layout: &Layout, mut slabs: Slabs, rows: usize) -> Slabbed {
    let all: Vec<usize> = (0..layout.schema().fields().len()).collect();
    let (mut decoder, mut taken) = (Decoder::new(layout, &all).unwrap(), Vec::new());
    loop {
        match slabs.next(rows, usize::MAX) {
            Ok(Some(slab)) => taken.push(decoder.decode(&slab).unwrap()),
            Ok(None) => return (taken, Ok(slabs.deleted())),
            Err(error) => return (taken, Err(error.to_string())),
        }
    }
}

/// Does the same as [`decoded`] while `helpers` threads merge up to `most` bytes ahead.
fn helped_by(
    layout: &Layout,
    mut slabs: Slabs,
    helpers: usize,
    most: usize,
    rows: usize,
) -> Slabbed {
    // Spilled rows have no helper.
    let helper = slabs.helper().unwrap();
    let taken = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..helpers {
            scope.spawn(|| {
                while let Some(helper) = &helper
                    && !taken.load(Ordering::Relaxed)
                {
                    if !helper.help(most) {
                        std::thread::yield_now();
                    }
                }
            });
        }
        let decoded = decoded(layout, slabs, rows);
        taken.store(true, Ordering::Relaxed);
        decoded
    })
}

#[test]
fn an_error_of_a_share_comes_in_its_turn() {
    let (keys, pool) = (Keys::Numbers, tiny(500));
    let diff = |n: u64| if n == 1500 { i64::MAX } else { 1 };
    let rows: Vec<Change> = (0..2000).map(|n| (n, 0, 0, diff(n))).collect();
    let batches = [0, 1].map(|_| batch_of(keys, &pool, &rows));
    let mut slabs = Batch::union(&keys.layout(), &pool, batches).slabs(Finish::Snapshot);
    let helper = slabs.helper().unwrap().unwrap();
    assert!(slabs.helper().unwrap().is_none(), "there is one already");
    let mut helped = 0;
    while helper.help(usize::MAX) {
        helped += 1;
    }
    assert!(helped > 10, "{helped}");
    let mut taken = 0;
    let error = loop {
        match slabs.next(10, usize::MAX) {
            Ok(slab) => taken += slab.expect("rows, or an error").rows(),
            Err(error) => break error,
        }
    };
    assert!(
        (2000..3001).contains(&taken) && matches!(error, Error::DiffOverflow { .. }),
        "{taken}"
    );
    assert!(matches!(slabs.next(10, usize::MAX), Err(Error::Lost)));
    assert!(!helper.help(usize::MAX));
}
