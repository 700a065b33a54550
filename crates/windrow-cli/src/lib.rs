//! The command line of `windrow-files`, for the binary and for other programs with the tool inside.
//!
//! ```text
//! args --> run --> windrow_files: Inputs, Job --> advice, exit code
//!           |                       |
//!        signals --> Cancel        bar, report
//! ```

#![forbid(unsafe_code)]

mod advice;
mod args;
mod bar;
mod help;
mod report;
mod run;
mod signals;
mod stdout;
mod texts;

use std::ffi::OsString;

use rustix::process::{Resource, getrlimit};
use windrow_files::Cancel;

/// Runs the command line and ends the process. The first argument is the name of the program.
///
/// The function owns the process: sets the allocator, the panic hook and signal handlers.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ! {
    let matches = args::command().get_matches_from(args);
    // Has no effect under another allocator.
    let _ = windrow::give_back_large_blocks();
    let limits = [Resource::As, Resource::Data].map(getrlimit);
    if limits.iter().any(|limit| limit.current.is_some()) {
        let _ = windrow::share_heap();
    }
    windrow_files::silence_caught_panics();
    let cancel = Cancel::new();
    signals::install(&cancel);
    match run::run(&matches, &cancel) {
        Ok(()) => std::process::exit(0),
        Err(failure) => failure.end(),
    }
}
