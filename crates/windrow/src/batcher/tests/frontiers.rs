//! Sealing, frontiers and advancing, for totally and partially ordered times.

use std::sync::Mutex;

use proptest::prelude::*;

use super::*;
use crate::batcher::Accounting;
use windrow_pool::{Budget, ForceSpill, PoolOptions};
use windrow_rows::{Antichain, Error};

/// Pushes rounds of changes and seals after each; every batch must match the model.
fn seals<T: Time>(keys: Keys, pool: &Pool, rounds: &[(Vec<Change>, Antichain<T>)]) {
    (1..4).step_by(2).for_each(|threads| seals_on(threads, keys, pool, rounds));
}

fn seals_on<T: Time>(
    threads: usize,
    keys: Keys,
    pool: &Pool,
    rounds: &[(Vec<Change>, Antichain<T>)],
) {
    let held = Arc::new(Mutex::new(Accounting::default()));
    let sink = Arc::clone(&held);
    let mut batcher = Batcher::<T>::accounted(&keys.layout(), pool, move |change| {
        *sink.lock().unwrap() += change
    })
    .with_threads(threads);
    let mut pending = Model::new();
    let mut lower = Antichain::least();
    let limit = pool.budget().limit();
    for (round, (changes, upper)) in rounds.iter().enumerate() {
        if pool.budget().is_limited() {
            pool.set_limit(limit * (1 + round % 3)).unwrap();
        }
        // New changes are at or beyond the sealed frontier.
        let corners = lower.elements();
        let changes: Vec<Change> = changes
            .iter()
            .filter(|_| !corners.is_empty())
            .map(|&(k, v, t, d)| {
                let corner = corners[k as usize % corners.len()];
                (k, v, code_of(time_of::<T>(t).join(corner)), d)
            })
            .collect();
        for piece in changes.chunks(70) {
            batcher.push(&keys.record_batch(piece)).unwrap();
        }
        for (row, diff) in keys.model(&changes) {
            *pending.entry(row).or_default() += diff;
        }
        pending.retain(|_, diff| *diff != 0);
        let upper = lower.join(upper);
        let batch = batcher.seal(&upper).unwrap();
        assert_eq!((batch.lower(), batch.upper()), (&lower, &upper));
        let (kept, shipped): (Model, Model) = std::mem::take(&mut pending)
            .into_iter()
            .partition(|((_, _, time), _)| upper.less_equal(time_of::<T>(*time)));
        let frontier: Antichain<T> = kept.keys().map(|row| time_of::<T>(row.2)).collect();
        assert_eq!(batcher.frontier(), &frontier);
        assert_eq!(batch.rows(), Some(shipped.len() as u64));
        let now = *held.lock().unwrap();
        assert_eq!(now.records, kept.len() as i64);
        assert!((0..=now.records).contains(&now.spilled_records), "{now:?}");
        assert_eq!(now.spilled_records == now.records, now.capacity == 0, "{now:?}");
        assert_eq!(keys.read(batch).unwrap(), shipped);
        (pending, lower) = (kept, upper);
    }
    drop(batcher);
    assert_eq!(*held.lock().unwrap(), Accounting::default());
}

fn changes(times: impl Strategy<Value = u64>) -> impl Strategy<Value = Vec<Change>> {
    prop::collection::vec((0..30u64, 0..3u64, times, -2..3i64), 0..200)
}

fn rounds() -> impl Strategy<Value = u64> {
    (0..6u32, 0..6u32).prop_map(|(a, b)| code_of(Round(a, b)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn seals_by_numbers(
        pushed in prop::collection::vec((changes(0..20u64), prop::option::weighted(0.9, 0..24u64)), 1..6),
        chunk in 40usize..2000,
    ) {
        let rounds: Vec<_> =
            pushed.into_iter().map(|(changes, upper)| (changes, upper.into_iter().collect())).collect();
        for keys in ALL_KEYS {
            seals::<u64>(keys, &tiny(chunk), &rounds);
        }
    }

    #[test]
    fn seals_by_rounds(
        pushed in prop::collection::vec((changes(rounds()), prop::collection::vec(rounds(), 0..4)), 1..6),
        chunk in 40usize..2000,
    ) {
        let rounds: Vec<_> = pushed
            .into_iter()
            .map(|(changes, upper)| (changes, upper.into_iter().map(time_of::<Round>).collect()))
            .collect();
        for keys in ALL_KEYS {
            seals::<Round>(keys, &tiny(chunk), &rounds);
        }
    }

    #[test]
    fn seals_within_limits(
        pushed in prop::collection::vec((changes(0..20u64), 0..30u64), 1..8),
        chunk in 40usize..2000,
        chunks in 3usize..40,
    ) {
        let at = |(changes, upper)| (changes, Antichain::at(upper));
        let rounds: Vec<_> = pushed.into_iter().map(at).collect();
        for keys in ALL_KEYS {
            let options = PoolOptions::new().chunk_bytes(chunk);
            let pool = Pool::new(Budget::bytes(chunk * chunks), options).unwrap();
            seals_on(1, keys, &pool, &rounds);
            pool.wait_for_spills();
            pool.release();
            prop_assert_eq!(pool.budget().used(), 0);
        }
    }

    #[test]
    fn advance_is_what_readers_cannot_tell(
        numbers in changes(0..20u64),
        since in 0..24u64,
        pairs in changes(rounds()),
        corners in prop::collection::vec(rounds(), 1..4),
        chunk in 40usize..2000,
    ) {
        let corners: Antichain<Round> = corners.into_iter().map(time_of::<Round>).collect();
        for keys in ALL_KEYS {
            let pool = tiny(chunk);
            advances(keys, &pool, &numbers, &Antichain::at(since));
            advances(keys, &pool, &pairs, &corners);
        }
    }
}

fn advances<T: Time>(keys: Keys, pool: &Pool, changes: &[Change], since: &Antichain<T>) {
    let mut batcher = Batcher::<T>::timed(&keys.layout(), pool);
    for piece in changes.chunks(70) {
        batcher.push(&keys.record_batch(piece)).unwrap();
    }
    let batch = batcher.seal(&Antichain::new()).unwrap().advance(since).unwrap();
    assert_eq!(batch.since(), since);
    let advanced: Vec<Change> = changes
        .iter()
        .filter_map(|&(k, v, t, d)| Some((k, v, code_of(since.advance(time_of::<T>(t))?), d)))
        .collect();
    assert_eq!(keys.read(batch).unwrap(), keys.model(&advanced));
}

#[test]
fn one_giant_key_seals_and_advances() {
    let keys = Keys::Texts;
    let pool = tiny(500);
    let changes: Vec<Change> = (0..5000).map(|i| (7, 0, i * 31 % 5000, 1)).collect();
    seals::<u64>(
        keys,
        &pool,
        &[(changes.clone(), Antichain::at(1234)), (vec![], Antichain::new())],
    );
    advances::<u64>(keys, &pool, &changes, &Antichain::at(4000));
}

#[test]
fn what_cancels_leaves_no_frontier() {
    let keys = Keys::Numbers;
    let mut batcher = Batcher::new(&keys.layout(), &Pool::unlimited());
    batcher.push(&keys.record_batch(&[(1, 1, 5, 1), (2, 2, 9, 1)])).unwrap();
    assert_eq!(batcher.seal(&Antichain::at(3)).unwrap().rows(), Some(0));
    assert_eq!(batcher.frontier(), &Antichain::at(5));
    batcher.push(&keys.record_batch(&[(1, 1, 5, -1)])).unwrap();
    assert_eq!(batcher.seal(&Antichain::at(4)).unwrap().rows(), Some(0));
    assert_eq!(batcher.frontier(), &Antichain::at(9));
}

#[test]
fn mistakes_with_frontiers_are_errors() {
    let keys = Keys::Numbers;
    let mut batcher = Batcher::new(&keys.layout(), &Pool::unlimited());
    assert_eq!(batcher.seal(&Antichain::at(7)).unwrap().rows(), Some(0));
    assert!(matches!(batcher.seal(&Antichain::at(6)), Err(Error::InvalidOrder(_))));
    batcher.push(&keys.record_batch(&[(1, 1, 6, 1)])).unwrap();
    let late = batcher.seal(&Antichain::at(9)).map(|batch| batch.rows());
    assert!(matches!(late, Err(Error::Value { column, .. }) if column == "time"));
    let mut signed = Batcher::<i64>::timed(&keys.layout(), &Pool::unlimited());
    let found = signed.seal(&Antichain::at(3)).map(|batch| batch.rows());
    assert!(matches!(found, Err(Error::UnsupportedColumn { .. })));
    let untimed = Order::by("key").bind(&keys.record_batch(&[]).schema()).unwrap();
    let found =
        Batcher::new(&untimed, &Pool::unlimited()).seal(&Antichain::at(3)).map(|b| b.rows());
    assert!(matches!(found, Err(Error::InvalidOrder(_))));
}

#[test]
fn batches_know_their_bounds() {
    let keys = Keys::Texts;
    let changes: Vec<Change> = (0..500).map(|key| (key * 7 % 500, 1, 2, 3)).collect();
    let batch = batch_of(keys, &tiny(300), &changes);
    assert!(batch.chunks().unwrap() > 20);
    let bounds = batch.bounds().unwrap().unwrap();
    let ends = bounds.column(0).as_string::<i32>();
    assert_eq!((ends.value(0), ends.value(1)), (&*keys.text(0), &*keys.text(499)));
    assert_eq!(batch_of(keys, &Pool::unlimited(), &[]).bounds().unwrap(), None);
}

#[test]
fn samples_are_spread_evenly() {
    let keys = Keys::Numbers;
    let changes: Vec<Change> = (0..5000).map(|key| (key * 7 % 5000, 1, 2, 3)).collect();
    let spilled = tiny(300);
    spilled.set_policy(Arc::new(ForceSpill));
    for pool in [Pool::unlimited(), tiny(300), spilled] {
        let batch = batch_of(keys, &pool, &changes);
        for most in [0, 1, 7, 100, 5000, 9000] {
            let sample = batch.sample(most).unwrap().unwrap();
            let found = sample.column(0).as_primitive::<UInt64Type>().values();
            assert!(found.len() <= most && found.is_sorted());
            let step = 5000 / most.clamp(1, 100) as u64;
            assert!(most == 0 || !found.is_empty());
            assert!(most > 100 || found.windows(2).all(|w| w[1] - w[0] <= 2 * step), "{found:?}");
        }
        let none = batch_of(keys, &pool, &[]).sample(5).unwrap();
        assert_eq!(none.map(|none| none.num_rows()), Some(0));
    }
}

#[test]
fn of_the_same_times_are_the_same_however_they_came_to_be() {
    let of = |times: &[Round]| times.iter().copied().collect::<Antichain<Round>>();
    let (low, left, right) = (Round(1, 1), Round(2, 1), Round(1, 2));
    let mut both = of(&[left, right]);
    assert_eq!(both, of(&[right, left]));
    assert_eq!(both.elements(), [right, left]);
    assert_eq!(format!("{both:?}"), "Antichain { elements: [Round(1, 2), Round(2, 1)] }");
    assert!(!both.insert(Round(2, 2)) && both.less_equal(Round(2, 2)) && !both.less_equal(low));
    // A lower time replaces two elements beyond it.
    assert!(both.insert(low));
    assert_eq!(both, Antichain::at(low));
    assert_eq!(of(&[left, right]).meet(&Antichain::at(low)), Antichain::at(low));
    assert_eq!(Antichain::at(left).join(&Antichain::at(right)), Antichain::at(Round(2, 2)));
    assert_eq!(of(&[]), Antichain::new());
    assert!(of(&[]).is_empty() && of(&[]).advance(low).is_none());
    assert_eq!(of(&[left, right]).advance(low), Some(low));
}
