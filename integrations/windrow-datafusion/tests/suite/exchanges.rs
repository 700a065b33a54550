//! Exchanges give every output the rows that stock gives it, whoever polls when, in any memory, and
//! end.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Numbers, Setting, batch, given_back, lines, register, rows, runtime, session};
use arrow_array::RecordBatch;
use datafusion::datasource::memory::{DataSourceExec, MemorySourceConfig};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::expressions::col;
use datafusion::physical_expr::{LexOrdering, Partitioning, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::common::collect;
use datafusion::physical_plan::repartition::RepartitionExec;
use futures::StreamExt;
use proptest::prelude::*;
use windrow_datafusion::WindrowExchangeExec;

/// Seconds after which a query is taken for one that waits for itself.
const DEADLINE: Duration = Duration::from_secs(120);

/// Generates a table of some partitions.
fn table(numbers: &mut Numbers, partitions: usize, batches: u64) -> Vec<Vec<RecordBatch>> {
    let mut id = 0;
    let mut partition = |first: bool| {
        let batches = numbers.below(batches) as usize + usize::from(first);
        let mut batch = || {
            let rows = 1 + numbers.below(2000) as usize;
            id += rows as i64;
            batch(numbers, id - rows as i64, rows, 40)
        };
        (0..batches).map(|_| batch()).collect()
    };
    (0..partitions).map(|place| partition(place == 0)).collect()
}

/// Creates an exchange over `table` by `k` and `s`, and stock's.
fn exchanges(
    table: &[Vec<RecordBatch>],
    partitions: usize,
) -> (Arc<WindrowExchangeExec>, Arc<RepartitionExec>) {
    let schema = table[0][0].schema();
    let input = MemorySourceConfig::try_new_exec(table, schema.clone(), None).expect("a source");
    let keys = ["k", "s"].map(|name| col(name, &schema).expect("a column")).to_vec();
    let stock = RepartitionExec::try_new(input, Partitioning::Hash(keys, partitions));
    let stock = stock.expect("an exchange");
    let ours = WindrowExchangeExec::of(&stock).expect("a plan").expect("in its place");
    (Arc::new(ours), Arc::new(stock))
}

fn context(limit: Option<usize>, batch_size: usize) -> Arc<TaskContext> {
    let config = datafusion::prelude::SessionConfig::new().with_batch_size(batch_size);
    Arc::new(TaskContext::default().with_session_config(config).with_runtime(runtime(limit)))
}

/// Returns the rows of an output as sorted lines.
async fn output(
    plan: &dyn ExecutionPlan,
    number: usize,
    context: &Arc<TaskContext>,
) -> Vec<String> {
    let rows = plan.execute(number, Arc::clone(context)).expect("a stream");
    let rows = tokio::time::timeout(DEADLINE, collect(rows)).await;
    let batches = rows.expect("the exchange ends").expect("rows");
    let size = context.session_config().batch_size();
    assert!(batches.iter().all(|batch| (1..=size).contains(&batch.num_rows())));
    let mut lines = lines(&batches);
    lines.sort();
    lines
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outputs_may_be_taken_one_after_the_other() {
    let table = table(&mut Numbers::new(3), 3, 12);
    for limit in [None, Some(32 << 20), Some(1 << 20)] {
        let (ours, stock) = exchanges(&table, 5);
        let (context, unlimited) = (context(limit, 500), context(None, 500));
        for number in 0..5 {
            let expected = output(&*stock, number, &unlimited).await;
            assert_eq!(output(&*ours, number, &context).await, expected, "{limit:?}");
        }
        // The plan may run again.
        assert!(!output(&*ours, 0, &context).await.is_empty());
        drop(ours);
        given_back(&context.runtime_env().memory_pool).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_output_that_is_dropped_does_not_hold_up_others() {
    let table = table(&mut Numbers::new(5), 2, 30);
    let (ours, stock) = exchanges(&table, 3);
    let context = context(Some(8 << 20), 100);
    let mut first = ours.execute(0, Arc::clone(&context)).expect("a stream");
    let second = ours.execute(1, Arc::clone(&context)).expect("a stream");
    assert!(first.next().await.is_some());
    drop((first, second));
    let expected = output(&*stock, 2, &self::context(None, 100)).await;
    assert_eq!(output(&*ours, 2, &context).await, expected);
    given_back(&context.runtime_env().memory_pool).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_of_an_input_reaches_every_output() {
    let setting = Setting { partitions: 4, batch_size: 100, limit: None };
    let context = session(setting, true);
    register(&context, &table(&mut Numbers::new(7), 4, 5)).expect("a table");
    context.sql("SET windrow.exchange = true").await.expect("a setting");
    let query = "SELECT k, count(*) FROM (SELECT id, k / (id - id) AS k FROM t) GROUP BY k";
    let failed = tokio::time::timeout(DEADLINE, rows(&context, query)).await.expect("it ends");
    assert!(failed.is_err_and(|error| error.to_string().contains("ivide by zero")));
    given_back(&context.runtime_env().memory_pool).await;
}

#[test]
fn an_exchange_that_keeps_an_order_stays() {
    let mut numbers = Numbers::new(9);
    for (partitions, is_replaced) in [(1, false), (2, true)] {
        let table = table(&mut numbers, partitions, 2);
        let schema = table[0][0].schema();
        let id = || col("id", &schema).expect("a column");
        let order = LexOrdering::new([PhysicalSortExpr::new_default(id())]).expect("a column");
        let source = MemorySourceConfig::try_new(&table, schema.clone(), None);
        let source = source.and_then(|of| of.try_with_sort_information(vec![order]));
        let input = DataSourceExec::from_data_source(source.expect("a source"));
        // Of one input, stock keeps the order, and plans rely on it.
        let stock = RepartitionExec::try_new(input, Partitioning::Hash(vec![id()], 3));
        let ours = WindrowExchangeExec::of(&stock.expect("an exchange")).expect("a plan");
        assert_eq!(ours.is_some(), is_replaced);
    }
}

/// Queries whose plans exchange rows: by groups, joins and windows, one on top of the other.
const QUERIES: [&str; 8] = [
    "SELECT k, s, count(*), sum(i), min(id) FROM t GROUP BY k, s",
    "SELECT a.id, b.id FROM t a JOIN t b ON a.k = b.k AND a.i = b.i WHERE a.id < 400",
    "SELECT a.k, count(*) FROM t a LEFT JOIN t b ON a.id = b.id AND b.b GROUP BY a.k",
    "SELECT id, sum(i) OVER (PARTITION BY k ORDER BY id) FROM t",
    "SELECT k, count(DISTINCT s), count(DISTINCT d) FROM t GROUP BY k",
    "SELECT x.k, x.n, y.m FROM (SELECT k, count(*) n FROM t GROUP BY k) x \
     JOIN (SELECT k, max(id) m FROM t GROUP BY k) y ON x.k = y.k",
    "SELECT id FROM t a WHERE NOT EXISTS (SELECT 1 FROM t b WHERE a.k = b.k AND b.i > 3)",
    "SELECT a.s, count(*) FROM t a JOIN t b ON a.id = b.id JOIN t c ON b.id = c.id GROUP BY a.s",
];

/// Number of random plans; `PROPTEST_CASES` sets another.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn random_plans_end_with_the_same_rows(
        seed: u64,
        query in 0..QUERIES.len(),
        partitions in 1..6usize,
        targets in 2..17usize,
        batch_size in prop_oneof![Just(10usize), Just(300), Just(8192)],
        mebibytes in 16..257usize,
        hash_join: bool,
    ) {
        let table = table(&mut Numbers::new(seed), partitions, 3);
        let setting = Setting { partitions: targets, batch_size, limit: Some(mebibytes << 20) };
        let threads = tokio::runtime::Builder::new_multi_thread();
        let threads = { threads }.worker_threads(2).enable_all().build().expect("threads");
        threads.block_on(async {
            let stock = session(Setting { limit: None, ..setting }, false);
            register(&stock, &table).expect("a table");
            let sorted = |batches: &[RecordBatch]| {
                let mut lines = lines(batches);
                lines.sort();
                lines
            };
            let (expected, _) = rows(&stock, QUERIES[query]).await.expect("rows");
            let ours = session(setting, true);
            register(&ours, &table).expect("a table");
            // Joins of small tables exchange rows, too.
            for (name, value) in [
                ("windrow.exchange", "true".to_owned()),
                ("datafusion.optimizer.prefer_hash_join", hash_join.to_string()),
                ("datafusion.optimizer.hash_join_single_partition_threshold", "0".to_owned()),
                ("datafusion.optimizer.hash_join_single_partition_threshold_rows", "0".to_owned()),
            ] {
                ours.sql(&format!("SET {name} = {value}")).await.expect("a setting");
            }
            let got = tokio::time::timeout(DEADLINE, rows(&ours, QUERIES[query])).await;
            let (got, plan) = got.expect("no deadlock").expect("rows");
            // Of one input, an exchange that keeps its order stays.
            let stays = |line: &str| {
                line.contains("RepartitionExec: partitioning=Hash")
                    && !(partitions == 1 && line.contains("maintains_sort_order=true"))
            };
            assert!(!plan.lines().any(stays), "{plan}");
            // With one partition of few rows, nothing is exchanged.
            assert!(partitions == 1 || plan.contains("WindrowExchangeExec"), "{plan}");
            assert_eq!(sorted(&got), sorted(&expected), "{plan}");
            given_back(&ours.runtime_env().memory_pool).await;
        });
    }
}
