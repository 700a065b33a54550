//! Tables against one map per time.

use std::collections::BTreeMap;

use arrow_array::StringArray;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use proptest::prelude::*;

use super::*;
use crate::chunk::tests::tiny;
use windrow_pool::{Budget, ForceSpill, PoolOptions};
use windrow_rows::desc;

type Rows = BTreeMap<i64, Option<String>>;

fn rows(rows: &[(i64, Option<String>)]) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)));
    let names = rows.iter().map(|row| row.1.as_deref());
    let names: ArrayRef = Arc::new(StringArray::from_iter(names));
    RecordBatch::try_from_iter_with_nullable([("id", ids, false), ("name", names, true)]).unwrap()
}

fn keys(ids: &[i64]) -> RecordBatch {
    rows(&ids.iter().map(|&id| (id, None)).collect::<Vec<_>>()).project(&[0]).unwrap()
}

fn listed(batch: &RecordBatch) -> Vec<(i64, Option<String>)> {
    let (ids, names) =
        (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_string::<i32>());
    ids.values().iter().zip(names).map(|(id, name)| (*id, name.map(str::to_owned))).collect()
}

fn all(scanned: Scanned) -> Vec<(i64, Option<String>)> {
    scanned.flat_map(|batch| listed(&batch.unwrap())).collect()
}

/// A change of a table.
#[derive(Clone, Debug)]
enum Change {
    Upsert(Vec<(i64, Option<String>)>),
    Returning(Vec<(i64, Option<String>)>),
    Delete(Vec<i64>),
    Forget(u64),
    Work(i64),
    /// Saves the table; `true` opens it again.
    Save(bool),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let name = prop::option::of(prop::sample::select(vec!["", "ann", "bob", "a longer name"]));
    let row = (0..15i64, name.prop_map(|name| name.map(str::to_owned)));
    let change = prop_oneof![
        6 => prop::collection::vec(row.clone(), 0..8).prop_map(Change::Upsert),
        1 => prop::collection::vec(row, 0..8).prop_map(Change::Returning),
        3 => prop::collection::vec(0..15i64, 0..5).prop_map(Change::Delete),
        2 => (0..4u64).prop_map(Change::Forget),
        1 => (0..40i64).prop_map(Change::Work),
        1 => any::<bool>().prop_map(Change::Save),
    ];
    prop::collection::vec(change, 1..60)
}

fn keeps(pool: &Pool, changes: &[Change], mergers: Option<&Mergers>) {
    let mut table = Table::new(&rows(&[]).schema(), "id", pool).unwrap();
    mergers.into_iter().for_each(|mergers| table.merge_on(mergers));
    #[cfg(feature = "ipc")]
    let directory = tempfile::tempdir().unwrap();
    let mut model = Rows::new();
    let mut past: BTreeMap<u64, Rows> = BTreeMap::new();
    for change in changes {
        let time = match change {
            Change::Upsert(changed) => {
                model.extend(changed.iter().cloned());
                table.upsert(&rows(changed)).unwrap()
            }
            Change::Returning(changed) => {
                let mut replaced = BTreeMap::new();
                for (at, (id, _)) in changed.iter().enumerate() {
                    replaced.insert(id, (at, model.get(id).cloned()));
                }
                let mut replaced: Vec<_> = replaced.into_iter().collect();
                replaced.sort_unstable_by_key(|(_, (at, _))| *at);
                let replaced = replaced.into_iter().filter_map(|(id, (_, row))| Some((*id, row?)));
                model.extend(changed.iter().cloned());
                let (time, got) = table.upsert_returning(&rows(changed)).unwrap();
                assert_eq!(listed(&got), replaced.collect::<Vec<_>>());
                time
            }
            Change::Delete(ids) => {
                ids.iter().for_each(|id| drop(model.remove(id)));
                table.delete(&keys(ids)).unwrap()
            }
            Change::Forget(ago) => {
                let before = table.now().saturating_sub(*ago);
                if table.forget_before(before).is_ok() {
                    past.retain(|time, _| *time >= before);
                }
                continue;
            }
            Change::Work(fuel) => {
                table.work(&mut fuel.clone()).unwrap();
                table.now()
            }
            #[cfg(not(feature = "ipc"))]
            Change::Save(true | false) => table.now(),
            #[cfg(feature = "ipc")]
            Change::Save(opens) => {
                let now = table.now();
                table.save(directory.path()).unwrap();
                if *opens {
                    table = Table::open(directory.path(), pool).unwrap();
                    mergers.into_iter().for_each(|mergers| table.merge_on(mergers));
                }
                now
            }
        };
        assert_eq!(time, table.now());
        past.insert(time, model.clone());
        let wanted: Vec<i64> = (0..15).rev().collect();
        let found: Vec<_> =
            wanted.iter().filter_map(|id| Some((*id, model.get(id)?.clone()))).collect();
        assert_eq!(listed(&table.get(&keys(&wanted)).unwrap()), found);
        for (time, model) in &past {
            let expected: Vec<_> = model.clone().into_iter().collect();
            assert_eq!(all(table.scan().at(*time).batches(4).unwrap()), expected, "{time}");
        }
        let range = table.scan().from(&keys(&[3])).to(&keys(&[9])).batches(2).unwrap();
        let expected: Vec<_> = model.range(3..9).map(|(id, name)| (*id, name.clone())).collect();
        assert_eq!(all(range), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn a_table_is_the_map_of_each_time(
        changes in changes(),
        chunk in 80usize..2000,
        spills in any::<bool>(),
        merges in any::<bool>(),
    ) {
        let pool = tiny(chunk);
        if spills {
            pool.set_policy(Arc::new(ForceSpill));
        }
        let mergers = merges.then(|| Mergers::new(1).unwrap());
        keeps(&pool, &changes, mergers.as_ref());
    }
}

#[test]
fn the_key_may_be_any_columns_in_any_direction() {
    let schema = rows(&[]).schema();
    let mut table = Table::new(&schema, [desc("name"), desc("id")], &Pool::unlimited()).unwrap();
    let name = |name: &str| Some(name.to_owned());
    let all_rows = [(1, name("a")), (2, name("b")), (2, None), (2, name("a"))];
    table.upsert(&rows(&all_rows)).unwrap();
    let expected = [(2, name("b")), (2, name("a")), (1, name("a")), (2, None)];
    assert_eq!(all(table.scan().batches(10).unwrap()), expected);
    let keys = rows(&[(2, None), (7, None)]).project(&[1, 0]).unwrap();
    assert_eq!(listed(&table.get(&keys).unwrap()), [(2, None)]);
    table.delete(&keys).unwrap();
    assert_eq!(all(table.scan().batches(10).unwrap()), expected[..3]);
}

#[test]
fn what_does_not_go_together_is_refused() {
    let (schema, pool) = (rows(&[]).schema(), Pool::unlimited());
    assert!(matches!(Table::new(&schema, "nix", &pool), Err(Error::MissingColumn { .. })));
    let none: [&str; 0] = [];
    assert!(matches!(Table::new(&schema, none, &pool), Err(Error::InvalidOrder(_))));
    let mut table = Table::new(&schema, "id", &pool).unwrap();
    table.upsert(&rows(&[(1, None)])).unwrap();
    assert!(matches!(table.upsert(&keys(&[1])), Err(Error::SchemaMismatch { .. })));
    assert!(matches!(table.get(&rows(&[(1, None)])), Err(Error::SchemaMismatch { .. })));
    let two = table.scan().from(&keys(&[1, 2])).batches(1);
    assert!(matches!(two, Err(Error::InvalidOrder(_))));
    table.upsert(&rows(&[(2, None)])).unwrap();
    table.forget_before(1).unwrap();
    assert!(matches!(table.get_at(&keys(&[1]), 0), Err(Error::InvalidOrder(_))));
    assert_eq!(table.get_at(&keys(&[1, 2]), 1).unwrap().num_rows(), 2);
}

/// A disk that fills up, and memory in its place: calls fail or succeed as a whole.
#[test]
fn a_table_goes_on_behind_a_full_disk() {
    let options = PoolOptions::new().max_temp_bytes(3 << 20).chunk_bytes(16 << 10);
    let pool = Pool::new(Budget::bytes(1 << 20), options).unwrap();
    let mut table = Table::new(&rows(&[]).schema(), "id", &pool).unwrap();
    let (mut model, mut failed) = (Rows::new(), 0);
    for call in 0..2000i64 {
        let changed: Vec<_> = (0..100i64)
            .map(|at| ((call * 100 + at) * 7919 % 100_003, Some(format!("{call} {at:>40}"))))
            .collect();
        let before = table.now();
        match table.upsert(&rows(&changed)) {
            Ok(time) => {
                assert_eq!(time, table.now());
                model.extend(changed);
            }
            Err(error) => {
                assert!(matches!(error, Error::TempSpace { .. }), "{error}");
                assert_eq!(table.now(), before);
                failed += 1;
            }
        }
        if failed == 20 {
            break;
        }
    }
    assert_eq!(failed, 20, "the disk has space for all");
    pool.set_limit(64 << 20).unwrap();
    // The failure of a write beside is reported once.
    let _reported = table.work(&mut i64::MAX.clone());
    let expected: Vec<_> = model.clone().into_iter().collect();
    assert!(all(table.scan().batches(1000).unwrap()) == expected);
    table.upsert(&rows(&[(-1, None)])).unwrap();
    assert!(table.work(&mut i64::MAX.clone()).unwrap());
    assert_eq!(all(table.scan().batches(1000).unwrap())[1..], expected);
}

/// All rows are written three times.
#[test]
fn replaced_rows_take_little_space() {
    const ROWS: i64 = 40_000;
    let options = PoolOptions::new().chunk_bytes(16 << 10);
    let pool = Pool::new(Budget::bytes(1 << 20), options).unwrap();
    let mut table = Table::new(&rows(&[]).schema(), "id", &pool).unwrap();
    let mut data = 0;
    for call in 0..3 * ROWS / 500 {
        let row = |at| ((call * 500 + at) * 7919 % ROWS, Some(format!("{call} {at:>100}")));
        let time = table.upsert(&rows(&(0..500).map(row).collect::<Vec<_>>())).unwrap();
        table.forget_before(time).unwrap();
        let bytes: u64 = table.spine().batches().filter_map(Batch::bytes).sum();
        if call < ROWS / 500 {
            data = bytes;
        }
        assert!(bytes <= data * 13 / 10, "{bytes} bytes for {data}");
    }
    assert!(pool.stats().temp_bytes <= data * 13 / 10, "{:?} for {data}", pool.stats());
    let count: usize =
        table.scan().batches(1000).unwrap().map(|rows| rows.unwrap().num_rows()).sum();
    assert_eq!(count as i64, ROWS);
}

/// A deletion is dropped in a merge with the oldest batch, and a deleted row with it.
#[test]
fn deletions_vanish() {
    let mut table = Table::new(&rows(&[]).schema(), "id", &Pool::unlimited()).unwrap();
    let all: Vec<i64> = (0..1000).collect();
    table.upsert(&rows(&all.iter().map(|&id| (id, None)).collect::<Vec<_>>())).unwrap();
    let time = table.delete(&keys(&all)).unwrap();
    table.forget_before(time).unwrap();
    while !table.work(&mut i64::MAX.clone()).unwrap() {}
    assert_eq!(table.spine().batches().filter_map(Batch::rows).sum::<u64>(), 0);
}

#[cfg(feature = "ipc")]
#[test]
fn a_table_is_saved_and_goes_on() {
    let (schema, pool) = (rows(&[]).schema(), Pool::unlimited());
    let name = |name: &str| Some(name.to_owned());
    let directory = tempfile::tempdir().unwrap();
    let mut table = Table::new(&schema, desc("id"), &pool).unwrap();
    table.save(directory.path()).unwrap();
    assert_eq!(Table::open(directory.path(), &pool).unwrap().now(), 0);
    let before = table.upsert(&rows(&[(1, name("a")), (2, None)])).unwrap();
    table.upsert(&rows(&[(2, name("b"))])).unwrap();
    table.save(directory.path()).unwrap();
    let mut table = Table::open(directory.path(), &pool).unwrap();
    assert_eq!((table.schema(), table.now()), (&schema, 1));
    table.upsert(&rows(&[(3, None)])).unwrap();
    table.delete(&keys(&[1])).unwrap();
    assert_eq!(all(table.scan().batches(10).unwrap()), [(3, None), (2, name("b"))]);
    let then = table.scan().at(before).batches(10).unwrap();
    assert_eq!(all(then), [(2, None), (1, name("a"))]);
    // A spine, but no table: its diff column precedes its time column.
    let schema = table.spine().layout().schema().project(&[0, 1, 3, 2]).unwrap();
    let layout = Order::by("id").time("_time").diff("_live").bind(&schema).unwrap();
    Spine::<u64>::new(&layout, &pool).unwrap().save(directory.path()).unwrap();
    assert!(matches!(Table::open(directory.path(), &pool), Err(Error::SchemaMismatch { .. })));
}
