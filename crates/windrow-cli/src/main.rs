//! The `windrow` binary: sorts, compacts, merges, partitions and checks files inside a memory limit.
//!
//! ```text
//! args --> verbs: what to arrange --> job: plan, ingest, emit --> output
//!                    |                        |
//!                changelog                  input
//! ```

mod args;
mod changelog;
mod columns;
mod error;
mod format;
mod input;
mod inspect;
mod job;
mod offset;
mod output;
mod partition;
mod size;
mod system;
mod verbs;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use clap_mangen::Man;

use crate::args::{Cli, Completion, Verb};
use crate::error::{CliError, Result};

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Another allocator's blocks are its own matter.
    let _ = windrow::give_back_large_blocks();
    input::silence_guarded_panics();
    job::install_interrupt();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => end(&error),
    }
}

/// Ends the process with the message and the exit code of `error`.
pub(crate) fn end(error: &CliError) -> ! {
    // A reader that went away has no use for a message about it; a quiet check has none.
    let silent = matches!(error, CliError::CheckFailed(message) if message.is_empty());
    if !silent && !matches!(error, CliError::BrokenPipe) {
        let _reported = writeln!(io::stderr(), "windrow: {error}");
    }
    std::process::exit(error.exit_code())
}

fn run(cli: &Cli) -> Result<()> {
    match &cli.verb {
        Verb::Sort(args) => verbs::sort(args),
        Verb::Compact(args) => verbs::compact(args),
        Verb::Merge(args) => verbs::merge(args),
        Verb::Partition(args) => verbs::partition(args),
        Verb::Check(args) => verbs::check(args),
        Verb::Inspect(args) => inspect_files(args),
        Verb::Completions { shell } => completions(*shell),
    }
}

fn inspect_files(args: &args::Inspect) -> Result<()> {
    let options = job::input_options(&args.input, None)?;
    let sources = input::expand(&args.input.files)?;
    let order_holds =
        |source: &input::Source, columns: &[input::SortColumn]| -> Result<Option<u64>> {
            verbs::first_out_of_order(source, columns, &options)
        };
    let mut out = io::stdout().lock();
    if args.json {
        inspect::inspect_json(&sources, &options, &order_holds, &mut out)
    } else {
        inspect::inspect(&sources, &options, &order_holds, &mut out)
    }
}

fn completions(shell: Completion) -> Result<()> {
    let mut command = Cli::command();
    let mut text = Vec::new();
    match shell.shell() {
        Some(shell) => clap_complete::generate(shell, &mut command, "windrow", &mut text),
        None => man_page(command, &mut text)
            .map_err(|error| CliError::Data(format!("man page: {error}")))?,
    }
    print(&text)
}

/// One page for all verbs: there are no others for it to refer to.
fn man_page(mut command: clap::Command, out: &mut Vec<u8>) -> io::Result<()> {
    command.build();
    let page = Man::new(command.clone());
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        writeln!(out, ".SH \"WINDROW {}\"", verb.get_name().to_uppercase())?;
        let (page, mut part) = (Man::new(verb.clone()), Vec::new());
        page.render_description_section(&mut part)?;
        page.render_synopsis_section(&mut part)?;
        page.render_options_section(&mut part)?;
        page.render_extra_section(&mut part)?;
        let part = String::from_utf8_lossy(&part).replace(".SH DESCRIPTION\n", "");
        out.extend_from_slice(part.replace("\n.SH ", "\n.SS ").as_bytes());
    }
    page.render_extra_section(out)?;
    page.render_version_section(out)
}

/// Writes to standard output.
fn print(text: &[u8]) -> Result<()> {
    let written = io::stdout().lock().write_all(text);
    written.map_err(|error| CliError::output("standard output".as_ref(), &error))
}
