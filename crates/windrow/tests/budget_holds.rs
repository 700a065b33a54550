//! What is leased stays within the budget, whatever is done with the rows.

mod common;

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use common::arrays::Rng;
use common::engine::Way;
use windrow::{Finish, Order};

#[test]
fn while_sorting_and_compacting() {
    let rng = &mut Rng::new(10);
    let rows = 1_000_000;
    let mut random = |below: usize| {
        let numbers = (0..rows).map(|_| rng.below(below) as i64);
        Arc::new(Int64Array::from_iter_values(numbers)) as ArrayRef
    };
    let input = RecordBatch::try_from_iter([
        ("key", random(300_000)),
        ("value", random(usize::MAX)),
        ("diff", random(2)),
    ])
    .unwrap();
    for order in [Order::by("key"), Order::by("key").last(), Order::by("key").diff("diff")] {
        let layout = order.bind(&input.schema()).unwrap();
        for (budget, pushers) in [(4 << 20, 0), (16 << 20, 0), (16 << 20, 3), (64 << 20, 4)] {
            let way = Way { budget, rows: 20_000, pushers, ..Way::PLAIN };
            let pool = way.pool();
            let batch = way.arrange(rng, &layout, &pool, &input).unwrap();
            let mut slabs = batch.slabs(Finish::Log);
            while slabs.next(8192, budget / 64).unwrap().is_some() {}
            let peak = pool.stats().peak_leased;
            // By one chunk it may be passed, to go on at all; 64 KiB are the least that a chunk has.
            let chunk = (budget / 96).max(64 << 10);
            assert!(peak <= budget + chunk, "{way:?} {:?} leased {peak}", layout.rule());
            pool.wait_for_spills();
            assert_eq!(pool.budget().used(), 0, "all leases returned");
        }
    }
}
