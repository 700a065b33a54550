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

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};
use windrow::{Budget, Mergers, Pool, Table};

use super::{BATCH, LIMITED, Options, Ours, Store, VALUE, rows_of, stores};
use crate::Result;
use crate::cells::{Cells, seconds};
use windrow_testdata::rng::Rng;

/// Bytes of a process besides its rows: code, and the rows of a call.
const BESIDE: u64 = 48 << 20;
/// Directories of memory cgroups, with the name of the limit file.
const GROUPS: [(&str, &str); 2] =
    [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
const ENGINES: [&str; 4] = ["ours", "ours, merging on a thread", "redb", "fjall"];
/// The signal of the kernel's out-of-memory killer.
const KILLED: i32 = 9;
/// Rows per call during loading.
const LOAD: usize = 10 * BATCH;
/// A prime: its multiples modulo the number of keys visit all keys in scattered order.
const FACTOR: u64 = 2_654_435_761;

/// Seconds of all calls, and values for comparison.
#[derive(Serialize, Deserialize)]
struct Figures {
    times: [f64; 3],
    bytes: usize,
    peak: u64,
}

/// Measures all stores, one process after another.
pub(super) fn limited(options: &Options, cells: &mut Cells) -> Result<()> {
    let mut figures = Vec::new();
    for engine in ENGINES {
        match in_group(options, engine)? {
            Some(one) => {
                println!("{engine}: peak {} MiB", one.peak >> 20);
                figures.push((engine, one));
            }
            None => println!("{engine}: killed, it takes more memory than there is"),
        }
    }
    if figures.windows(2).any(|pair| pair[0].1.bytes != pair[1].1.bytes) {
        return Err("stores have read different bytes".into());
    }
    let (own, rivals): (Vec<_>, Vec<_>) =
        figures.iter().partition(|(engine, _)| engine.starts_with("ours"));
    let calls = (options.calls * BATCH) as f64;
    let kinds = [("load", options.keys as f64), ("upserts", calls), ("reads", 9.0 * calls)];
    for (at, (kind, rows)) in kinds.into_iter().enumerate() {
        let per_row = |one: &Figures| one.times[at] * 1e9 / rows;
        for (name, ours) in &own {
            let case = format!("table of {name}, one part of {}: {kind}", options.part);
            for (rival, theirs) in &rivals {
                cells.push(&case, per_row(ours), rival, per_row(theirs));
            }
        }
    }
    Ok(())
}

/// Returns the memory allotted to the rows.
fn part(options: &Options) -> u64 {
    // A row takes 24 bytes in addition to its value.
    options.keys * (VALUE as u64 + 24) / options.part.max(1)
}

/// Runs a store in a cgroup; returns `None` if the kernel killed the store.
fn in_group(options: &Options, engine: &str) -> Result<Option<Figures>> {
    let (root, limit) = GROUPS
        .into_iter()
        .find(|(root, _)| Path::new(root).join("cgroup.procs").exists())
        .ok_or("there are no memory groups")?;
    let group = Group(Path::new(root).join(format!("windrow-bench-{}", std::process::id())));
    fs::create_dir(&group.0).map_err(|error| format!("no memory group: {error}"))?;
    fs::write(group.0.join(limit), (part(options) + BESIDE).to_string())?;
    let output = Command::new("sh")
        .args(["-c", "echo $$ > \"$0\"; exec \"$@\""])
        .arg(group.0.join("cgroup.procs"))
        .arg(std::env::current_exe()?)
        .args(["spine", "--only", LIMITED, "--engine", engine])
        .args(["--keys", &options.keys.to_string(), "--calls", &options.calls.to_string()])
        .args(["--part", &options.part.to_string()])
        .output()?;
    if output.status.signal() == Some(KILLED) {
        return Ok(None);
    }
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("{engine}: {} {error}", output.status).into());
    }
    Ok(Some(serde_json::from_slice(&output.stdout)?))
}

/// A memory cgroup, removed after its process.
struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        let _gone = fs::remove_dir(&self.0);
    }
}

/// Runs one store in the child process.
pub(super) fn child(options: &Options, engine: &str) -> Result<()> {
    let bytes = part(options);
    let mergers = Mergers::new(1)?;
    let table = || -> Result<Table> {
        let pool = Pool::in_dir(std::env::temp_dir(), Budget::bytes(bytes as usize))?;
        Ok(Table::new(&rows_of(&[], &[])?.schema(), "key", &pool)?)
    };
    let store: Box<dyn Store> = match engine {
        "ours" => Box::new(Ours(table()?)),
        "ours, merging on a thread" => {
            let mut table = table()?;
            table.merge_on(&mergers);
            Box::new(Ours(table))
        }
        "redb" => Box::new(stores::Redb::on_disk(bytes / 2)?),
        "fjall" => Box::new(stores::Fjall::new(bytes / 2)?),
        other => return Err(format!("no store is called {other}").into()),
    };
    let figures = measure(options, store)?;
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}

fn measure(options: &Options, mut store: Box<dyn Store>) -> Result<Figures> {
    let mut rng = Rng::new(11);
    let values = |count: usize, rng: &mut Rng| -> Vec<Vec<u8>> {
        let mut value = || -> Vec<u8> {
            (0..VALUE / 4).flat_map(|_| (rng.below(1 << 32) as u32).to_le_bytes()).collect()
        };
        (0..count).map(|_| value()).collect()
    };
    let mut times = [0.0; 3];
    for start in (0..options.keys).step_by(LOAD) {
        let end = options.keys.min(start + LOAD as u64);
        let keys: Vec<u64> = (start..end).map(|at| at * FACTOR % options.keys).collect();
        let values = values(keys.len(), &mut rng);
        times[0] += seconds(|| store.upsert(&keys, &values))?.0;
    }
    let mut bytes = 0;
    for _ in 0..options.calls {
        let draw =
            |rng: &mut Rng| -> Vec<u64> { (0..BATCH).map(|_| rng.below(options.keys)).collect() };
        let reads: Vec<Vec<u64>> = (0..9).map(|_| draw(&mut rng)).collect();
        let writes = draw(&mut rng);
        let values = values(BATCH, &mut rng);
        times[1] += seconds(|| store.upsert(&writes, &values))?.0;
        let (time, read) =
            seconds(|| reads.iter().map(|keys| store.read(keys)).sum::<Result<usize>>())?;
        times[2] += time;
        bytes += read;
    }
    Ok(Figures { times, bytes, peak: peak()? })
}

/// Returns the peak resident bytes of this process.
fn peak() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: u64 =
        line.and_then(|line| line.split_whitespace().next()).ok_or("no VmHWM")?.parse()?;
    Ok(kib << 10)
}
