//! Signals: a request to stop is a flag that the loops of a job look at between record batches.
//!
//! ```text
//! SIGINT, SIGTERM, SIGHUP --> Cancel --> the loops end, each cleaning up after itself
//!                               \--> GRACE later: the temporary output is removed, the process ends
//! ```
//!
//! A thread that waits for a pipe does not look at the flag. Nothing but the temporary output has a
//! name on disk, so ending in the middle of anything else leaves nothing either.

use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use windrow_files::{Cancel, Error};

use crate::advice::Failure;

/// How long the loops have to see the flag: longer than any of them works on one record batch.
const GRACE: Duration = Duration::from_millis(500);

/// Makes SIGINT, SIGTERM and SIGHUP request `cancel`, unless they are ignored (as under nohup), and a file
/// that grows past `ulimit -f` an error like a full disk.
pub(crate) fn install(cancel: &Cancel) {
    let ignored = ignored();
    let mut signals = vec![SIGINT, SIGTERM, SIGHUP];
    signals.retain(|signal| ignored >> (signal - 1) & 1 == 0);
    // With a handler, whatever it does, the write fails instead of the process.
    signals.push(SIGXFSZ);
    // Without handlers the process still ends, only less tidily: not worth failing for.
    let Ok(mut signals) = Signals::new(signals) else { return };
    let cancel = cancel.clone();
    let _handler = std::thread::Builder::new().name("signals".into()).spawn(move || {
        if signals.forever().any(|signal| signal != SIGXFSZ) {
            cancel.cancel();
            std::thread::sleep(GRACE);
            cancel.discard_outputs();
            Failure::Job(Error::interrupted()).end();
        }
    });
}

/// The signals that this process was started to ignore: bit n - 1 for signal n.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
