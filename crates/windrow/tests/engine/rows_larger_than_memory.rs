//! A row may be larger than a chunk, and than the budget.

use std::sync::Arc;

use crate::common::arrays::Rng;
use crate::common::engine::{Way, collect};
use crate::common::model::{self, By};
use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch};
use windrow::{Codec, Order, merge_in};

/// Rows of up to some MB and one of 20 MB, among many small ones.
fn input() -> RecordBatch {
    let rng = &mut Rng::new(7);
    let rows = 600;
    let ids = Int64Array::from_iter_values((0..rows).map(|_| rng.below(300) as i64));
    let values = BinaryArray::from_iter_values((0..rows).map(|row| {
        let len = match row {
            300 => 20 << 20,
            row if row % 150 == 0 => 3 << 20,
            row if row % 20 == 0 => 70_000,
            _ => rng.below(100),
        };
        vec![row as u8; len]
    }));
    RecordBatch::try_from_iter([
        ("id", Arc::new(ids) as ArrayRef),
        ("value", Arc::new(values) as ArrayRef),
        ("diff", Arc::new(Int64Array::from(vec![1; rows])) as ArrayRef),
    ])
    .unwrap()
}

#[test]
fn they_go_through_every_rule() {
    let input = input();
    let all = model::rows([&input]);
    let by = [By::ascending(0)];
    let mut every = model::consolidate(2, all.clone());
    every.sort();
    let cases = [
        (Order::by("id"), model::sort(&by, all.clone())),
        (Order::by("id").last(), model::last(&by, &[], all.clone())),
        (Order::by("id").first(), model::first(&by, &[], all.clone())),
        (Order::by("id").diff("diff"), every),
    ];
    for (order, expected) in cases {
        let layout = order.bind(&input.schema()).unwrap();
        for (budget, codec) in
            [(1 << 20, Codec::None), (1 << 20, Codec::Lz4), (usize::MAX, Codec::None)]
        {
            let way = Way { budget, codec, rows: 100, ..Way::PLAIN };
            let pool = way.pool();
            let batch = way.arrange(&mut Rng::new(8), &layout, &pool, &input).unwrap();
            let sorted = collect(batch.record_batches(50)).unwrap();
            model::assert_same(&model::rows(&sorted), &expected, &way);
            // The write buffer, its chunk, and the chunks read back: some of the largest row.
            let most = budget.saturating_add(4 * (20 << 20));
            assert!(pool.stats().peak_leased < most, "{way:?} {:?}", pool.stats());
        }
    }
}

#[test]
fn a_run_of_them_is_copied_as_it_is() {
    let layout = Order::by("id").bind(&input().schema()).unwrap();
    let sorted =
        Way::PLAIN.arrange(&mut Rng::new(9), &layout, &Way::PLAIN.pool(), &input()).unwrap();
    let sorted = collect(sorted.record_batches(100)).unwrap();
    let expected = model::rows(&sorted);
    let pool = Way { budget: 1 << 20, ..Way::PLAIN }.pool();
    let run = sorted.into_iter().map(Ok);
    let merged = collect(merge_in(&layout, &pool, [(0, run)]).record_batches(100)).unwrap();
    model::assert_same(&model::rows(&merged), &expected, &"");
}
