//! The effect of a memory limit on changes that cancel, in a dataflow. Every record is followed a
//! while later by its opposite at the same time, so nothing is left at the end, and all pressure is
//! on the batchers of the arrangement.
//!
//! The same records are arranged twice, one run after another: in memory without a limit, and in a
//! budget that all workers share. A thread samples the resident memory of the process; a picture of
//! both runs is written to `target/cancellation.svg`.
//!
//! ```text
//! cargo run --release -p windrow-differential --example cancellation [WORKERS [RECORDS [MIB]]]
//! ```

use std::cell::Cell;
use std::fmt::Write;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use differential_dataflow::input::Input;
use windrow::{Budget, Codec, Pool, PoolOptions};
use windrow_differential::{ArrangeRows, Context};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Records between two steps of a worker.
const STEP: u64 = 8192;

/// A pool configuration and its memory over time.
struct Run {
    name: String,
    /// Seconds since the start, and MiB resident.
    samples: Vec<(f64, f64)>,
    spilled_mib: f64,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |usual: u64| arguments.next().map_or(Ok(usual), |text| text.parse());
    let (workers, records, mebibytes) = (number(2)?, number(8_000_000)?, number(64)?);
    let limited = PoolOptions::new().codec(Codec::Lz4);
    let limited = Pool::new(Budget::bytes((mebibytes as usize) << 20), limited)?;
    let runs = [
        measured("without a limit", workers as usize, records, Pool::unlimited())?,
        measured(&format!("{mebibytes} MiB, spilling"), workers as usize, records, limited)?,
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

/// Arranges all records while sampling the resident memory.
fn measured(name: &str, workers: usize, records: u64, pool: Pool) -> Result<Run> {
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
        let left = arranged(workers, records, Context::new(pool.clone()));
        done.store(true, Ordering::Relaxed);
        let samples = sampler.join().map_err(|_| "the sampler ended early");
        left.and_then(|left| match left {
            0 => Ok(samples?),
            left => Err(format!("{left} records are left").into()),
        })
    })?;
    let spilled_mib = pool.stats().spilled_bytes as f64 / f64::from(1 << 20);
    Ok(Run { name: name.to_owned(), samples, spilled_mib })
}

/// Arranges `records` records and their opposites on some workers, and returns the number of
/// updates left. The opposite of a record follows a quarter of all records later.
fn arranged(workers: usize, records: u64, context: Context) -> Result<usize> {
    let config = timely::Config::process(workers);
    let guards = timely::execute(config, move |worker| {
        let left = Rc::new(Cell::new(0));
        let seen = Rc::clone(&left);
        let (mut input, probe) = worker.dataflow::<u64, _, _>(|scope| {
            let (input, records) = scope.new_collection::<(u64, u64), isize>();
            let arranged = records.arrange_rows(&context);
            let records = arranged.as_collection(|key, value| (key.get(), value.get()));
            let counted = records.inspect(move |_| seen.set(seen.get() + 1));
            (input, counted.probe().0)
        });
        let record = |number: u64| {
            let key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (key, key >> 7)
        };
        let behind = records / 4;
        let (index, peers) = (worker.index() as u64, worker.peers() as u64);
        for number in (0..records + behind).filter(|number| number % peers == index) {
            if number < records {
                input.insert(record(number));
            }
            if number >= behind {
                input.remove(record(number - behind));
            }
            if number / peers % STEP == 0 {
                input.flush();
                worker.step();
            }
        }
        input.advance_to(1);
        input.flush();
        while probe.less_than(&1) {
            worker.step();
        }
        left.get()
    })?;
    guards.join().into_iter().map(|left| left.map_err(Into::into)).sum()
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
