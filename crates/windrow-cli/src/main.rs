//! The `windrow` binary: the command line of `windrow-files`.
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
mod values;

use std::process::ExitCode;

use clap::Parser;
use windrow_files::Cancel;

use crate::args::Cli;

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Another allocator's blocks are its own matter.
    let _ = windrow::give_back_large_blocks();
    silence_caught_panics();
    let cancel = Cancel::new();
    signals::install(&cancel);
    match run::run(&cli, &cancel) {
        Ok(()) => ExitCode::SUCCESS,
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
