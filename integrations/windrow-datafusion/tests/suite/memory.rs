//! Operators use the memory of the session's pool, and the disks of its disk manager.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Numbers, Setting, batch, given_back, plan, register, session};
use arrow_array::RecordBatch;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{
    FairSpillPool, GreedyMemoryPool, MemoryConsumer, MemoryPool, UnboundedMemoryPool,
};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect, execute_stream};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use windrow_datafusion::{WindrowMemoryPool, WithWindrow};

const SQL: &str = "SELECT * FROM t ORDER BY s DESC, k, id";

/// Some ten MiB of rows, in two partitions.
fn table() -> Vec<Vec<RecordBatch>> {
    let mut numbers = Numbers::new(7);
    let mut partition = |first: i64| {
        (0..8).map(|part| batch(&mut numbers, first + part * 8192, 8192, 1000)).collect()
    };
    vec![partition(0), partition(1 << 20)]
}

fn with_pool(pool: Arc<dyn MemoryPool>, disks: DiskManagerBuilder) -> SessionContext {
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).with_disk_manager_builder(disks);
    let state = SessionStateBuilder::new()
        .with_config(SessionConfig::new().with_target_partitions(2))
        .with_runtime_env(runtime.build_arc().expect("a runtime"))
        .with_default_features()
        .with_windrow()
        .build();
    let context = SessionContext::new_with_state(state);
    register(&context, &table()).expect("a table");
    context
}

/// Returns the spilled bytes in the metrics of `plan`.
fn spilled(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let own = plan.metrics().and_then(|metrics| metrics.spilled_bytes()).unwrap_or(0);
    own + plan.children().into_iter().map(spilled).sum::<usize>()
}

fn in_order(batches: &[RecordBatch]) -> usize {
    let mut before: Option<String> = None;
    let mut rows = 0;
    for batch in batches {
        let words = batch.column_by_name("s").expect("a column");
        let words: &arrow_array::StringArray = words.as_any().downcast_ref().expect("text");
        for word in words.iter() {
            let key = word.map_or_else(|| "~".to_owned(), str::to_owned);
            assert!(before.as_ref().is_none_or(|before| *before >= key), "{before:?} {key}");
            before = Some(key);
            rows += 1;
        }
    }
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pools_are_kept_to_and_get_all_back() {
    let pools: [(Arc<dyn MemoryPool>, bool); 5] = [
        (Arc::new(FairSpillPool::new(4 << 20)), true),
        (Arc::new(GreedyMemoryPool::new(4 << 20)), true),
        (Arc::new(WindrowMemoryPool::new(4 << 20)), true),
        (Arc::new(FairSpillPool::new(256 << 20)), false),
        (Arc::new(UnboundedMemoryPool::default()), false),
    ];
    for (pool, spills) in pools {
        let context = with_pool(Arc::clone(&pool), DiskManagerBuilder::default());
        let (plan, text) = plan(&context, SQL).await.expect("a plan");
        assert!(text.starts_with("WindrowSortExec"), "{text}");
        let mut rows = execute_stream(Arc::clone(&plan), context.task_ctx()).expect("a stream");
        assert_eq!(pool.reserved(), 0, "before the first poll");
        let mut batches = vec![rows.next().await.expect("a record batch").expect("rows")];
        assert!(pool.reserved() > 0, "{pool}");
        while let Some(batch) = rows.next().await {
            batches.push(batch.expect("rows"));
        }
        drop(rows);
        assert_eq!(pool.reserved(), 0, "{pool}");
        assert_eq!(in_order(&batches), 16 * 8192);
        assert_eq!(spilled(&plan) > 0, spills, "{pool}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_dropped_is_a_job_that_ends() {
    let pool: Arc<dyn MemoryPool> = Arc::new(FairSpillPool::new(8 << 20));
    let context = with_pool(Arc::clone(&pool), DiskManagerBuilder::default());
    for taken in [0, 1, 3] {
        let (plan, _) = plan(&context, SQL).await.expect("a plan");
        let mut rows = execute_stream(plan, context.task_ctx()).expect("a stream");
        if taken == 0 {
            // While rows are taken in.
            let first = tokio::time::timeout(Duration::from_millis(5), rows.next()).await;
            drop(first);
        }
        for _ in 0..taken {
            rows.next().await.expect("a record batch").expect("rows");
        }
        drop(rows);
        given_back(&pool).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disks_are_those_of_the_session() {
    let small = || Arc::new(FairSpillPool::new(2 << 20));
    let disabled = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
    let full = DiskManagerBuilder::default().with_max_temp_directory_size(1 << 20);
    for disks in [disabled, full] {
        let context = with_pool(small(), disks);
        let (plan, _) = plan(&context, SQL).await.expect("a plan");
        let error = collect(plan, context.task_ctx()).await.expect_err("nowhere to spill to");
        let error = error.find_root().to_string();
        assert!(error.contains("Resources exhausted"), "{error}");
        given_back(&context.runtime_env().memory_pool).await;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let named = DiskManagerMode::Directories(vec![directory.path().to_owned()]);
    let context = with_pool(small(), DiskManagerBuilder::default().with_mode(named));
    let (plan, _) = plan(&context, SQL).await.expect("a plan");
    collect(Arc::clone(&plan), context.task_ctx()).await.expect("rows");
    assert!(spilled(&plan) > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sorted_rows_give_way_to_other_operators() {
    let pool: Arc<dyn MemoryPool> = Arc::new(WindrowMemoryPool::new(64 << 20));
    let context = with_pool(Arc::clone(&pool), DiskManagerBuilder::default());
    let (plan, _) = plan(&context, SQL).await.expect("a plan");
    let mut rows = execute_stream(Arc::clone(&plan), context.task_ctx()).expect("a stream");
    let mut batches = vec![rows.next().await.expect("a record batch").expect("rows")];
    let held = pool.reserved();
    assert!(held > 4 << 20 && spilled(&plan) == 0, "{held} bytes are held");

    let other = MemoryConsumer::new("other").register(&pool);
    other.try_grow(58 << 20).expect("sorted rows leave");
    assert!(pool.reserved() <= 64 << 20, "{}", pool.reserved());
    let error = other.try_grow(64 << 20).expect_err("more than there is");
    assert!(matches!(error, DataFusionError::ResourcesExhausted(_)), "{error}");
    while let Some(batch) = rows.next().await {
        batches.push(batch.expect("rows"));
    }
    drop(rows);
    assert_eq!(in_order(&batches), 16 * 8192);
    assert!(spilled(&plan) > 0);
    drop(other);
    assert_eq!(pool.reserved(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_analyze_shows_what_was_done() {
    let setting = Setting { partitions: 2, batch_size: 8192, limit: Some(4 << 20) };
    let context = session(setting, true);
    register(&context, &table()).expect("a table");
    let frame = context.sql(&format!("EXPLAIN ANALYZE {SQL}")).await.expect("a query");
    let shown = crate::common::lines(&frame.collect().await.expect("rows")).join("\n");
    for metric in [
        "WindrowSortExec",
        "output_rows=131.1 K",
        "spill_count=",
        "spilled_bytes=",
        "peak_mem_used=",
        "elapsed_compute=",
    ] {
        assert!(shown.contains(metric), "no {metric} in\n{shown}");
    }
}
