//! Overflowing sums: the same outcome in any order of merges.

use super::*;
use windrow_rows::{Antichain, Error};

/// Returns every order of `diffs`.
fn orders(diffs: &[i64]) -> Vec<Vec<i64>> {
    if diffs.is_empty() {
        return vec![Vec::new()];
    }
    let mut out = Vec::new();
    for at in 0..diffs.len() {
        let mut rest = diffs.to_vec();
        let first = rest.remove(at);
        out.extend(orders(&rest).into_iter().map(|rest| [vec![first], rest].concat()));
    }
    out
}

/// Returns the sum of the diffs of one row, each in its own batch, merged two by two and then
/// together.
fn sum(keys: Keys, diffs: &[i64], pairs: usize) -> Result<Model> {
    let (layout, pool) = (keys.layout(), tiny(400));
    let mut batches: Vec<Batch> = diffs
        .iter()
        .map(|&diff| batch_of(keys, &pool, &[(3, 1, 0, 1), (5, 1, 0, diff), (7, 1, 0, 1)]))
        .collect();
    for _ in 0..pairs.min(diffs.len() / 2) {
        let two: Vec<Batch> = batches.drain(..2).collect();
        batches.push(Batch::union(&layout, &pool, two).settle()?);
    }
    let whole = Batch::union(&layout, &pool, batches);
    keys.read(if pairs == 2 { whole.settle_on(3)? } else { whole })
}

#[test]
fn does_not_depend_on_the_order() {
    let cases: [(&[i64], Option<i64>); 5] = [
        (&[i64::MAX, 1, -1, 5], None),
        (&[i64::MAX, 1, -1, -5], Some(i64::MAX - 5)),
        (&[i64::MAX, i64::MAX, i64::MIN, i64::MIN], Some(-2)),
        (&[i64::MIN, i64::MIN, 7], None),
        (&[i64::MIN, -1, i64::MAX, 1], Some(-1)),
    ];
    for keys in ALL_KEYS {
        for (diffs, expected) in cases {
            for order in orders(diffs) {
                for pairs in 0..3 {
                    match (sum(keys, &order, pairs), expected) {
                        (Ok(model), Some(sum)) => {
                            assert_eq!(model[&(keys.text(5), 1, 0)], sum, "{order:?}");
                        }
                        (Err(Error::DiffOverflow { row }), None) => {
                            let key = keys.text(5);
                            let named = row.contains(key.trim_start_matches('0'));
                            assert!(named && row.contains("value=1"), "{row}");
                        }
                        (found, _) => panic!("{order:?} {pairs}: {found:?}"),
                    }
                }
            }
        }
    }
}

#[test]
fn waits_for_the_frontier() {
    let keys = Keys::Numbers;
    let mut batcher = Batcher::new(&keys.layout(), &Pool::unlimited());
    let push = |batcher: &mut Batcher, diff: i64, time: u64| {
        batcher.push(&keys.record_batch(&[(1, 1, time, diff)])).unwrap();
    };
    push(&mut batcher, i64::MAX, 5);
    push(&mut batcher, 1, 5);
    assert_eq!(batcher.seal(&Antichain::at(5)).unwrap().rows(), Some(0));
    assert_eq!(batcher.frontier(), &Antichain::at(5));
    push(&mut batcher, -1, 5);
    let batch = batcher.seal(&Antichain::at(6)).unwrap();
    assert_eq!(keys.read(batch).unwrap().into_values().collect::<Vec<_>>(), [i64::MAX]);
    push(&mut batcher, i64::MAX, 7);
    push(&mut batcher, 1, 7);
    let found = batcher.seal(&Antichain::new()).map(|batch| batch.rows());
    assert!(matches!(found, Err(Error::DiffOverflow { .. })));
}
