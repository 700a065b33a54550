//! Merges of two and of many runs, with chunks of a few rows.

use proptest::prelude::*;

use super::*;
use crate::batch::Merging;
use crate::chunk::FEW_SMALL;

fn union(keys: Keys, pool: &Pool, inputs: &[Vec<Change>]) -> Batch {
    let batches = inputs.iter().map(|input| batch_of(keys, pool, input));
    Batch::union(&keys.layout(), pool, batches)
}

/// Merges with `fuel` per call.
fn merged(keys: Keys, pool: &Pool, inputs: &[Vec<Change>], fuel: i64) -> (Batch, usize) {
    let batches = inputs.iter().map(|input| batch_of(keys, pool, input));
    let mut merging = Merging::new(&keys.layout(), pool, batches);
    let mut calls = 1;
    while !merging.work(&mut fuel.clone()).unwrap() {
        calls += 1;
    }
    (merging.finish().unwrap(), calls)
}

fn changes(
    keys: std::ops::Range<u64>,
    values: u64,
    rows: std::ops::Range<usize>,
) -> impl Strategy<Value = Vec<Change>> {
    prop::collection::vec((keys, 0..values, 0..3u64, -2..3i64), rows)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn of_any_number_of_inputs(
        inputs in prop::collection::vec(changes(0..40, 4, 0..300), 0..9),
        chunk in 1usize..2000,
        fuel in 1i64..500,
    ) {
        for keys in ALL_KEYS {
            let pool = tiny(chunk);
            let expected = keys.model(&inputs.concat());
            let settled = union(keys, &pool, &inputs).settle().unwrap();
            prop_assert_eq!(settled.rows(), Some(expected.len() as u64));
            prop_assert_eq!(&keys.read(settled).unwrap(), &expected);
            prop_assert_eq!(&keys.read(union(keys, &pool, &inputs)).unwrap(), &expected);
            let (fuelled, _) = merged(keys, &pool, &inputs, fuel);
            prop_assert_eq!(&keys.read(fuelled).unwrap(), &expected);
        }
    }

    #[test]
    fn of_two_runs_with_long_stretches(
        stretches in prop::collection::vec((0u64..3, 1u64..3000), 1..8),
        chunk in 500usize..60_000,
        fuel in 1i64..5000,
    ) {
        // Each range of keys goes to one side, to the other, or to both.
        let (mut inputs, mut key) = (vec![Vec::new(), Vec::new()], 0);
        for (to, length) in stretches {
            for at in 0..length {
                key += 1;
                if to != 1 {
                    inputs[0].push((key, 0, 0, 1 + (at % 2) as i64));
                }
                if to != 0 {
                    inputs[1].push((key, 0, 0, -1));
                }
            }
        }
        for keys in ALL_KEYS {
            let pool = tiny(chunk);
            let expected = keys.model(&inputs.concat());
            let settled = union(keys, &pool, &inputs).settle().unwrap();
            prop_assert_eq!(&keys.read(settled).unwrap(), &expected);
            let (fuelled, _) = merged(keys, &pool, &inputs, fuel);
            prop_assert_eq!(&keys.read(fuelled).unwrap(), &expected);
        }
    }
}

/// Calls `see`, on two threads, with every assignment of the diffs -1, 0, 1 to `keys` keys in each
/// of `inputs` inputs.
fn every_small_world(inputs: u32, keys: u32, see: impl Fn(&[Vec<Change>]) + Sync) {
    let input = |world: u64, input: u32| {
        let diff = |key: u32| (world / 3u64.pow(input * keys + key) % 3) as i64 - 1;
        let changes = (0..keys).map(|key| (u64::from(key / 2), u64::from(key % 2), 0, diff(key)));
        changes.filter(|change| change.3 != 0).collect::<Vec<Change>>()
    };
    let see_from = |first: u64| {
        for world in (first..3u64.pow(inputs * keys)).step_by(2) {
            see(&(0..inputs).map(|i| input(world, i)).collect::<Vec<_>>());
        }
    };
    std::thread::scope(|threads| {
        threads.spawn(|| see_from(1));
        see_from(0);
    });
}

/// Merges `world` with every fuel up to a sufficient one, and at once.
fn merges_with_every_fuel(keys: Keys, pool: &Pool, world: &[Vec<Change>]) {
    let expected = keys.model(&world.concat());
    for fuel in 1..=world.concat().len() as i64 + 1 {
        let (batch, _) = merged(keys, pool, world, fuel);
        assert_eq!(keys.read(batch).unwrap(), expected, "{world:?} {fuel}");
    }
    let settled = union(keys, pool, world).settle().unwrap();
    assert_eq!(keys.read(settled).unwrap(), expected, "{world:?}");
}

#[test]
fn every_small_world_with_every_fuel() {
    // One row per chunk, and all rows in one chunk.
    let pools = [tiny(40), tiny(1000)];
    for (inputs, rows) in [(2, 2), (2, 3), (3, 2)] {
        every_small_world(inputs, rows, |world| {
            for keys in [Keys::Numbers, Keys::Texts] {
                for pool in &pools {
                    merges_with_every_fuel(keys, pool, world);
                }
            }
        });
    }
}

#[test]
fn every_world_of_two_keys_with_two_values() {
    let pool = tiny(40);
    every_small_world(2, 4, |world| merges_with_every_fuel(Keys::Numbers, &pool, world));
}

#[test]
fn every_world_of_three_inputs_with_three_rows() {
    let pool = tiny(40);
    every_small_world(3, 3, |world| merges_with_every_fuel(Keys::Numbers, &pool, world));
}

#[test]
fn of_none_to_three_hundred_inputs() {
    let few = (0..20).chain([63, 64, 65, 127, 128, 255, 300]).collect::<Vec<u64>>();
    for keys in ALL_KEYS {
        let counts = if keys == Keys::Numbers { (0..=300).collect() } else { few.clone() };
        let pool = tiny(300);
        for count in counts {
            let inputs: Vec<Vec<Change>> = (0..count)
                .map(|i| (0..i % 5).map(|row| (row * 7 + i % 3, i % 2, 0, 1)).collect())
                .collect();
            let expected = keys.model(&inputs.concat());
            let settled = union(keys, &pool, &inputs).settle().unwrap();
            assert_eq!(keys.read(settled).unwrap(), expected, "{count} inputs of {keys:?}");
        }
    }
}

#[test]
fn that_cancel_pause_all_the_same() {
    let input: Vec<Change> = (0..2000).map(|key| (key, 0, 0, 1)).collect();
    let inverse: Vec<Change> = input.iter().map(|&(k, v, t, d)| (k, v, t, -d)).collect();
    for keys in ALL_KEYS {
        let inputs = [input.clone(), inverse.clone()];
        let (batch, calls) = merged(keys, &tiny(1000), &inputs, 100);
        assert!(calls > 10, "{calls} calls for {keys:?}");
        assert_eq!(batch.rows(), Some(0));
        assert_eq!((batch.chunks(), batch.bytes()), (Some(0), Some(0)));
    }
}

#[test]
fn at_equal_boundaries_add_up() {
    for keys in ALL_KEYS {
        let layout = keys.layout();
        // Rows of 32 bytes or more: one, two or a few per chunk.
        for chunk in [40, 70, 150, 330] {
            let pool = tiny(chunk);
            let low: Vec<Change> = (0..=50).map(|key| (key, 0, 0, 1)).collect();
            let high: Vec<Change> = (50..100).map(|key| (key, 0, 0, 1)).collect();
            let inputs = [low, high];
            let settled = union(keys, &pool, &inputs).settle().unwrap();
            let model = keys.read(settled).unwrap();
            assert_eq!(model, keys.model(&inputs.concat()));
            assert_eq!(model[&(keys.text(50), 0, 0)], 2);
            assert!(layout.time().is_some());
        }
    }
}

#[test]
fn of_disjoint_runs_pass_chunks_on() {
    let keys = Keys::Numbers;
    let pool = tiny(3200);
    let side = |from: u64| (from..from + 1000).map(|key| (key, 0, 0, 1)).collect::<Vec<_>>();
    let batches = [side(0), side(1000)].map(|side| batch_of(keys, &pool, &side));
    let before = pool.stats().peak_leased;
    let chunks: usize = batches.iter().map(|batch| batch.chunks().unwrap()).sum();
    let settled = Batch::union(&keys.layout(), &pool, batches).settle().unwrap();
    assert_eq!(settled.chunks(), Some(chunks));
    assert_eq!(pool.stats().peak_leased, before, "no chunk was made");
}

#[test]
fn of_runs_in_stretches_pass_chunks_on() {
    let keys = Keys::Numbers;
    // A hundred rows per chunk; all rows of one side fit between two rows of a chunk of the other.
    let pool = tiny(3200);
    let stretch = |keys: std::ops::Range<u64>| keys.map(|key| (key, 0, 0, 1)).collect::<Vec<_>>();
    let inputs = [[stretch(0..1030), stretch(2030..3000)].concat(), stretch(1030..2030)];
    let batches = inputs.each_ref().map(|side| batch_of(keys, &pool, side));
    let before = pool.stats().peak_leased;
    let settled = Batch::union(&keys.layout(), &pool, batches).settle().unwrap();
    assert!(pool.stats().peak_leased <= before + 3200, "the first part of one chunk was copied");
    assert_eq!((settled.rows(), settled.chunks()), (Some(3000), Some(31)));
    // The chunk with released rows is written and read as usual.
    let spilled = settled.spill().unwrap();
    assert_eq!((spilled.rows(), spilled.resident_bytes()), (Some(3000), 0));
    assert_eq!(keys.read(spilled).unwrap(), keys.model(&inputs.concat()));
}

#[test]
fn come_out_graded() {
    let keys = Keys::Numbers;
    let pool = tiny(3200);
    // Alternating ranges of a few rows to a few chunks.
    let mut inputs = vec![Vec::new(), Vec::new()];
    for key in 0..20_000u64 {
        inputs[usize::from(key / 37 % 5 < 2)].push((key, 0, 0, 1));
    }
    let settled = union(keys, &pool, &inputs).settle().unwrap();
    let (chunks, bytes) = (settled.chunks().unwrap(), settled.bytes().unwrap() as usize);
    assert!(chunks <= 3 * bytes / 3200 + 2, "{chunks} chunks of {bytes} bytes");
}

#[test]
fn one_after_the_other_stay_graded() {
    for keys in ALL_KEYS {
        let pool = tiny(3200);
        let mut all = Vec::new();
        let mut merged = batch_of(keys, &pool, &[]);
        for round in 0..200u64 {
            // Small batches, each after the others, every third one overlapping all of them.
            let few: Vec<Change> = match round % 3 {
                0 => (0..5).map(|at| (at * 1000 + round, 1, 0, 1)).collect(),
                _ => (0..3).map(|at| (round * 10 + at, 0, 0, 1)).collect(),
            };
            let batches = [merged, batch_of(keys, &pool, &few)];
            merged = Batch::union(&keys.layout(), &pool, batches).settle().unwrap();
            all.extend(few);
            let (chunks, bytes) = (merged.chunks().unwrap(), merged.bytes().unwrap() as usize);
            // However often rows are merged, only the chunks that one merge passes on are not
            // graded.
            let most = 3 * bytes / 3200 + 2 + FEW_SMALL;
            assert!(chunks <= most, "{chunks} chunks of {bytes} bytes");
        }
        assert_eq!(keys.read(merged).unwrap(), keys.model(&all));
    }
}

#[test]
fn of_small_disjoint_runs_pass_chunks_on() {
    let keys = Keys::Numbers;
    let pool = tiny(32_000);
    let side = |from: u64| (from..from + 50).map(|key| (key, 0, 0, 1)).collect::<Vec<_>>();
    // In any order; of three small chunks one is copied.
    for (starts, chunks) in [(&[0, 50][..], 2), (&[50, 0], 2), (&[50, 100, 0], 1)] {
        let all: Vec<Change> = starts.iter().flat_map(|&from| side(from)).collect();
        let batches: Vec<Batch> =
            starts.iter().map(|&from| batch_of(keys, &pool, &side(from))).collect();
        let before = pool.stats().peak_leased;
        let settled = Batch::union(&keys.layout(), &pool, batches).settle().unwrap();
        if chunks > 1 {
            assert_eq!(pool.stats().peak_leased, before, "no chunk was made");
        }
        assert!(settled.chunks().is_some_and(|count| count >= chunks), "{settled:?}");
        assert_eq!(settled.rows(), Some(all.len() as u64));
        assert_eq!(keys.read(settled).unwrap(), keys.model(&all));
    }
}

#[test]
fn wide_rows_in_runs_are_merged_into_one_more_buffer() {
    /// Makes changes with seven equal columns.
    fn record_batch(keys: &[u64], diff: i64) -> RecordBatch {
        let column = |values: Vec<u64>| Arc::new(UInt64Array::from(values)) as ArrayRef;
        let names = ["a", "b", "c", "d", "e", "f", "time"];
        let mut columns: Vec<_> = names.map(|name| (name, column(keys.to_vec()), false)).into();
        let diffs = Arc::new(Int64Array::from(vec![diff; keys.len()]));
        columns.push(("diff", diffs, false));
        RecordBatch::try_from_iter_with_nullable(columns).unwrap()
    }
    let schema = record_batch(&[], 1).schema();
    let order = Order::by(["a", "b", "c", "d", "e", "f"]).time("time").diff("diff");
    let layout = order.bind(&schema).unwrap();
    let in_runs = |side: u64| (0..500u64).filter(|key| key / 40 % 2 == side).collect::<Vec<_>>();
    let turns = |side: usize| (side as u64..600).step_by(2);
    for (left, right, expected) in [
        (in_runs(0), in_runs(1), (0..500).collect::<Vec<_>>()),
        (in_runs(0), [&in_runs(1)[..], &[410, 411]].concat(), (0..410).chain(412..500).collect()),
        // Runs end before the rows do, and there are no runs.
        (turns(0).chain(600..700).collect(), turns(1).collect(), (0..700).collect()),
        ((0..100).collect(), (0..100).collect(), Vec::new()),
    ] {
        let pool = Pool::unlimited();
        let batches = [(left, 1), (right, -1)].map(|(mut keys, diff)| {
            keys.sort_unstable();
            let mut batcher: Batcher = Batcher::new(&layout, &pool);
            batcher.push(&record_batch(&keys, diff)).unwrap();
            batcher.finish().unwrap()
        });
        let merged = Batch::union(&layout, &pool, batches).settle().unwrap();
        assert_eq!(merged.rows(), Some(expected.len() as u64));
        let mut got = Vec::new();
        for batch in merged.record_batches(1000).unwrap() {
            let batch = batch.unwrap();
            assert!((1..7).all(|column| batch.column(column) == batch.column(0)));
            got.extend_from_slice(batch.column(0).as_primitive::<UInt64Type>().values());
        }
        assert_eq!(got, expected);
        // A kept chunk moves into an exactly sized buffer; the large buffer is recycled.
        assert_eq!(pool.stats().buffers_mapped, 1);
    }
}
