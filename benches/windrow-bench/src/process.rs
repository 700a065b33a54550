//! Processes: memory as the system counts it, and this program started once more.

use std::process::{Command, Output};

use crate::Result;

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
