//! Signals: a request to stop is a flag that the loops look at between batches.
//!
//! ```text
//! SIGINT, SIGTERM, SIGHUP --> flag --> the loops end, each cleaning up after itself
//!                               \--> GRACE later: the temporary output is removed, the process ends
//! ```
//!
//! A thread that waits for a pipe does not look at the flag. Nothing but the temporary output has a
//! name on disk, so ending in the middle of anything else leaves nothing either.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::error::{CliError, Result};
use crate::{output, system};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// How long the loops have to see the flag: longer than any of them works on one batch.
const GRACE: Duration = Duration::from_millis(500);

/// Makes SIGINT, SIGTERM and SIGHUP end the job with everything cleaned up, unless they are ignored
/// (as under nohup), and a file that grows past `ulimit -f` an error like a full disk.
pub(crate) fn install() {
    let ignored = |signal: &i32| system::ignored_signals() >> (signal - 1) & 1 == 1;
    let mut signals = vec![SIGINT, SIGTERM, SIGHUP];
    signals.retain(|signal| !ignored(signal));
    // With a handler, whatever it does, the write fails instead of the process.
    signals.push(SIGXFSZ);
    // Without handlers the process still ends, only less tidily: not worth failing for.
    let Ok(mut signals) = Signals::new(signals) else { return };
    let _handler = std::thread::Builder::new().name("signals".into()).spawn(move || {
        if signals.forever().any(|signal| signal != SIGXFSZ) {
            REQUESTED.store(true, Ordering::Relaxed);
            std::thread::sleep(GRACE);
            output::discard();
            crate::end(&CliError::Interrupted);
        }
    });
}

/// Fails once the job was asked to stop.
pub(crate) fn check() -> Result<()> {
    if REQUESTED.load(Ordering::Relaxed) { Err(CliError::Interrupted) } else { Ok(()) }
}
