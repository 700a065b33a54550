//! Each key becomes one row with the last non-null value of each column.

use std::sync::Arc;

use crate::common::arrays::Rng;
use crate::common::engine::{Way, cases, collect, order};
use crate::common::model::{self, By, Value};
use crate::common::tables;
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::nullif::nullif;
use proptest::prelude::*;
use windrow::{Batch, Batcher, Finish, Layout, Merging, Order, Rule};

/// Returns `input` with most values removed from its columns from `first` on, and with a Boolean
/// column that marks deletes.
fn with_gaps(rng: &mut Rng, input: &RecordBatch, first: usize) -> RecordBatch {
    let rows = input.num_rows();
    let mut fields: Vec<_> = input.schema().fields().iter().cloned().collect();
    let mut columns: Vec<ArrayRef> = input.columns().to_vec();
    for column in &mut columns[first..] {
        let has_own = !matches!(
            column.data_type(),
            DataType::Null | DataType::Union(..) | DataType::RunEndEncoded(..)
        );
        if has_own {
            let gone: BooleanArray = (0..rows).map(|_| Some(rng.below(4) > 0)).collect();
            *column = nullif(column, &gone).unwrap();
        }
    }
    let deleted: BooleanArray = (0..rows).map(|_| Some(rng.below(9) == 0)).collect();
    fields.push(Arc::new(Field::new("deleted", DataType::Boolean, rng.flip())));
    columns.push(Arc::new(deleted));
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn the_last_known_values_of_each_key_stay(
        seed: u64,
        keys in 1usize..3,
        then in 0usize..3,
        payload in 0usize..12,
        rows in 0usize..1000,
        distinct in 1usize..60,
    ) {
        let rng = &mut Rng::new(seed);
        let input = tables::table(rng, keys + then, payload, rows, distinct);
        let input = with_gaps(rng, &input, keys + then);
        let names: Vec<String> = (0..keys + then).map(|k| format!("k{k}")).collect();
        let names: Vec<&str> = names.iter().map(|name| &name[..]).collect();
        let (columns, by) = order(rng, &names, 0);
        let (key, within) = by.split_at(keys);
        let order = Order::by(columns[..keys].to_vec()).then(columns[keys..].to_vec()).last_known();
        let deleted = rng.flip().then_some(input.num_columns() - 1);
        let order = if deleted.is_some() { order.tombstone("deleted") } else { order };
        let layout = order.bind(&input.schema()).unwrap();
        prop_assert_eq!(layout.rule(), Rule::LastKnown);
        let log = model::last_known(key, within, deleted, model::rows([&input]));
        let mut there = log.clone();
        there.retain(|row| deleted.is_none_or(|deleted| row[deleted] == Value::Bool(false)));
        for way in [Way::PLAIN, Way::any(rng), Way::any(rng), Way { budget: 1, ..Way::any(rng) }] {
            let what = (seed, way, layout.order(), input.schema());
            let batch = way.arrange(rng, &layout, &way.pool(), &input).unwrap();
            let read = collect(batch.record_batches(1 + rng.below(3000))).unwrap();
            model::assert_same(&model::rows(&read), &log, &what);
            let batch = way.arrange(rng, &layout, &way.pool(), &input).unwrap();
            let read = collect(batch.settle_on(3).unwrap().snapshot(1 + rng.below(3000))).unwrap();
            model::assert_same(&model::rows(&read), &there, &what);
            let batch = way.arrange(rng, &layout, &way.pool(), &input).unwrap();
            let mut slabs = batch.slabs(Finish::Snapshot);
            while slabs.next(100, 10_000).unwrap().is_some() {}
            prop_assert_eq!(slabs.deleted() as usize, log.len() - there.len());
        }
    }

    /// Batches of rows in any order, merged two by two in any order, whole or step by step, equal
    /// the batch of all rows.
    #[test]
    fn it_does_not_matter_which_rows_meet_first(
        seed: u64,
        payload in 1usize..6,
        parts in 2usize..7,
        rows in 1usize..400,
        distinct in 1usize..20,
    ) {
        let rng = &mut Rng::new(seed);
        let input = tables::table(rng, 2, payload, rows, distinct);
        let input = with_gaps(rng, &input, 2);
        let deleted = input.num_columns() - 1;
        let order = Order::by("k0").then("k1").last_known().tombstone("deleted");
        let layout = order.bind(&input.schema()).unwrap();
        let way = Way { pushers: 0, ..Way::any(rng) };
        let pool = way.pool();
        // The place in the input decides ties of ranks; each batch has places of its own.
        let mut batches: Vec<Batch> = Vec::new();
        let mut of_parts: Vec<Vec<u64>> = vec![Vec::new(); parts];
        (0..input.num_rows() as u64).for_each(|row| of_parts[rng.below(parts)].push(row));
        for rows in of_parts {
            let batcher = Batcher::new(&layout, &pool);
            let mut pusher = batcher.pushers(1).remove(0);
            for row in rows {
                pusher.push(&input.slice(row as usize, 1), row).unwrap();
            }
            pusher.flush().unwrap();
            drop(pusher);
            batches.push(batcher.finish().unwrap());
        }
        while batches.len() > 1 {
            let pair = [0, 1].map(|_| batches.swap_remove(rng.below(batches.len())));
            batches.push(merged(rng, &layout, pair));
        }
        let read = collect(batches.remove(0).record_batches(1 + rng.below(500))).unwrap();
        let by = [By::ascending(0), By::ascending(1)];
        let all = model::rows([&input]);
        let expected = model::last_known(&by[..1], &by[1..], Some(deleted), all);
        model::assert_same(&model::rows(&read), &expected, &(seed, way, input.schema()));
    }
}

fn merged(rng: &mut Rng, layout: &Layout, pair: [Batch; 2]) -> Batch {
    let pool = Way::any(rng).pool();
    match rng.below(3) {
        0 => Batch::union(layout, &pool, pair),
        1 => Batch::union(layout, &pool, pair).spill().unwrap(),
        _ => {
            let mut merging = Merging::new(layout, &pool, pair);
            while !merging.work(&mut 7).unwrap() {}
            merging.finish().unwrap()
        }
    }
}

/// Every combination of kinds of rows (all values, one value, none, delete) and of orders of
/// arrival.
#[test]
fn every_small_world() {
    const ROWS: u32 = 4;
    const KINDS: u32 = 5;
    for world in 0..KINDS.pow(ROWS) {
        let kinds: Vec<u32> = (0..ROWS).map(|row| world / KINDS.pow(row) % KINDS).collect();
        let value = |has: [bool; 5]| -> ArrayRef {
            let values =
                kinds.iter().zip(0..).map(|(&kind, row)| has[kind as usize].then_some(row));
            Arc::new(values.collect::<Int64Array>())
        };
        let text = kinds.iter().map(|&kind| ["", "b", "cc"].get(kind as usize).copied());
        let deletes = kinds.iter().map(|&kind| Some(kind == 4)).collect::<BooleanArray>();
        for turns in 0..8 {
            // Keys of the rows, and ranks within a key.
            let keys = (0..ROWS as i64).map(|row| Some((row + turns) / 2 % 2));
            let ranks = (0..ROWS as i64).map(|row| Some((row * [1, 3][turns as usize % 2]) % 4));
            let input = RecordBatch::try_from_iter_with_nullable([
                ("k", Arc::new(keys.collect::<Int64Array>()) as ArrayRef, false),
                ("r", Arc::new(ranks.collect::<Int64Array>()), true),
                ("a", value([true, true, false, false, true]), true),
                ("b", value([true, false, true, false, false]), true),
                ("t", Arc::new(text.clone().collect::<StringArray>()), true),
                ("d", Arc::new(deletes.clone()), false),
            ]);
            let input = input.unwrap();
            let order = Order::by("k").then("r").last_known().tombstone("d");
            let layout = order.bind(&input.schema()).unwrap();
            let by = [By::ascending(0), By::ascending(1)];
            let expected = model::last_known(&by[..1], &by[1..], Some(5), model::rows([&input]));
            // Every cut into batches of neighbours.
            for cuts in 0..1u32 << (ROWS - 1) {
                let pool = Way::PLAIN.pool();
                let (mut batches, mut start) = (Vec::new(), 0);
                for end in 1..=ROWS {
                    if end == ROWS || cuts >> (end - 1) & 1 == 1 {
                        let batcher = Batcher::new(&layout, &pool);
                        let some = input.slice(start as usize, (end - start) as usize);
                        let mut pusher = batcher.pushers(1).remove(0);
                        pusher.push(&some, start.into()).unwrap();
                        pusher.flush().unwrap();
                        drop(pusher);
                        batches.push(batcher.finish().unwrap());
                        start = end;
                    }
                }
                let batch = Batch::union(&layout, &pool, batches);
                let read = collect(batch.record_batches(10)).unwrap();
                model::assert_same(&model::rows(&read), &expected, &(&kinds, turns, cuts));
            }
        }
    }
}

#[test]
fn rows_that_say_nothing_new_do_not_pile_up() {
    let rng = &mut Rng::new(3);
    let columns =
        [("k", DataType::Int64, 20), ("p", DataType::Utf8, 5000), ("q", DataType::Int8, 9)].map(
            |(name, data_type, distinct)| {
                (name, tables::key_array(rng, &data_type, true, 60_000, distinct), true)
            },
        );
    let input = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let layout = Order::by("k").last_known().bind(&input.schema()).unwrap();
    let expected = model::last_known(&[By::ascending(0)], &[], None, model::rows([&input]));
    for budget in [usize::MAX, 2 << 20, 1 << 20, 1] {
        let way = Way { budget, rows: 999, ..Way::PLAIN };
        let pool = way.pool();
        let batch = way.arrange(rng, &layout, &pool, &input).unwrap();
        let read = collect(batch.record_batches(1000)).unwrap();
        model::assert_same(&model::rows(&read), &expected, &way);
        // At most three rows of 20 keys in each of the many chunks.
        assert!(pool.stats().spilled_bytes < 900_000, "{way:?} {:?}", pool.stats());
    }
}

#[test]
fn a_batch_does_not_say_how_many_rows_it_yields() {
    let ids = Arc::new(Int64Array::from(vec![1, 1])) as ArrayRef;
    let values = Arc::new(Int64Array::from(vec![None, Some(2)])) as ArrayRef;
    let input = RecordBatch::try_from_iter([("id", ids), ("v", values)]).unwrap();
    let layout = Order::by("id").last_known().bind(&input.schema()).unwrap();
    let mut batcher = Batcher::new(&layout, &Way::PLAIN.pool());
    batcher.push(&input).unwrap();
    let batch = batcher.finish().unwrap().settle().unwrap();
    assert_eq!(batch.rows(), None);
    assert_eq!(collect(batch.record_batches(10)).unwrap()[0].num_rows(), 1);
}
