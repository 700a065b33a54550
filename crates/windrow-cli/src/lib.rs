//! The command line of `windrow-files`, for the binary and for doors that have it too.
//!
//! ```text
//! args --> run --> windrow_files: Inputs, Job --> advice, exit code
//!           |                       |
//!        signals --> Cancel        bar, report
//! ```

mod advice;
mod args;
mod bar;
mod help;
mod report;
mod run;
mod signals;
mod spec;
mod stdout;
mod texts;
mod values;

use std::ffi::OsString;

use clap::Parser;
use rustix::process::{Resource, getrlimit};
use windrow_files::Cancel;

use crate::args::Cli;

/// Does what the arguments say, the first of which is the name of the program, and ends the process.
///
/// The process is this function's: it sets the allocator, the panic hook and handlers of signals.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ! {
    let cli = Cli::parse_from(args);
    // Another allocator's blocks are its own matter.
    let _ = windrow::give_back_large_blocks();
    let limits = [Resource::As, Resource::Data].map(getrlimit);
    if limits.iter().any(|limit| limit.current.is_some()) {
        let _ = windrow::share_heap();
    }
    silence_caught_panics();
    let cancel = Cancel::new();
    signals::install(&cancel);
    match run::run(&cli, &cancel) {
        Ok(()) => std::process::exit(0),
        Err(failure) => failure.end(),
    }
}

/// Keeps panics that become errors of an input from being printed as well.
fn silence_caught_panics() {
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !windrow_files::panics_are_caught() {
            others(panic);
        }
    }));
}
