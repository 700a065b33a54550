//! Memory of this process and limits of its files, as reported by the operating system.

use std::fs;

use rustix::process::Resource;

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
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(number * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory() {
        let (own, of_files) = resident();
        assert!(peak_resident() >= own + of_files && own > 0 && of_files > 0);
        assert!(resident_now() > 0);
    }
}
