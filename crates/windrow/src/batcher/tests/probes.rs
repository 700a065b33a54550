//! Look-ups of many keys against a map of maps: in any order, with repetitions, over any number of
//! batches.

use proptest::prelude::*;

use super::cursors::{Shown, spilling};
use super::*;
use crate::cursor::{Cursor, KeyBlock};
use windrow_rows::RowEncoder;

/// The times and diffs of each value.
type Values = BTreeMap<u64, Vec<(u64, i64)>>;

/// Looks up `wanted`, and moves the cursor away from each key found.
fn agree(keys: Keys, pool: &Pool, batches: &[Vec<Change>], wanted: &[u64], filtered: bool) {
    let sealed = batches.iter().map(|changes| keys.sealed(pool, changes));
    let sealed: Vec<Batch> = match filtered {
        true => sealed.map(|batch| batch.filtered().unwrap()).collect(),
        false => sealed.collect(),
    };
    let mut cursor = Cursor::idle(&keys.by_key(), sealed.iter()).unwrap();
    let of_keys: Vec<Change> = wanted.iter().map(|&key| (key, 0, 0, 0)).collect();
    let of_keys = keys.record_batch(&of_keys).project(&[0]).unwrap();
    let rows = RowEncoder::of_keys(&keys.by_key()).encode(&of_keys).unwrap();
    let mut found = Vec::new();
    cursor
        .probe(&rows, |number, cursor| {
            assert_eq!(cursor.key(), Some(rows.row(number)));
            let mut values = BTreeMap::new();
            while let Some(value) = cursor.value() {
                let value = u64::from_be_bytes(value.try_into().unwrap());
                let mut times = Vec::new();
                cursor.map_times(|time, diff| times.push((time, diff)))?;
                times.sort_unstable();
                values.insert(value, times);
                cursor.step_value()?;
            }
            match number % 3 {
                0 => cursor.step_key()?,
                1 => cursor.rewind_keys()?,
                _ => {}
            }
            found.push((number, values));
            Ok(())
        })
        .unwrap();
    let shown: Shown = keys.shown(batches);
    let there = wanted.iter().enumerate();
    let expected: Vec<_> = there
        .filter_map(|(number, &key)| Some((number, shown.get(&keys.text(key))?.clone())))
        .collect();
    assert_eq!(found, expected);
    let mut numbers = Vec::new();
    let mut block = KeyBlock::new();
    for (first, row) in rows.iter().enumerate() {
        block.push(row);
        if block.is_full() || first + 1 == rows.len() {
            numbers.extend(found_in(&block, &mut cursor, first + 1 - block.len()));
            block.clear();
        }
    }
    assert_eq!(numbers, expected);
}

/// Looks up the keys of `block`, and moves the cursor away between look-ups. The first key has the
/// number `first`.
fn found_in(block: &KeyBlock, cursor: &mut Cursor, first: usize) -> Vec<(usize, Values)> {
    cursor.locate(block);
    let mut found = Vec::new();
    for number in 0..block.len() {
        let mut values = Values::new();
        let is_there = cursor.map_located(block, number, |value, time, diff: i64| {
            let value = u64::from_be_bytes(value.try_into().unwrap());
            values.entry(value).or_default().push((time, diff));
        });
        values.values_mut().for_each(|times| times.sort_unstable());
        if is_there.unwrap() {
            assert_eq!(cursor.key(), Some(block.key(number)));
            found.push((first + number, values));
        }
        match number % 3 {
            0 => cursor.step_key().unwrap(),
            1 => cursor.rewind_keys().unwrap(),
            _ => {}
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn probes_find_what_the_map_has(
        batches in prop_oneof![
            4 => prop::collection::vec(
                prop::collection::vec((0..90u64, 0..3u64, 0..4u64, -1..3i64), 0..200), 1..6),
            1 => prop::collection::vec(
                prop::collection::vec((0..90u64, 0..3u64, 0..4u64, -1..3i64), 0..8), 60..140),
        ],
        mut wanted in prop::collection::vec(0..100u64, 0..200),
        sorted in any::<bool>(),
        chunk in prop_oneof![2 => 40usize..1200, 1 => 1200usize..8000],
        keys in prop::sample::select(&ALL_KEYS[..]),
        (spills, filtered) in any::<(bool, bool)>(),
    ) {
        if sorted {
            wanted.sort_unstable();
        }
        let pool = if spills { spilling(chunk) } else { tiny(chunk) };
        agree(keys, &pool, &batches, &wanted, filtered);
    }
}

#[test]
fn rows_that_are_not_kept_in_memory_are_found() {
    let keys = Keys::LongTexts;
    let pool = spilling(60_000);
    let long = "a long beginning ".repeat(100);
    let batch = |keys: std::ops::Range<u64>| {
        let texts = keys.clone().map(|key| format!("{long}{key:06}"));
        let numbers = |of: u64| -> ArrayRef {
            Arc::new(UInt64Array::from_iter_values(keys.clone().map(|_| of)))
        };
        RecordBatch::try_from_iter([
            ("key", Arc::new(StringArray::from_iter_values(texts)) as ArrayRef),
            ("value", numbers(1)),
            ("time", numbers(0)),
            ("diff", Arc::new(Int64Array::from_iter_values(keys.clone().map(|_| 1)))),
        ])
        .unwrap()
    };
    let layout = keys.by_key();
    let mut batcher: Batcher = Batcher::new(&layout, &pool);
    batcher.push(&batch(0..300)).unwrap();
    let sealed = batcher.seal(&windrow_rows::Antichain::new()).unwrap();
    let wanted = RowEncoder::of_keys(&layout).encode(&batch(200..400).project(&[0]).unwrap());
    let mut numbers = Vec::new();
    let probe = |number, _: &mut Cursor| {
        numbers.push(number);
        Ok(())
    };
    Cursor::new([&sealed]).unwrap().probe(&wanted.unwrap(), probe).unwrap();
    assert_eq!(numbers, (0..100).collect::<Vec<_>>());
}
