//! One row of each key remains, the right one.

use crate::common::arrays::Rng;
use crate::common::engine::{Way, cases, collect, order};
use crate::common::model::Value;
use crate::common::{model, tables};
use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use proptest::prelude::*;
use std::sync::Arc;
use windrow::{Finish, Order, Rule};

/// Returns `input` with a Boolean column of deletes.
fn with_tombstones(rng: &mut Rng, input: &RecordBatch) -> RecordBatch {
    let deleted: BooleanArray = (0..input.num_rows()).map(|_| Some(rng.below(3) == 0)).collect();
    let mut fields: Vec<_> = input.schema().fields().iter().cloned().collect();
    let mut columns: Vec<ArrayRef> = input.columns().to_vec();
    fields.push(Arc::new(Field::new("deleted", DataType::Boolean, rng.flip())));
    columns.push(Arc::new(deleted));
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn the_right_row_of_each_key_stays(
        seed: u64,
        keys in 1usize..3,
        then in 0usize..3,
        payload in 0usize..3,
        rows in 0usize..2000,
        distinct in 1usize..300,
    ) {
        let rng = &mut Rng::new(seed);
        let input = tables::table(rng, keys + then, payload, rows, distinct);
        let input = with_tombstones(rng, &input);
        let deleted = input.num_columns() - 1;
        let names: Vec<String> = (0..keys + then).map(|k| format!("k{k}")).collect();
        let names: Vec<&str> = names.iter().map(|name| &name[..]).collect();
        let (columns, by) = order(rng, &names, 0);
        let (key, within) = by.split_at(keys);
        let base = Order::by(columns[..keys].to_vec()).then(columns[keys..].to_vec());
        let (last, tombstone) = (rng.flip(), rng.flip());
        let order = match (last, tombstone) {
            (true, true) => base.last().tombstone("deleted"),
            (true, false) => base.last(),
            (false, _) => base.first(),
        };
        let layout = order.bind(&input.schema()).unwrap();
        prop_assert_eq!(layout.rule(), if last { Rule::Last } else { Rule::First });
        let all = model::rows([&input]);
        let log = if last {
            model::last(key, within, all)
        } else {
            model::first(key, within, all)
        };
        let mut there = log.clone();
        if last && tombstone {
            there.retain(|row| row[deleted] == Value::Bool(false));
        }
        for way in [Way::PLAIN, Way::any(rng), Way::any(rng), Way { budget: 1, ..Way::any(rng) }] {
            let what = (way, layout.order(), input.schema());
            let batch = way.arrange(rng, &layout, &way.pool(), &input).unwrap();
            let read = collect(batch.record_batches(1 + rng.below(3000))).unwrap();
            model::assert_same(&model::rows(&read), &log, &what);
            let batch = way.arrange(rng, &layout, &way.pool(), &input).unwrap();
            let read = collect(batch.snapshot(1 + rng.below(3000))).unwrap();
            model::assert_same(&model::rows(&read), &there, &what);
            let mut slabs = way.arrange(rng, &layout, &way.pool(), &input).unwrap().slabs(Finish::Snapshot);
            while slabs.next(100, 10_000).unwrap().is_some() {}
            prop_assert_eq!(slabs.deleted() as usize, log.len() - there.len());
        }
    }
}

#[test]
fn hot_keys_do_not_pile_up() {
    let rng = &mut Rng::new(3);
    let columns =
        [("k", DataType::Int64, 20), ("p", DataType::Utf8, 5000)].map(|(name, data_type, n)| {
            (name, tables::key_array(rng, &data_type, true, 60_000, n), true)
        });
    let input = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let layout = Order::by("k").last().bind(&input.schema()).unwrap();
    let expected = model::last(&[model::By::ascending(0)], &[], model::rows([&input]));
    for budget in [usize::MAX, 2 << 20, 1 << 20, 1] {
        let way = Way { budget, rows: 999, ..Way::PLAIN };
        let pool = way.pool();
        let batch = way.arrange(rng, &layout, &pool, &input).unwrap();
        let read = collect(batch.record_batches(1000)).unwrap();
        model::assert_same(&model::rows(&read), &expected, &way);
        // 20 rows of each of the many chunks.
        assert!(pool.stats().spilled_bytes < 300_000, "{way:?} {:?}", pool.stats());
    }
}
