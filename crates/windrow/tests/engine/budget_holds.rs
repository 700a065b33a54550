//! Leases stay within the budget, whatever is done with the rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::common::arrays::Rng;
use crate::common::engine::{Way, assert_returned, collect};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
use windrow::{Antichain, Batcher, Budget, Finish, Memory, Order, Pool, PoolOptions};

#[test]
fn while_sorting_and_compacting() {
    let rng = &mut Rng::new(10);
    let rows = 1_000_000;
    let mut random = |below: usize| {
        let numbers = (0..rows).map(|_| rng.below(below) as i64);
        Arc::new(Int64Array::from_iter_values(numbers)) as ArrayRef
    };
    let input = RecordBatch::try_from_iter([
        ("key", random(300_000)),
        ("value", random(usize::MAX)),
        ("diff", random(2)),
    ])
    .unwrap();
    for order in [Order::by("key"), Order::by("key").last(), Order::by("key").diff("diff")] {
        let layout = order.bind(&input.schema()).unwrap();
        for (budget, pushers) in [(4 << 20, 0), (16 << 20, 0), (16 << 20, 3), (64 << 20, 4)] {
            let way = Way { budget, rows: 20_000, pushers, ..Way::PLAIN };
            let pool = way.pool();
            let batch = way.arrange(rng, &layout, &pool, &input).unwrap();
            let mut slabs = batch.slabs(Finish::Log);
            while slabs.next(8192, budget / 64).unwrap().is_some() {}
            let peak = pool.stats().peak_leased;
            // A pool may exceed the budget by one chunk, to go on at all; a chunk has at least 64
            // KiB.
            let chunk = (budget / 96).max(64 << 10);
            assert!(peak <= budget + chunk, "{way:?} {:?} leased {peak}", layout.rule());
            assert_returned(&pool);
        }
    }
}

/// Changes of so many rows at times from `time` on, in no order.
fn changes(rng: &mut Rng, rows: usize, time: u64) -> RecordBatch {
    let keys = Int64Array::from_iter_values((0..rows).map(|_| rng.below(usize::MAX) as i64));
    let times = UInt64Array::from_iter_values((0..rows).map(|_| time + rng.below(100) as u64));
    let diffs = Int64Array::from(vec![1; rows]);
    let columns: [(&str, ArrayRef); 3] =
        [("key", Arc::new(keys)), ("time", Arc::new(times)), ("diff", Arc::new(diffs))];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// A seal leaves as many bytes of recycled buffers leased as it sealed, between 1 and 16 MiB.
#[test]
fn after_seals_of_any_size() {
    let rng = &mut Rng::new(13);
    let layout = Order::by("key").time("time").diff("diff");
    let layout = layout.bind(&changes(rng, 0, 0).schema()).unwrap();
    for (pushes, most) in [(1, 1 << 20), (280, 16 << 20)] {
        let pool = Pool::in_dir(std::env::temp_dir(), Budget::bytes(1 << 30)).unwrap();
        let mut batcher = Batcher::new(&layout, &pool);
        (0..pushes).for_each(|_| batcher.push(&changes(rng, 10_000, 1_000)).unwrap());
        let batch = batcher.seal(&Antichain::at(u64::MAX)).unwrap();
        let (sealed, resident) = (batch.bytes().unwrap(), batch.resident_bytes());
        let kept = pool.budget().used() - resident;
        println!("{sealed} bytes sealed: {resident} resident, {kept} kept");
        // Beside buffers, the lists of the batch are leased.
        assert!(kept <= most + (64 << 10), "{kept} bytes kept after a seal of {sealed}");
    }
}

/// A seal keeps four times the budget back, and more is pushed behind it.
#[test]
fn while_seals_hold_rows_back() {
    let rng = &mut Rng::new(12);
    let layout = Order::by("key").time("time").diff("diff");
    let layout = layout.bind(&changes(rng, 0, 0).schema()).unwrap();
    for (budget, threads, others) in
        [(4 << 20, 0, 0), (16 << 20, 0, 0), (16 << 20, 2, 0), (16 << 20, 0, 3)]
    {
        let pool = Pool::in_dir(std::env::temp_dir(), Budget::bytes(budget)).unwrap();
        let mut batchers: Vec<Batcher> =
            (0..=others).map(|_| Batcher::new(&layout, &pool)).collect();
        let mut pushed = 0;
        let mut push = |batcher: &mut Batcher, bytes: usize| {
            let mut pushers = batcher.pushers(threads);
            for _ in 0..bytes / (24 * 10_000) {
                let input = changes(rng, 10_000, 1_000_000);
                pushed += input.num_rows() as u64;
                match pushers.get_mut(pushed as usize / 10_000 % threads.max(1)) {
                    Some(pusher) => pusher.push(&input, pushed).unwrap(),
                    None => batcher.push(&input).unwrap(),
                }
            }
            pushers.iter_mut().for_each(|pusher| pusher.flush().unwrap());
        };
        batchers.iter_mut().for_each(|batcher| push(batcher, 4 * budget / (others + 1)));
        let mut spilled = 0;
        for at in 1..5 {
            for batcher in &mut batchers {
                assert_eq!(batcher.seal(&Antichain::at(at)).unwrap().rows(), Some(0));
                let before = pool.stats().loaded_bytes;
                assert_eq!(batcher.seal(&Antichain::at(at)).unwrap().rows(), Some(0));
                assert_eq!(pool.stats().loaded_bytes, before, "a seal before all rows reads them");
            }
            let before = pool.stats().spilled_bytes;
            batchers.iter_mut().for_each(|batcher| push(batcher, budget * 3 / 2 / (others + 1)));
            spilled = pool.stats().spilled_bytes - before;
        }
        assert!(spilled > 0, "rows that are held back stay in memory");
        let mut rows = 0;
        for batcher in batchers {
            let mut slabs = batcher.finish().unwrap().slabs(Finish::Log);
            while let Some(slab) = slabs.next(8192, budget / 64).unwrap() {
                rows += slab.rows() as u64;
            }
        }
        assert_eq!(rows, pushed);
        let peak = pool.stats().peak_leased;
        // Each batcher may pass it by one chunk, to go on at all.
        let chunks = (others + 1) * (budget / 96).max(64 << 10);
        assert!(peak <= budget + chunks, "{budget} {threads} {others}: leased {peak}");
        assert_returned(&pool);
    }
}

/// Runs of one or two chunks that fit into memory, merged ahead by two threads.
#[test]
fn while_helpers_merge_runs_that_fit() {
    let rng = &mut Rng::new(13);
    let budget = 24 << 20;
    let pool = Pool::in_dir(std::env::temp_dir(), Budget::bytes(budget)).unwrap();
    let layout = Order::by("key").bind(&changes(rng, 0, 0).schema()).unwrap();
    let batcher = Batcher::new(&layout, &pool);
    let mut pushers = batcher.pushers(2);
    for number in 0..40 {
        let input = changes(rng, 10_000, 0);
        pushers[number % 2].push(&input, 10_000 * number as u64).unwrap();
    }
    pushers.iter_mut().for_each(|pusher| pusher.flush().unwrap());
    let held = pool.budget().used();
    assert!(held > budget / 2 && pool.stats().spills == 0, "{held} of {budget}");
    let mut slabs = batcher.finish().unwrap().slabs(Finish::Log);
    let helper = slabs.helper().unwrap().unwrap();
    let (mut rows, done) = (0, AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if !helper.help(2 << 20) {
                    std::thread::yield_now();
                }
            }
        });
        while let Some(slab) = slabs.next(8192, 1 << 20).unwrap() {
            rows += slab.rows();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(rows, 400_000);
    let peak = pool.stats().peak_leased;
    assert!(peak <= budget && peak < held + (8 << 20), "{held} held, leased {peak}");
}

/// Memory counted outside of the engine, with a limit below the budget.
#[derive(Debug, Default)]
struct Shared {
    used: AtomicUsize,
    peak: AtomicUsize,
}

impl Shared {
    const LIMIT: usize = 8 << 20;
}

impl Memory for Shared {
    fn try_grow(&self, bytes: usize) -> bool {
        let fits = |used: usize| Some(used + bytes).filter(|sum| *sum <= Self::LIMIT);
        let before = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        if let Ok(used) = before {
            self.peak.fetch_max(used + bytes, Ordering::Relaxed);
        }
        before.is_ok()
    }

    fn grow(&self, bytes: usize) {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed);
        self.peak.fetch_max(used + bytes, Ordering::Relaxed);
    }

    fn shrink(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[test]
fn of_memory_that_is_counted_elsewhere() {
    let rng = &mut Rng::new(11);
    let numbers = (0..2_000_000).map(|_| rng.below(usize::MAX) as i64);
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
    let input = RecordBatch::try_from_iter([("number", numbers)]).unwrap();
    let layout = Order::by("number").bind(&input.schema()).unwrap();
    let memory = Arc::new(Shared::default());
    let budget = Budget::within(32 << 20, Arc::clone(&memory) as _);
    let pool = Pool::new(budget, PoolOptions::new()).unwrap();
    let way = Way { rows: 20_000, pushers: 1, ..Way::PLAIN };
    let batch = way.arrange(rng, &layout, &pool, &input).unwrap();
    let sorted = collect(batch.record_batches(100_000)).unwrap();
    let sorted: Vec<i64> = (sorted.iter())
        .flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec())
        .collect();
    assert!(sorted.is_sorted() && sorted.len() == 2_000_000);
    let peak = memory.peak.load(Ordering::Relaxed);
    // A pool may exceed the limit by some chunks, to go on at all.
    assert!(peak <= Shared::LIMIT + (4 << 20), "leased {peak}");
    assert!(pool.stats().peak_leased <= peak);
    pool.wait_for_spills();
    assert_eq!(memory.used.load(Ordering::Relaxed), 0, "all leases returned");
}

#[test]
fn memory_that_had_nothing_at_first_is_found_again() {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100_000));
    let input = RecordBatch::try_from_iter([("number", numbers)]).unwrap();
    let layout = Order::by("number").bind(&input.schema()).unwrap();
    let memory = Arc::new(Shared::default());
    memory.grow(Shared::LIMIT);
    let budget = Budget::within(32 << 20, Arc::clone(&memory) as _);
    let pool = Pool::new(budget, PoolOptions::new()).unwrap();
    let mut batcher: Batcher = Batcher::new(&layout, &pool);
    batcher.push(&input).unwrap();
    memory.shrink(Shared::LIMIT);
    for _ in 0..40 {
        batcher.push(&input).unwrap();
    }
    let limit = pool.budget().limit();
    assert!(limit > 1 << 20, "{limit} of {}", Shared::LIMIT);
    assert_eq!(collect(batcher.finish().unwrap().record_batches(100_000)).unwrap().len(), 41);
}
