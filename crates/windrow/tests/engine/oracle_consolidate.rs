//! Equal changes become one, and a snapshot holds the remaining rows.

use std::sync::Arc;

use crate::common::arrays::Rng;
use crate::common::engine::{Way, cases, collect, order};
use crate::common::model::{By, Row, Value};
use crate::common::{model, tables};
use arrow_array::{Array, ArrayRef, Int8Array, Int64Array, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use proptest::prelude::*;
use windrow::{Batcher, Decoder, Error, Finish, Layout, Order, Pool, Slabs, consolidate};

/// Returns `input` with columns `time` and `diff`.
fn changes(rng: &mut Rng, input: &RecordBatch, positive: bool) -> RecordBatch {
    let rows = input.num_rows();
    let mut fields: Vec<_> = input.schema().fields().iter().cloned().collect();
    let mut columns: Vec<ArrayRef> = input.columns().to_vec();
    let time: ArrayRef = match rng.below(3) {
        0 => Arc::new(Int64Array::from_iter_values((0..rows).map(|_| rng.below(3) as i64 - 1))),
        1 => Arc::new(UInt32Array::from_iter_values((0..rows).map(|_| rng.below(3) as u32))),
        _ => Arc::new(Int8Array::from_iter_values((0..rows).map(|_| rng.below(2) as i8 - 1))),
    };
    let least = if positive { 0 } else { -1 };
    let diff: Vec<i64> = (0..rows).map(|_| rng.below(3) as i64 + least).collect();
    fields.push(Arc::new(Field::new("time", time.data_type().clone(), rng.flip())));
    fields.push(Arc::new(Field::new("diff", DataType::Int64, rng.flip())));
    columns.push(time);
    columns.push(Arc::new(Int64Array::from(diff)));
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn read(layout: &Layout, mut slabs: Slabs) -> Vec<RecordBatch> {
    let all: Vec<usize> = (0..layout.schema().fields().len()).collect();
    let mut decoder = Decoder::new(layout, &all).unwrap();
    let mut out = Vec::new();
    while let Some(slab) = slabs.next(500, usize::MAX).unwrap() {
        out.push(decoder.decode(&slab).unwrap());
    }
    out
}

fn times(row: &Row, diff: usize) -> usize {
    let Value::Number(times) = row[diff] else { panic!("a diff is a number") };
    times.to_i128().unwrap() as usize
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn equal_changes_become_one(
        seed: u64,
        keys in 1usize..3,
        others in 0usize..3,
        payload in 0usize..2,
        rows in 0usize..2000,
        distinct in 1usize..20,
    ) {
        let rng = &mut Rng::new(seed);
        let input = tables::table(rng, keys + others, payload, rows, distinct);
        // Few different rows: picks among some of them.
        let positive = rng.flip();
        let input = changes(rng, &input, positive);
        let diff = input.num_columns() - 1;
        let names: Vec<String> = (0..keys).map(|k| format!("k{k}")).collect();
        let names: Vec<&str> = names.iter().map(|name| &name[..]).collect();
        let (columns, mut by) = order(rng, &names, 0);
        by.extend((keys..keys + others).map(By::ascending));
        let timed = rng.flip();
        let mut order = Order::by(columns).diff("diff");
        if timed {
            order = order.time("time");
        }
        let layout = order.bind(&input.schema()).unwrap();
        // A payload has no defined order, and time follows the payload.
        by.extend((payload == 0).then_some(By::ascending(diff - 1)));
        let expected = model::consolidate(diff, model::rows([&input]));
        let mut first: Option<Vec<Row>> = None;
        for way in [Way::PLAIN, Way::any(rng), Way::any(rng), Way { budget: 1, ..Way::any(rng) }] {
            let what = (way, layout.order(), input.schema());
            let batch = way.arrange(rng, &layout, &way.pool(), &input).unwrap();
            let got = model::rows(&collect(batch.record_batches(1 + rng.below(3000))).unwrap());
            prop_assert!(got.is_sorted_by(|a, b| model::compare(&by, a, b).is_le()));
            let mut any = got.clone();
            any.sort();
            let mut sorted = expected.clone();
            sorted.sort();
            model::assert_same(&any, &sorted, &what);
            model::assert_same(&got, first.get_or_insert_with(|| got.clone()), &what);

            let batch = way.arrange(rng, &layout, &way.pool(), &input).unwrap();
            let snapshot = collect(batch.snapshot(1 + rng.below(3000)));
            if expected.iter().any(|row| row[diff] < Value::Number(0.into())) {
                let count = expected.iter().filter(|row| row[diff] < Value::Number(0.into())).count();
                let Err(Error::NegativeDiff { count: got, rows }) = snapshot else { panic!("{snapshot:?}") };
                prop_assert_eq!((got as usize, rows.len()), (count, count.min(3)));
                continue;
            }
            let there: Vec<Row> = got
                .iter()
                .flat_map(|row| {
                    let mut once = row.clone();
                    once[diff] = Value::Number(1.into());
                    vec![once; times(row, diff)]
                })
                .collect();
            model::assert_same(&model::rows(&snapshot.unwrap()), &there, &what);

            let batch = way.arrange(rng, &layout, &way.pool(), &input).unwrap();
            let counts = model::rows(&read(&layout, batch.slabs(Finish::Counts)));
            model::assert_same(&counts, &got, &what);
        }
        let whole = consolidate(&layout, &input).unwrap();
        model::assert_same(&model::rows([&whole]), &first.unwrap(), &input.schema());
    }
}

fn log(users: Vec<i64>, diffs: Vec<i64>) -> RecordBatch {
    RecordBatch::try_from_iter([
        ("user", Arc::new(Int64Array::from(users)) as ArrayRef),
        ("diff", Arc::new(Int64Array::from(diffs)) as ArrayRef),
    ])
    .unwrap()
}

#[test]
fn overflow_names_the_row() {
    let log = log(vec![1, 7, 7], vec![1, i64::MAX, 1]);
    let layout = Order::by("user").diff("diff").bind(&log.schema()).unwrap();
    let Err(Error::DiffOverflow { row }) = consolidate(&layout, &log) else {
        panic!("no overflow")
    };
    assert!(row.contains("user=7"), "{row}");
    // The two halves meet in the last merge.
    let mut batcher = Batcher::new(&layout, &Pool::unlimited());
    let mut pushers = batcher.pushers(2);
    for (at, pusher) in pushers.iter_mut().enumerate() {
        pusher.push(&log.slice(1 + at, 1), at as u64).unwrap();
        pusher.flush().unwrap();
    }
    batcher.push(&log.slice(0, 1)).unwrap();
    let found = collect(batcher.finish().unwrap().record_batches(10));
    assert!(matches!(found, Err(Error::DiffOverflow { row }) if row.contains("user=7")));
}

#[test]
fn a_sum_past_its_column_is_an_error() {
    let log = RecordBatch::try_from_iter([
        ("user", Arc::new(Int64Array::from(vec![1, 1])) as ArrayRef),
        ("diff", Arc::new(Int8Array::from(vec![100, 100])) as ArrayRef),
    ])
    .unwrap();
    let layout = Order::by("user").diff("diff").bind(&log.schema()).unwrap();
    let found = consolidate(&layout, &log);
    assert!(matches!(found, Err(Error::Value { column, .. }) if column == "diff"));
}

#[test]
fn a_negative_row_is_shown() {
    let log = log(vec![5, 6, 6, 8], vec![1, -1, -1, -3]);
    let layout = Order::by("user").diff("diff").bind(&log.schema()).unwrap();
    let mut batcher = Batcher::new(&layout, &Pool::unlimited());
    batcher.push(&log).unwrap();
    let mut read = batcher.finish().unwrap().snapshot(10).unwrap();
    assert_eq!(read.next().unwrap().unwrap().num_rows(), 1);
    let Some(Err(error)) = read.next() else { panic!("no error") };
    let Error::NegativeDiff { count: 2, rows } = Error::from(error) else {
        panic!("another error")
    };
    assert_eq!(rows, ["user=6 diff=-2", "user=8 diff=-3"]);
    assert!(read.next().is_none());
}

#[test]
fn what_cancels_takes_no_room() {
    let rows = 100_000;
    let users: Vec<i64> = (0..rows).map(|row| row / 2 % 1000).collect();
    let log = log(users, (0..rows).map(|row| 1 - 2 * (row % 2)).collect());
    let layout = Order::by("user").diff("diff").bind(&log.schema()).unwrap();
    let way = Way { budget: 1 << 20, rows: 5000, ..Way::PLAIN };
    let pool = way.pool();
    let batch = way.arrange(&mut Rng::new(4), &layout, &pool, &log).unwrap();
    assert!(collect(batch.record_batches(10)).unwrap().is_empty());
    assert!(pool.stats().spilled_bytes < 200_000, "{:?}", pool.stats());
}
