//! Measured cells: a table for people, a JSON file for programs.
//!
//! A cell compares one case with one rival in the same run. Times are the minimum of several
//! rounds; Windrow and the rivals take turns within a round.

use std::fs;
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Instant;

use serde::Serialize;

use crate::Result;

/// One comparison.
#[derive(Clone, Serialize)]
pub(crate) struct Cell {
    bench: &'static str,
    case: String,
    ours: f64,
    rival_name: String,
    rival: f64,
    unit: &'static str,
    /// Speedup relative to the rival.
    ratio: f64,
}

/// The cells of one bench.
#[derive(Clone)]
pub(crate) struct Cells {
    bench: &'static str,
    unit: &'static str,
    pub(crate) cells: Vec<Cell>,
}

impl Cells {
    /// Creates an empty table of figures in `unit`, where less is better.
    pub(crate) fn new(bench: &'static str, unit: &'static str) -> Self {
        Self { bench, unit, cells: Vec::new() }
    }

    /// Adds a comparison with each rival.
    pub(crate) fn push<N: ToString>(
        &mut self,
        case: &str,
        ours: f64,
        rivals: impl IntoIterator<Item = (N, f64)>,
    ) {
        for (name, rival) in rivals {
            self.push_in(self.unit, case, ours, (name, rival));
        }
    }

    /// Adds a comparison in a unit of its own.
    pub(crate) fn push_in<N: ToString>(
        &mut self,
        unit: &'static str,
        case: &str,
        ours: f64,
        (name, rival): (N, f64),
    ) {
        let (bench, case, rival_name) = (self.bench, case.to_owned(), name.to_string());
        self.cells.push(Cell { bench, case, ours, rival_name, rival, unit, ratio: rival / ours });
    }

    /// Prints the table, and writes `target/windrow-bench/NAME.json`.
    /// Figures of Windrow in nanoseconds per item are also shown as millions per second.
    pub(crate) fn finish(&self) -> Result<()> {
        let line = |case: &str, ours: &str, rate: &str, rival: &str, theirs: &str, rest: &str| {
            println!("{case:<34} {ours:>10} {rate:>8}  {rival:<28} {theirs:>10}  {rest}");
        };
        line(self.bench, "ours", "M/s", "rival", "", " ratio");
        for Cell { case, ours, rival_name, rival, unit, ratio, .. } in &self.cells {
            let rate = unit.strip_prefix("ns/").map(|_| format!("{:.1}", 1e3 / ours));
            let rate = rate.unwrap_or_default();
            let (ours, rival) = (format!("{ours:.2}"), format!("{rival:.2}"));
            line(case, &ours, &rate, rival_name, &rival, &format!("{ratio:>5.2}x  {unit}"));
        }
        save(self.bench, &self.cells)
    }
}

/// Writes `target/windrow-bench/NAME.json`.
pub(crate) fn save(name: &str, rows: &[impl Serialize]) -> Result<()> {
    fs::create_dir_all("target/windrow-bench")?;
    let file = format!("target/windrow-bench/{name}.json");
    Ok(fs::write(file, serde_json::to_string_pretty(rows)? + "\n")?)
}

/// Returns the least figure of each contender over `rounds`, in which contenders take turns.
pub(crate) fn least<T: AsMut<[f64]>>(
    rounds: usize,
    mut round: impl FnMut(usize) -> Result<T>,
) -> Result<T> {
    let mut least = round(0)?;
    for at in 1..rounds {
        for (least, new) in least.as_mut().iter_mut().zip(round(at)?.as_mut()) {
            *least = least.min(*new);
        }
    }
    Ok(least)
}

/// A stopwatch in seconds that subtracts the cost of reading the clock: two dozen nanoseconds, as
/// much as appending one batch to another.
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        // Calibrates before the measured interval.
        reading();
        Self(Instant::now())
    }

    pub(crate) fn seconds(&self) -> f64 {
        (self.0.elapsed().as_secs_f64() - reading()).max(0.0)
    }
}

/// Measures the seconds of one clock reading.
fn reading() -> f64 {
    const TIMES: u32 = 10_000;
    static READING: OnceLock<f64> = OnceLock::new();
    *READING.get_or_init(|| {
        let rounds = (0..10).map(|_| {
            let start = Instant::now();
            (1..TIMES).for_each(|_| _ = black_box(Instant::now()));
            start.elapsed().as_secs_f64() / f64::from(TIMES)
        });
        rounds.fold(f64::INFINITY, f64::min)
    })
}

/// Measures the seconds of `work`, and returns its result.
pub(crate) fn seconds<T>(work: impl FnOnce() -> Result<T>) -> Result<(f64, T)> {
    let watch = Stopwatch::start();
    let out = work()?;
    Ok((watch.seconds(), out))
}

/// Makes the system's allocator keep freed memory: blocks of up to 32 MiB go back to the system
/// until a block of such a size has been freed. Otherwise rivals with allocated output would pay
/// for fresh pages only in the first cases of a run.
pub(crate) fn keep_freed_memory() {
    drop(black_box(vec![1u8; 31 << 20]));
}
