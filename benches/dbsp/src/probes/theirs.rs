//! DBSP's side: a spine of indexed Z-sets, the form of tables in circuits; a spine of timed
//! batches, the form in nested loops; and a cursor over a list of batches.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use dbsp::dynamic::{DynData, Erase};
use dbsp::trace::{Batch, BatchReader, Cursor, Spine, SpineSnapshot, Trace as _};
use dbsp::typed_batch::{
    BatchReader as TypedReader, DynOrdIndexedZSet, DynOrdValBatch, OrdValBatch,
};
use dbsp::utils::Tup2;
use dbsp::{DynZWeight, OrdIndexedZSet, ZWeight};

use crate::changes::keys_of;

type Untimed = DynOrdIndexedZSet<DynData, DynData>;
type Timed = DynOrdValBatch<DynData, DynData, u32, DynZWeight>;

/// A spine counts as idle after this time without changes. A merge of all batches takes less.
const REST: Duration = Duration::from_millis(500);

/// Creates changes of keys with themselves as values.
fn changes(batch: u64, batches: u64, keys: u64) -> Vec<Tup2<Tup2<u64, u64>, ZWeight>> {
    keys_of(batch, batches, keys).map(|key| Tup2(Tup2(key, key), 1)).collect()
}

/// Builds a spine. Each batch is inserted after all merges of earlier ones have ended.
fn spine<B: Batch>(factories: &B::Factories, batches: impl Iterator<Item = B>) -> Spine<B> {
    let mut spine = Spine::new(factories, Arc::new("probes".into()));
    for batch in batches {
        spine.insert_without_blocking(batch);
        wait_for_merges(&spine);
    }
    spine
}

fn wait_for_merges<B: Batch>(spine: &Spine<B>) {
    let mut before = (spine.get_batches(), Instant::now());
    while before.1.elapsed() < REST {
        sleep(REST / 50);
        let now = spine.get_batches();
        let same = |(a, b): (&Arc<B>, &Arc<B>)| Arc::ptr_eq(a, b);
        if now.len() != before.0.len() || !now.iter().zip(&before.0).all(same) {
            before = (now, Instant::now());
        }
    }
}

/// Builds a spine of batches with distinct times.
pub(super) fn timed(batches: u64, keys: u64) -> Spine<Timed> {
    type Typed = OrdValBatch<u64, u64, u32, ZWeight, DynZWeight>;
    let batch = |at| Typed::from_tuples(at as u32, changes(at, batches, keys)).into_inner();
    spine(&<Typed as TypedReader>::factories(), (0..batches).map(batch))
}

fn batch(batch: u64, batches: u64, keys: u64) -> Untimed {
    OrdIndexedZSet::from_tuples((), changes(batch, batches, keys)).into_inner()
}

/// Builds a spine of untimed batches.
pub(super) fn untimed(batches: u64, keys: u64) -> Spine<Untimed> {
    let factories = <OrdIndexedZSet<u64, u64> as TypedReader>::factories();
    spine(&factories, (0..batches).map(|at| batch(at, batches, keys)))
}

/// Returns unmerged batches under one cursor.
pub(super) fn snapshot(batches: u64, keys: u64) -> SpineSnapshot<Untimed> {
    let factories = <OrdIndexedZSet<u64, u64> as TypedReader>::factories();
    let all = (0..batches).map(|at| Arc::new(batch(at, batches, keys))).collect();
    SpineSnapshot::with_batches(&factories, all)
}

/// Returns the sum of all diffs.
pub(super) fn scan(trace: &SpineSnapshot<Untimed>) -> i64 {
    let (mut cursor, mut sum) = (trace.cursor(), 0);
    while cursor.key_valid() {
        while cursor.val_valid() {
            sum += **cursor.weight();
            cursor.step_val();
        }
        cursor.step_key();
    }
    sum
}

/// Returns the sum of the keys' diffs. Each search starts at the previous key's position, or is an
/// exact look-up.
pub(super) fn probe<B>(trace: &B, keys: &[u64], is_exact: bool) -> i64
where
    B: BatchReader<Key = DynData, Val = DynData, Time = (), R = DynZWeight>,
{
    found(trace.cursor(), keys, is_exact, |cursor| **cursor.weight())
}

/// As [`probe`], with times.
pub(super) fn probe_timed(trace: &Spine<Timed>, keys: &[u64], is_exact: bool) -> i64 {
    found(trace.cursor(), keys, is_exact, |cursor| {
        let mut sum = 0;
        cursor.map_times(&mut |_, diff| sum += **diff);
        sum
    })
}

fn found<T, C>(mut cursor: C, keys: &[u64], is_exact: bool, diffs: impl Fn(&mut C) -> i64) -> i64
where
    C: Cursor<DynData, DynData, T, DynZWeight>,
{
    let mut sum = 0;
    for key in keys {
        let key: &DynData = key.erase();
        let is_found = if is_exact {
            cursor.seek_key_exact(key, None)
        } else {
            cursor.seek_key(key);
            cursor.key_valid() && cursor.key() == key
        };
        while is_found && cursor.val_valid() {
            sum += diffs(&mut cursor);
            cursor.step_val();
        }
    }
    sum
}
