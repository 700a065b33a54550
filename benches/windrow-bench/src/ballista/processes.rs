//! Child processes of a run: a scheduler and two executors, ended with the run.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ballista_core::JobId;
use ballista_executor::execution_engine::{ExecutionEngine, QueryStageExecutor};
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::start_server;
use clap::Args;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;
use tempfile::TempDir;
use windrow_ballista::WindrowEngine;

use super::{Side, runtime};
use crate::{Result, process};

/// Timeout for a process to start listening.
const PATIENCE: Duration = Duration::from_secs(60);
/// Marker file of an executor that ran an operator of Windrow.
const REWRITTEN: &str = "rewritten";

/// Options of a scheduler process.
#[derive(Debug, Args)]
pub(crate) struct SchedulerOptions {
    port: u16,
}

/// Options of an executor process.
#[derive(Debug, Args)]
pub(crate) struct ExecutorOptions {
    scheduler: u16,
    port: u16,
    grpc: u16,
    directory: PathBuf,
    side: Side,
    /// MiB, or 0
    limit: u64,
}

/// Runs a scheduler until killed, or until the parent process ends.
pub(crate) fn scheduler(options: &SchedulerOptions) -> Result<()> {
    end_with_the_starter();
    let config = SchedulerConfig { bind_port: options.port, ..SchedulerConfig::default() };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, options.port));
    runtime(2)?.block_on(async {
        let cluster = BallistaCluster::new_from_config(&config).await?;
        start_server(cluster, address, Arc::new(config)).await
    })?;
    Ok(())
}

/// Runs an executor until killed, or until the parent process ends.
pub(crate) fn executor(options: &ExecutorOptions) -> Result<()> {
    end_with_the_starter();
    let engine = (options.side == Side::Ours).then(|| {
        let engine = WindrowEngine::default();
        let file = options.directory.join(REWRITTEN);
        Arc::new(Telling { engine, file, told: AtomicBool::new(false) }) as Arc<dyn ExecutionEngine>
    });
    let directory = options.directory.to_str().ok_or("a path that is text")?;
    let config = ExecutorProcessConfig {
        scheduler_host: Ipv4Addr::LOCALHOST.to_string(),
        scheduler_port: options.scheduler,
        scheduler_connect_timeout_seconds: 60,
        external_host: Some(Ipv4Addr::LOCALHOST.to_string()),
        port: options.port,
        grpc_port: options.grpc,
        vcores: 1,
        work_dir: Some(directory.to_owned()),
        memory_pool_size: (options.limit > 0).then_some(options.limit.saturating_mul(1 << 20)),
        override_execution_engine: engine,
        ..ExecutorProcessConfig::default()
    };
    Ok(runtime(2)?.block_on(start_executor_process(Arc::new(config)))?)
}

/// Exits when standard input closes; the parent process holds the other end.
fn end_with_the_starter() {
    std::thread::spawn(|| {
        // An error also means the end.
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
}

/// An engine that writes the marker file once a stage has an operator of Windrow.
struct Telling {
    engine: WindrowEngine,
    file: PathBuf,
    told: AtomicBool,
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
        let stage = self.engine.create_query_stage_exec(
            job_id, stage_id, task_id, partitions, plan, work_dir, config,
        )?;
        if !self.told.load(Ordering::Relaxed) && stage.to_string().contains("WindrowLatestExec") {
            std::fs::write(&self.file, [])?;
            self.told.store(true, Ordering::Relaxed);
        }
        Ok(stage)
    }
}

/// The processes of a run, and their working directory.
pub(super) struct Cluster {
    port: u16,
    executors: Vec<Process>,
    _scheduler: Process,
    work: TempDir,
}

impl Cluster {
    /// Starts the processes, and waits until all are listening.
    pub(super) fn start(data: &Path, limit: u64, side: Side) -> Result<Self> {
        let work = tempfile::tempdir_in(data)?;
        let [port, first, first_grpc, second, second_grpc] = ports()?;
        let scheduler = Process::start(["ballista-scheduler", &port.to_string()], port)?;
        let mut executors = Vec::new();
        for (name, flight, grpc) in [("a", first, first_grpc), ("b", second, second_grpc)] {
            let directory = work.path().canonicalize()?.join(name);
            std::fs::create_dir(&directory)?;
            let directory = directory.to_str().ok_or("a path that is text")?;
            let [scheduler, at, grpc] = [port, flight, grpc].map(|port| port.to_string());
            let (side, limit) = (side.name(), limit.to_string());
            let words = ["ballista-executor", &scheduler, &at, &grpc, directory, &side, &limit];
            executors.push(Process::start(words, flight)?);
        }
        Ok(Self { port, executors, _scheduler: scheduler, work })
    }

    pub(super) fn scheduler(&self) -> u16 {
        self.port
    }

    /// Returns each executor's memory in bytes, by a field of `/proc/PID/status`.
    pub(super) fn memory(&mut self, field: &str) -> Result<Vec<u64>> {
        self.executors.iter_mut().map(|executor| executor.memory(field)).collect()
    }

    /// Returns true if each executor ran a stage with an operator of Windrow.
    pub(super) fn all_rewrote(&self) -> bool {
        ["a", "b"].iter().all(|name| self.work.path().join(name).join(REWRITTEN).exists())
    }
}

/// A child process of this program, killed on drop.
struct Process(Child);

impl Process {
    fn start<const N: usize>(words: [&str; N], port: u16) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let child = command.args(words).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        let mut process = Self(child);
        let begun = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if let Some(status) = process.0.try_wait()? {
                return Err(format!("{} ended with {status}", words[0]).into());
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("{}: nobody listens at {port}", words[0]).into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(process)
    }

    fn memory(&mut self, field: &str) -> Result<u64> {
        if let Some(status) = self.0.try_wait()? {
            return Err(format!("an executor ended with {status}").into());
        }
        process::memory(&self.0.id().to_string(), field)
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
fn ports<const N: usize>() -> Result<[u16; N]> {
    let mut ports = [0; N];
    // All listeners stay open until the end, so that the ports differ.
    let mut listeners = Vec::new();
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        *port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok(ports)
}
