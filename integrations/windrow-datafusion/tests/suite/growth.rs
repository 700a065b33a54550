//! Memory growth of a sorting process: at most the session's pool, relative to a process that only
//! scans the same columns. Both processes contain the memory of file readers and plans, which no
//! pool accounts for.
//!
//! The test starts itself as these processes.

use std::num::NonZeroUsize;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use futures::StreamExt;
use windrow_datafusion::WithWindrow;

const POOL: usize = 64 << 20;
/// Some 200 MB of rows, and the number of distinct keys.
const ROWS: usize = 1_200_000;
const KEYS: usize = 500_009;

/// Environment variables with the file and the query of a child process.
const FILE: &str = "WINDROW_GROWTH_FILE";
const QUERY: &str = "WINDROW_GROWTH_QUERY";

const SCAN: &str = "SELECT * FROM t";
/// A sort of all rows, and one row of each key as an aggregate and as a window.
const QUERIES: [&str; 3] = [
    "SELECT * FROM t ORDER BY k, a",
    "SELECT DISTINCT ON (k) * FROM t ORDER BY k, n DESC",
    "SELECT * FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY n DESC) = 1",
];

#[test]
fn a_process_grows_by_no_more_than_its_pool() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().expect("threads");
    if let (Ok(file), Ok(query)) = (std::env::var(FILE), std::env::var(QUERY)) {
        runtime.block_on(run(&file, &query));
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("t.parquet");
    runtime.block_on(write(&file));
    let scanned = peak_of(&file, SCAN);
    for query in QUERIES {
        let grown = peak_of(&file, query).saturating_sub(scanned);
        println!("{} MiB over {}: {query}", grown >> 20, scanned >> 20);
        assert!(grown <= POOL, "{} MiB: {query}", grown >> 20);
    }
}

/// Returns the peak resident bytes of a process running `query`.
fn peak_of(file: &Path, query: &str) -> usize {
    let this = std::env::current_exe().expect("this test");
    let mut command = Command::new(this);
    command.args(["growth::a_process_grows_by_no_more_than_its_pool", "--exact", "--nocapture"]);
    let output = command.env(FILE, file).env(QUERY, query).output().expect("a process");
    let text = String::from_utf8_lossy(&output.stdout);
    let peak = text.lines().find_map(|line| line.split_once("VmHWM:")?.1.split_whitespace().next());
    let Some(peak) = peak.filter(|_| output.status.success()) else {
        panic!("{query}\n{text}\n{}", String::from_utf8_lossy(&output.stderr));
    };
    peak.parse::<usize>().expect("a number") << 10
}

/// Runs `query` and prints the peak resident memory.
async fn run(file: &str, query: &str) {
    let pool = TrackConsumersPool::new(FairSpillPool::new(POOL), NonZeroUsize::MIN);
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(pool)).build_arc();
    let state = SessionStateBuilder::new()
        .with_config(SessionConfig::new().with_target_partitions(2))
        .with_runtime_env(runtime.expect("a runtime"))
        .with_default_features()
        .with_windrow();
    let context = SessionContext::new_with_state(state.build());
    context.register_parquet("t", file, ParquetReadOptions::default()).await.expect("a table");
    let plan = context.sql(query).await.expect("a query").create_physical_plan().await;
    let mut rows = execute_stream(plan.expect("a plan"), context.task_ctx()).expect("a stream");
    let mut count = 0;
    while let Some(batch) = rows.next().await {
        count += batch.expect("rows").num_rows();
    }
    let all = query == SCAN || query == QUERIES[0];
    assert_eq!(count, if all { ROWS } else { KEYS });
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM:")).expect("a field"));
}

async fn write(file: &Path) {
    let context = SessionContext::new();
    let text = |what: &str| format!("concat('{what} of change ', value * 31, ', as it was then')");
    let [a, b, c] = ["the author", "the subject", "the rest"].map(text);
    let sql = format!(
        "COPY (SELECT (value * 7919) % {KEYS} k, value n, {a} a, {b} b, {c} c, value % 1000 d \
         FROM generate_series(0, {}) t (value)) TO '{}'",
        ROWS - 1,
        file.display()
    );
    context.sql(&sql).await.expect("a query").collect().await.expect("a file");
}
