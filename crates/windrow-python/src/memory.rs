//! The memory limit of a job inside a host process.
//!
//! ```text
//! limit of the process = resident memory at the start of the call, its code at least a job's
//!                      + `memory` - code of this package that is not loaded yet
//!                      + the part of this code that is resident once the inputs are open
//! ```
//! The last line compensates for code that the system pages out between two calls. The second line
//! subtracts such code as not loaded; opening the inputs loads the code again, and the library's
//! plan counts it as resident.
//!
//! The library limits the whole process, and counts resident memory when planning. This package
//! promises a limit on growth, because the rest of a process that has imported pandas is unknown.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use windrow_files::Limit;

/// Default share of free memory.
const DEFAULT_PERCENT: f64 = 25.0;
/// Maximum resident code and constants of a job, by the library's own measure.
const CODE: u64 = 13 << 20;

/// The memory of a call, measured at its beginning and again once its inputs are open.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// The limit of the whole process.
    pub(crate) limit: Limit,
    /// Bytes of the limit that belong to the host process.
    base: u64,
    /// Resident bytes of mapped files, and bytes of code not yet loaded.
    of_files: u64,
    to_load: u64,
    /// Bytes of `to_load` that have been loaded since.
    loaded: Arc<AtomicU64>,
}

impl Memory {
    /// Measures the process, and adds the requested memory.
    pub(crate) fn new(asked: Option<Limit>) -> Self {
        // The library plans after returning free heap blocks to the system. Without the same step
        // here, the blocks would count as the host's memory, and the reported floor would not hold
        // for the next call.
        windrow::give_back_free_blocks();
        // As in the library, code counts even if not resident; otherwise the floor would vary with
        // paging.
        let [whole, of_files] = resident();
        let counted = whole + CODE.saturating_sub(of_files);
        let to_load = code_to_load().min(CODE);
        let base = whole.min(counted.saturating_sub(to_load));
        let grow = |bytes: u64| Limit::Bytes(base.saturating_add(bytes));
        let share = |percent: f64| grow((free() as f64 * percent / 100.0) as u64);
        let limit = match asked {
            None => share(DEFAULT_PERCENT),
            Some(Limit::Percent(percent)) => share(percent),
            Some(Limit::Bytes(bytes)) => grow(bytes),
            Some(Limit::Unlimited) => Limit::Unlimited,
        };
        Self { limit, base, of_files, to_load, loaded: Arc::default() }
    }

    /// Returns the limit of the process once the inputs are open, when more code has been loaded.
    pub(crate) fn opened(&self) -> Limit {
        let [_, of_files] = resident();
        // Below `CODE` bytes, the library counts `CODE` anyway.
        let came = of_files.max(CODE).saturating_sub(self.of_files.max(CODE));
        let loaded = came.min(self.to_load);
        self.loaded.store(loaded, Ordering::Relaxed);
        match self.limit {
            Limit::Bytes(bytes) => Limit::Bytes(bytes.saturating_add(loaded)),
            limit => limit,
        }
    }

    /// Converts a limit of the process to the growth allowed to the call.
    pub(crate) fn grown(&self, limit: u64) -> u64 {
        limit.saturating_sub(self.base + self.loaded.load(Ordering::Relaxed))
    }
}

/// Returns the resident bytes of the process: in total, and of mapped files.
fn resident() -> [u64; 2] {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    ["VmRSS:", "RssFile:"].map(|field| kilobytes(&status, field).unwrap_or(0))
}

/// Returns the bytes of this package's code that are mapped but not resident.
fn code_to_load() -> u64 {
    let maps = fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    let mut ours = false;
    let mut bytes = 0;
    for line in maps.lines() {
        let first = line.split(' ').next().unwrap_or_default();
        if !first.ends_with(':') {
            ours = line.contains("/_windrow.");
        } else if ours {
            bytes += kilobytes(line, "Size:").unwrap_or(0);
            bytes = bytes.saturating_sub(kilobytes(line, "Rss:").unwrap_or(0));
        }
    }
    bytes
}

/// Returns the available bytes: the least of all cgroups and the machine.
fn free() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let machine = kilobytes(&machine, "MemAvailable:").unwrap_or(0);
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    left_by_cgroups(&groups, Path::new("/sys/fs/cgroup")).map_or(machine, |left| left.min(machine))
}

/// Returns the least available bytes of all cgroups up to the root. Inactive page cache counts as
/// available.
fn left_by_cgroups(groups: &str, root: &Path) -> Option<u64> {
    const VERSION_2: [&str; 2] = ["memory.max", "memory.current"];
    const VERSION_1: [&str; 2] = ["memory.limit_in_bytes", "memory.usage_in_bytes"];
    let left = |directory: &PathBuf, [max, current]: [&str; 2]| {
        let number = |file: &str| -> Option<u64> {
            fs::read_to_string(directory.join(file)).ok()?.trim().parse().ok()
        };
        let stat = fs::read_to_string(directory.join("memory.stat")).unwrap_or_default();
        let cache = stat.lines().find_map(|line| line.strip_prefix("inactive_file "));
        let cache: u64 = cache.and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
        let used = number(current)?.saturating_sub(cache);
        Some(number(max)?.saturating_sub(used))
    };
    let mut least = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { continue };
        let (base, files) = match controllers {
            "" => (root.to_path_buf(), VERSION_2),
            "memory" => (root.join("memory"), VERSION_1),
            _ => continue,
        };
        let mut directory = base.join(group.trim_start_matches('/'));
        loop {
            least = least.into_iter().chain(left(&directory, files)).min();
            if directory == base || !directory.pop() {
                break;
            }
        }
    }
    least
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(number * 1024)
}
