//! Two workers on loopback give the same rows as one session, each with Windrow's operators and its
//! own pool.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::physical_plan::{collect, displayable};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use datafusion_distributed::{
    DistributedExt, SessionStateBuilderExt, Worker, WorkerPlanRewriteEvent,
    WorkerPlanRewriteEventResponse, WorkerQueryContext, WorkerResolver,
};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use url::Url;
use windrow_distributed::{WithWindrowStages, worker_session};

/// Bytes of a worker's pool.
const POOL: usize = 16 << 20;
const LATEST: &str = "SELECT id, lsn, note FROM \
    (SELECT *, row_number() OVER (PARTITION BY id ORDER BY lsn DESC) rn FROM log) WHERE rn = 1 ORDER BY id";

struct Workers(Vec<Url>);

impl WorkerResolver for Workers {
    fn get_urls(&self) -> Result<Vec<Url>, DataFusionError> {
        Ok(self.0.clone())
    }
}

/// Stages of one worker with Windrow's latest-row operator.
type Seen = Arc<AtomicUsize>;

fn session(query: WorkerQueryContext, seen: &Seen) -> Result<SessionState> {
    let seen = Arc::clone(seen);
    let tell = move |event: WorkerPlanRewriteEvent<'_>| {
        let text = displayable(event.plan.as_ref()).indent(false).to_string();
        seen.fetch_add(usize::from(text.contains("WindrowLatestExec")), Ordering::SeqCst);
        Ok(WorkerPlanRewriteEventResponse::new(event.plan))
    };
    let builder = worker_session(query)?.with_distributed_worker_plan_rewrite_handler(tell);
    Ok(builder.build())
}

/// Starts a worker that ends with the test.
async fn worker(seen: Seen) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(FairSpillPool::new(POOL)));
    let worker = Worker::from_session_builder(move |query: WorkerQueryContext| {
        let state = session(query, &seen);
        async move { state }
    })
    .with_runtime_env(runtime.build_arc().expect("a runtime"));
    tokio::spawn(
        tonic::transport::Server::builder()
            .add_service(worker.into_worker_server())
            .serve_with_incoming(TcpListenerStream::new(listener)),
    );
    Url::parse(&format!("http://127.0.0.1:{port}")).expect("an address")
}

/// Writes a change log of four files; some stages exceed the pool.
async fn write_log(directory: &str) {
    for part in 0..4 {
        let sql = format!(
            "COPY (SELECT (value * 7919) % 60000 id, value lsn, concat('change ', value, ' of this row') note \
             FROM generate_series({}, {}) t (value)) TO '{directory}/{part}.parquet'",
            part * 100_000,
            (part + 1) * 100_000 - 1
        );
        let context = SessionContext::new();
        context.sql(&sql).await.expect("a query").collect().await.expect("a file");
    }
}

async fn register(context: &SessionContext, log: &str) {
    context.register_parquet("log", log, ParquetReadOptions::default()).await.expect("a table");
}

/// Runs the query, and returns the rows as text and the plan.
async fn rows(context: &SessionContext) -> (String, String) {
    let plan = context.sql(LATEST).await.expect("a query").create_physical_plan().await;
    let plan = plan.expect("a plan");
    let text = displayable(plan.as_ref()).indent(false).to_string();
    let batches: Vec<RecordBatch> = collect(plan, context.task_ctx()).await.expect("rows");
    (pretty_format_batches(&batches).expect("rows").to_string(), text)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn latest_rows_are_those_of_one_session() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = directory.path().to_str().expect("text");
    write_log(log).await;
    let one = SessionContext::new();
    register(&one, log).await;
    let (expected, _) = rows(&one).await;

    let seen: [Seen; 2] = Default::default();
    let urls = vec![worker(Arc::clone(&seen[0])).await, worker(Arc::clone(&seen[1])).await];
    let state = SessionStateBuilder::new()
        .with_default_features()
        .with_config(SessionConfig::new().with_target_partitions(2))
        .with_distributed_planner()
        .with_distributed_worker_resolver(Workers(urls))
        .with_distributed_file_scan_config_bytes_per_partition(1)
        .expect("a setting")
        .with_windrow_stages()
        .build();
    let context = SessionContext::new_with_state(state);
    register(&context, log).await;
    context.sql("SET windrow.merge = true").await.expect("a setting");
    let (got, plan) = rows(&context).await;
    // Only the coordinator's own stage is rewritten; sent stages are not.
    assert!(plan.contains("WindrowMergeExec") && !plan.contains("WindrowLatestExec"), "{plan}");
    assert!(got == expected, "{} lines and {}", got.lines().count(), expected.lines().count());
    let found = seen.each_ref().map(|seen| seen.swap(0, Ordering::SeqCst));
    assert!(found.iter().all(|stages| *stages > 0), "{found:?}\n{plan}");

    // Workers receive the settings.
    for setting in ["latest", "merge"] {
        context.sql(&format!("SET windrow.{setting} = false")).await.expect("a setting");
    }
    context.sql("SET windrow.sort = true").await.expect("a setting");
    let (got, plan) = rows(&context).await;
    assert!(!plan.contains("Windrow"), "{plan}");
    assert!(got == expected);
    assert_eq!(seen.each_ref().map(|seen| seen.load(Ordering::SeqCst)), [0, 0]);
}
