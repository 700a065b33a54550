//! Groups of rows of any types beside a map; within a limit they end early and lose nothing.

use std::collections::HashMap;
use std::sync::Arc;

use crate::common::arrays::{Rng, array_of, data_type};
use crate::common::model::{Row, assert_same, rows};
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use windrow::{Budget, Error, Groups, Pool};

#[test]
fn have_the_numbers_of_a_map() {
    let mut rng = Rng::new(7);
    for _ in 0..60 {
        let columns = 1 + rng.below(3);
        let types: Vec<_> = (0..columns).map(|_| data_type(&mut rng, 2)).collect();
        let batch = |rng: &mut Rng, count: usize| {
            let columns = types.iter().enumerate().map(|(at, data_type)| {
                (format!("c{at}"), array_of(rng, data_type, true, count), true)
            });
            RecordBatch::try_from_iter_with_nullable(columns.collect::<Vec<_>>()).unwrap()
        };
        let mut groups = Groups::new(&batch(&mut rng, 0).schema(), &Pool::unlimited()).unwrap();
        let mut expected: Vec<Row> = Vec::new();
        let mut numbers = Vec::new();
        for _ in 0..5 {
            let count = rng.below(200);
            let batch = batch(&mut rng, count);
            // Each row twice, to see the same rows in any case.
            for _ in 0..2 {
                groups.intern(&batch, &mut numbers).unwrap();
                assert_eq!(numbers.len(), count);
                for (row, &number) in rows([&batch]).into_iter().zip(&numbers) {
                    match expected.iter().position(|known| *known == row) {
                        Some(known) => assert_eq!(known, number as usize, "{types:?}"),
                        None => {
                            assert_eq!(expected.len(), number as usize, "{types:?}");
                            expected.push(row);
                        }
                    }
                }
            }
        }
        assert_eq!(groups.len(), expected.len());
        let half = expected.len() / 2;
        let all = [groups.rows(0..half).unwrap(), groups.rows(half..groups.len()).unwrap()];
        assert_same(&rows(&all), &expected, &types);
    }
}

fn texts(range: std::ops::Range<u64>) -> RecordBatch {
    let mixed = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let texts = StringArray::from_iter_values(range.clone().map(|n| format!("text {}", mixed(n))));
    let numbers = UInt64Array::from_iter_values(range.map(mixed));
    let columns: [(&str, ArrayRef); 2] = [("text", Arc::new(texts)), ("n", Arc::new(numbers))];
    RecordBatch::try_from_iter(columns).unwrap()
}

#[test]
fn within_a_limit_are_taken_out_and_counted_again() {
    const LIMIT: usize = 1 << 20;
    let pool = Pool::in_dir(std::env::temp_dir(), Budget::bytes(LIMIT)).unwrap();
    let mut groups = Groups::new(&texts(0..0).schema(), &pool).unwrap();
    let mut seen: HashMap<u64, u64> = HashMap::new();
    let mut rounds = 0;
    let mut take_out = |groups: &mut Groups, counts: &mut Vec<u64>| {
        let rows = groups.rows(0..groups.len()).unwrap();
        let keys = rows.column(1).as_any().downcast_ref::<UInt64Array>().unwrap();
        for (key, count) in keys.values().iter().zip(counts.drain(..)) {
            *seen.entry(*key).or_default() += count;
        }
        groups.clear();
        rounds += 1;
    };
    let (mut counts, mut numbers) = (Vec::new(), Vec::new());
    for start in (0..200_000).step_by(1000) {
        let mut rest = texts(start..start + 1000);
        while rest.num_rows() > 0 {
            groups.intern(&rest, &mut numbers).unwrap();
            counts.resize(groups.len(), 0);
            numbers.iter().for_each(|&number| counts[number as usize] += 1);
            rest = rest.slice(numbers.len(), rest.num_rows() - numbers.len());
            if rest.num_rows() > 0 {
                assert!(!numbers.is_empty() || !groups.is_empty());
                take_out(&mut groups, &mut counts);
            }
        }
        assert!(pool.budget().used() <= LIMIT);
    }
    take_out(&mut groups, &mut counts);
    assert!(rounds > 3, "{rounds}");
    assert_eq!(seen.values().sum::<u64>(), 200_000);
    let keys = texts(0..200_000);
    let distinct: std::collections::HashSet<u64> = keys
        .column(1)
        .as_any()
        .downcast_ref::<UInt64Array>()
        .unwrap()
        .values()
        .iter()
        .copied()
        .collect();
    assert_eq!(seen.len(), distinct.len());
    drop(groups);
    assert_eq!(pool.budget().used(), 0);
}

#[test]
fn a_table_without_groups_takes_a_row_whatever_the_limit() {
    let pool = Pool::in_dir(std::env::temp_dir(), Budget::bytes(1)).unwrap();
    let mut groups = Groups::new(&texts(0..0).schema(), &pool).unwrap();
    let mut numbers = Vec::new();
    groups.intern(&texts(0..5), &mut numbers).unwrap();
    assert!(!numbers.is_empty());
    let other = RecordBatch::try_from_iter([("text", texts(0..1).column(0).clone())]).unwrap();
    let refused = groups.intern(&other, &mut numbers);
    assert!(matches!(refused, Err(Error::SchemaMismatch { .. })), "{refused:?}");
}

#[test]
fn of_floats_are_those_of_their_bits() {
    let floats =
        Float64Array::from(vec![Some(0.0), Some(-0.0), None, Some(f64::NAN), None, Some(0.0)]);
    assert_eq!(floats.null_count(), 2);
    let column = Arc::new(floats) as ArrayRef;
    let batch = RecordBatch::try_from_iter_with_nullable([("f", column, true)]).unwrap();
    let mut groups = Groups::new(&batch.schema(), &Pool::unlimited()).unwrap();
    let mut numbers = Vec::new();
    groups.intern(&batch, &mut numbers).unwrap();
    assert_eq!(numbers, [0, 1, 2, 3, 2, 0]);
}
