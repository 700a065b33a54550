//! Chunks leave memory only when memory is needed, without an effect on the rows.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::arrays::Rng;
use crate::common::engine::{Way, assert_returned, collect};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use windrow::{
    Batch, Batcher, Budget, Codec, Cursor, Decision, Error, ForceSpill, Layout, Merging, Offer,
    Order, Pool, PoolOptions, RowEncoder, SpillEvent, SpillPolicy, SpillTo, Tiered,
};

/// Returns `rows` unordered rows of 24 bytes.
fn numbers(rng: &mut Rng, rows: usize) -> RecordBatch {
    let mut column = || {
        let numbers = (0..rows).map(|_| rng.below(1 << 40) as i64);
        Arc::new(Int64Array::from_iter_values(numbers)) as ArrayRef
    };
    RecordBatch::try_from_iter([("key", column()), ("value", column())]).unwrap()
}

fn sorted(layout: &Layout, pool: &Pool, input: &RecordBatch) -> Batch {
    let mut batcher = Batcher::new(layout, pool);
    batcher.push(input).unwrap();
    batcher.finish().unwrap()
}

fn read(batch: Batch) -> Vec<RecordBatch> {
    collect(batch.record_batches(4096)).unwrap()
}

#[test]
fn what_was_dropped_half_way_can_be_released() {
    let rng = &mut Rng::new(22);
    let input = numbers(rng, 60_000);
    let layout = Order::by("key").bind(&input.schema()).unwrap();
    for budget in [usize::MAX, 1 << 20] {
        let pool = Way { budget, ..Way::PLAIN }.pool();
        let mut batcher = Batcher::new(&layout, &pool);
        batcher.push(&input).unwrap();
        drop(batcher);
        let mut half = sorted(&layout, &pool, &input).record_batches(1000).unwrap();
        half.next().unwrap().unwrap();
        drop(half);
        pool.wait_for_spills();
        assert!(pool.budget().used() > 0, "kept for whoever asks next");
        pool.release();
        assert_eq!(pool.budget().used(), 0);
    }
}

/// Keys are in one of four batches each, so that most readers hold a chunk without the key.
#[test]
fn ascending_look_ups_read_a_chunk_once() {
    const KEYS: usize = 80_000;
    let texts = |first: usize, step: usize| {
        let keys: Vec<String> =
            (first..KEYS).step_by(step).map(|key| format!("{key:08}")).collect();
        let ones = Int64Array::from(vec![1; keys.len()]);
        let columns: [(&str, ArrayRef); 2] =
            [("key", Arc::new(StringArray::from(keys))), ("diff", Arc::new(ones))];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let layout = Order::by("key").diff("diff").bind(&texts(0, KEYS).schema()).unwrap();
    let options = PoolOptions::new().chunk_bytes(32 << 10);
    for budget in (604_332..764_420).step_by(20_011) {
        let pool = Pool::new(Budget::bytes(budget), options.clone()).unwrap().for_index();
        let batches: Vec<Batch> = (0..4)
            .map(|first| sorted(&layout, &pool, &texts(first, 4)).settle().unwrap())
            .collect();
        pool.wait_for_spills();
        let wanted = RowEncoder::of_keys(&layout).encode(&texts(0, 1).project(&[0]).unwrap());
        let (before, mut found) = (pool.stats().loads, 0);
        let mut cursor = Cursor::idle(&layout, &batches).unwrap();
        let count = |_, _: &mut Cursor| {
            found += 1;
            Ok(())
        };
        cursor.probe(&wanted.unwrap(), count).unwrap();
        let loads = pool.stats().loads - before;
        assert_eq!(found, KEYS);
        assert!(loads <= 300, "{budget}: {loads} loads");
    }
}

#[test]
fn batchers_share_a_budget() {
    let rng = &mut Rng::new(21);
    let input = numbers(rng, 60_000);
    let layout = Order::by("key").bind(&input.schema()).unwrap();
    let expected = read(sorted(&layout, &Pool::unlimited(), &input));
    let budget = 2 << 20;
    // All batchers at once, or one after the other, each keeping its rows.
    for pieces in [60, 1] {
        let pool = Way { budget, ..Way::PLAIN }.pool();
        // Two of the batchers use another pool with the same budget.
        let other = Pool::new(pool.budget().clone(), PoolOptions::default()).unwrap();
        let pools = [&pool, &other, &pool, &other];
        let mut batchers = pools.map(|pool| Batcher::new(&layout, pool));
        let rows = input.num_rows() / pieces;
        for piece in 0..pieces {
            for batcher in &mut batchers {
                batcher.push(&input.slice(piece * rows, rows)).unwrap();
            }
        }
        let stats = pool.stats();
        // One more chunk, to go on; a pool cannot use the spare buffers of another.
        let most = if pieces > 1 { budget + (64 << 10) } else { 2 * budget };
        assert!(stats.peak_leased <= most, "{pieces} {stats:?}");
        for batcher in batchers {
            assert_eq!(read(batcher.finish().unwrap()), expected);
        }
        pools.iter().for_each(|pool| pool.wait_for_spills());
        pools.iter().for_each(|pool| pool.release());
        assert_eq!(pool.budget().used(), 0, "all leases returned");
    }
}

#[test]
fn batches_at_rest_leave_for_those_that_come() {
    let rng = &mut Rng::new(20);
    let input = numbers(rng, 60_000);
    let layout = Order::by("key").bind(&input.schema()).unwrap();
    let expected = read(sorted(&layout, &Pool::unlimited(), &input));
    for (spill_threads, codec) in [(0, Codec::None), (1, Codec::Lz4), (2, Codec::None)] {
        let budget = 6 << 20;
        let way = Way { budget, codec, spill_threads, ..Way::PLAIN };
        let pool = way.pool();
        // Each batch takes a quarter of the budget; twelve take three times the budget.
        let batches: Vec<Batch> = (0..12).map(|_| sorted(&layout, &pool, &input)).collect();
        let stats = pool.stats();
        let scratch = if codec == Codec::None { 0 } else { 256 << 10 };
        assert!(stats.peak_leased <= budget + (64 << 10) + scratch, "{way:?} {stats:?}");
        assert!(stats.evicted.iter().sum::<u64>() > 0, "{way:?} {stats:?}");
        assert_eq!(stats.evicted[1..], [0, 0], "all of them were fresh");
        assert_eq!(stats.spilled_bytes, stats.stored_bytes, "what is fresh is not compressed");
        for batch in batches {
            assert_eq!(read(batch), expected, "{way:?}");
        }
        assert_returned(&pool);
    }
}

#[test]
fn what_dies_before_memory_is_needed_is_never_written() {
    let rng = &mut Rng::new(21);
    let parts: Vec<RecordBatch> = (0..40).map(|_| numbers(rng, 20_000)).collect();
    let changes = |part: &RecordBatch, diff: i64| {
        let diffs = Arc::new(Int64Array::from_value(diff, part.num_rows())) as ArrayRef;
        let columns = [("key", &part["key"]), ("value", &part["value"]), ("diff", &diffs)];
        RecordBatch::try_from_iter(columns.map(|(name, column)| (name, Arc::clone(column))))
            .unwrap()
    };
    let layout = Order::by("key").diff("diff").bind(&changes(&parts[0], 1).schema()).unwrap();
    // Five times as many changes as the budget holds, with few alive at any time.
    let way = Way { budget: 8 << 20, ..Way::PLAIN };
    let pool = way.pool();
    let mut batcher = Batcher::new(&layout, &pool);
    for part in &parts {
        for diff in [1, -1] {
            batcher.push(&changes(part, diff)).unwrap();
        }
    }
    let batch = batcher.finish().unwrap();
    assert!(read(batch).is_empty());
    assert_eq!(pool.stats().spilled_bytes, 0, "{:?}", pool.stats());
    assert_eq!(pool.stats().temp_bytes, 0);
}

#[test]
fn a_limit_that_shrinks_takes_memory_back_and_one_that_grows_gives_it() {
    let rng = &mut Rng::new(22);
    let input = numbers(rng, 400_000);
    let layout = Order::by("key").bind(&input.schema()).unwrap();
    let expected = read(sorted(&layout, &Pool::unlimited(), &input));
    let (large, small) = (8 << 20, 4 << 20);
    let pool = Way { budget: large, ..Way::PLAIN }.pool();
    let mut batcher = Batcher::new(&layout, &pool);
    for (index, at) in (0..input.num_rows()).step_by(10_000).enumerate() {
        batcher.push(&input.slice(at, 10_000)).unwrap();
        if index % 5 == 4 {
            let limit = if index % 2 == 0 { small } else { large };
            pool.set_limit(limit).unwrap();
            assert_eq!(pool.budget().limit(), limit);
        }
    }
    let batch = batcher.finish().unwrap();
    pool.set_limit(small).unwrap();
    assert!(pool.budget().used() <= small, "{:?}", pool.stats());
    let mut rows = Vec::new();
    for (index, next) in batch.record_batches(4096).unwrap().enumerate() {
        rows.push(next.unwrap());
        pool.set_limit(if index % 8 < 4 { small } else { large }).unwrap();
    }
    assert_eq!(rows, expected);
    assert_returned(&pool);
}

#[test]
fn pages_count_when_their_rows_have_left() {
    let rng = &mut Rng::new(24);
    let input = numbers(rng, 400_000);
    let layout = Order::by("key").bind(&input.schema()).unwrap();
    let pool = Way { budget: 4 << 20, ..Way::PLAIN }.pool();
    let batch = sorted(&layout, &pool, &input).settle().unwrap().spill().unwrap();
    pool.wait_for_spills();
    pool.release();
    assert_eq!(batch.resident_bytes(), 0);
    let (leased, pages) = (pool.budget().used(), batch.chunks().unwrap());
    assert!((256..1024).contains(&(leased / pages)), "{leased} bytes of {pages} pages");
    drop(batch);
    assert_eq!(pool.budget().used(), 0);
}

#[test]
fn a_batch_in_memory_leaves_it_when_the_limit_shrinks() {
    let rng = &mut Rng::new(23);
    let input = numbers(rng, 200_000);
    let layout = Order::by("key").bind(&input.schema()).unwrap();
    let pool = Way { budget: 16 << 20, ..Way::PLAIN }.pool();
    let batch = sorted(&layout, &pool, &input);
    let held = batch.resident_bytes();
    assert!(held > 4 << 20, "{held}");
    assert_eq!(pool.stats().spilled_bytes, 0);
    pool.set_limit(1 << 20).unwrap();
    assert!(pool.budget().used() <= 1 << 20, "{:?}", pool.stats());
    assert!(batch.resident_bytes() <= 1 << 20);
    assert_eq!(read(batch), read(sorted(&layout, &Pool::unlimited(), &input)));
}

#[test]
fn policy_place_and_codec_change_while_chunks_are_out() {
    let rng = &mut Rng::new(24);
    let input = numbers(rng, 300_000);
    let layout = Order::by("key").bind(&input.schema()).unwrap();
    let expected = read(sorted(&layout, &Pool::unlimited(), &input));
    let pool = Way { budget: 2 << 20, ..Way::PLAIN }.pool();
    let mut batcher = Batcher::new(&layout, &pool);
    for (index, at) in (0..input.num_rows()).step_by(10_000).enumerate() {
        pool.set_codec([Codec::None, Codec::Lz4, Codec::Zstd][index % 3]);
        pool.set_spill_to([SpillTo::Disk, SpillTo::Memory][index % 2]);
        let policies: [Arc<dyn SpillPolicy>; 2] = [Arc::new(Tiered), Arc::new(ForceSpill)];
        pool.set_policy(Arc::clone(&policies[index / 2 % 2]));
        batcher.push(&input.slice(at, 10_000)).unwrap();
    }
    assert_eq!(read(batcher.finish().unwrap()), expected);
    let stats = pool.stats();
    assert!(stats.stored_bytes < stats.spilled_bytes && stats.spills > 0, "{stats:?}");
}

/// Keeps all chunks that may stay, and counts offers and events.
#[derive(Debug, Default)]
struct Counting {
    offers: AtomicUsize,
    /// Bytes that were written, read and released.
    heard: Mutex<[usize; 3]>,
}

impl SpillPolicy for Counting {
    fn decide(&self, offer: &Offer) -> Decision {
        self.offers.fetch_add(1, Ordering::Relaxed);
        if offer.may_stay { Decision::Keep } else { Tiered.decide(offer) }
    }

    fn record(&self, event: SpillEvent) {
        let mut heard = self.heard.lock().unwrap();
        match event {
            SpillEvent::PagedOut { bytes, to, codec, .. } => {
                assert_eq!((to, codec), (SpillTo::Disk, Codec::None));
                heard[0] += bytes;
            }
            SpillEvent::PagedIn { bytes, .. } => heard[1] += bytes,
            SpillEvent::Released { bytes, .. } => heard[2] += bytes,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_policy_is_asked_and_told() {
    let rng = &mut Rng::new(25);
    let input = numbers(rng, 300_000);
    let layout = Order::by("key").bind(&input.schema()).unwrap();
    let pool = Way { budget: 2 << 20, ..Way::PLAIN }.pool();
    let policy = Arc::new(Counting::default());
    pool.set_policy(Arc::clone(&policy) as Arc<dyn SpillPolicy>);
    assert_eq!(
        read(sorted(&layout, &pool, &input)),
        read(sorted(&layout, &Pool::unlimited(), &input))
    );
    pool.wait_for_spills();
    let stats = pool.stats();
    assert!(policy.offers.load(Ordering::Relaxed) as u64 >= stats.spills);
    let heard = *policy.heard.lock().unwrap();
    assert_eq!(heard[..2], [stats.spilled_bytes, stats.loaded_bytes]);
    // A batch that dies without having been written.
    let pool = Way { budget: 64 << 20, ..Way::PLAIN }.pool();
    let batch = sorted(&layout, &pool, &input);
    let batch = Merging::new(&layout, &pool, [batch]).finish().unwrap();
    let policy = Arc::new(Counting::default());
    pool.set_policy(Arc::clone(&policy) as Arc<dyn SpillPolicy>);
    let bytes = batch.bytes().unwrap() as usize;
    drop(batch);
    assert_eq!(*policy.heard.lock().unwrap(), [0, 0, bytes]);
}

#[test]
fn a_policy_is_told_of_writes_that_fail() {
    #[derive(Debug, Default)]
    struct Failures(Mutex<Vec<(usize, std::io::ErrorKind)>>);
    impl SpillPolicy for Failures {
        fn decide(&self, offer: &Offer) -> Decision {
            ForceSpill.decide(offer)
        }

        fn record(&self, event: SpillEvent) {
            if let SpillEvent::Failed { bytes, kind, .. } = event {
                self.0.lock().unwrap().push((bytes, kind));
            }
        }
    }
    let input = numbers(&mut Rng::new(27), 300_000);
    let layout = Order::by("key").bind(&input.schema()).unwrap();
    let options = PoolOptions::new().max_temp_bytes(256 << 10);
    let pool = Pool::new(Budget::bytes(2 << 20), options).unwrap();
    let policy = Arc::new(Failures::default());
    pool.set_policy(Arc::clone(&policy) as Arc<dyn SpillPolicy>);
    let mut batcher = Batcher::new(&layout, &pool);
    let batch = batcher.push(&input).and_then(|()| batcher.finish());
    assert!(matches!(batch.map(drop), Err(Error::TempSpace { .. })));
    pool.wait_for_spills();
    let told = policy.0.lock().unwrap();
    assert!(!told.is_empty() && told.iter().all(|(bytes, _)| *bytes > 0), "{told:?}");
}

#[test]
fn merges_read_ahead_where_memory_allows_it() {
    let rng = &mut Rng::new(26);
    let input = numbers(rng, 400_000);
    let layout = Order::by("key").bind(&input.schema()).unwrap();
    let pool = Way { budget: 4 << 20, ..Way::PLAIN }.pool();
    let batch = sorted(&layout, &pool, &input).spill().unwrap();
    let again = sorted(&layout, &pool, &input).spill().unwrap();
    let both = Batch::union(&layout, &pool, [batch, again]);
    let rows: usize = read(both).iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows, 2 * input.num_rows());
    let stats = pool.stats();
    assert!(stats.read_ahead > 0 && stats.read_ahead_hits > 0, "{stats:?}");
    assert!(stats.peak_leased <= (4 << 20) + (64 << 10), "{stats:?}");
}

#[test]
fn a_policy_that_panics_on_a_spill_thread_stops_nobody() {
    #[derive(Debug, Default)]
    struct Panics(AtomicUsize);
    impl SpillPolicy for Panics {
        fn decide(&self, offer: &Offer) -> Decision {
            Tiered.decide(offer)
        }

        fn record(&self, _: SpillEvent) {
            if std::thread::current().name() == Some("windrow-spill") {
                let events = self.0.fetch_add(1, Ordering::Relaxed);
                assert!(!events.is_multiple_of(3), "this policy panics on purpose");
            }
        }
    }
    let input = numbers(&mut Rng::new(28), 400_000);
    let layout = Order::by("key").bind(&input.schema()).unwrap();
    let pool = Way { budget: 4 << 20, ..Way::PLAIN }.pool();
    let policy = Arc::new(Panics::default());
    pool.set_policy(Arc::clone(&policy) as Arc<dyn SpillPolicy>);
    let batch = sorted(&layout, &pool, &input).spill().unwrap();
    let again = sorted(&layout, &pool, &input).spill().unwrap();
    let both = Batch::union(&layout, &pool, [batch, again]);
    let rows: usize = read(both).iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows, 2 * input.num_rows());
    pool.wait_for_spills();
    assert!(policy.0.load(Ordering::Relaxed) > 3);
    assert!(pool.stats().read_ahead > 0 && pool.stats().in_flight == 0, "{:?}", pool.stats());
}
