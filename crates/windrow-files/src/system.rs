//! Memory and open-file limits, as reported by the operating system.

use std::fs;
use std::path::Path;

use rustix::process::Resource;

/// Returns the memory available to this process in bytes: the lowest limit of its cgroups, or the
/// machine's memory.
pub(crate) fn available_memory() -> Option<u64> {
    let machine = kilobytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")?;
    let cgroup = fs::read_to_string("/proc/self/cgroup").ok();
    let limit = cgroup.and_then(|groups| cgroup_limit(&groups, Path::new("/sys/fs/cgroup")));
    Some(limit.map_or(machine, |limit| limit.min(machine)))
}

/// Returns the peak resident memory of this process in bytes (VmHWM).
pub(crate) fn peak_resident() -> u64 {
    status("VmHWM:").unwrap_or(0)
}

/// Returns the current resident memory of this process in bytes: anonymous memory, and pages of
/// files - mostly code.
pub(crate) fn resident() -> (u64, u64) {
    let of_files = status("RssFile:").unwrap_or(0);
    (status("VmRSS:").unwrap_or(0).saturating_sub(of_files), of_files)
}

/// Returns the resident memory in bytes, exact to about 256 KiB a thread, within a few
/// microseconds: the kernel does not query the threads.
pub(crate) fn resident_now() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|pages| pages.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

/// Returns the remaining address space of this process and its limit, if the address space
/// (`ulimit -v`) or its data (`ulimit -d`) is limited.
pub(crate) fn address_space() -> Option<(u64, u64)> {
    let of = |resource, name| {
        let limit = rustix::process::getrlimit(resource).current?;
        Some((limit.saturating_sub(status(name)?), limit))
    };
    let (all, data) = (of(Resource::As, "VmSize:"), of(Resource::Data, "VmData:"));
    all.into_iter().chain(data).min()
}

/// Returns the number of files that this process may have open at one time.
pub(crate) fn open_files() -> usize {
    let limit = rustix::process::getrlimit(Resource::Nofile).current;
    limit.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX))
}

fn status(name: &str) -> Option<u64> {
    kilobytes(&fs::read_to_string("/proc/self/status").ok()?, name)
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(number * 1024)
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

    #[test]
    fn this_process_has_memory() {
        let (own, of_files) = resident();
        assert!(peak_resident() >= own + of_files && own > 0 && of_files > 0);
        assert!(resident_now() > 0);
        assert!(available_memory().unwrap() > 1 << 20);
    }
}
