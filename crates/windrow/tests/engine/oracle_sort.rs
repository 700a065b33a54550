//! A sort is stable and complete, whatever the types, the memory and the way in.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::arrays::Rng;
use crate::common::engine::{Way, assert_returned, cases, collect, order};
use crate::common::model::By;
use crate::common::{model, tables};
use arrow_array::RecordBatch;
use arrow_schema::DataType;
use proptest::prelude::*;
use windrow::{Batcher, Codec, Order, asc, desc};

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn sorts_stably(
        seed: u64,
        keys in 1usize..5,
        payload in 0usize..3,
        rows in 0usize..2000,
        distinct in 1usize..1000,
    ) {
        let rng = &mut Rng::new(seed);
        let input = tables::table(rng, keys, payload, rows, distinct);
        let names: Vec<String> = (0..keys).map(|k| format!("k{k}")).collect();
        let names: Vec<&str> = names.iter().map(|name| &name[..]).collect();
        let (columns, by) = order(rng, &names, 0);
        let within = rng.below(keys + 1);
        let layout = Order::by(columns[..within].to_vec())
            .then(columns[within..].to_vec())
            .bind(&input.schema())
            .unwrap();
        let expected = model::sort(&by, model::rows([&input]));
        for way in [Way::PLAIN, Way::any(rng), Way::any(rng), Way { budget: 1, ..Way::any(rng) }] {
            let sorted = way.arrange(rng, &layout, &way.pool(), &input).unwrap();
            let sorted = collect(sorted.record_batches(1 + rng.below(3000))).unwrap();
            let what = (way, layout.order(), input.schema());
            model::assert_same(&model::rows(&sorted), &expected, &what);
            for batch in &sorted {
                prop_assert_eq!(batch.schema(), input.schema());
                batch.columns().iter().for_each(|c| c.to_data().validate_full().unwrap());
            }
        }
    }
}

/// A table of several MB, in which many rows agree in the first columns of the order.
fn large(rng: &mut Rng) -> (windrow::Layout, RecordBatch) {
    let rows = 60_000;
    let names = [
        (DataType::Utf8, 3000),
        (DataType::Int64, 1000),
        (DataType::Float32, 50),
        (DataType::LargeBinary, 400),
    ];
    let columns = names.iter().zip(["a", "b", "c", "d"]).map(|((data_type, distinct), name)| {
        (name, tables::key_array(rng, data_type, true, rows, *distinct), true)
    });
    let input = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let layout = Order::by("a").then([desc("b").nulls_first(), asc("c")]).bind(&input.schema());
    (layout.unwrap(), input)
}

#[test]
fn several_spilled_passes_do_not_show() {
    let rng = &mut Rng::new(1);
    let (layout, input) = large(rng);
    let by =
        [By::ascending(0), By { column: 1, descending: true, nulls_first: true }, By::ascending(2)];
    let expected = model::sort(&by, model::rows([&input]));
    for (budget, codec, pushers) in [
        (usize::MAX, Codec::None, 0),
        (4 << 20, Codec::None, 0),
        (1 << 20, Codec::Lz4, 0),
        (1 << 20, Codec::None, 3),
        (300_000, Codec::Zstd, 2),
        (1, Codec::None, 0),
    ] {
        let way = Way { budget, codec, rows: 5000, pushers, ..Way::PLAIN };
        let pool = way.pool();
        let sorted = way.arrange(rng, &layout, &pool, &input).unwrap();
        let sorted = collect(sorted.record_batches(8192)).unwrap();
        model::assert_same(&model::rows(&sorted), &expected, &way);
        let stats = pool.stats();
        assert_eq!(stats.spilled_bytes > 0, budget < usize::MAX, "{way:?}");
        assert_eq!(stats.stored_bytes < stats.spilled_bytes, codec != Codec::None, "{way:?}");
        // The chunks take about 5 MB: merging two at a time writes them several times.
        assert_eq!(stats.spilled_bytes > 20 << 20, budget <= 300_000, "{way:?} {stats:?}");
        assert_returned(&pool);
    }
}

#[test]
fn threads_do_not_show() {
    let rng = &mut Rng::new(2);
    let (layout, input) = large(rng);
    let read = |batch: windrow::Batch| collect(batch.record_batches(8192)).unwrap();
    let way = Way { budget: 2 << 20, ..Way::PLAIN };
    let expected = read(way.arrange(rng, &layout, &way.pool(), &input).unwrap());
    let batcher = Batcher::new(&layout, &way.pool());
    let turn = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for mut pusher in batcher.pushers(4) {
            let (turn, input) = (&turn, &input);
            scope.spawn(move || {
                loop {
                    let at = turn.fetch_add(1, Ordering::Relaxed) * 700;
                    if at >= input.num_rows() {
                        break;
                    }
                    let piece = input.slice(at, 700.min(input.num_rows() - at));
                    pusher.push(&piece, at as u64).unwrap();
                }
                pusher.flush().unwrap();
            });
        }
    });
    assert_eq!(read(batcher.finish().unwrap()), expected);
}

#[test]
fn batches_unite_and_spill() {
    let rng = &mut Rng::new(11);
    let (layout, input) = large(rng);
    let way = Way { budget: 1 << 20, rows: 3000, ..Way::PLAIN };
    let expected =
        collect(way.arrange(rng, &layout, &way.pool(), &input).unwrap().record_batches(8192));
    let pool = way.pool();
    let mut parts = Vec::new();
    for part in 0..3 {
        let batcher = Batcher::new(&layout, &pool);
        let pushers = &mut batcher.pushers(1);
        // Every third piece, with its row number in the whole table.
        for at in (0..input.num_rows()).step_by(3000).skip(part).step_by(3) {
            pushers[0].push(&input.slice(at, 3000), at as u64).unwrap();
        }
        pushers[0].flush().unwrap();
        let batch = batcher.finish().unwrap();
        parts.push(if part == 1 { batch.spill().unwrap() } else { batch });
    }
    let united = windrow::Batch::union(&layout, &pool, parts);
    assert_eq!(collect(united.record_batches(8192)).unwrap(), expected.unwrap());
}
