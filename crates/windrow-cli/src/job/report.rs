//! What the user sees of a running job, and its figures at the end.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use arrow::record_batch::RecordBatch;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use windrow::{Pool, PoolStats};

use super::finish::Spread;
use crate::args;
use crate::error::{CliError, Result};
use crate::input::Inputs;
use crate::output::Target;
use crate::output::Written;
use crate::size::Size;
use crate::system;

/// What a job is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Read,
    Settle,
    Write,
}

/// When a phase began, and what the pool had done until then.
#[derive(Clone, Copy, Debug)]
struct Begun {
    phase: Phase,
    at: Instant,
    pool: PoolStats,
}

/// The figures of a finished job.
#[derive(Debug, Serialize)]
struct Stats {
    rows_in: u64,
    rows_out: u64,
    rows_dropped: u64,
    keys_deleted: u64,
    bytes_in: Option<u64>,
    bytes_out: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    partitions: Option<Spread>,
    runs: u64,
    spilled_bytes: u64,
    stored_bytes: u64,
    spills: u64,
    loads: u64,
    loaded_bytes: u64,
    read_ahead: u64,
    read_ahead_hits: u64,
    chunks_kept: u64,
    writes_elided: u64,
    writes_cancelled: u64,
    evicted: Evicted,
    released_clean: u64,
    buffers_mapped: u64,
    buffers_recycled: u64,
    released_bytes: u64,
    temp_bytes: u64,
    budget_bytes: u64,
    peak_leased_bytes: u64,
    peak_rss_bytes: u64,
    memory_limit_bytes: Option<u64>,
    seconds: f64,
    phase_seconds: PerPhase<f64>,
    phase_spilled_bytes: PerPhase<u64>,
    phase_loaded_bytes: PerPhase<u64>,
}

/// One figure of each phase.
#[derive(Debug, Serialize)]
struct PerPhase<T> {
    read: T,
    settle: T,
    write: T,
}

impl<T> PerPhase<T> {
    fn of(figure: impl Fn(Phase) -> T) -> Self {
        Self {
            read: figure(Phase::Read),
            settle: figure(Phase::Settle),
            write: figure(Phase::Write),
        }
    }
}

/// Chunks that left memory for others, by the number of merges behind them.
#[derive(Debug, Serialize)]
struct Evicted {
    generation_0: u64,
    generation_1: u64,
    older: u64,
}

/// Counts what happens; shared by all threads.
pub(crate) struct Reporter {
    bar: ProgressBar,
    pool: Mutex<Option<Pool>>,
    quiet: bool,
    /// When progress was told last, where it goes to no terminal.
    told: Option<Mutex<Instant>>,
    bytes_in: Option<u64>,
    rows_in: AtomicU64,
    rows_out: AtomicU64,
    bytes_out: AtomicU64,
    spread: OnceLock<Spread>,
    deleted: AtomicU64,
    runs: AtomicU64,
    limit: Option<u64>,
    start: Instant,
    phases: Mutex<Vec<Begun>>,
}

impl Reporter {
    pub(super) fn new(inputs: &Inputs, limit: Option<u64>, report: &args::Report) -> Arc<Self> {
        let shown = report.progress || (!report.quiet && std::io::stderr().is_terminal());
        let bar = ProgressBar::with_draw_target(
            inputs.rows(),
            if shown {
                ProgressDrawTarget::stderr_with_hz(4)
            } else {
                ProgressDrawTarget::hidden()
            },
        );
        Arc::new(Self {
            bar,
            pool: Mutex::new(None),
            quiet: report.quiet,
            told: (report.progress && !std::io::stderr().is_terminal())
                .then(|| Mutex::new(Instant::now())),
            bytes_in: inputs.bytes(),
            rows_in: AtomicU64::new(0),
            rows_out: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            spread: OnceLock::new(),
            deleted: AtomicU64::new(0),
            runs: AtomicU64::new(0),
            limit,
            start: Instant::now(),
            phases: Mutex::default(),
        })
    }

    /// The pool whose spilled bytes are shown.
    pub(super) fn watch(&self, pool: &Pool) {
        *lock(&self.pool) = Some(pool.clone());
    }

    /// A phase begins.
    pub(super) fn enter(&self, phase: Phase) {
        let mut phases = lock(&self.phases);
        if phases.last().is_some_and(|last| last.phase == phase) {
            return;
        }
        phases.push(Begun { phase, at: Instant::now(), pool: self.pool_stats() });
        let template = match phase {
            Phase::Read => {
                "read   {human_pos} of {human_len} rows {wide_bar} {elapsed} eta {eta} {msg}"
            }
            Phase::Settle => "settle {spinner} {elapsed} {msg}",
            Phase::Write => {
                "write  {human_pos} of {human_len} rows {wide_bar} {elapsed} eta {eta} {msg}"
            }
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style);
        }
        self.bar.set_position(0);
        self.bar.reset_eta();
        if phase == Phase::Write {
            let rows = self.rows_in.load(Ordering::Relaxed);
            if rows > 0 {
                self.bar.set_length(rows);
            }
        }
    }

    /// Rows were read.
    pub(super) fn read(&self, batch: &RecordBatch) {
        let rows = batch.num_rows() as u64;
        self.rows_in.fetch_add(rows, Ordering::Relaxed);
        self.bar.inc(rows);
        self.tell("read");
        if !self.bar.is_hidden() {
            let spilled = lock(&self.pool).as_ref().map_or(0, |pool| pool.stats().spilled_bytes);
            if spilled > 0 {
                self.bar.set_message(format!("spilled {}", Size(spilled as u64)));
            }
        }
    }

    /// Rows were written.
    pub(super) fn wrote(&self, rows: u64) {
        self.bar.inc(rows);
        self.tell("written");
    }

    /// A line of progress every second, for a log.
    fn tell(&self, what: &str) {
        let Some(mut told) = self.told.as_ref().map(lock) else { return };
        if told.elapsed() < Duration::from_secs(1) {
            return;
        }
        *told = Instant::now();
        let of = self.bar.length().map(|rows| format!(" of {rows}")).unwrap_or_default();
        let pool = self.pool_stats();
        say(format_args!(
            "{}{of} rows {what}, {} in memory, {} spilled, {:.0} s",
            self.bar.position(),
            Size(pool.leased as u64),
            Size(pool.spilled_bytes as u64),
            self.start.elapsed().as_secs_f64(),
        ));
    }

    pub(super) fn deleted(&self, keys: u64) {
        self.deleted.store(keys, Ordering::Relaxed);
    }

    pub(super) fn set_runs(&self, runs: usize) {
        self.runs.store(runs as u64, Ordering::Relaxed);
    }

    /// The output is complete; `spread` if it is many files.
    pub(super) fn written(&self, written: Written, spread: Option<Spread>) {
        self.rows_out.store(written.rows, Ordering::Relaxed);
        self.bytes_out.store(written.bytes, Ordering::Relaxed);
        if let Some(spread) = spread {
            self.spread.get_or_init(|| spread);
        }
    }

    fn pool_stats(&self) -> PoolStats {
        lock(&self.pool).as_ref().map(Pool::stats).unwrap_or_default()
    }

    /// What `figure` makes of the beginning and the end of each time in `phase`, together.
    fn over<T: std::iter::Sum>(
        &self,
        phase: Phase,
        end: &Begun,
        figure: impl Fn(&Begun, &Begun) -> T,
    ) -> T {
        let phases = lock(&self.phases);
        let ends = phases.iter().skip(1).chain([end]);
        let spans = phases.iter().zip(ends).filter(|(begun, _)| begun.phase == phase);
        spans.map(|(begun, ended)| figure(begun, ended)).sum()
    }

    /// Says what was done, on a line and, if asked for, as JSON.
    pub(super) fn finish(&self, pool: &Pool, report: &args::Report) -> Result<()> {
        self.bar.finish_and_clear();
        let pool = pool.stats();
        let end = &Begun { phase: Phase::Write, at: Instant::now(), pool };
        let figures = |figure: fn(&PoolStats) -> usize| {
            let between = move |from: &Begun, to: &Begun| figure(&to.pool) - figure(&from.pool);
            PerPhase::of(|phase| self.over(phase, end, between) as u64)
        };
        let (rows_in, rows_out) =
            (self.rows_in.load(Ordering::Relaxed), self.rows_out.load(Ordering::Relaxed));
        let stats = Stats {
            rows_in,
            rows_out,
            rows_dropped: rows_in.saturating_sub(rows_out),
            keys_deleted: self.deleted.load(Ordering::Relaxed),
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out.load(Ordering::Relaxed),
            partitions: self.spread.get().copied(),
            runs: self.runs.load(Ordering::Relaxed),
            spilled_bytes: pool.spilled_bytes as u64,
            stored_bytes: pool.stored_bytes as u64,
            spills: pool.spills,
            loads: pool.loads,
            loaded_bytes: pool.loaded_bytes as u64,
            read_ahead: pool.read_ahead,
            read_ahead_hits: pool.read_ahead_hits,
            chunks_kept: pool.kept,
            writes_elided: pool.elided,
            writes_cancelled: pool.cancelled,
            evicted: Evicted {
                generation_0: pool.evicted[0],
                generation_1: pool.evicted[1],
                older: pool.evicted[2],
            },
            released_clean: pool.released_clean,
            buffers_mapped: pool.buffers_mapped,
            buffers_recycled: pool.buffers_recycled,
            released_bytes: pool.released_bytes as u64,
            temp_bytes: pool.temp_bytes,
            budget_bytes: pool.budget as u64,
            peak_leased_bytes: pool.peak_leased as u64,
            peak_rss_bytes: system::peak_resident(),
            memory_limit_bytes: self.limit,
            seconds: end.at.duration_since(self.start).as_secs_f64(),
            phase_seconds: PerPhase::of(|phase| {
                let span = |from: &Begun, to: &Begun| to.at.duration_since(from.at);
                self.over::<Duration>(phase, end, span).as_secs_f64()
            }),
            phase_spilled_bytes: figures(|pool| pool.spilled_bytes),
            phase_loaded_bytes: figures(|pool| pool.loaded_bytes),
        };
        if !self.quiet {
            let spilled = match stats.spilled_bytes {
                0 => String::new(),
                bytes => format!(", spilled {}", Size(bytes)),
            };
            let files = match stats.partitions {
                None => String::new(),
                Some(Spread { files, .. }) => format!(" in {files} files"),
            };
            say(format_args!(
                "{} rows in, {} rows out{files} ({}) in {:.2} s{spilled}, peak memory {}",
                stats.rows_in,
                stats.rows_out,
                Size(stats.bytes_out),
                stats.seconds,
                Size(stats.peak_rss_bytes),
            ));
        }
        match report.stats.as_deref() {
            None => Ok(()),
            Some("json") => {
                let told = writeln!(std::io::stderr(), "{}", to_json(&stats)?);
                told.map_err(|error| {
                    CliError::Space(format!(
                        "--stats: standard error: {error}; the output is whole, its figures are lost"
                    ))
                })
            }
            Some(file) => {
                let prometheus = Path::new(file).extension().is_some_and(|e| e == "prom");
                let text =
                    if prometheus { to_prometheus(&stats)? } else { to_json(&stats)? + "\n" };
                std::fs::write(file, text)
                    .map_err(|error| CliError::output(Path::new(file), &error))
            }
        }
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Refuses a place for the figures that is none, before there are any.
pub(super) fn check(report: &args::Report, inputs: &Inputs, target: &Target) -> Result<()> {
    let Some(file) = report.stats.as_deref().filter(|&stats| stats != "json") else {
        return Ok(());
    };
    if Path::new(file).is_dir() {
        return Err(CliError::Usage(format!("--stats: {file} is a directory; name a file in it")));
    }
    let same = |other: &Path| match (Path::new(file).canonicalize(), other.canonicalize()) {
        (Ok(file), Ok(other)) => file == other,
        _ => Path::new(file) == other,
    };
    let written = matches!(target, Target::File(output) if same(output));
    if written || inputs.files().iter().any(|input| same(Path::new(&*input.name))) {
        return Err(CliError::Usage(format!(
            "--stats: {file} is an input or the output of this job; name another file"
        )));
    }
    let directory = Path::new(file).parent().filter(|parent| !parent.as_os_str().is_empty());
    match directory {
        Some(directory) if !directory.is_dir() => Err(CliError::Usage(format!(
            "--stats: {file}: there is no directory {}; create it first",
            directory.display()
        ))),
        _ => Ok(()),
    }
}

/// A line on standard error; that nobody reads it is not the job's fault.
pub(crate) fn say(line: std::fmt::Arguments<'_>) {
    let _said = writeln!(std::io::stderr(), "{line}");
}

fn to_json(stats: &Stats) -> Result<String> {
    serde_json::to_string(stats).map_err(|error| CliError::Data(error.to_string()))
}

/// The figures as a text file for Prometheus' node exporter, a gauge each.
fn to_prometheus(stats: &Stats) -> Result<String> {
    let figures = serde_json::to_value(stats).map_err(|error| CliError::Data(error.to_string()))?;
    let mut text = String::new();
    let mut gauge = |name: &str, value: &serde_json::Value| {
        if value.is_number() {
            text.push_str(&format!("# TYPE windrow_{name} gauge\nwindrow_{name} {value}\n"));
        }
    };
    for (name, value) in figures.as_object().into_iter().flatten() {
        match value.as_object() {
            Some(parts) => parts.iter().for_each(|(part, v)| gauge(&format!("{name}_{part}"), v)),
            None => gauge(name, value),
        }
    }
    Ok(text)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
