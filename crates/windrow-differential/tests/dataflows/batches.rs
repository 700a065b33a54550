//! Unit tests of cursors, merges and builders, against a map.

use std::collections::BTreeMap;

use differential_dataflow::batcher::{Batcher, Extract};
use differential_dataflow::trace::implementations::spine_fueled::{Merger, SpineBatch};
use differential_dataflow::trace::{Builder, Cursor, Navigable};
use proptest::prelude::*;
use timely::progress::frontier::AntichainRef;
use timely::progress::{Antichain, Timestamp};
use windrow::{Budget, ForceSpill, Pool, PoolOptions};
use windrow_differential::{
    Context, Enc, Row, RowBatch, RowBatcher, RowBuffer, RowBuilder, RowMerger,
};

type Change<K> = ((K, u64), u64, isize);
type Model<K> = BTreeMap<K, BTreeMap<u64, BTreeMap<u64, isize>>>;
type Of<K> = RowBatch<K, u64, u64, isize>;

/// Contexts whose chunks hold some three rows: in memory, and on disk.
fn contexts() -> [Context; 2] {
    let options = || PoolOptions::new().chunk_bytes(96);
    let resident = Pool::new(Budget::unlimited(), options()).unwrap();
    let spilled = Pool::new(Budget::bytes(64 << 20), options().policy(ForceSpill)).unwrap();
    [Context::new(resident), Context::new(spilled)]
}

fn model<K: Row>(changes: &[Change<K>], since: u64) -> Model<K> {
    let mut model = Model::new();
    for ((key, value), time, diff) in changes {
        let times = model.entry(key.clone()).or_default().entry(*value).or_default();
        *times.entry((*time).max(since)).or_default() += diff;
    }
    for values in model.values_mut() {
        values.values_mut().for_each(|times| times.retain(|_, diff| *diff != 0));
        values.retain(|_, times| !times.is_empty());
    }
    model.retain(|_, values| !values.is_empty());
    model
}

/// Collects everything that a cursor visits from its first key on.
fn shown<K: Row>(batch: &Of<K>) -> Model<K> {
    let mut cursor = batch.cursor();
    let mut model = Model::new();
    while let Some(key) = cursor.get_key(batch) {
        while let Some(value) = cursor.get_val(batch) {
            let times = model.entry(key.get()).or_default().entry(value.get()).or_default();
            cursor.map_times(batch, |time, diff| {
                assert!(times.insert(*time, *diff).is_none(), "a time comes twice");
            });
            cursor.step_val(batch);
        }
        cursor.step_key(batch);
    }
    model
}

fn sealed<K: Row>(context: &Context, changes: &[Change<K>]) -> Option<Of<K>> {
    let mut batcher = RowBatcher::new(context);
    batcher.insert(&mut changes.to_vec());
    batcher.extract(AntichainRef::new(&[])).0
}

fn changes() -> impl Strategy<Value = Vec<Change<u64>>> {
    let change = (0..6u64, 0..3u64, 0..5u64, prop_oneof![Just(1isize), Just(-1), Just(2)]);
    prop::collection::vec(change.prop_map(|(k, v, t, r)| ((2 * k, v), t, r)), 1..60)
}

/// The same with keys of several lengths.
fn text(changes: &[Change<u64>]) -> Vec<Change<String>> {
    let key = |key: u64| format!("{key:02}{}", "x".repeat(key as usize % 5));
    changes.iter().map(|((k, v), t, r)| ((key(*k), *v), *t, *r)).collect()
}

#[derive(Clone, Debug)]
enum Move {
    SeekKey(u64),
    StepKey,
    RewindKeys,
    SeekVal(u64),
    StepVal,
    RewindVals,
    MapTimes,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let each = prop_oneof![
        3 => (0..14u64).prop_map(Move::SeekKey),
        3 => Just(Move::StepKey),
        1 => Just(Move::RewindKeys),
        2 => (0..4u64).prop_map(Move::SeekVal),
        4 => Just(Move::StepVal),
        2 => Just(Move::RewindVals),
        2 => Just(Move::MapTimes),
    ];
    prop::collection::vec(each, 1..60)
}

/// Makes the same moves with a cursor and in the model.
fn agree(batch: &Of<u64>, model: &Model<u64>, moves: &[Move]) {
    let keys: Vec<u64> = model.keys().copied().collect();
    let values = |key: usize| -> Vec<u64> {
        keys.get(key).map_or(Vec::new(), |key| model[key].keys().copied().collect())
    };
    let (mut cursor, mut key, mut value) = (batch.cursor(), 0, 0);
    for each in moves {
        match each {
            Move::SeekKey(to) => {
                cursor.seek_key(batch, Enc::new(&to.to_bytes()));
                (key, value) = (keys.partition_point(|key| key < to), 0);
            }
            Move::StepKey => {
                cursor.step_key(batch);
                (key, value) = ((key + 1).min(keys.len()), 0);
            }
            Move::RewindKeys => {
                cursor.rewind_keys(batch);
                (key, value) = (0, 0);
            }
            Move::SeekVal(to) => {
                cursor.seek_val(batch, Enc::new(&to.to_bytes()));
                value = value.max(values(key).partition_point(|value| value < to));
            }
            Move::StepVal => {
                cursor.step_val(batch);
                value = (value + 1).min(values(key).len());
            }
            Move::RewindVals => {
                cursor.rewind_vals(batch);
                value = 0;
            }
            Move::MapTimes => {
                let mut times = BTreeMap::new();
                cursor.map_times(batch, |time, diff| {
                    times.insert(*time, *diff);
                });
                let expected = values(key).get(value).map(|value| model[&keys[key]][value].clone());
                assert_eq!(times, expected.unwrap_or_default());
            }
        }
        assert_eq!(cursor.get_key(batch).map(Enc::get), keys.get(key).copied(), "{each:?}");
        assert_eq!(
            cursor.get_val(batch).map(Enc::get),
            values(key).get(value).copied(),
            "{each:?}"
        );
        assert_eq!(cursor.key_valid(batch), key < keys.len());
        assert_eq!(cursor.val_valid(batch), value < values(key).len());
    }
}

/// Merges two batches with `fuel` per step, and returns the result.
fn merged<K: Row>(a: &Of<K>, b: &Of<K>, since: u64, fuel: isize) -> Option<Of<K>> {
    let since = Antichain::from_elem(since);
    let mut merger = RowMerger::new(a, b, since.borrow());
    loop {
        let mut left = fuel;
        merger.work(a, b, &mut left);
        if left > 0 {
            return merger.done();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn cursors_move_as_in_a_map(changes in changes(), moves in moves()) {
        for context in contexts() {
            if let Some(batch) = sealed(&context, &changes) {
                let model = model(&changes, 0);
                assert_eq!(shown(&batch), model);
                assert_eq!(shown(&batch.clone()), model);
                agree(&batch, &model, &moves);
            }
        }
    }

    #[test]
    fn merges_come_to_the_sum(a in changes(), b in changes(), since in 0..6u64, fuel in 1..20isize) {
        for context in contexts() {
            let all = [a.clone(), b.clone()].concat();
            if let (Some(a), Some(b)) = (sealed(&context, &a), sealed(&context, &b)) {
                let batch = merged(&a, &b, since, fuel);
                let model = model(&all, since);
                assert_eq!(batch.as_ref().map(shown).unwrap_or_default(), model);
                let rows: usize = model.values().flatten().map(|(_, times)| times.len()).sum();
                assert_eq!(batch.map_or(0, |batch| batch.len()), rows);
            }
            let (text_a, text_b) = (text(&a), text(&b));
            if let (Some(a), Some(b)) = (sealed(&context, &text_a), sealed(&context, &text_b)) {
                let batch = merged(&a, &b, since, fuel);
                let model = model(&[text_a, text_b].concat(), since);
                assert_eq!(batch.as_ref().map(shown).unwrap_or_default(), model);
            }
        }
    }

    #[test]
    fn builders_sort_and_add_up(changes in changes()) {
        for context in contexts() {
            let mut builder = RowBuilder::default();
            for ((key, value), time, diff) in text(&changes) {
                let mut buffer = RowBuffer::default();
                buffer.restart(&context);
                buffer.push(&key.to_bytes(), &value, &time, &diff);
                builder.push(&mut buffer);
            }
            let batch: Option<Of<String>> = builder.done();
            assert_eq!(batch.as_ref().map(shown).unwrap_or_default(), model(&text(&changes), 0));
        }
    }

    #[test]
    fn batchers_keep_what_is_not_complete(changes in changes(), uppers in prop::collection::vec(0..7u64, 0..4)) {
        let mut uppers = uppers;
        uppers.sort_unstable();
        for context in contexts() {
            let mut batcher = RowBatcher::<u64, u64, u64, isize>::new(&context);
            batcher.insert(&mut changes.clone());
            let mut lower = u64::minimum();
            for upper in uppers.iter().map(|upper| Some(*upper)).chain([None]) {
                let frontier: Antichain<u64> = upper.into_iter().collect();
                let (batch, held) = batcher.extract(frontier.borrow());
                let within = |time: u64| time >= lower && upper.is_none_or(|upper| time < upper);
                let some: Vec<_> = changes.iter().filter(|(_, time, _)| within(*time)).cloned().collect();
                assert_eq!(batch.as_ref().map(shown).unwrap_or_default(), model(&some, 0));
                let rest: Vec<_> =
                    changes.iter().filter(|(_, time, _)| upper.is_some_and(|upper| *time >= upper)).cloned().collect();
                let times = model(&rest, 0).into_values().flat_map(BTreeMap::into_values).flat_map(BTreeMap::into_keys);
                assert_eq!(held.to_owned(), times.collect::<Antichain<u64>>());
                lower = upper.unwrap_or(u64::MAX);
            }
        }
    }
}
