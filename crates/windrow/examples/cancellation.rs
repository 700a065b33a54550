//! The effect of a memory limit on changes that cancel. Every change is followed a while later by
//! its opposite at the same time, so nothing is left at the end, and all pressure is on the
//! batcher.
//!
//! The same changes are sealed twice, one run after another: in memory without a limit, and in a
//! budget of a fraction of that memory. A thread samples the resident memory of the process; a
//! picture of both runs is written to `target/cancellation.svg`.
//!
//! ```text
//! cargo run --release -p windrow --example cancellation [CHANGES [BUDGET_MIB]]
//! ```

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
use windrow::{Antichain, Batcher, Budget, Codec, Order, Pool, PoolOptions};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const BATCH: u64 = 8192;

/// A pool configuration and its memory over time.
struct Run {
    name: String,
    /// Seconds since the start, and MiB resident.
    samples: Vec<(f64, f64)>,
    spilled_mib: f64,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let changes: u64 = arguments.next().map_or(Ok(8_000_000), |text| text.parse())?;
    let budget: usize = arguments.next().map_or(Ok(64), |text| text.parse())?;
    let limited = PoolOptions::new().codec(Codec::Lz4);
    let runs = [
        measured("without a limit", changes, &Pool::unlimited())?,
        measured(
            &format!("{budget} MiB, spilling"),
            changes,
            &Pool::new(Budget::bytes(budget << 20), limited)?,
        )?,
    ];
    for run in &runs {
        let peak = run.samples.iter().map(|&(_, mib)| mib).fold(0.0, f64::max);
        let seconds = run.samples.last().map_or(0.0, |&(seconds, _)| seconds);
        println!(
            "{:<20} {seconds:6.2} s, {peak:6.0} MiB at the peak, {:6.0} MiB spilled",
            run.name, run.spilled_mib
        );
    }
    std::fs::create_dir_all("target")?;
    std::fs::write("target/cancellation.svg", picture(&runs))?;
    println!("target/cancellation.svg");
    Ok(())
}

/// Seals all changes while sampling the resident memory.
fn measured(name: &str, changes: u64, pool: &Pool) -> Result<Run> {
    let done = AtomicBool::new(false);
    let start = Instant::now();
    let samples = std::thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            let mut samples = Vec::new();
            while !done.load(Ordering::Relaxed) {
                samples.push((start.elapsed().as_secs_f64(), resident_mib()));
                std::thread::sleep(Duration::from_millis(5));
            }
            samples
        });
        let sealed = cancelled(changes, pool);
        done.store(true, Ordering::Relaxed);
        let samples = sampler.join().map_err(|_| "the sampler ended early");
        sealed.and_then(|left| match left {
            0 => Ok(samples?),
            left => Err(format!("{left} changes are left").into()),
        })
    })?;
    let spilled_mib = pool.stats().spilled_bytes as f64 / f64::from(1 << 20);
    Ok(Run { name: name.to_owned(), samples, spilled_mib })
}

/// Seals `changes` changes and their opposites and returns the number of changes left. The opposite
/// of a change follows a quarter of all changes later.
fn cancelled(changes: u64, pool: &Pool) -> Result<u64> {
    let layout = Order::by("key").time("time").diff("diff").bind(&batch(0, 1)?.schema())?;
    let mut batcher = Batcher::new(&layout, pool);
    let (batches, behind) = (changes.div_ceil(BATCH), changes.div_ceil(BATCH) / 4);
    for index in 0..batches + behind {
        if index < batches {
            batcher.push(&batch(index, 1)?)?;
        }
        if index >= behind {
            batcher.push(&batch(index - behind, -1)?)?;
        }
    }
    Ok(batcher.seal(&Antichain::at(1))?.rows().unwrap_or(u64::MAX))
}

/// Returns record batch number `index` of changes: keys in random order, a value, and time 0.
fn batch(index: u64, diff: i64) -> Result<RecordBatch> {
    let keys = (index * BATCH..(index + 1) * BATCH).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let keys: UInt64Array = UInt64Array::from_iter_values(keys);
    let columns: [(&str, ArrayRef); 4] = [
        ("value", Arc::new(UInt64Array::from_iter_values(keys.values().iter().map(|k| k >> 7)))),
        ("key", Arc::new(keys)),
        ("time", Arc::new(UInt64Array::from_value(0, BATCH as usize))),
        ("diff", Arc::new(Int64Array::from_value(diff, BATCH as usize))),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}

/// Returns the resident MiB of the process; zero if the system does not report them.
fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}

/// Draws resident memory over time, one line per run.
fn picture(runs: &[Run]) -> String {
    let (width, height, margin) = (800.0, 400.0, 50.0);
    let all = || runs.iter().flat_map(|run| &run.samples);
    let longest = all().map(|&(seconds, _)| seconds).fold(0.1, f64::max);
    let most = all().map(|&(_, mib)| mib).fold(1.0, f64::max);
    let mut svg = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' width='{}' height='{}' font-family='sans-serif' \
         font-size='13'>\n<rect width='100%' height='100%' fill='white'/>\n",
        width + 2.0 * margin,
        height + 2.0 * margin
    );
    let mut text = |x: f64, y: f64, color: &str, words: &str| {
        let _infallible = writeln!(svg, "<text x='{x}' y='{y}' fill='{color}'>{words}</text>");
    };
    text(margin, margin - 20.0, "black", &format!("resident memory, at most {most:.0} MiB"));
    text(width - margin, height + margin + 20.0, "black", &format!("{longest:.2} s"));
    let colors = ["#b33", "#36c"];
    for (index, run) in runs.iter().enumerate() {
        text(margin + 10.0, margin + 20.0 * (index + 1) as f64, colors[index % 2], &run.name);
    }
    for (index, run) in runs.iter().enumerate() {
        let points = run.samples.iter().map(|&(seconds, mib)| {
            let (x, y) = (seconds / longest * width, (1.0 - mib / most) * height);
            format!("{:.1},{:.1}", margin + x, margin + y)
        });
        let points: Vec<String> = points.collect();
        let _infallible = writeln!(
            svg,
            "<polyline fill='none' stroke='{}' stroke-width='2' points='{}'/>",
            colors[index % 2],
            points.join(" ")
        );
    }
    svg + "</svg>\n"
}
