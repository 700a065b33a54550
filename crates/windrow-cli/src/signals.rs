//! Signals: a request to stop sets a flag, which the loops of a job check between record batches.
//!
//! ```text
//! SIGINT, SIGTERM, SIGHUP --> Cancel --> the loops end, each cleaning up after itself
//!                               \--> GRACE later: the temporary output is removed, the process ends
//! ```
//!
//! A thread blocked by a pipe does not check the flag. Only the temporary output has a name on
//! disk, so ending the process anywhere else leaves nothing behind.

use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use windrow_files::{Cancel, Error};

use crate::advice::Failure;

/// Time for the loops to see the flag: longer than any loop works on one record batch.
const GRACE: Duration = Duration::from_millis(500);

/// Makes SIGINT, SIGTERM and SIGHUP request `cancel`, unless they are ignored (as under nohup).
/// Turns a file that grows past `ulimit -f` into an error like a full disk.
pub(crate) fn install(cancel: &Cancel) {
    let ignored = ignored();
    let mut signals = vec![SIGINT, SIGTERM, SIGHUP];
    signals.retain(|signal| ignored >> (signal - 1) & 1 == 0);
    // With any handler, the write fails instead of the process.
    signals.push(SIGXFSZ);
    // Without handlers the process still ends on a signal, but leaves temporary files: no reason to
    // fail.
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

/// Returns the signals ignored since the start of the process: bit n - 1 for signal n.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
