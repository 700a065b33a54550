//! The memory of the machine, or of the process's cgroup.

use std::fs;
use std::path::Path;

use crate::budget::Budget;

/// Returns the memory available to this process in bytes: the lowest limit of its cgroups, or the
/// machine's memory. `None` where the system does not say.
pub fn available_memory() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok()?;
    let machine = machine.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let machine = machine.split_whitespace().next()?.parse::<u64>().ok()? * 1024;
    let cgroup = fs::read_to_string("/proc/self/cgroup").ok();
    let limit = cgroup.and_then(|groups| cgroup_limit(&groups, Path::new("/sys/fs/cgroup")));
    Some(limit.map_or(machine, |limit| limit.min(machine)))
}

impl Budget {
    /// Returns a budget of `percent` of the [available memory](crate::available_memory), at least
    /// `least` bytes; `None` if the amount of memory is unknown. A long-running host that does
    /// other work, too, may take 5 % and 128 MiB.
    ///
    /// ```
    /// use windrow_pool::Budget;
    ///
    /// let budget = Budget::percent(5.0, 128 << 20).unwrap_or(Budget::bytes(128 << 20));
    /// assert!(budget.limit() >= 128 << 20);
    /// ```
    pub fn percent(percent: f64, least: usize) -> Option<Self> {
        let all = available_memory()? as f64;
        Some(Self::bytes(((all * percent / 100.0) as usize).max(least)))
    }
}

/// Returns the lowest limit from the process's group to the root, in version 2 or 1.
fn cgroup_limit(groups: &str, root: &Path) -> Option<u64> {
    let mut least = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, group) = (parts.next()?, parts.next()?);
        let (base, file) = match controllers {
            "" => (root.to_path_buf(), "memory.max"),
            "memory" => (root.join("memory"), "memory.limit_in_bytes"),
            _ => continue,
        };
        let mut directory = base.join(group.trim_start_matches('/'));
        loop {
            let limit = fs::read_to_string(directory.join(file)).ok();
            let limit = limit.and_then(|text| text.trim().parse::<u64>().ok());
            least = least.into_iter().chain(limit).min();
            if directory == base || !directory.pop() {
                break;
            }
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_on_the_way_up_counts() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("memory.max"), "max\n").unwrap();
        assert_eq!(cgroup_limit("0::/a/b\n", root.path()), None);
        fs::write(root.path().join("a/memory.max"), "1048576\n").unwrap();
        fs::write(deep.join("memory.max"), "2097152\n").unwrap();
        assert_eq!(cgroup_limit("0::/a/b\n", root.path()), Some(1 << 20));
    }
}
