//! A table in a fraction of its rows' memory, against stores with the same limit.
//!
//! ```text
//! a group of the kernel's a store:   part of the rows + BESIDE, the page cache of its files too
//!     child: load in one order, then rounds of one call of upserts and nine of reads
//! ```
//! Each store is a separate process in a memory cgroup, so the kernel's limit includes cached
//! files. Windrow has a budget of the fraction. redb and fjall use half of the fraction as their
//! own cache; the system's page cache, through which all their reads go, needs the rest. No store
//! syncs. All receive the same calls.

use windrow::{Budget, Mergers, Pool};

use super::table::{Figures, Store, VALUE, measured, ours, report};
use super::{Options, stores};
use crate::Result;
use crate::harness::Cells;
use crate::process;

/// Name of the case that runs only on request: it takes long, and needs the permission to create
/// memory cgroups.
pub(super) const LIMITED: &str = "limited";
/// Bytes of a process besides its rows: code, and the rows of a call.
const BESIDE: u64 = 48 << 20;
const ENGINES: [&str; 4] = ["ours", "ours, merging on a thread", "redb", "fjall"];
/// Rows per call during loading.
const LOAD: usize = 10_000;

/// Measures all stores, one process after another.
pub(super) fn limited(options: &Options, cells: &mut Cells) -> Result<()> {
    let mut figures = Vec::new();
    for engine in ENGINES {
        match in_group(options, engine) {
            Ok((one, peak)) => {
                println!("{engine}: peak {} MiB", peak >> 20);
                figures.push((engine, one));
            }
            // The kernel's out-of-memory killer.
            Err(error) if error.to_string().contains("SIGKILL") => {
                println!("{engine}: killed, it takes more memory than there is");
            }
            Err(error) => return Err(format!("{engine}: {error}").into()),
        }
    }
    report(options, &format!(", one part of {}", options.part), &figures, cells)
}

/// Returns the memory allotted to the rows.
fn part(options: &Options) -> u64 {
    // A row takes 24 bytes in addition to its value.
    options.keys * (VALUE as u64 + 24) / options.part.max(1)
}

/// Runs a store in a cgroup; returns its figures and its peak resident bytes.
fn in_group(options: &Options, engine: &str) -> Result<(Figures, u64)> {
    let words = ["spine", "--only", LIMITED, "--engine", engine].map(str::to_owned);
    let numbers = [("keys", options.keys), ("calls", options.calls as u64), ("part", options.part)];
    let numbers = numbers.map(|(name, number)| format!("--{name}={number}"));
    process::in_group(part(options) + BESIDE, words.into_iter().chain(numbers))
}

/// Runs one store in the child process.
pub(super) fn child(options: &Options, engine: &str) -> Result<()> {
    let bytes = part(options);
    let mergers = Mergers::new(1)?;
    let pool = || Pool::in_dir(std::env::temp_dir(), Budget::bytes(bytes as usize));
    let store: Box<dyn Store> = match engine {
        "ours" => ours(&pool()?, None)?,
        "ours, merging on a thread" => ours(&pool()?, Some(&mergers))?,
        "redb" => Box::new(stores::Redb::new(Some(bytes / 2))?),
        "fjall" => Box::new(stores::Fjall::new(bytes / 2)?),
        other => return Err(format!("no store is called {other}").into()),
    };
    let figures = measured(options, LOAD, &mut [store])?[0];
    let peak = process::memory("self", "VmHWM")?;
    println!("{}", serde_json::to_string(&(figures, peak))?);
    Ok(())
}
