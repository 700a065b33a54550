//! Filters of spines against a map: at any time that may be read, readers that skip what the filter
//! drops see what was inserted; a compaction leaves nothing else.

use proptest::prelude::*;

use super::cursors::spilling;
use super::spines::seen;
use super::*;
use crate::merge::Retain;
use crate::spine::Spine;
use windrow_rows::{Antichain, Error};

/// Keys from `key` on, each with the values from `from` on and the first `count` others, from the
/// greatest or the least on.
#[derive(Clone, Copy, Debug)]
struct Filter {
    key: u64,
    from: Option<u64>,
    count: usize,
    greatest: bool,
}

impl Filter {
    fn retain(self, keys: Keys) -> Retain {
        let key = keys.key_bytes(self.key);
        let retain = Retain::new().keys(move |other| other >= &key[..]);
        let retain = match self.from {
            Some(from) => retain.values(move |value| value >= &from.to_be_bytes()[..]),
            None => retain,
        };
        if self.greatest { retain.greatest(self.count) } else { retain.least(self.count) }
    }

    /// Returns the present values that are counted, those that stay first.
    fn counted(self, sums: &BTreeMap<u64, i64>) -> Vec<u64> {
        let counts = |value: &u64| self.from.is_none_or(|from| *value < from);
        let present = sums.iter().filter(|(value, sum)| **sum > 0 && counts(value));
        let mut values: Vec<u64> = present.map(|(value, _)| *value).collect();
        if self.greatest {
            values.reverse();
        }
        values
    }

    /// Returns the rows that readers at `time` do not skip.
    fn read(self, keys: Keys, model: &Model, time: u64) -> Vec<(String, u64, i64)> {
        let mut sums: BTreeMap<&String, BTreeMap<u64, i64>> = BTreeMap::new();
        for ((key, value, at), diff) in model {
            if *key >= keys.text(self.key) && *at <= time {
                *sums.entry(key).or_default().entry(*value).or_default() += diff;
            }
        }
        let mut rows = Vec::new();
        for (key, sums) in sums {
            let counted = self.counted(&sums);
            for (value, sum) in sums.into_iter().filter(|(_, sum)| *sum > 0) {
                let place = counted.iter().position(|other| *other == value);
                if place.is_none_or(|place| place < self.count) {
                    rows.push((key.clone(), value, sum));
                }
            }
        }
        rows
    }
}

/// Keys and values that are added, or of which the last counted one is removed; then what the spine
/// does.
#[derive(Clone, Debug)]
struct Round {
    changes: Vec<(u64, u64, u64, bool)>,
    fuel: i64,
    since: u64,
}

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let change = (0..6u64, 0..30u64, 0..4u64, prop::bool::weighted(0.4));
    let round = (prop::collection::vec(change, 0..40), 0..200i64, 0..8u64);
    let round = round.prop_map(|(changes, fuel, since)| Round { changes, fuel, since });
    prop::collection::vec(round, 1..30)
}

fn filters() -> impl Strategy<Value = Filter> {
    (0..3u64, prop::option::of(0..30u64), 0usize..5, any::<bool>())
        .prop_map(|(key, from, count, greatest)| Filter { key, from, count, greatest })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn readers_see_what_a_filter_keeps(
        rounds in rounds(),
        filter in filters(),
        chunk in 60usize..1500,
        keys in prop::sample::select(&ALL_KEYS[..]),
        spills in any::<bool>(),
    ) {
        let pool = if spills { spilling(chunk) } else { tiny(chunk) };
        let layout = keys.by_key();
        let (mut batcher, mut spine) =
            (Batcher::new(&layout, &pool), Spine::new(&layout, &pool).unwrap());
        spine.set_retain(filter.retain(keys)).unwrap();
        let (mut model, mut upper, mut since) = (Model::new(), 0, 0);
        let mut present: BTreeMap<u64, BTreeMap<u64, i64>> = BTreeMap::new();
        for mut round in rounds {
            round.changes.sort_by_key(|change| change.2);
            let mut changes: Vec<Change> = Vec::new();
            for (key, value, time, removes) in round.changes {
                let sums = present.entry(key).or_default();
                let counted = filter.counted(sums);
                // What stays in the count stays present, as callers promise.
                let last = counted.last().filter(|_| removes && counted.len() > filter.count);
                let value = *last.unwrap_or(&value);
                let sum = sums.entry(value).or_default();
                let diff = if last.is_some() { -*sum } else { 1 };
                *sum += diff;
                changes.push((key, value, upper + time, diff));
            }
            upper += 4;
            batcher.push(&keys.record_batch(&changes)).unwrap();
            spine.insert(batcher.seal(&Antichain::at(upper)).unwrap()).unwrap();
            for (row, diff) in keys.model(&changes) {
                *model.entry(row).or_default() += diff;
            }
            spine.work(&mut round.fuel.clone()).unwrap();
            let shown = seen(keys, spine.cursor().unwrap(), &Antichain::at(since));
            for time in since..upper {
                let rows = filter.read(keys, &shown, time);
                prop_assert_eq!(rows, filter.read(keys, &model, time), "at {}", time);
            }
            since = since.max(upper.saturating_sub(1 + round.since));
            spine.set_since(&Antichain::at(since)).unwrap();
        }
        spine.set_since(&Antichain::at(upper)).unwrap();
        spine.compact();
        while !spine.work(&mut 50).unwrap() {}
        let shown = seen(keys, spine.cursor().unwrap(), &Antichain::at(upper));
        let shown: Vec<_> = shown.into_iter().map(|((key, value, _), sum)| (key, value, sum)).collect();
        prop_assert_eq!(&shown, &filter.read(keys, &model, upper));
        prop_assert_eq!(spine.batches().filter_map(Batch::rows).sum::<u64>(), shown.len() as u64);
    }
}

#[test]
fn rows_that_wait_too_long_stay_until_they_count() {
    let (keys, pool) = (Keys::Numbers, Pool::unlimited());
    let layout = keys.by_key();
    let (mut batcher, mut spine) =
        (Batcher::new(&layout, &pool), Spine::new(&layout, &pool).unwrap());
    spine.set_retain(Retain::new().greatest(1)).unwrap();
    let rows = |spine: &Spine| spine.batches().filter_map(Batch::rows).sum::<u64>();
    // The values come after the greatest one: 1 MiB of them waits for it.
    let later = (0..40_000).map(|value| (7, value, 5, 1));
    let changes: Vec<Change> = later.chain([(7, 50_000, 0, 1)]).collect();
    batcher.push(&keys.record_batch(&changes)).unwrap();
    spine.insert(batcher.seal(&Antichain::at(6)).unwrap()).unwrap();
    for (since, left) in [(0, (1 << 20) / 32 + 2), (5, 1)] {
        spine.set_since(&Antichain::at(since)).unwrap();
        spine.compact();
        while !spine.work(&mut 5000).unwrap() {}
        assert_eq!(rows(&spine), left, "{since}");
    }
    let work = spine.work_done();
    assert_eq!((work.dropped, work.merged - work.written), (40_000, 40_000));
    assert!(work.nanoseconds > 0);
}

#[test]
fn rows_that_wait_are_leased() {
    let peak = |count| {
        let (keys, pool) = (Keys::Numbers, Pool::unlimited());
        let layout = keys.by_key();
        let (mut batcher, mut spine) =
            (Batcher::new(&layout, &pool), Spine::new(&layout, &pool).unwrap());
        spine.set_retain(Retain::new().greatest(count)).unwrap();
        let changes: Vec<Change> = (0..200_000).map(|value| (7, value, 0, 1)).collect();
        batcher.push(&keys.record_batch(&changes)).unwrap();
        spine.insert(batcher.seal(&Antichain::at(1)).unwrap()).unwrap();
        spine.compact();
        while !spine.work(&mut 200_000).unwrap() {}
        assert_eq!(spine.batches().filter_map(Batch::rows).sum::<u64>(), count as u64);
        pool.budget().peak()
    };
    // A row takes 32 bytes, in the output and where it waits.
    let (few, many) = (peak(1), peak(100_000));
    assert!(many >= few + 2 * 32 * 100_000, "{few} {many}");
}

#[test]
fn values_are_counted_by_one_sum() {
    let numbers = || Arc::new(Int64Array::from(vec![1])) as ArrayRef;
    let batch = RecordBatch::try_from_iter(["key", "count", "sum"].map(|name| (name, numbers())));
    let layout = Order::by("key").diffs(["count", "sum"]).bind(&batch.unwrap().schema()).unwrap();
    let mut spine = Spine::<()>::new(&layout, &Pool::unlimited()).unwrap();
    let refused = spine.set_retain(Retain::new().greatest(1));
    assert!(matches!(refused, Err(Error::InvalidOrder(_))), "{refused:?}");
    spine.set_retain(Retain::new().keys(|_| true)).unwrap();
}
