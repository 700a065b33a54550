//! Our spill beside the system's swap, in one memory group.
//!
//! ```text
//! a group of the kernel's a way:   so many MiB, cached pages of files too
//!     child: four times as many MiB of changes of integers, 64 pushes; a seal; all rows read
//! ```
//! Our ways have a budget of the group without `BESIDE`. By swap, a pool without a limit leaves all
//! to the system. Memory outside of the process is counted by the group, and swapped by the system.

use windrow::{Antichain, Batcher, Budget, Codec, Order, Pool, PoolOptions, SpillTo};

use super::PUSHES;
use super::data::{Regime, SHAPES, pushes};
use crate::Result;
use crate::harness::{Cells, seconds};
use crate::process::{in_group, memory};

/// MiB of a process besides its chunks: code, and the changes of a push.
const BESIDE: usize = 48;
const WAYS: [(&str, Option<(SpillTo, Codec)>); 5] = [
    ("files", Some((SpillTo::Disk, Codec::None))),
    ("files, LZ4", Some((SpillTo::Disk, Codec::Lz4))),
    ("memory outside", Some((SpillTo::Memory, Codec::None))),
    ("memory outside, LZ4", Some((SpillTo::Memory, Codec::Lz4))),
    ("swap", None),
];

/// Measures all ways, one process after another.
pub(super) fn beside_swap(mebibytes: usize, mut cells: Cells) -> Result<()> {
    let mut figures = Vec::new();
    for (way, _) in WAYS {
        let words = ["batcher".into(), format!("--group={mebibytes}"), format!("--engine={way}")];
        let done = in_group((mebibytes as u64) << 20, words);
        // The kernel's out-of-memory killer.
        if done.as_ref().is_err_and(|error| error.to_string().contains("SIGKILL")) {
            println!("{way}: killed, it takes memory faster than the system swaps");
            continue;
        }
        let (time, rows, [spilled, swapped, peak]): (f64, u64, [u64; 3]) = done?;
        println!(
            "{way}: {time:.1} s, {rows} rows, MiB: {spilled} spilled, {swapped} swapped, peak {peak}"
        );
        figures.push((way, time / rows as f64 * 1e9));
    }
    let case = format!("changes of {} MiB in a group of {mebibytes} MiB", 4 * mebibytes);
    if let Some(((_, ours), rest)) = figures.split_first() {
        cells.push("ns/record", &case, *ours, rest.iter().copied());
    }
    cells.finish()
}

/// Measures one way in the child process.
pub(super) fn child(mebibytes: usize, engine: &str) -> Result<()> {
    let ways = WAYS.iter().find(|(way, _)| *way == engine);
    let (_, way) = ways.ok_or_else(|| format!("no way is called {engine}"))?;
    let pool = match way {
        None => Pool::unlimited(),
        Some((to, codec)) => {
            let budget = Budget::bytes(mebibytes.saturating_sub(BESIDE).max(1) << 20);
            Pool::new(budget, PoolOptions::new().spill_to(*to).codec(*codec))?
        }
    };
    let shape = &SHAPES[0];
    let schema = shape.schema();
    let layout = Order::by(["a", "b"]).time("time").diff("diff").bind(&schema)?;
    let mut batcher = Batcher::new(&layout, &pool);
    let count = ((4 * mebibytes) << 20) / shape.bytes / PUSHES;
    let before = swapped_out()?;
    let mut total = 0.0;
    for push in 0..PUSHES as u64 {
        let changes = &pushes(Regime::Random, count, 1, push + 1)[0];
        let batch = shape.record_batch(&schema, changes)?;
        total += seconds(|| Ok(batcher.push(&batch)?))?.0;
    }
    let read = || {
        let batches = batcher.seal(&Antichain::new())?.record_batches(8192)?;
        batches.map(|batch| Ok(batch?.num_rows() as u64)).sum::<Result<u64>>()
    };
    let (time, rows) = seconds(read)?;
    let spilled = pool.stats().spilled_bytes as u64;
    let swapped = swapped_out()?.saturating_sub(before);
    let bytes = [spilled, swapped, memory("self", "VmHWM")?];
    let figures = (total + time, rows, bytes.map(|bytes| bytes >> 20));
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}

/// Returns the bytes that the system has swapped out since it started, in pages of 4 KiB.
fn swapped_out() -> Result<u64> {
    let counters = std::fs::read_to_string("/proc/vmstat")?;
    let pages = counters.lines().find_map(|line| line.strip_prefix("pswpout "));
    Ok(pages.ok_or("no swap counter")?.parse::<u64>()? * 4096)
}
