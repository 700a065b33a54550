//! Cursors against a map of maps: every move from every position, over any number of batches, with
//! chunks of a few rows, in memory and spilled.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::moves::{Move, Position, moves};
use super::*;
use crate::batch::Merging;
use crate::cursor::{Cursor, TakenRows};
use windrow_pool::{Budget, ForceSpill, PoolOptions};
use windrow_rows::{Antichain, Error, RowEncoder};

/// The contents of a cursor: by key and value, times and diffs in any order.
pub(super) type Shown = BTreeMap<String, BTreeMap<u64, Vec<(u64, i64)>>>;

impl Keys {
    /// Returns the layout by key alone: the remaining columns are the value.
    pub(super) fn by_key(self) -> Layout {
        let order = Order::by("key").time("time").diff("diff");
        order.bind(&self.record_batch(&[]).schema()).unwrap()
    }

    pub(super) fn sealed(self, pool: &Pool, changes: &[Change]) -> Batch {
        let mut batcher = Batcher::new(&self.by_key(), pool);
        batcher.push(&self.record_batch(changes)).unwrap();
        batcher.seal(&Antichain::new()).unwrap()
    }

    pub(super) fn key_bytes(self, key: u64) -> Vec<u8> {
        let batch = self.record_batch(&[(key, 0, 0, 0)]).project(&[0]).unwrap();
        RowEncoder::of_keys(&self.by_key()).encode(&batch).unwrap().row(0).to_vec()
    }

    /// Returns the contents of a cursor over batches of these changes.
    pub(super) fn shown(self, batches: &[Vec<Change>]) -> Shown {
        let mut shown = Shown::new();
        for changes in batches {
            for ((key, value, time), diff) in self.model(changes) {
                let values = shown.entry(key).or_default();
                values.entry(value).or_default().push((time, diff));
            }
        }
        shown.values_mut().flat_map(BTreeMap::values_mut).for_each(|times| times.sort_unstable());
        shown
    }
}

/// Makes the same moves with a cursor and in the map; both agree after each move.
fn agree(keys: Keys, pool: &Pool, batches: &[Vec<Change>], moves: &[Move], filtered: bool) {
    let sealed = batches.iter().map(|changes| keys.sealed(pool, changes));
    let sealed: Vec<Batch> = match filtered {
        true => sealed.map(|batch| batch.filtered().unwrap()).collect(),
        false => sealed.collect(),
    };
    let mut cursor = Cursor::new(&sealed).unwrap();
    let shown = keys.shown(batches);
    let mut decoder = crate::batch::Decoder::new(cursor.layout(), &[0, 1]).unwrap();
    let mut position = Position::new(keys, &shown);
    for step in std::iter::once(&Move::RewindKeys).chain(moves) {
        let found = step.go(keys, &mut cursor);
        assert_eq!(found, position.go(step), "{step:?}");
        assert_eq!(cursor.has_key(), position.key().is_some(), "{step:?}");
        let Some((value, times)) = position.value() else {
            assert!(!cursor.has_value() && cursor.value().is_none(), "{step:?}");
            continue;
        };
        let mut found = Vec::new();
        cursor.map_times(|time, diff| found.push((time, diff))).unwrap();
        found.sort_unstable();
        assert_eq!(&found, times, "{step:?}");
        assert_eq!(cursor.value(), Some(&value.to_be_bytes()[..]), "{step:?}");
        let row = decoder.decode_rows([cursor.row().unwrap()]).unwrap();
        let key = match keys {
            Keys::Numbers => format!("{:020}", row.column(0).as_primitive::<UInt64Type>().value(0)),
            _ => row.column(0).as_string::<i32>().value(0).to_owned(),
        };
        assert_eq!(Some(&key), position.key(), "{step:?}");
    }
}

/// Returns a pool that spills every chunk; reads load chunks on demand.
pub(super) fn spilling(chunk: usize) -> Pool {
    let pool = tiny(chunk);
    pool.set_policy(Arc::new(ForceSpill));
    // Pages of an index are read in parts.
    pool.for_index()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn cursors_show_what_the_map_does(
        batches in prop::collection::vec(
            prop::collection::vec((0..30u64, 0..4u64, 0..6u64, -2..3i64), 0..60), 1..14),
        moves in moves(),
        chunk in prop_oneof![2 => 40usize..1200, 1 => 1200usize..8000],
        keys in prop::sample::select(&ALL_KEYS[..]),
        (spills, filtered) in any::<(bool, bool)>(),
    ) {
        let pool = if spills { spilling(chunk) } else { tiny(chunk) };
        agree(keys, &pool, &batches, &moves, filtered);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn rows_are_taken_as_they_were_at_a_time(
        batches in prop::collection::vec(
            prop::collection::vec((0..12u64, 0..4u64, 0..6u64, -2..3i64), 0..60), 1..6),
        time in 0..7u64,
        from in 0..4u64,
        chunk in 40usize..1200,
        keys in prop::sample::select(&ALL_KEYS[..]),
        spills in any::<bool>(),
    ) {
        let pool = if spills { spilling(chunk) } else { tiny(chunk) };
        let sealed: Vec<Batch> = batches.iter().map(|some| keys.sealed(&pool, some)).collect();
        let (mut cursor, mut taken) = (Cursor::new(&sealed).unwrap(), TakenRows::new());
        while cursor.has_key() {
            cursor.seek_value(&from.to_be_bytes()).unwrap();
            cursor.take_rows(time, &mut taken).unwrap();
            assert!(!cursor.has_value());
            cursor.step_key().unwrap();
        }
        let mut expected = Vec::new();
        for (key, values) in keys.shown(&batches) {
            for (value, times) in values.range(from..) {
                let sum: i64 = times.iter().filter(|at| at.0 <= time).map(|at| at.1).sum();
                if sum != 0 {
                    expected.push((key.clone(), *value, time, sum));
                }
            }
        }
        let mut decoder = crate::batch::Decoder::new(cursor.layout(), &[0, 1, 2, 3]).unwrap();
        let batch = taken.decode(&mut decoder).unwrap();
        assert_eq!((batch.num_rows(), taken.len()), (expected.len(), expected.len()));
        let number = |column: usize, row| batch.column(column).as_primitive::<UInt64Type>().value(row);
        for (row, (key, value, time, sum)) in expected.iter().enumerate() {
            let text = match keys {
                Keys::Numbers => format!("{:020}", number(0, row)),
                _ => batch.column(0).as_string::<i32>().value(row).to_owned(),
            };
            let diff = batch.column(3).as_primitive::<Int64Type>().value(row);
            assert_eq!((&text, number(1, row), number(2, row), diff), (key, *value, *time, *sum));
        }
        taken.clear();
        assert!(taken.is_empty() && taken.bytes() == 0);
    }
}

#[test]
fn a_sum_that_does_not_fit_is_no_row() {
    let (keys, pool) = (Keys::Numbers, Pool::unlimited());
    let half = i64::MAX / 2 + 1;
    let sealed: Vec<Batch> =
        [0, 1, 2].map(|time| keys.sealed(&pool, &[(7, 1, time, half), (8, 1, time, 1)])).into();
    let (mut cursor, mut taken) = (Cursor::new(&sealed).unwrap(), TakenRows::new());
    cursor.take_rows(0, &mut taken).unwrap();
    cursor.rewind_values().unwrap();
    let refused = cursor.take_rows(1, &mut taken);
    assert!(matches!(refused, Err(Error::DiffOverflow { .. })), "{refused:?}");
    assert_eq!(taken.len(), 1);
    cursor.step_key().unwrap();
    cursor.take_rows(2, &mut taken).unwrap();
    assert_eq!(taken.len(), 2);
}

#[test]
fn keys_are_probed_in_one_pass() {
    let changes: Vec<Change> = (0..500).map(|n| (n * 2, n % 3, 0, 1)).collect();
    let pool = tiny(300);
    let keys = Keys::Numbers;
    let batch = keys.sealed(&pool, &changes);
    let wanted: Vec<Change> = (0..1000).map(|key| (key, 0, 0, 0)).collect();
    let wanted = keys.record_batch(&wanted).project(&[0]).unwrap();
    let wanted = RowEncoder::of_keys(&keys.by_key()).encode(&wanted).unwrap();
    let mut found = Vec::new();
    let mut cursor = Cursor::new([&batch]).unwrap();
    cursor
        .probe(&wanted, |number, cursor| {
            found.push((number, cursor.value().map(<[u8]>::to_vec)));
            Ok(())
        })
        .unwrap();
    let value = |n: u64| Some((n % 3).to_be_bytes().to_vec());
    assert_eq!(found, (0..500).map(|n| (2 * n as usize, value(n))).collect::<Vec<_>>());
}

#[test]
fn keys_that_are_not_there_are_told_without_their_chunks() {
    let options = PoolOptions::new().policy(ForceSpill);
    let pool = Pool::new(Budget::bytes(16 << 20), options).unwrap();
    let keys = Keys::Numbers;
    let changes: Vec<Change> = (0..100_000).map(|n| (n * 2, 1, 0, 1)).collect();
    let sealed = keys.sealed(&pool, &changes);
    let batch = Merging::new(&keys.by_key(), &pool, [sealed]).filtered().finish().unwrap();
    pool.wait_for_spills();
    pool.release();
    // No capacity to keep chunks that were read.
    pool.set_limit(pool.budget().used() + pool.chunk_bytes()).unwrap();
    let idle = || Cursor::idle(batch.layout(), [&batch]).unwrap();
    let read = || pool.stats().loaded_bytes;
    // In key order, some keys beyond the ends.
    let (before, mut cursor) = (read(), idle());
    for key in (0..100_050).map(|n| n * 2 + 1) {
        assert!(!cursor.find_key(&keys.key_bytes(key)).unwrap() && !cursor.has_key());
    }
    assert!(read() - before <= 100_000 * 32, "each chunk is read once at the most");
    // Each key is looked up without a chunk in memory.
    let mut told = 0;
    for key in (0..1000).map(|n| (n * 7919 % 100_000) * 2 + 1) {
        let before = read();
        assert!(!idle().find_key(&keys.key_bytes(key)).unwrap());
        told += usize::from(read() == before);
    }
    assert!(told >= 970, "{told} of 1000");
    let (mut cursor, before) = (idle(), cursor.filter_tests());
    assert!(before.passes * 50 < before.tests, "of absent keys: {before:?}");
    for key in (0..1000).map(|n| (n * 7919 % 100_000) * 2) {
        assert!(cursor.find_key(&keys.key_bytes(key)).unwrap());
    }
    let tested = cursor.filter_tests();
    assert_eq!((tested.tests, tested.passes), (1000, 1000));
}

#[test]
fn a_key_of_a_page_in_a_store_is_read_with_few_others() {
    for (keys, most) in [(Keys::Numbers, 4500), (Keys::Texts, 6500)] {
        let options = PoolOptions::new().policy(ForceSpill).chunk_bytes(64 << 10);
        let pool = Pool::new(Budget::bytes(16 << 20), options).unwrap().for_index();
        let changes: Vec<Change> = (0..100_000).map(|n| (n * 2, n * 7919, n % 5, 1)).collect();
        let batch = keys.sealed(&pool, &changes).spill().unwrap();
        pool.wait_for_spills();
        pool.release();
        // No capacity to keep chunks that were read.
        pool.set_limit(pool.budget().used() + pool.chunk_bytes()).unwrap();
        let (before, mut cursor) = (pool.stats(), Cursor::idle(batch.layout(), [&batch]).unwrap());
        for at in (0..1000).map(|n| n * 7919 % 100_000) {
            assert!(!cursor.find_key(&keys.key_bytes(at as u64 * 2 + 1)).unwrap());
            assert!(cursor.find_key(&keys.key_bytes(at as u64 * 2)).unwrap());
            assert_eq!(cursor.value(), Some(&changes[at].1.to_be_bytes()[..]));
            let mut times = Vec::new();
            cursor.map_times(|time, diff| times.push((time, diff))).unwrap();
            assert_eq!(times, [(at as u64 % 5, 1)]);
            cursor.step_value().unwrap();
            assert!(!cursor.has_value() && cursor.has_key());
        }
        let read = pool.stats().loaded_bytes - before.loaded_bytes;
        assert!(read < 2000 * most, "{read}");
        // All keys in order: each page is read once, after a part or two of it.
        let before = pool.stats();
        for (at, change) in changes.iter().enumerate() {
            assert!(cursor.find_key(&keys.key_bytes(change.0)).unwrap(), "{at}");
        }
        let read = pool.stats().loaded_bytes - before.loaded_bytes;
        assert!(read < 2 * before.stored_bytes, "{read}");
    }
}

#[test]
fn filters_are_in_the_budget() {
    let (keys, pool) = (Keys::Numbers, Pool::unlimited());
    let changes: Vec<Change> = (0..100_000).map(|n| (n, 1, 0, 1)).collect();
    let batch = keys.sealed(&pool, &changes);
    let before = pool.budget().used();
    let batch = batch.filtered().unwrap();
    let bytes = pool.budget().used() - before;
    assert!((125_000..140_000).contains(&bytes), "ten bits a key: {bytes}");
    drop(batch);
    assert!(pool.budget().used() <= before);
}

#[test]
fn a_scan_holds_one_chunk_of_a_batch_at_a_time() {
    let options = PoolOptions::new().policy(ForceSpill);
    let pool = Pool::new(Budget::bytes(16 << 20), options).unwrap();
    let changes: Vec<Change> = (0..200_000).map(|n| (n, 1, 0, 1)).collect();
    let batch = Keys::Numbers.sealed(&pool, &changes);
    pool.wait_for_spills();
    pool.release();
    let batch = batch.spill().unwrap();
    pool.wait_for_spills();
    pool.release();
    // No capacity to keep chunks that were read.
    pool.set_limit(pool.budget().used() + pool.chunk_bytes()).unwrap();
    let (before, loaded) = (pool.budget().used(), pool.stats().loaded_bytes);
    let mut cursor = Cursor::new([&batch]).unwrap();
    let (mut keys, mut most) = (0, 0);
    while cursor.has_key() {
        keys += 1;
        most = most.max(pool.budget().used());
        cursor.step_key().unwrap();
    }
    assert_eq!(keys, changes.len());
    let once = pool.stats().loaded_bytes - loaded;
    assert!(once >= 200_000 * 32, "all was read, once");
    // And back.
    cursor.fast_forward_keys().unwrap();
    while cursor.has_key() {
        keys -= 1;
        most = most.max(pool.budget().used());
        cursor.step_key_back().unwrap();
    }
    assert_eq!(keys, 0);
    assert!(pool.stats().loaded_bytes - loaded <= 2 * once + pool.chunk_bytes());
    assert!(most <= before + 2 * pool.chunk_bytes(), "{most} {before}");
}

#[test]
fn what_a_cursor_cannot_read_is_refused() {
    let keys = Keys::Numbers;
    let pool = Pool::unlimited();
    let sorted = Order::by("key").bind(&keys.record_batch(&[]).schema()).unwrap();
    let mut batcher = Batcher::new(&sorted, &pool);
    batcher.push(&keys.record_batch(&[(1, 1, 1, 1)])).unwrap();
    let batch = batcher.finish().unwrap();
    assert!(matches!(Cursor::new([&batch]), Err(Error::InvalidOrder(_))));
    assert!(matches!(Cursor::<u64>::new([]), Err(Error::InvalidOrder(_))));
    let (one, other) = (keys.sealed(&pool, &[(1, 1, 1, 1)]), Keys::Texts.sealed(&pool, &[]));
    assert!(matches!(Cursor::new([&one, &other]), Err(Error::SchemaMismatch { .. })));
}
