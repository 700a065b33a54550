//! Child processes of a run: a scheduler and two executors, ended with the run.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballista_executor::execution_engine::ExecutionEngine;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::start_server;
use tempfile::TempDir;
use windrow_ballista::WindrowEngine;

use super::{Options, Side, runtime};
use crate::{Result, process};

/// Timeout for a process to start listening.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a scheduler until killed, or until the parent process ends.
pub(super) fn scheduler(port: u16) -> Result<()> {
    end_with_the_starter();
    let config = SchedulerConfig { bind_port: port, ..SchedulerConfig::default() };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    runtime(2)?.block_on(async {
        let cluster = BallistaCluster::new_from_config(&config).await?;
        start_server(cluster, address, Arc::new(config)).await
    })?;
    Ok(())
}

/// Runs an executor until killed, or until the parent process ends. Options have its directory and
/// its limit.
pub(super) fn executor(options: &Options, scheduler: u16, port: u16, grpc_port: u16) -> Result<()> {
    end_with_the_starter();
    let engine = (options.side == Some(Side::Ours))
        .then(|| Arc::new(WindrowEngine::default()) as Arc<dyn ExecutionEngine>);
    let limit = options.limits.iter().sum::<u64>() << 20;
    let config = ExecutorProcessConfig {
        scheduler_host: Ipv4Addr::LOCALHOST.to_string(),
        scheduler_port: scheduler,
        scheduler_connect_timeout_seconds: 60,
        external_host: Some(Ipv4Addr::LOCALHOST.to_string()),
        port,
        grpc_port,
        vcores: 1,
        work_dir: options.data.to_str().map(str::to_owned),
        memory_pool_size: (limit > 0).then_some(limit),
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

/// The processes of a run, and their working directory.
pub(super) struct Cluster {
    /// The scheduler's.
    pub(super) port: u16,
    executors: Vec<Process>,
    _scheduler: Process,
    _work: TempDir,
}

impl Cluster {
    /// Starts the processes, and waits until all are listening.
    pub(super) fn start(data: &Path, limit: u64, side: Side) -> Result<Self> {
        let work = tempfile::tempdir_in(data)?;
        let [port, first, first_grpc, second, second_grpc] = ports()?;
        let scheduler = Process::start(&[format!("--ports={port}")], port)?;
        let mut executors = Vec::new();
        for (name, flight, grpc) in [("a", first, first_grpc), ("b", second, second_grpc)] {
            let directory = work.path().canonicalize()?.join(name);
            std::fs::create_dir(&directory)?;
            let words = [
                format!("--ports={port},{flight},{grpc}"),
                format!("--data={}", directory.to_str().ok_or("a path that is text")?),
                format!("--limits={limit}"),
                format!("--side={}", side.name()),
            ];
            executors.push(Process::start(&words, flight)?);
        }
        Ok(Self { port, executors, _scheduler: scheduler, _work: work })
    }

    /// Returns each executor's memory in bytes, by a field of `/proc/PID/status`.
    pub(super) fn memory(&mut self, field: &str) -> Result<Vec<u64>> {
        self.executors.iter_mut().map(|executor| executor.memory(field)).collect()
    }
}

/// A child process of this program, killed on drop.
struct Process(Child);

impl Process {
    fn start(words: &[String], port: u16) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("ballista");
        let child = command.args(words).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        let mut process = Self(child);
        let begun = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if let Some(status) = process.0.try_wait()? {
                return Err(format!("{} ended with {status}", words.join(" ")).into());
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("{}: nobody listens at {port}", words.join(" ")).into());
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
