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
#[derive(Debug, Serialize)]
pub(crate) struct Cell {
    bench: String,
    case: String,
    ours: f64,
    rival_name: String,
    rival: f64,
    unit: String,
    /// Speedup relative to the rival.
    ratio: f64,
}

/// The cells of one bench.
pub(crate) struct Cells {
    bench: &'static str,
    unit: &'static str,
    cells: Vec<Cell>,
}

impl Cells {
    /// Creates an empty table of figures in `unit`, where less is better.
    pub(crate) fn new(bench: &'static str, unit: &'static str) -> Self {
        Self { bench, unit, cells: Vec::new() }
    }

    /// Adds a comparison.
    pub(crate) fn push(&mut self, case: &str, ours: f64, rival_name: &str, rival: f64) {
        self.push_in(case, ours, rival_name, rival, self.unit);
    }

    /// Adds a comparison in another unit.
    pub(crate) fn push_in(
        &mut self,
        case: &str,
        ours: f64,
        rival_name: &str,
        rival: f64,
        unit: &str,
    ) {
        self.cells.push(Cell {
            bench: self.bench.to_owned(),
            case: case.to_owned(),
            ours,
            rival_name: rival_name.to_owned(),
            rival,
            unit: unit.to_owned(),
            ratio: rival / ours,
        });
    }

    /// Prints the table and writes `target/windrow-bench/NAME.json`. Figures of Windrow in
    /// nanoseconds per item are also shown as millions per second.
    pub(crate) fn finish(&self) -> Result<()> {
        println!(
            "{:<34} {:>10} {:>8}  {:<28} {:>10}  {:>6}",
            self.bench, "ours", "M/s", "rival", "", "ratio"
        );
        for cell in &self.cells {
            let rate = match cell.unit.starts_with("ns/") {
                true => format!("{:.1}", 1e3 / cell.ours),
                false => String::new(),
            };
            println!(
                "{:<34} {:>10.2} {rate:>8}  {:<28} {:>10.2}  {:>5.2}x  {}",
                cell.case, cell.ours, cell.rival_name, cell.rival, cell.ratio, cell.unit
            );
        }
        self.save()
    }

    /// Writes only `target/windrow-bench/NAME.json`, for benches with a table of their own.
    pub(crate) fn save(&self) -> Result<()> {
        fs::create_dir_all("target/windrow-bench")?;
        let file = format!("target/windrow-bench/{}.json", self.bench);
        fs::write(file, serde_json::to_string_pretty(&self.cells)? + "\n")?;
        Ok(())
    }
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
            for _ in 1..TIMES {
                black_box(Instant::now());
            }
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
