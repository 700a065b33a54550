//! Plans of made-up costs: a table of shapes and limits.

use super::costs::Writing;
use super::*;

const MIB: usize = 1 << 20;

fn costs() -> Costs {
    Costs {
        way: Way::Unordered,
        by_columns: false,
        base: 20 * MIB,
        sway: 0,
        exact: 0,
        reader: 8 * MIB,
        batch: 2 * MIB,
        files: 1,
        allowed: 512,
        rows_of_a_file: 2,
        writing: Writing {
            together: 24 * MIB,
            in_turn: 30 * MIB,
            copies: 3,
            copies_in_turn: 4,
            copies_held: 0,
            held: 16 * MIB,
            footers: 0,
            part_rows: 122_880,
            part_bytes: 16 * MIB,
        },
        longest: 100,
        known: 100,
        copies_read: 3,
        stretch: 1,
    }
}

fn sorted(files: usize) -> Costs {
    Costs { way: Way::Sorted, files, ..costs() }
}

/// Returns the costs of wide tables, whose writers take more than their rows.
fn wide() -> Costs {
    let writing = Writing { together: 250 * MIB, in_turn: 40 * MIB, ..costs().writing };
    Costs { writing, ..costs() }
}

fn shapes() -> Vec<Costs> {
    let long = costs().longer(20 * MIB);
    vec![costs(), wide(), sorted(2), sorted(600), sorted(20).longer(MIB), long]
}

fn terms(mebibytes: usize, threads: usize) -> Terms {
    let limit = Some((mebibytes * MIB) as u64);
    Terms { limit, readers: threads, writers: threads, space: None }
}

fn choose(costs: &Costs, mebibytes: usize, threads: usize) -> Option<Plan> {
    Plan::choose(costs, &terms(mebibytes, threads)).ok()
}

#[test]
fn threads_are_given_up_before_the_budget() {
    // Readers, writers, MiB for rows while reading.
    let table = [
        (40, None),
        (47, None),
        (48, Some((2, 1, 10))),
        (56, Some((2, 1, 18))),
        (96, Some((4, 1, 37))),
        (128, Some((4, 1, 68))),
        (256, Some((4, 4, 194))),
        (512, Some((4, 4, 448))),
    ];
    for (limit, expected) in table {
        let plan = choose(&costs(), limit, 4);
        let found = plan.map(|plan| (plan.readers, plan.writers, plan.ingest_budget / MIB));
        assert_eq!(found, expected, "{limit} MiB");
    }
}

#[test]
fn what_is_planned_is_within_the_limit() {
    for costs in shapes() {
        for limit in (16..1024).step_by(8) {
            for threads in [1, 2, 4, 16] {
                let terms = terms(limit, threads);
                let Ok(plan) = Plan::choose(&costs, &terms) else { continue };
                let available = terms.available() - terms.more();
                let writing = costs.writing(plan.columns_in_turn, plan.writers);
                let reading = match (costs.way, plan.direct) {
                    (_, true) => writing + costs.all_files(),
                    (Way::Unordered, _) => costs.reading(plan.readers),
                    (Way::Sorted, _) => costs.reading(plan.readers * plan.open_files),
                };
                assert!(reading + plan.ingest_budget <= available, "{limit} MiB, {costs:?}");
                assert!(writing + plan.settle_budget <= available, "{limit} MiB, {costs:?}");
                assert!(plan.ingest_budget >= costs.least_merging(), "{limit} MiB, {costs:?}");
                assert!(plan.settle_budget >= costs.least_merging(), "{limit} MiB, {costs:?}");
            }
        }
    }
}

#[test]
fn a_higher_limit_is_not_refused_and_floors_are_enough() {
    for costs in shapes() {
        for threads in [1, 4] {
            let taken: Vec<bool> =
                (16..1024).map(|limit| choose(&costs, limit, threads).is_some()).collect();
            assert!(taken.is_sorted(), "{costs:?}");
            let refused = Plan::choose(&costs, &terms(16, threads)).unwrap_err();
            let named = refused.named(&costs).0 as usize / MIB;
            assert!(choose(&costs, named, threads).is_some(), "{named} MiB of {costs:?}");
            assert!(choose(&costs, named - 2, threads).is_none(), "{named} MiB of {costs:?}");
        }
    }
}

#[test]
fn columns_are_written_in_turn_where_that_helps() {
    for (limit, in_turn) in [(96, true), (256, true), (400, true), (2000, false)] {
        let plan = choose(&wide(), limit, 1).expect("above the floor");
        assert_eq!(plan.columns_in_turn, in_turn && limit < 300, "{limit} MiB");
    }
    assert!(!choose(&costs(), 64, 1).expect("above the floor").columns_in_turn);
}

#[test]
fn many_sorted_files_are_merged_in_groups() {
    let few = choose(&sorted(2), 128, 1).expect("above the floor");
    assert!(few.direct && few.open_files == 2);
    let many = choose(&sorted(600), 128, 1).expect("above the floor");
    assert!(!many.direct && (2..20).contains(&many.open_files), "{many:?}");
}

#[test]
fn a_row_that_was_not_known_takes_from_the_budget_or_ends_the_job() {
    for known in [costs(), wide(), sorted(2), sorted(40)] {
        for threads in [1, 4] {
            let mut enough = Vec::new();
            for row in [MIB, 4 * MIB, 20 * MIB, 50 * MIB] {
                let met = known.longer(row);
                let named = enough_for(&known, &met, &terms(64, threads)).0 as usize / MIB;
                let terms = terms(named, threads);
                let plan = Plan::choose(&known, &terms).expect("above the floor");
                let budget = plan.admits(&met, &terms).expect("it is said to be enough");
                assert!(budget >= row && budget < plan.ingest_budget, "{row} of {known:?}");
                let after = Plan::choose(&met, &terms).expect("what is admitted can be written");
                assert!(after.settle_budget >= row);
                enough.push(named);
            }
            assert!(enough.is_sorted(), "{enough:?}");
        }
    }
    let plan = choose(&costs(), 64, 1).expect("above the floor");
    assert_eq!(plan.admits(&costs().longer(20 * MIB), &terms(64, 1)), None);
}

#[test]
fn without_a_limit_there_is_one_thread_for_each_that_there_may_be() {
    let terms = Terms { limit: None, readers: 4, writers: 4, space: None };
    let plan = Plan::choose(&costs(), &terms).expect("no limit");
    assert_eq!((plan.limit, plan.readers, plan.writers), (None, 4, 4));
}

#[test]
fn the_floor_is_the_same_at_every_limit() {
    for costs in shapes() {
        let floor = Floor::of(&costs);
        let least = Terms { limit: Some(floor.bytes as u64), ..terms(0, 4) };
        assert_eq!(Plan::choose(&costs, &least).map(|plan| plan.floor), Ok(floor.named(&costs)));
        for limit in (16..4096).step_by(16) {
            match Plan::choose(&costs, &terms(limit, 4)) {
                Ok(plan) => assert_eq!(plan.floor, floor.named(&costs), "{limit} MiB"),
                Err(refused) => assert_eq!(refused, floor, "{limit} MiB"),
            }
        }
    }
}
