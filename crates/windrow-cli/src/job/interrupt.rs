//! Ctrl-C and termination: a flag that the loops look at between batches.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{CliError, Result};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Makes SIGINT, SIGTERM and SIGHUP end the job with everything cleaned up.
pub(crate) fn install() {
    // Without a handler the process still ends, only less tidily: not worth failing for.
    let _installed = ctrlc::set_handler(|| REQUESTED.store(true, Ordering::Relaxed));
}

/// Fails once the job was asked to stop.
pub(crate) fn check() -> Result<()> {
    if REQUESTED.load(Ordering::Relaxed) { Err(CliError::Interrupted) } else { Ok(()) }
}
