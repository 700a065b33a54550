//! Merging sorted runs gives the same result as sorting all rows together; an error names an
//! unsorted run.

use std::sync::Arc;

use crate::common::arrays::Rng;
use crate::common::engine::{Way, cases, collect, order};
use crate::common::model::By;
use crate::common::{model, tables};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::ArrowError;
use proptest::prelude::*;
use windrow::{
    ColumnarMerge, Decoder, Error, Finish, KeyedBatches, KeyedRun, Order, OrderCheck, Rule, asc,
    desc, merge, merge_in,
};

proptest! {
    #![proptest_config(cases(120))]

    #[test]
    fn runs_merge_to_what_they_sort_to(
        seed: u64,
        keys in 1usize..3,
        then in 0usize..2,
        payload in 0usize..2,
        runs in 1usize..7,
        rows in 0usize..600,
        distinct in 1usize..100,
    ) {
        let rng = &mut Rng::new(seed);
        let table = tables::table(rng, keys + then, payload, runs * rows, distinct);
        let names: Vec<String> = (0..keys + then).map(|k| format!("k{k}")).collect();
        let names: Vec<&str> = names.iter().map(|name| &name[..]).collect();
        let (columns, by) = order(rng, &names, 0);
        let (key, within) = by.split_at(keys);
        let sort = Order::by(columns[..keys].to_vec()).then(columns[keys..].to_vec());
        let rule = [Rule::Keep, Rule::First, Rule::Last, Rule::LastKnown][rng.below(4)];
        let sorted_by = sort.bind(&table.schema()).unwrap();
        let layout = match rule {
            Rule::First => sort.first(),
            Rule::Last => sort.last(),
            Rule::LastKnown => sort.last_known(),
            _ => sort,
        };
        let layout = layout.bind(&table.schema()).unwrap();
        // Runs of different lengths, each sorted by the engine and cut into groups at random
        // places.
        let mut inputs: Vec<Vec<RecordBatch>> = Vec::new();
        let mut all = Vec::new();
        for run in 0..runs {
            let len = rng.below(rows + 1);
            let run = table.slice(run * rows, len);
            let batch = Way::PLAIN.arrange(rng, &sorted_by, &Way::PLAIN.pool(), &run).unwrap();
            let sorted = collect(batch.record_batches(1 + rng.below(80))).unwrap();
            all.extend(model::rows(&sorted));
            inputs.push(sorted);
        }
        let expected = match rule {
            Rule::First => model::first(key, within, all),
            Rule::Last => model::last(key, within, all),
            Rule::LastKnown => model::last_known(key, within, None, all),
            _ => model::sort(&by, all),
        };
        for way in [Way::PLAIN, Way { budget: 1, ..Way::PLAIN }] {
            let copies = inputs.iter().map(|run| run.clone().into_iter().map(Ok)).enumerate();
            let merged = merge_in(&layout, &way.pool(), copies);
            let got = model::rows(&collect(merged.record_batches(1 + rng.below(3000))).unwrap());
            model::assert_same(&got, &expected, &(rule, way, layout.order(), table.schema()));
        }
    }

    /// Both merges yield the same blocks of the same rows.
    #[test]
    fn columns_merge_as_rows_do(
        seed: u64,
        keys in 1usize..3,
        payload in 0usize..4,
        runs in 1usize..9,
        rows in 0usize..600,
        distinct in 1usize..1000,
        is_apart: bool,
    ) {
        let rng = &mut Rng::new(seed);
        let table = tables::table(rng, keys, payload, runs * rows, distinct);
        let names: Vec<String> = (0..keys).map(|k| format!("k{k}")).collect();
        let names: Vec<&str> = names.iter().map(|name| &name[..]).collect();
        let (columns, _) = order(rng, &names, 0);
        let sort = Order::by(columns);
        let sorted_by = sort.clone().bind(&table.schema()).unwrap();
        let layout = if rng.below(2) == 0 { sort.last() } else { sort };
        let layout = layout.bind(&table.schema()).unwrap();
        if !ColumnarMerge::serves(&layout) {
            return Ok(());
        }
        // Ranges that do not overlap have long runs of one input.
        let table = match is_apart {
            true => {
                let pool = Way::PLAIN.pool();
                let all = Way::PLAIN.arrange(rng, &sorted_by, &pool, &table).unwrap();
                let all = collect(all.record_batches(table.num_rows().max(1))).unwrap();
                all.into_iter().next().unwrap_or(table)
            }
            false => table,
        };
        let mut inputs: Vec<Vec<RecordBatch>> = Vec::new();
        for run in 0..runs {
            let run = table.slice(run * rows, rng.below(rows + 1));
            let batch = Way::PLAIN.arrange(rng, &sorted_by, &Way::PLAIN.pool(), &run).unwrap();
            inputs.push(collect(batch.record_batches(1 + rng.below(200))).unwrap());
        }
        let (most, bytes) = (1 + rng.below(900), 1 + rng.below(20_000));
        let copies = inputs.iter().map(|run| run.clone().into_iter().map(Ok)).enumerate();
        let mut slabs = merge_in(&layout, &Way::PLAIN.pool(), copies).slabs(Finish::Log);
        let keyed = inputs.iter().enumerate().map(|(input, run)| {
            Box::new(KeyedRun::new(&layout, input, run.clone().into_iter().map(Ok))) as KeyedBatches
        });
        let mut columns = ColumnarMerge::new(&layout, keyed);
        let all: Vec<usize> = (0..table.num_columns()).rev().collect();
        let mut decoder = Decoder::new(&layout, &all).unwrap();
        while let Some(slab) = slabs.next(most, bytes).unwrap() {
            let picks = columns.next(most, bytes).unwrap().expect("as many blocks");
            prop_assert_eq!((picks.rows(), picks.bytes()), (slab.rows(), slab.bytes()));
            let (got, expected) = (picks.gather(&all).unwrap(), decoder.decode(&slab).unwrap());
            prop_assert_eq!(got.schema(), expected.schema());
            let [got, expected] = [got, expected].map(|batch| model::rows(&[batch]));
            model::assert_same(&got, &expected, &layout.order());
        }
        prop_assert!(columns.next(most, bytes).unwrap().is_none());
    }

    #[test]
    fn sorted_changes_merge_to_their_sums(seed: u64, runs in 1usize..6, rows in 1usize..500) {
        let rng = &mut Rng::new(seed);
        let mut inputs = Vec::new();
        let mut all = Vec::new();
        let mut schema = None;
        for _ in 0..runs {
            let mut changes: Vec<(i64, i64, i64)> = (0..rng.below(rows))
                .map(|_| (rng.below(20) as i64, rng.below(3) as i64, rng.below(3) as i64 - 1))
                .collect();
            changes.sort_by_key(|&(user, time, _)| (user, time));
            let column = |of: fn(&(i64, i64, i64)) -> i64| {
                Arc::new(Int64Array::from_iter_values(changes.iter().map(of))) as ArrayRef
            };
            let batch = RecordBatch::try_from_iter([
                ("user", column(|change| change.0)),
                ("time", column(|change| change.1)),
                ("diff", column(|change| change.2)),
            ])
            .unwrap();
            all.extend(model::rows([&batch]));
            schema = Some(batch.schema());
            let pieces = tables::cut(rng, &batch, 40);
            inputs.push(pieces.into_iter().map(Ok::<_, ArrowError>).collect::<Vec<_>>());
        }
        let layout = Order::by("user").time("time").diff("diff").bind(&schema.unwrap()).unwrap();
        let merged: Vec<RecordBatch> =
            merge(&layout, inputs).unwrap().collect::<Result<_, _>>().unwrap();
        model::assert_same(&model::rows(&merged), &model::consolidate(2, all), &seed);
    }
}

fn ids(ids: &[i64]) -> RecordBatch {
    let ids = Arc::new(Int64Array::from(ids.to_vec())) as ArrayRef;
    RecordBatch::try_from_iter([("id", ids)]).unwrap()
}

#[test]
fn a_row_out_of_order_is_named() {
    let layout = Order::by("id").bind(&ids(&[]).schema()).unwrap();
    let good = vec![Ok(ids(&[1, 2, 3])), Ok(ids(&[3, 3])), Ok(ids(&[9]))];
    let bad = vec![Ok(ids(&[1, 5])), Ok(ids(&[])), Ok(ids(&[5, 6, 4, 3]))];
    let mut merged = merge(&layout, [good, bad]).unwrap();
    let error = merged.find_map(Result::err).unwrap();
    assert!(matches!(Error::from(error), Error::OutOfOrder { input: 1, row: 4 }));
    assert!(merged.next().is_none());
}

#[test]
fn an_error_of_an_input_ends_the_merge() {
    let layout = Order::by("id").bind(&ids(&[]).schema()).unwrap();
    let run = vec![Ok(ids(&[1])), Err(ArrowError::ComputeError("gone".into())), Ok(ids(&[2]))];
    let mut merged = merge(&layout, [run]).unwrap();
    let error = merged.find_map(Result::err).unwrap();
    assert!(matches!(error, ArrowError::ComputeError(_)), "{error}");
    assert!(merged.next().is_none());
}

#[test]
fn directions_and_uniqueness_are_checked() {
    let schema = ids(&[]).schema();
    let descending = Order::by(desc("id")).bind(&schema).unwrap();
    OrderCheck::new(&descending, 0).push(&ids(&[3, 3, 1])).unwrap();
    let ascending = Order::by(asc("id")).bind(&schema).unwrap();
    let mut check = OrderCheck::new(&ascending, 7).unique();
    check.push(&ids(&[1, 2])).unwrap();
    let found = check.push(&ids(&[4, 4]));
    assert!(matches!(found, Err(Error::Repeated { input: 7, row: 3 })));
    let mut check = OrderCheck::new(&ascending, 7).unique();
    check.push(&ids(&[1, 2])).unwrap();
    assert!(matches!(check.push(&ids(&[2])), Err(Error::Repeated { input: 7, row: 2 })));
    let mut check = OrderCheck::new(&ascending, 7);
    check.push(&ids(&[1, 2])).unwrap();
    assert!(matches!(check.push(&ids(&[1])), Err(Error::OutOfOrder { input: 7, row: 2 })));
}

#[test]
fn an_empty_merge_has_no_rows() {
    let layout = Order::by("id").bind(&ids(&[]).schema()).unwrap();
    assert!(merge(&layout, Vec::<Vec<Result<_, _>>>::new()).unwrap().next().is_none());
    assert!(merge(&layout, [vec![Ok(ids(&[]))], vec![]]).unwrap().next().is_none());
}

#[test]
fn long_runs_that_hardly_overlap_are_copied() {
    let runs: Vec<Vec<_>> = (0..20)
        .map(|run| {
            (0..10)
                .map(|part| {
                    let start = run * 90_000 + part * 10_000;
                    Ok(ids(&(start..start + 10_000).collect::<Vec<i64>>()))
                })
                .collect()
        })
        .collect();
    let layout = Order::by("id").bind(&ids(&[]).schema()).unwrap();
    let mut expected: Vec<i64> =
        (0..20).flat_map(|run| run * 90_000..run * 90_000 + 100_000).collect();
    expected.sort_unstable();
    let merged: Vec<RecordBatch> = merge(&layout, runs).unwrap().map(Result::unwrap).collect();
    let by = [By::ascending(0)];
    let got = model::rows(&merged);
    assert!(got.is_sorted_by(|a, b| model::compare(&by, a, b).is_le()));
    model::assert_same(&got, &model::rows([&ids(&expected)]), &"");
}

#[test]
fn a_row_out_of_order_is_named_by_columns() {
    let layout = Order::by("id").bind(&ids(&[]).schema()).unwrap();
    let run = |input, rows: &[&[i64]]| {
        let batches: Vec<_> = rows.iter().map(|rows| Ok(ids(rows))).collect();
        Box::new(KeyedRun::new(&layout, input, batches.into_iter())) as KeyedBatches
    };
    for (bad, row) in [(&[&[1, 2][..], &[], &[3, 2]][..], 3), (&[&[1, 5], &[4]], 2)] {
        let mut merge = ColumnarMerge::new(&layout, [run(0, &[&[1, 2, 3], &[9]]), run(1, bad)]);
        let error = loop {
            match merge.next(1, 1) {
                Ok(picks) => assert!(picks.is_some()),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::OutOfOrder { input: 1, row: at } if at == row), "{error}");
        assert!(matches!(merge.next(1, 1), Err(Error::Lost)));
    }
}
