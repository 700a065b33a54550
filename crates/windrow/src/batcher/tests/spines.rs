//! Spines against the model: at every moment of every merge, a spine shows the inserted changes as
//! seen from its `since`.

use proptest::prelude::*;

use super::cursors::spilling;
use super::*;
use crate::cursor::Cursor;
use crate::spine::{MERGES_A_LEVEL, Mergers, Spine};
use windrow_pool::{Budget, Decision, ForceSpill, Offer, PoolOptions, SpillPolicy, Tiered};
use windrow_rows::{Antichain, Error};

/// Reads the changes of a cursor, with times advanced to `since`.
pub(super) fn seen<T: Time>(keys: Keys, mut cursor: Cursor<T>, since: &Antichain<T>) -> Model {
    let mut model = Model::new();
    let mut decoder = crate::batch::Decoder::new(cursor.layout(), &[0, 1]).unwrap();
    let mut before: Option<Vec<u8>> = None;
    while cursor.has_key() {
        let key = cursor.key().unwrap().to_vec();
        assert!(before.is_none_or(|before| before < key), "keys ascend");
        while cursor.has_value() {
            let row = decoder.decode_rows([cursor.row().unwrap()]).unwrap();
            let text = match keys {
                Keys::Numbers => keys.text(row.column(0).as_primitive::<UInt64Type>().value(0)),
                _ => row.column(0).as_string::<i32>().value(0).to_owned(),
            };
            let value = row.column(1).as_primitive::<UInt64Type>().value(0);
            cursor
                .map_times(|time: T, diff| {
                    if let Some(time) = since.advance(time) {
                        *model.entry((text.clone(), value, code_of(time))).or_default() += diff;
                    }
                })
                .unwrap();
            cursor.step_value().unwrap();
        }
        before = Some(key);
        cursor.step_key().unwrap();
    }
    model.retain(|_, diff| *diff != 0);
    model
}

fn advanced<T: Time>(model: &Model, since: &Antichain<T>) -> Model {
    let mut out = Model::new();
    for ((key, value, time), diff) in model {
        if let Some(time) = since.advance(time_of::<T>(*time)) {
            *out.entry((key.clone(), *value, code_of(time))).or_default() += diff;
        }
    }
    out.retain(|_, diff| *diff != 0);
    out
}

/// Operations on a spine beside inserting.
#[derive(Clone, Debug)]
struct Round {
    changes: Vec<Change>,
    fuel: i64,
    since: u64,
}

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let change = (0..20u64, 0..3u64, 0..4u64, -2..3i64);
    let round = (prop::collection::vec(change, 0..40), 0..200i64, 0..4u64);
    let round = round.prop_map(|(changes, fuel, since)| Round { changes, fuel, since });
    prop::collection::vec(round, 1..40)
}

fn grows(keys: Keys, pool: &Pool, rounds: &[Round], telling_apart: bool, threads: usize) {
    let layout = keys.layout();
    let (mut batcher, mut spine) =
        (Batcher::new(&layout, pool), Spine::new(&layout, pool).unwrap());
    let mut mergers = (threads > 0).then(|| Mergers::new(threads).unwrap());
    let gone_at = rounds.len() / 2 + threads;
    if telling_apart {
        spine.set_distinguish(&Antichain::least()).unwrap();
    }
    let (mut model, mut since, mut upper) = (Model::new(), Antichain::least(), 0);
    let mut cuts: Vec<(u64, Model)> = Vec::new();
    for (number, round) in rounds.iter().enumerate() {
        if let Some(mergers) = &mergers
            && number == threads
        {
            spine.merge_on(mergers);
        }
        if number == gone_at {
            mergers = None;
        }
        let changes: Vec<Change> =
            round.changes.iter().map(|&(k, v, t, d)| (k, v, upper + t, d)).collect();
        upper += 4;
        batcher.push(&keys.record_batch(&changes)).unwrap();
        spine.insert(batcher.seal(&Antichain::at(upper)).unwrap()).unwrap();
        for (row, diff) in keys.model(&changes) {
            *model.entry(row).or_default() += diff;
        }
        assert_eq!(spine.upper(), &Antichain::at(upper));
        assert_eq!(seen(keys, spine.cursor().unwrap(), &since), advanced(&model, &since));
        let mut fuel = round.fuel;
        spine.work(&mut fuel).unwrap();
        assert_eq!(seen(keys, spine.cursor().unwrap(), &since), advanced(&model, &since));
        cuts.push((upper, model.clone()));
        since = Antichain::at(upper.saturating_sub(4 + round.since)).join(&since);
        spine.set_since(&since).unwrap();
        if telling_apart {
            for (cut, model) in &cuts {
                let cursor = spine.cursor_through(&Antichain::at(*cut)).unwrap();
                let cursor = cursor.expect("batches are kept apart");
                assert_eq!(seen(keys, cursor, &since), advanced(model, &since));
            }
        }
        let follow: Vec<_> =
            spine.batches().map(|b| (b.lower().clone(), b.upper().clone())).collect();
        assert!(follow.windows(2).all(|pair| pair[0].1 == pair[1].0), "{follow:?}");
    }
    while !spine.work(&mut 50).unwrap() {}
    assert_eq!(seen(keys, spine.cursor().unwrap(), &since), advanced(&model, &since));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn spines_show_what_was_inserted(
        rounds in rounds(),
        chunk in 60usize..1500,
        keys in prop::sample::select(&ALL_KEYS[..]),
        spills in any::<bool>(),
        telling_apart in prop::bool::weighted(0.2),
        threads in 0usize..3,
    ) {
        let pool = if spills { spilling(chunk) } else { tiny(chunk) };
        grows(keys, &pool, &rounds, telling_apart, threads);
    }
}

#[test]
fn a_change_is_merged_about_once_a_level() {
    let (keys, pool) = (Keys::Numbers, Pool::unlimited());
    let layout = keys.layout();
    let (mut batcher, mut spine) =
        (Batcher::new(&layout, &pool), Spine::new(&layout, &pool).unwrap());
    let (mut most, rounds, rows) = (0, 1000, 500);
    for round in 0..rounds {
        let changes: Vec<Change> =
            (0..rows).map(|n| ((n * 7919 + round * 31) % 1_000_003, round, round, 1)).collect();
        batcher.push(&keys.record_batch(&changes)).unwrap();
        spine.insert(batcher.seal(&Antichain::at(round + 1)).unwrap()).unwrap();
        most = most.max(spine.batches().count());
    }
    let work = spine.work_done();
    assert_eq!(work.inserted, rounds * rows);
    // 16 MB of rows, each level four times the one below from 16 KiB on: five levels and the entry
    // level.
    assert!(work.merged <= 7 * work.inserted, "{work:?}");
    assert!(most <= 40, "{most} batches");
}

/// Rows per inserted batch, by round.
type Sizes = fn(u64) -> u64;

const ALL_SIZES: [Sizes; 4] = [
    |_| 1,
    |_| 300,
    // Small ones after large ones, large ones after small ones.
    |round| if round % 37 == 36 { 4000 } else { 1 + round % 7 },
    |round| (round * 7919 % 13).pow(3),
];

#[test]
fn a_change_is_merged_so_often_a_level_whoever_merges_when() {
    let (keys, layout) = (Keys::Numbers, Keys::Numbers.layout());
    for (sizes, threads) in ALL_SIZES.into_iter().flat_map(|sizes| [0, 1, 3].map(|of| (sizes, of)))
    {
        let pool = Pool::unlimited();
        let mergers = Mergers::new(threads.max(1)).unwrap();
        let (mut batcher, mut spine) =
            (Batcher::new(&layout, &pool), Spine::new(&layout, &pool).unwrap());
        if threads > 0 {
            spine.merge_on(&mergers);
        }
        let mut next = 0;
        for round in 0..600 {
            let rows = next..next + sizes(round);
            next = rows.end;
            let changes: Vec<Change> = rows.map(|n| (n * 7919 % 1_000_003, n, round, 1)).collect();
            batcher.push(&keys.record_batch(&changes)).unwrap();
            spine.insert(batcher.seal(&Antichain::at(round + 1)).unwrap()).unwrap();
            if round % 50 == 49 {
                spine.work(&mut (round as i64 * 31 % 5000)).unwrap();
            }
            let work = spine.work_done();
            let most = MERGES_A_LEVEL * (spine.levels() as u64 + 1) * work.inserted;
            assert!(work.merged <= most, "{work:?}, {} levels", spine.levels());
        }
        while !spine.work(&mut 1000).unwrap() {
            std::thread::yield_now();
        }
        let work = spine.work_done();
        let most = MERGES_A_LEVEL * (spine.levels() as u64 + 1) * work.inserted;
        assert!(work.merged <= most, "{work:?}, {} levels", spine.levels());
        assert_eq!(spine.batches().filter_map(Batch::rows).sum::<u64>(), next);
    }
}

#[test]
fn what_is_merged_goes_as_the_merge_goes_on() {
    let pool = Pool::new(Budget::bytes(256 << 20), PoolOptions::new()).unwrap();
    let keys = Keys::Numbers;
    let layout = keys.layout();
    let (mut batcher, mut spine) =
        (Batcher::new(&layout, &pool), Spine::new(&layout, &pool).unwrap());
    spine.set_distinguish(&Antichain::least()).unwrap();
    for time in 0..4 {
        let changes: Vec<Change> =
            (0..200_000).map(|n| (n * 7919 % 1_000_003, time, time, 1)).collect();
        batcher.push(&keys.record_batch(&changes)).unwrap();
        spine.insert(batcher.seal(&Antichain::at(time + 1)).unwrap()).unwrap();
    }
    drop(batcher);
    pool.release();
    let held = |spine: &Spine| spine.batches().map(Batch::resident_bytes).sum::<usize>();
    let (inputs, before) = (held(&spine), pool.budget().used());
    assert!(inputs > 24 << 20, "all of it is in memory: {inputs}");
    spine.set_distinguish(&Antichain::new()).unwrap();
    let (mut most, mut parts) = (0, 0);
    while !spine.work(&mut 5000).unwrap() {
        pool.release();
        most = most.max(pool.budget().used());
        parts += 1;
    }
    assert!(parts > 20, "it took {parts} calls");
    assert_eq!(spine.batches().filter_map(Batch::rows).sum::<u64>(), 800_000);
    // An eighth exists twice, plus cut chunks and the merge's own chunks; not everything.
    assert!(most < before + inputs * 5 / 8, "{most} of {before} and {inputs}");
}

#[test]
fn a_compaction_leaves_one_batch() {
    for spills in [false, true] {
        let keys = Keys::Texts;
        let pool = if spills { spilling(2000) } else { tiny(2000) };
        let layout = keys.layout();
        let (mut batcher, mut spine) =
            (Batcher::new(&layout, &pool), Spine::new(&layout, &pool).unwrap());
        let mut inserted = Vec::new();
        for time in 0..30 {
            let changes: Vec<Change> = (0..50).map(|n| (n * 7 % 61, time % 2, time, 1)).collect();
            batcher.push(&keys.record_batch(&changes)).unwrap();
            spine.insert(batcher.seal(&Antichain::at(time + 1)).unwrap()).unwrap();
            inserted.extend(changes);
        }
        assert!(spine.batches().count() > 1 && !spine.is_compacting());
        let since = Antichain::at(30);
        spine.set_since(&since).unwrap();
        spine.compact();
        while !spine.work(&mut 100).unwrap() {
            assert!(spine.is_compacting());
        }
        assert!(!spine.is_compacting());
        assert_eq!(spine.batches().count(), 1);
        let model = advanced::<u64>(&keys.model(&inserted), &since);
        // Sums at one time: a row for each key and value.
        assert_eq!(spine.batches().filter_map(Batch::rows).sum::<u64>(), model.len() as u64);
        assert_eq!(seen(keys, spine.cursor().unwrap(), &since), model);
        // There is nothing to compact any more.
        spine.compact();
        assert!(spine.work(&mut 0).unwrap() && !spine.is_compacting());
    }
}

#[test]
fn threads_merge_as_fast_as_is_inserted() {
    let (keys, pool) = (Keys::Numbers, Pool::unlimited());
    let layout = keys.layout();
    let mergers = Mergers::new(2).unwrap();
    let (mut batcher, mut spine) =
        (Batcher::new(&layout, &pool), Spine::new(&layout, &pool).unwrap());
    spine.merge_on(&mergers);
    let (rounds, rows) = (400, 100);
    for round in 0..rounds {
        let changes: Vec<Change> = (0..rows).map(|n| (n * 7919 % 1009, round, round, 1)).collect();
        batcher.push(&keys.record_batch(&changes)).unwrap();
        spine.insert(batcher.seal(&Antichain::at(round + 1)).unwrap()).unwrap();
        assert!(spine.batches().count() <= 64, "an insert waits for the threads");
    }
    // A call of the spine collects the merges of threads.
    while !spine.work(&mut 0).unwrap() {
        std::thread::yield_now();
    }
    let work = spine.work_done();
    assert!(work.merges > 0 && work.merged <= 7 * work.inserted, "{work:?}");
    let rows_seen = spine.batches().filter_map(Batch::rows).sum::<u64>();
    assert_eq!(rows_seen, rounds * rows);
    // A spine may be dropped before its threads, and threads before their spines.
    batcher.push(&keys.record_batch(&[(1, 1, rounds, 1)])).unwrap();
    spine.insert(batcher.seal(&Antichain::at(rounds + 1)).unwrap()).unwrap();
    drop(spine);
    drop(mergers);
}

/// Keeps chunks; merging threads block until the sender is dropped.
#[derive(Debug)]
struct Held(std::sync::Mutex<std::sync::mpsc::Receiver<()>>, Arc<std::sync::atomic::AtomicBool>);

impl SpillPolicy for Held {
    fn decide(&self, _offer: &Offer) -> Decision {
        if std::thread::current().name() == Some("windrow-merge") {
            self.1.store(true, std::sync::atomic::Ordering::SeqCst);
            let _dropped = self.0.lock().unwrap().recv();
        }
        Decision::Keep
    }
}

#[test]
fn an_insert_waits_where_more_comes_than_is_merged() {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    const ROWS: u64 = 4096;
    const ROUNDS: u64 = 40;
    let (keys, pool) = (Keys::Numbers, Pool::unlimited());
    let (release, held) = std::sync::mpsc::channel();
    let is_held = Arc::new(AtomicBool::new(false));
    pool.set_policy(Arc::new(Held(held.into(), Arc::clone(&is_held))));
    let deadline = Instant::now() + Duration::from_secs(60);
    let inserted = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&inserted);
    let inserting = std::thread::spawn(move || {
        let layout = keys.layout();
        let mergers = Mergers::new(1).unwrap();
        let (mut batcher, mut spine) =
            (Batcher::new(&layout, &pool), Spine::new(&layout, &pool).unwrap());
        spine.merge_on(&mergers);
        for time in 0..ROUNDS {
            let changes: Vec<Change> = (0..ROWS).map(|key| (key, time, time, 1)).collect();
            batcher.push(&keys.record_batch(&changes)).unwrap();
            spine.insert(batcher.seal(&Antichain::at(time + 1)).unwrap()).unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            while time == 3 && !is_held.load(Ordering::SeqCst) && Instant::now() < deadline {
                std::thread::yield_now();
            }
        }
        while !spine.work(&mut 1000).unwrap() {}
        spine.batches().filter_map(Batch::rows).sum::<u64>()
    });
    // Four batches of 128 KiB are in a blocked merge. Batches of 1 MiB in total may follow; the
    // next insert waits.
    while inserted.load(Ordering::SeqCst) < 12 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(inserted.load(Ordering::SeqCst), 12);
    assert!(!inserting.is_finished());
    drop(release);
    assert_eq!(inserting.join().unwrap(), ROUNDS * ROWS);
}

#[test]
fn batches_that_do_not_follow_are_refused() {
    let (keys, pool) = (Keys::Numbers, Pool::unlimited());
    let layout = keys.layout();
    let sealed = |upper: u64| {
        let mut batcher = Batcher::new(&layout, &pool);
        batcher.push(&keys.record_batch(&[(1, 1, 1, 1)])).unwrap();
        batcher.seal(&Antichain::at(upper)).unwrap()
    };
    let mut spine = Spine::new(&layout, &pool).unwrap();
    spine.insert(sealed(3)).unwrap();
    assert!(matches!(spine.insert(sealed(4)), Err(Error::InvalidOrder(_))));
    assert_eq!(spine.upper(), &Antichain::at(3));
    spine.set_since(&Antichain::at(2)).unwrap();
    assert!(matches!(spine.set_since(&Antichain::at(1)), Err(Error::InvalidOrder(_))));
    let timeless = Order::by("key").diff("diff").bind(layout.schema()).unwrap();
    assert!(matches!(Spine::<u64>::new(&timeless, &pool), Err(Error::InvalidOrder(_))));
    assert!(spine.cursor_through(&Antichain::at(2)).unwrap().is_none());
}

#[test]
fn a_merge_that_fails_leaves_its_inputs() {
    let options = PoolOptions::new().max_temp_bytes(4096).spill_threads(0);
    let pool = Pool::new(Budget::bytes(8 << 20), options).unwrap();
    let keys = Keys::Numbers;
    let layout = keys.layout();
    let (mut batcher, mut spine) =
        (Batcher::new(&layout, &pool), Spine::new(&layout, &pool).unwrap());
    let mut all = Vec::new();
    let mut failed = false;
    for time in 0..12 {
        let changes: Vec<Change> = (0..3000).map(|key| (key, time, time, 1)).collect();
        batcher.push(&keys.record_batch(&changes)).unwrap();
        all.extend(changes);
        let batch = batcher.seal(&Antichain::at(time + 1)).unwrap();
        if time == 3 {
            // The disk has no space for it.
            pool.set_policy(Arc::new(ForceSpill));
        }
        failed |= spine.insert(batch).is_err();
        if time == 3 {
            failed |= spine.work(&mut i64::MAX.clone()).is_err();
            pool.set_policy(Arc::new(Tiered));
        }
        assert_eq!(seen(keys, spine.cursor().unwrap(), &Antichain::least()), keys.model(&all));
    }
    assert!(failed, "the merge was to fail");
}
