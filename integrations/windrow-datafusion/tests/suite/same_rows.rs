//! Queries give the same rows with and without the rule, whatever the table, the order, the
//! partitions and the memory.

use std::fmt::Write;

use crate::common::{Numbers, Setting, batch, given_back, lines, register, rows, session};
use datafusion::arrow::compute::concat_batches;
use proptest::prelude::*;

/// Generates a table of `partitions` partitions, possibly empty, in record batches of random
/// length.
fn table(seed: u64, partitions: usize, values: u64) -> Vec<Vec<arrow_array::RecordBatch>> {
    let mut numbers = Numbers::new(seed);
    let mut id = 0;
    let mut partition = |first: bool| {
        let batches = numbers.below(4) as usize + usize::from(first);
        (0..batches)
            .map(|_| {
                let rows = numbers.below(300) as usize;
                id += rows as i64;
                batch(&mut numbers, id - rows as i64, rows, values)
            })
            .collect()
    };
    (0..partitions).map(|place| partition(place == 0)).collect()
}

/// Generates an ORDER BY of some columns and expressions in random directions; `id` at the end
/// breaks ties.
fn order(seed: u64) -> String {
    order_without(seed, "")
}

/// As [`order`], without the columns in `without`.
fn order_without(seed: u64, without: &str) -> String {
    let mut columns =
        vec!["k", "i", "s", "v", "d", "f", "b", "t", "m", "l", "k + i", "upper(s)", "i % 3"];
    columns.retain(|column| without.split(", ").all(|other| other != *column));
    let mut numbers = Numbers::new(seed);
    let mut order = String::new();
    for _ in 0..numbers.below(4) {
        let column = columns.remove(numbers.below(columns.len() as u64) as usize);
        let direction = ["ASC", "DESC"][numbers.below(2) as usize];
        let nulls = ["FIRST", "LAST"][numbers.below(2) as usize];
        write!(order, "{column} {direction} NULLS {nulls}, ").expect("a string takes all");
    }
    order + "id"
}

fn setting() -> impl Strategy<Value = Setting> {
    let limits = prop_oneof![Just(None), Just(Some(64 << 20)), Just(Some(1 << 20))];
    (1..5usize, prop_oneof![Just(7usize), Just(100), Just(8192)], limits)
        .prop_map(|(partitions, batch_size, limit)| Setting { partitions, batch_size, limit })
}

/// Checks that `sql` gives the same rows in the same order in a stock session without a limit and
/// in a session with the rule, and that the plan contains `operator`.
fn same(table: &[Vec<arrow_array::RecordBatch>], sql: &str, setting: Setting, operator: &str) {
    same_within(table, sql, None, setting, operator);
}

/// As [`same`], for `range`, an offset and a limit. Only the session with the rule gets the LIMIT:
/// stock's heap compares lists incorrectly, and drops rows in some runs.
fn same_within(
    table: &[Vec<arrow_array::RecordBatch>],
    sql: &str,
    range: Option<(usize, usize)>,
    setting: Setting,
    operator: &str,
) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("threads");
    runtime.block_on(async {
        let stock = session(Setting { limit: None, ..setting }, false);
        register(&stock, table).expect("a table");
        let (expected, _) = rows(&stock, sql).await.expect("rows");
        let expected = match range {
            None => expected,
            Some((skipped, most)) => within(&expected, skipped, most),
        };
        let limited = range.map(|(skipped, most)| format!("{sql} LIMIT {most} OFFSET {skipped}"));
        let sql = limited.as_deref().unwrap_or(sql);
        let ours = session(setting, true);
        register(&ours, table).expect("a table");
        // Stock's top-k keeps all rows in memory, too much for a small pool.
        ours.sql("SET windrow.topk_bytes = 0").await.expect("a setting");
        if sql.len().is_multiple_of(2) {
            ours.sql("SET windrow.exchange = true").await.expect("a setting");
        }
        if sql.contains("topn") {
            ours.sql("SET datafusion.optimizer.enable_window_topn = true")
                .await
                .expect("a setting");
        }
        let (got, plan) = rows(&ours, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert!(plan.contains(operator), "{plan}");
        assert_eq!(lines(&got), lines(&expected), "{sql}\n{plan}");
        given_back(&ours.runtime_env().memory_pool).await;
    });
}

/// Slices the rows of `batches`.
fn within(
    batches: &[arrow_array::RecordBatch],
    skipped: usize,
    most: usize,
) -> Vec<arrow_array::RecordBatch> {
    let Some(first) = batches.first() else { return Vec::new() };
    let all = concat_batches(&first.schema(), batches).expect("batches of one schema");
    let skipped = skipped.min(all.num_rows());
    vec![all.slice(skipped, most.min(all.num_rows() - skipped))]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn sorted(seed: u64, values in 2..40u64, partitions in 1..5usize, setting in setting()) {
        let sql = format!("SELECT * FROM t ORDER BY {}", order(seed));
        same(&table(seed, partitions, values), &sql, setting, "WindrowSortExec");
    }

    #[test]
    fn some_columns(seed: u64, values in 2..40u64, partitions in 1..5usize, setting in setting()) {
        let sql = format!("SELECT s, id + 1, k, s AS again FROM t ORDER BY {}", order(seed));
        let range = Some((3, 50));
        same_within(&table(seed, partitions, values), &sql, range, setting, "WindrowSortExec");
    }

    #[test]
    fn windows(seed: u64, values in 2..40u64, partitions in 1..5usize, setting in setting()) {
        let sql = format!(
            "SELECT id, sum(i) OVER (PARTITION BY k ORDER BY {0}) a, rank() OVER (PARTITION BY s ORDER BY {0}) b \
             FROM t ORDER BY id",
            order(seed)
        );
        same(&table(seed, partitions, values), &sql, setting, "WindrowSortExec");
    }

    #[test]
    fn joined(seed: u64, values in 2..40u64, partitions in 1..5usize, setting in setting()) {
        let table = table(seed, partitions, values);
        let order = ["a.s DESC, x", "b.k NULLS FIRST, a.d, x", "b.f DESC, a.l, x"][(seed % 3) as usize];
        let sql = format!(
            "SELECT a.id x, b.id y, a.s, b.s FROM t a JOIN t b ON a.id = b.id + 1 AND a.k >= b.i ORDER BY {order}"
        );
        same(&table, &sql, setting, "WindrowSortExec");
    }

    #[test]
    fn latest(seed: u64, values in 2..40u64, partitions in 1..5usize, setting in setting(), spelling in 0..6usize) {
        let by = ["k", "s", "k, d", "i % 3", "b, v"][(seed % 5) as usize];
        // Stock aggregates reject a key in their order, and keep lists in the order unreplaced.
        let order = if spelling < 4 { order(seed) } else { order_without(seed, &format!("{by}, l")) };
        let number = format!("row_number() OVER (PARTITION BY {by} ORDER BY {order})");
        let sql = match spelling {
            0 => format!("SELECT * FROM (SELECT *, {number} rn FROM t) WHERE rn = 1 ORDER BY id"),
            1 => format!("SELECT id, s, k FROM t QUALIFY {number} = 1 ORDER BY id"),
            2 => format!("SELECT id, rn FROM (SELECT *, {number} rn FROM t) WHERE 2 > rn AND k > 0 ORDER BY id"),
            3 => format!("SELECT id, k FROM (SELECT *, {number} topn FROM t) WHERE topn <= 1 ORDER BY id"),
            4 => format!("SELECT id, l FROM (SELECT DISTINCT ON ({by}) * FROM t ORDER BY {by}, {order}) ORDER BY id"),
            _ => {
                let back = order.replace("DESC", "-").replace("ASC", "DESC").replace(" -", " ASC")
                    .replace("FIRST", "-").replace("LAST", "FIRST").replace("NULLS -", "NULLS LAST");
                format!(
                    "SELECT {by}, last_value(id ORDER BY {back} DESC) a, last_value(l ORDER BY {back} DESC) c \
                     FROM t GROUP BY {by} ORDER BY a"
                )
            }
        };
        same(&table(seed, partitions, values), &sql, setting, "WindrowLatestExec");
    }
}
