//! Seals, one after the other, of changes whose times lie far ahead: each ships what a map ships.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::arrays::Rng;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
use windrow::{Antichain, Batcher, Budget, Order, Pool};

/// A time, a key and a diff.
type Change = (u64, u64, i64);

fn record_batch(changes: &[Change]) -> RecordBatch {
    let times = UInt64Array::from_iter_values(changes.iter().map(|change| change.0));
    let keys = UInt64Array::from_iter_values(changes.iter().map(|change| change.1));
    let diffs = Int64Array::from_iter_values(changes.iter().map(|change| change.2));
    let columns: [(&str, ArrayRef); 3] =
        [("key", Arc::new(keys)), ("time", Arc::new(times)), ("diff", Arc::new(diffs))];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Returns `count` changes at or beyond `from`, of few keys, so that some cancel.
fn changes(rng: &mut Rng, count: usize, from: u64, most: u64) -> Vec<Change> {
    let change = |_| {
        // Half of the changes are near.
        let ahead = if rng.below(2) == 0 { 20 } else { most + 1 - from.min(most) };
        let time = from + rng.below(ahead as usize) as u64;
        (time, rng.below(2000) as u64, [-1, 1, 1, 2][rng.below(4)])
    };
    (0..count).map(change).collect()
}

#[test]
fn many_seals_ship_what_a_map_ships() {
    const SEALS: u64 = 120;
    let layout = Order::by("key").time("time").diff("diff");
    let layout = layout.bind(&record_batch(&[]).schema()).unwrap();
    let in_files = |bytes| Pool::in_dir(std::env::temp_dir(), Budget::bytes(bytes)).unwrap();
    for pool in [Pool::unlimited(), in_files(16 << 20), in_files(1 << 20)] {
        let rng = &mut Rng::new(31);
        let mut batcher = Batcher::new(&layout, &pool);
        let mut pending = BTreeMap::new();
        let mut upper = 0;
        while upper <= SEALS {
            let count = [0, 300, 2_000][rng.below(3)] + if upper == 0 { 150_000 } else { 0 };
            let pushed = changes(rng, count, upper, 10 * SEALS);
            batcher.push(&record_batch(&pushed)).unwrap();
            for (time, key, diff) in pushed {
                *pending.entry((time, key)).or_insert(0) += diff;
            }
            pending.retain(|_, diff| *diff != 0);
            upper += 1 + rng.below(3) as u64;
            let rest = pending.split_off(&(upper, 0));
            let expected = std::mem::replace(&mut pending, rest);
            let sealed = batcher.seal(&Antichain::at(upper)).unwrap();
            let mut shipped = BTreeMap::new();
            for rows in sealed.record_batches(8192).unwrap() {
                let rows = rows.unwrap();
                let [keys, times] = [0, 1].map(|at| rows.column(at).as_primitive::<UInt64Type>());
                let diffs = rows.column(2).as_primitive::<Int64Type>().values();
                let rows = times.values().iter().zip(keys.values()).zip(diffs);
                shipped.extend(rows.map(|((&time, &key), &diff)| ((time, key), diff)));
            }
            assert!(shipped == expected, "before {upper}");
            let least = pending.first_key_value().map(|(row, _)| row.0);
            assert_eq!(batcher.frontier(), &least.into_iter().collect(), "before {upper}");
        }
        let rest: i64 =
            batcher.finish().unwrap().record_batches(8192).unwrap().fold(0, |sum, rows| {
                sum + rows
                    .unwrap()
                    .column(2)
                    .as_primitive::<Int64Type>()
                    .values()
                    .iter()
                    .sum::<i64>()
            });
        assert_eq!(rest, pending.values().sum::<i64>());
    }
}
