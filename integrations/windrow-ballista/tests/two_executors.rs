//! A scheduler and two executors, each a separate process: the latest rows of a change log equal
//! the result of a single process, both executors run stages with Windrow's operators, each within
//! its limit, and one executor takes over when the other is killed.
//!
//! The test starts itself as these processes: `scheduler PORT`, `executor SCHEDULER PORT GRPC
//! DIRECTORY`.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballista::prelude::SessionContextExt;
use ballista_core::JobId;
use ballista_executor::execution_engine::{ExecutionEngine, QueryStageExecutor};
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::start_server;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use windrow_ballista::WindrowEngine;

/// Rows and distinct keys of the log.
const ROWS: u64 = 400_000;
const KEYS: u64 = 60_000;
/// Bytes of memory of a single-core executor: of its operators, and of all growth since idle.
const POOL: u64 = 16 << 20;
const GROWTH: u64 = 96 << 20;
/// Timeout of any step.
const PATIENCE: Duration = Duration::from_secs(240);

const LATEST: &str = "SELECT id, lsn, amount, note FROM \
    (SELECT *, row_number() OVER (PARTITION BY id ORDER BY lsn DESC) rn FROM log) WHERE rn = 1 ORDER BY id";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("threads");
    match words.as_slice() {
        ["scheduler", port] => runtime.block_on(scheduler(number(port))),
        ["executor", scheduler, port, grpc, directory] => {
            runtime.block_on(executor(number(scheduler), number(port), number(grpc), directory));
        }
        _ => {
            println!("the latest row of each key, on two executors");
            runtime.block_on(latest_of_each_key(false));
            println!("the same, and one executor is killed");
            runtime.block_on(latest_of_each_key(true));
        }
    }
}

fn number(text: &str) -> u16 {
    text.parse().expect("a port")
}

async fn scheduler(port: u16) {
    let config = SchedulerConfig {
        bind_port: port,
        executor_timeout_seconds: 4,
        expire_dead_executor_interval_seconds: 1,
        no_executors_grace_period_seconds: 30,
        ..SchedulerConfig::default()
    };
    let cluster = BallistaCluster::new_from_config(&config).await.expect("a cluster");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    start_server(cluster, address, Arc::new(config)).await.expect("a scheduler");
}

async fn executor(scheduler_port: u16, port: u16, grpc_port: u16, directory: &str) {
    let config = ExecutorProcessConfig {
        scheduler_host: Ipv4Addr::LOCALHOST.to_string(),
        scheduler_port,
        scheduler_connect_timeout_seconds: 60,
        external_host: Some(Ipv4Addr::LOCALHOST.to_string()),
        port,
        grpc_port,
        vcores: 1,
        work_dir: Some(directory.to_owned()),
        memory_pool_size: Some(POOL),
        executor_heartbeat_interval_seconds: 1,
        override_execution_engine: Some(Arc::new(Telling {
            engine: WindrowEngine::default(),
            stages: Path::new(directory).join("stages"),
        })),
        ..ExecutorProcessConfig::default()
    };
    start_executor_process(Arc::new(config)).await.expect("an executor");
}

/// Records the stages that run.
struct Telling {
    engine: WindrowEngine,
    stages: PathBuf,
}

impl ExecutionEngine for Telling {
    fn create_query_stage_exec(
        &self,
        job_id: JobId,
        stage_id: usize,
        task_id: usize,
        partitions: Vec<usize>,
        plan: Arc<dyn ExecutionPlan>,
        work_dir: &str,
        config: &SessionConfig,
    ) -> datafusion::error::Result<Arc<dyn QueryStageExecutor>> {
        let told = displayable(plan.as_ref()).indent(false).to_string();
        let stage = self.engine.create_query_stage_exec(
            job_id, stage_id, task_id, partitions, plan, work_dir, config,
        )?;
        let before = std::fs::read_to_string(&self.stages).unwrap_or_default();
        std::fs::write(&self.stages, format!("{before}\n{told}\n{stage}"))?;
        Ok(stage)
    }
}

/// A process that is killed when dropped.
struct Process(Child);

impl Process {
    fn start(words: &[String]) -> Self {
        let test = std::env::current_exe().expect("this test");
        let child = Command::new(test).args(words).stdout(Stdio::null()).spawn();
        Self(child.expect("a process"))
    }

    /// Returns a memory figure of the process in bytes: its peak or its current size.
    fn memory(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()));
        let status = status.expect("a process that runs");
        let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("a field");
        line.split_whitespace().next().and_then(|kb| kb.parse::<u64>().ok()).expect("a number")
            << 10
    }

    /// Waits until the process listens at `port`.
    fn listening(self, port: u16) -> Self {
        let begun = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(begun.elapsed() < PATIENCE, "nobody listens at {port}");
            std::thread::sleep(Duration::from_millis(50));
        }
        self
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns currently unused ports.
fn ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port"));
    listeners.each_ref().map(|listener| listener.local_addr().expect("an address").port())
}

async fn latest_of_each_key(kill: bool) {
    let directory = tempfile::tempdir().expect("a directory");
    let log = directory.path().join("log");
    write_log(&log).await;
    let one = SessionContext::new();
    let expected = rows(&one, &log).await;

    let [port, a, a_grpc, b, b_grpc] = ports();
    let scheduler = Process::start(&["scheduler".to_owned(), port.to_string()]).listening(port);
    let work = ["a", "b"].map(|name| directory.path().join(name));
    let mut executors = Vec::new();
    for (work, [flight, grpc]) in work.iter().zip([[a, a_grpc], [b, b_grpc]]) {
        std::fs::create_dir(work).expect("a directory");
        let words = [port, flight, grpc].map(|port| port.to_string());
        let words = [vec!["executor".to_owned()], words.to_vec(), vec![work.display().to_string()]];
        executors.push(Process::start(&words.concat()).listening(flight));
    }
    let before: Vec<u64> = executors.iter().map(|executor| executor.memory("VmRSS:")).collect();

    let context =
        SessionContext::remote(&format!("df://localhost:{port}")).await.expect("a session");
    let stages = work.each_ref().map(|work| work.join("stages"));
    let killer = kill.then(|| {
        let (victim, stages) = (executors.remove(0), stages[0].clone());
        std::thread::spawn(move || {
            let begun = Instant::now();
            while !stages.exists() && begun.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(5));
            }
            drop(victim);
        })
    });
    let got = tokio::time::timeout(PATIENCE, rows(&context, &log)).await.expect("in time");
    assert!(got == expected, "{} lines and {}", got.lines().count(), expected.lines().count());
    if let Some(killer) = killer {
        killer.join().expect("no panic");
    } else {
        for ((executor, before), stages) in executors.iter().zip(before).zip(&stages) {
            let ran = std::fs::read_to_string(stages).expect("stages that it ran");
            assert!(ran.contains("WindrowLatestExec"), "{ran}");
            let grown = executor.memory("VmHWM:") - before;
            println!("an executor grew by {} MiB", grown >> 20);
            assert!(grown < GROWTH, "{} MiB", grown >> 20);
        }
    }
    drop(scheduler);
}

/// Runs the query, and returns the rows as text.
async fn rows(context: &SessionContext, log: &Path) -> String {
    let log = log.to_str().expect("text");
    context.register_parquet("log", log, ParquetReadOptions::default()).await.expect("a table");
    let frame = context.sql(LATEST).await.expect("a query");
    let batches: Vec<RecordBatch> = frame.collect().await.expect("rows");
    pretty_format_batches(&batches).expect("rows").to_string()
}

/// Writes a change log of four files.
async fn write_log(directory: &Path) {
    let context = SessionContext::new();
    for part in 0..4 {
        let sql = format!(
            "COPY (SELECT (value * 7919) % {KEYS} id, value lsn, value % 1000 amount, \
             concat('change ', value, ' of this row') note \
             FROM generate_series({}, {}) t (value)) TO '{}/{part}.parquet'",
            part * ROWS / 4,
            (part + 1) * ROWS / 4 - 1,
            directory.display()
        );
        context.sql(&sql).await.expect("a query").collect().await.expect("a file");
    }
}
