//! A spine that is inserted into, merged bit by bit and forgets, and a cursor that is moved about in it, in an order that
//! nobody thought of: in memory without a limit and by a pool that writes everything to its file, with keys that vary and
//! of one length. A map of maps says what they are to show.

#![no_main]

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use windrow::arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, UInt64Array};
use windrow::arrow_schema::{DataType, Field, Schema};
use windrow::{
    Antichain, Batcher, Budget, Cursor, ForceSpill, Layout, Order, Pool, RowEncoder, Spine,
};

/// Layouts of keys that vary and of keys of one length.
static LAYOUTS: LazyLock<[Layout; 2]> = LazyLock::new(|| {
    [DataType::Binary, DataType::UInt64].map(|keys| {
        let schema = Schema::new(vec![
            Field::new("key", keys, false),
            Field::new("value", DataType::UInt64, false),
            Field::new("time", DataType::UInt64, false),
            Field::new("diff", DataType::Int64, false),
        ]);
        let order = Order::by("key").time("time").diff("diff");
        order.bind(&Arc::new(schema)).expect("columns that there are")
    })
});

/// A pool whose pages are all written to its file and read back.
static FILE: LazyLock<Pool> = LazyLock::new(|| {
    let pool = Pool::in_dir(std::env::temp_dir(), Budget::bytes(64 << 20))
        .expect("a directory for temporary files");
    pool.set_policy(Arc::new(ForceSpill));
    pool
});

/// Key, value, time, diff.
type Change = (u8, u64, u64, i64);

/// By key and value, the sums of diffs by time.
type Shown = BTreeMap<Vec<u8>, BTreeMap<u64, BTreeMap<u64, i64>>>;

fn varies(layout: &Layout) -> bool {
    layout.schema().field(0).data_type() == &DataType::Binary
}

/// Words that share long beginnings, some of them all of another.
fn word(key: u8) -> Vec<u8> {
    let mut word = vec![b'w'; usize::from(key % 8) * 3];
    word.extend([key / 8; 2]);
    word
}

fn keys_of(layout: &Layout, keys: impl Iterator<Item = u8>) -> ArrayRef {
    match varies(layout) {
        true => Arc::new(BinaryArray::from_iter_values(keys.map(word))),
        false => Arc::new(UInt64Array::from_iter_values(keys.map(u64::from))),
    }
}

fn record_batch(layout: &Layout, changes: &[Change]) -> RecordBatch {
    let keys = keys_of(layout, changes.iter().map(|change| change.0));
    let values = UInt64Array::from_iter_values(changes.iter().map(|change| change.1));
    let times = UInt64Array::from_iter_values(changes.iter().map(|change| change.2));
    let diffs = Int64Array::from_iter_values(changes.iter().map(|change| change.3));
    let columns = vec![keys, Arc::new(values) as _, Arc::new(times) as _, Arc::new(diffs) as _];
    RecordBatch::try_new(layout.schema().clone(), columns).expect("columns as the schema has them")
}

/// The bytes of keys, as cursors have them.
fn encoded(layout: &Layout, keys: &[u8]) -> windrow::Rows {
    let fields = vec![layout.schema().field(0).clone()];
    let keys = keys_of(layout, keys.iter().copied());
    let keys = RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![keys]);
    let encoder = RowEncoder::of_keys(layout);
    encoder.encode(&keys.expect("a column of keys")).expect("keys can be encoded")
}

/// What there is at times from `since` on.
fn shown(layout: &Layout, changes: &[Change], since: u64) -> Shown {
    let mut shown = Shown::new();
    for &(key, value, time, diff) in changes {
        let times = shown.entry(encoded(layout, &[key]).row(0).to_vec()).or_default();
        *times.entry(value).or_default().entry(time.max(since)).or_default() += diff;
    }
    for values in shown.values_mut() {
        values.values_mut().for_each(|times| times.retain(|_, diff| *diff != 0));
        values.retain(|_, times| !times.is_empty());
    }
    shown.retain(|_, values| !values.is_empty());
    shown
}

/// The sums of diffs of the value that the cursor is at; those that are not zero.
fn times(cursor: &mut Cursor, since: u64) -> BTreeMap<u64, i64> {
    let mut times = BTreeMap::new();
    let add = |time: u64, diff| *times.entry(time.max(since)).or_default() += diff;
    cursor.map_times(add).expect("a chunk can be read");
    times.retain(|_, diff| *diff != 0);
    times
}

/// The values of the key that the cursor is at, from its value on; those that did not cancel.
fn values(cursor: &mut Cursor, since: u64) -> BTreeMap<u64, BTreeMap<u64, i64>> {
    let mut found = BTreeMap::new();
    while let Some(value) = cursor.value() {
        let value = u64::from_be_bytes(value.try_into().expect("eight bytes"));
        let times = times(cursor, since);
        if !times.is_empty() {
            found.insert(value, times);
        }
        cursor.step_value().expect("a chunk can be read");
    }
    found
}

/// Moves a cursor about, each move chosen by two bytes.
fn moved(cursor: &mut Cursor, layout: &Layout, shown: &Shown, since: u64, moves: &[u8]) {
    for pair in moves.chunks_exact(2) {
        let [step, key] = [pair[0], pair[1] % 64];
        let keys = encoded(layout, &[key]);
        let wanted = keys.row(0);
        match step % 5 {
            0 => {
                cursor.seek_key(wanted).expect("a chunk can be read");
                let at = cursor.key();
                assert!(at.is_none_or(|at| at >= wanted), "a key that is not less");
                // All those before it have cancelled, if there are any in between.
                let mut between = shown.range(wanted.to_vec()..).map(|(key, _)| &key[..]);
                assert!(between.next().is_none_or(|next| at.is_some_and(|at| at <= next)));
            }
            1 => {
                let found = cursor.find_key(wanted).expect("a chunk can be read");
                assert!(found || !shown.contains_key(wanted), "a key that is there");
                assert_eq!(found, cursor.has_key());
            }
            2 => {
                let before = cursor.key().map(<[u8]>::to_vec);
                cursor.step_key().expect("a chunk can be read");
                assert!(
                    cursor.key().is_none_or(|key| before.is_some_and(|before| *key > before[..]))
                );
            }
            3 if cursor.has_key() => {
                let value = u64::from(key % 4);
                cursor.seek_value(&value.to_be_bytes()).expect("a chunk can be read");
                assert!(cursor.value().is_none_or(|found| found >= &value.to_be_bytes()[..]));
            }
            _ => {
                cursor.rewind_values().expect("a chunk can be read");
                let Some(key) = cursor.key().map(<[u8]>::to_vec) else { continue };
                let expected = shown.get(&key).cloned().unwrap_or_default();
                assert_eq!(values(cursor, since), expected);
            }
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&shape, mut bytes)) = data.split_first() else { return };
    let pool = if shape & 1 > 0 { FILE.clone() } else { Pool::unlimited() };
    let layout = &LAYOUTS[usize::from(shape & 2 > 0)];
    let mut batcher = Batcher::new(layout, &pool);
    let mut spine = Spine::new(layout, &pool).expect("a layout with times and diffs");
    let (mut changes, mut upper, mut since): (Vec<Change>, u64, u64) = (Vec::new(), 0, 0);
    while let Some((&[step, count], rest)) = bytes.split_first_chunk() {
        let (front, rest) = rest.split_at((usize::from(count) * 3).min(rest.len()));
        match step % 5 {
            0 | 1 => {
                bytes = rest;
                let change = |bytes: &[u8]| {
                    let (value, time) = (u64::from(bytes[1] % 4), upper + u64::from(bytes[1] / 64));
                    (bytes[0] % 64, value, time, i64::from(bytes[2] as i8 % 3))
                };
                let new: Vec<Change> = front.chunks_exact(3).map(change).collect();
                batcher.push(&record_batch(layout, &new)).expect("changes can be pushed");
                changes.extend(new);
                upper += 4;
                let batch = batcher.seal(&Antichain::at(upper)).expect("changes can be sealed");
                spine.insert(batch).expect("batches follow each other");
            }
            2 => {
                bytes = &bytes[2..];
                spine.work(&mut i64::from(count)).expect("batches can be merged");
            }
            3 => {
                bytes = &bytes[2..];
                since = (since + u64::from(count % 8)).min(upper);
                spine.set_since(&Antichain::at(since)).expect("a frontier that goes on");
            }
            _ => {
                bytes = rest;
                let shown = shown(layout, &changes, since);
                let mut cursor = spine.idle_cursor().expect("batches can be read");
                moved(&mut cursor, layout, &shown, since, front);
                let keys: Vec<u8> = front.iter().map(|key| key % 64).collect();
                let rows = encoded(layout, &keys);
                let mut there = vec![false; keys.len()];
                cursor
                    .probe(&rows, |number, cursor| {
                        there[number] = true;
                        let expected = shown.get(rows.row(number)).cloned().unwrap_or_default();
                        assert_eq!(values(cursor, since), expected);
                        Ok(())
                    })
                    .expect("a chunk can be read");
                for (row, there) in rows.iter().zip(there) {
                    assert!(there || !shown.contains_key(row), "a key that is there");
                }
            }
        }
    }
    while !spine.work(&mut 1000).expect("batches can be merged") {}
    let mut cursor = spine.cursor().expect("batches can be read");
    let mut found = Shown::new();
    while let Some(key) = cursor.key().map(<[u8]>::to_vec) {
        let values = values(&mut cursor, since);
        if !values.is_empty() {
            found.insert(key, values);
        }
        cursor.step_key().expect("a chunk can be read");
    }
    assert_eq!(found, shown(layout, &changes, since));
});
