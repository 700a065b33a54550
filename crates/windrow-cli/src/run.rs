//! The verbs: opens the inputs, makes a job, and explains or runs the job.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use clap::ArgMatches;
use windrow_files::{
    Apply, ApplySpec, Cancel, CheckSpec, Checked, CompactSpec, Error, FileFacts, FloatOrder,
    Inputs, Job, Preset, ReadOptions, Request, Spec, Target, Verb, expand_with,
};

use crate::advice::{Failure, Result};
use crate::args::{self, Report};
use crate::bar::{Bar, say};
use crate::help;
use crate::report;
use crate::stdout;

/// Runs the verb of the command line.
pub(crate) fn run(matches: &ArgMatches, cancel: &Cancel) -> Result<()> {
    let Some((name, matches)) = matches.subcommand() else { return Ok(()) };
    let text = |name| matches.get_one::<String>(name).map(String::as_str);
    let verb = match name {
        "completions" => return print(&help::completions(text("shell").unwrap_or_default())?),
        "help" => return Ok(help::show(text("topic")).map_err(unwritten)?),
        name => name.parse::<Verb>().map_err(Failure::Usage)?,
    };
    let mut request = args::settings(verb, matches)?.build()?;
    request.limits.alone = verb.writes();
    let (files, report) = (args::files(matches), Report::of(matches));
    let table = report.directory.clone().map(Target::Path);
    let target = request.output.as_ref().map(Target::of).or(table);
    let read = request.spec.reading(request.read.clone(), &request.write, target.as_ref());
    let read = match &target {
        Some(_) => read.within(&request.limits)?,
        None => read,
    };
    let (read, target) = (read.cancelled_by(cancel), target.unwrap_or(Target::Stdout));
    let run = Run { request, read, target, files, report, cancel };
    match &run.request.spec {
        Spec::Check(spec) => run.check(spec),
        Spec::Inspect => run.inspect(),
        Spec::Apply(spec) => run.apply(spec),
        spec => {
            let inputs = run.inputs()?;
            if let Spec::Compact(spec) = spec {
                run.tell(&inputs, spec);
            }
            run.finish(spec.job(inputs)?)
        }
    }
}

/// A verb with its inputs.
struct Run<'a> {
    request: Request,
    read: ReadOptions,
    target: Target,
    files: Vec<OsString>,
    report: Report,
    cancel: &'a Cancel,
}

impl Run<'_> {
    fn inputs(&self) -> Result<Inputs> {
        if let (Spec::Diff(_), [old, new]) = (&self.request.spec, self.files.as_slice()) {
            let side = |file: &OsString| expand_with([file], &self.read);
            return Ok(Inputs::open_pair(&side(old)?, &side(new)?, &self.read)?);
        }
        Ok(Inputs::open(&expand_with(&self.files, &self.read)?, &self.read)?)
    }

    /// Explains or runs the job.
    fn finish(&self, job: Job) -> Result<()> {
        let (target, write, limits) = (&self.target, &self.request.write, &self.request.limits);
        if self.report.explain {
            return print(job.explain(target, write, limits)?.to_string().as_bytes());
        }
        if *target == Target::Stdout {
            stdout::is_open()?;
        }
        report::check(&self.report, job.inputs(), target)?;
        if !self.report.quiet {
            job.inputs().notes().for_each(|note| say(format_args!("{note}")));
        }
        let bar = Arc::new(Bar::new(&self.report));
        let job = job.cancelled_by(self.cancel).watched_by(Arc::clone(&bar) as _);
        let stats = job.write(target, write, limits)?;
        bar.clear();
        report::finish(&stats, &self.report)
    }

    /// Says which format a change log was found to have.
    fn tell(&self, inputs: &Inputs, spec: &CompactSpec) {
        if spec.op_preset == Some(Preset::Auto)
            && !self.report.quiet
            && let Some((preset, by)) = inputs.change_log()
        {
            say(format_args!("the change log is {}: {by}", preset.name()));
        }
    }

    fn apply(&self, spec: &ApplySpec) -> Result<()> {
        let Target::Path(directory) = &self.target else { return Ok(()) };
        let Request { write, limits, .. } = &self.request;
        let inputs = self.inputs()?;
        report::check(&self.report, &inputs, &self.target)?;
        self.tell(&inputs, &spec.changes);
        let apply = Apply::to_directory(directory, inputs, spec, limits, self.cancel)?;
        if self.report.explain {
            return print(apply.explain(write)?.to_string().as_bytes());
        }
        let bar = Arc::new(Bar::new(&self.report));
        let apply = apply.watched_by(Arc::clone(&bar) as _);
        let applied = apply.run(write)?;
        bar.clear();
        report::applied(&applied, &self.report)
    }

    fn check(&self, spec: &CheckSpec) -> Result<()> {
        let checked = windrow_files::check(&self.inputs()?, spec, self.cancel)?;
        let by = match &checked {
            Checked::InOrder { .. } => {
                if !self.report.quiet {
                    say(format_args!("{checked}"));
                }
                return Ok(());
            }
            Checked::OutOfOrder { sorted_by: Some((by, floats)), .. } => {
                let floats = if *floats == FloatOrder::Sql { " --float-order sql" } else { "" };
                format!("; the file is sorted --by {by}{floats}")
            }
            _ => String::new(),
        };
        let message = format!("{checked}{by}");
        Err(Failure::Check(if self.report.quiet { String::new() } else { message }))
    }

    fn inspect(&self) -> Result<()> {
        for (ordinal, source) in expand_with(&self.files, &self.read)?.iter().enumerate() {
            let facts = FileFacts::of(source, &self.read)?;
            let text = if self.report.json {
                serde_json::to_string(&facts).map_err(|error| Failure::Report(error.to_string()))?
                    + "\n"
            } else if ordinal > 0 {
                format!("\n{facts}")
            } else {
                facts.to_string()
            };
            print(text.as_bytes())?;
        }
        Ok(())
    }
}

/// Writes to standard output.
fn print(text: &[u8]) -> Result<()> {
    Ok(io::stdout().lock().write_all(text).map_err(unwritten)?)
}

/// Returns the error of a failed write to standard output.
fn unwritten(error: io::Error) -> Error {
    Error::output(Path::new(OsStr::new("standard output")), &error)
}
