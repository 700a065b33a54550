//! Processes: memory as the system counts it, and this program started once more, also with a limit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::Result;

/// Directories of memory cgroups, with the name of the limit file.
const GROUPS: [(&str, &str); 2] =
    [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];

/// A memory cgroup, removed after its process.
struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        let _gone = fs::remove_dir(&self.0);
    }
}

/// Returns bytes of a process, a number or `self`, by a field of `/proc/PROCESS/status`.
pub(crate) fn memory(process: &str, field: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes = line.and_then(|line| line.trim_start_matches(':').split_whitespace().next());
    Ok(kilobytes.ok_or_else(|| format!("no {field}"))?.parse::<u64>()? << 10)
}

/// Runs a command, whose last line of output is JSON.
pub(crate) fn answer<T: serde::de::DeserializeOwned>(command: &mut Command) -> Result<T> {
    let Output { status, stdout, stderr } = command.output()?;
    let last = stdout.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    serde_json::from_slice(last)
        .map_err(|_| format!("{status} {}", String::from_utf8_lossy(&stderr)).into())
}

/// Runs this program in a memory cgroup limited to `bytes`, which include cached pages of files; the
/// last line of its output is JSON.
pub(crate) fn in_group<T: serde::de::DeserializeOwned>(
    bytes: u64,
    arguments: impl IntoIterator<Item = String>,
) -> Result<T> {
    let (root, limit) = GROUPS
        .into_iter()
        .find(|(root, _)| Path::new(root).join("cgroup.procs").exists())
        .ok_or("there are no memory groups")?;
    let group = Group(Path::new(root).join(format!("windrow-bench-{}", std::process::id())));
    fs::create_dir(&group.0).map_err(|error| format!("no memory group: {error}"))?;
    fs::write(group.0.join(limit), bytes.to_string())?;
    let mut command = Command::new("sh");
    command.args(["-c", "echo $$ > \"$0\"; exec \"$@\""]).arg(group.0.join("cgroup.procs"));
    answer(command.arg(std::env::current_exe()?).args(arguments))
}
