//! The verbs: opens the inputs, makes a job, and explains or runs the job.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use windrow_files::{
    Apply, ApplySpec, Cancel, Checked, CompactSpec, DedupeSpec, Error, FileFacts, Filter,
    FloatOrder, HeadSpec, Inputs, Job, Limits, MergeSpec, PartitionSpec, Preset, ReadOptions,
    SortSpec, Target, WriteOptions, expand_with,
};

use crate::advice::{Failure, Result};
use crate::args::{self, Cli, Verb};
use crate::bar::{Bar, say};
use crate::help;
use crate::report;
use crate::stdout;

/// Runs the verb of the command line.
pub(crate) fn run(cli: &Cli, cancel: &Cancel) -> Result<()> {
    // Every verb with a job has these groups of options.
    macro_rules! run {
        ($args:ident.$rows:ident) => {{
            let (input, rows, output) = (&$args.input, &$args.$rows, &$args.output);
            Run::new(input, rows, output, &$args.limits, &$args.report, cancel)?
        }};
    }
    match &cli.verb {
        Verb::Sort(args) => {
            let spec = SortSpec::from(args);
            let run = run!(args.rows).carrying(spec.compared(), spec.select.as_deref());
            run.finish(Job::sort(run.inputs()?, &spec)?)
        }
        Verb::Compact(args) => {
            let mut run = run!(args.rows);
            let spec = CompactSpec::from(args);
            run.read = spec.reading(run.read);
            run = run.carrying(spec.compared(), spec.select.as_deref());
            let inputs = run.inputs()?;
            if spec.op_preset == Some(Preset::Auto)
                && !args.report.quiet
                && let Some((preset, by)) = inputs.change_log()
            {
                say(format_args!("the change log is {}: {by}", preset.name()));
            }
            run.finish(Job::compact(inputs, &spec)?)
        }
        Verb::Apply(args) => apply(args, cancel),
        Verb::Merge(args) => {
            let spec = MergeSpec::from(args);
            let run = run!(args.rows).carrying(spec.compared(), spec.select.as_deref());
            run.finish(Job::merge(run.inputs()?, &spec)?)
        }
        Verb::Dedupe(args) => {
            let spec = DedupeSpec::from(args);
            let run = run!(args.rows).carrying(spec.compared(), spec.select.as_deref());
            run.finish(Job::dedupe(run.inputs()?, &spec)?)
        }
        Verb::Diff(args) => {
            let run = run!(args.rows);
            let side = |file| expand_with(std::slice::from_ref(file), &run.read);
            let (old, new) = (side(&args.input.files[0])?, side(&args.input.files[1])?);
            run.finish(Job::diff(Inputs::open_pair(&old, &new, &run.read)?, &args.into())?)
        }
        Verb::Head(args) => {
            let spec = HeadSpec::from(args);
            let run = run!(args.counted).carrying(spec.compared(), spec.select.as_deref());
            run.finish(Job::head(run.inputs()?, &spec)?)
        }
        Verb::Partition(args) => {
            let spec = PartitionSpec::from(args);
            let mut run = run!(args.rows);
            let (compared, select) = (spec.compared(), spec.select.as_deref());
            let read = run.read.selecting(compared.clone(), select);
            run.read = read.carried_as_text(compared, run.write.format);
            run.finish(Job::partition(run.inputs()?, &spec)?)
        }
        Verb::Check(args) => check(args, cancel),
        Verb::Inspect(args) => inspect(args, cancel),
        Verb::Completions { shell } => print(&shell.text()?),
        Verb::Help { topic } => Ok(help::show(topic.as_deref()).map_err(unwritten)?),
    }
}

/// The common options of the verbs that write.
struct Run<'a> {
    input: &'a args::Input,
    report: &'a args::Report,
    read: ReadOptions,
    target: Target,
    write: WriteOptions,
    limits: Limits,
    cancel: &'a Cancel,
}

impl<'a> Run<'a> {
    fn new(
        input: &'a args::Input,
        rows: &args::Rows,
        output: &'a args::Output,
        limits: &'a args::Limits,
        report: &'a args::Report,
        cancel: &'a Cancel,
    ) -> Result<Self> {
        let limits: Limits = limits.into();
        Ok(Self {
            read: read_options(input, rows.filter.as_ref())?.within(&limits)?.cancelled_by(cancel),
            target: Target::of(&output.output),
            write: output.into(),
            input,
            report,
            limits,
            cancel,
        })
    }

    /// Keeps columns outside `compared` as text if both input and output are CSV. Columns neither
    /// compared nor in `select` are ignored.
    fn carrying(mut self, compared: Option<Vec<String>>, select: Option<&[String]>) -> Self {
        let format = self.write.format_of(&self.target);
        self.read = self.read.selecting(compared.clone(), select).carried_as_text(compared, format);
        self
    }

    fn inputs(&self) -> Result<Inputs> {
        Ok(Inputs::open(&expand_with(&self.input.files, &self.read)?, &self.read)?)
    }

    /// Explains or runs the job.
    fn finish(&self, job: Job) -> Result<()> {
        let (target, write, limits) = (&self.target, &self.write, &self.limits);
        if self.report.explain {
            return print(job.explain(target, write, limits)?.to_string().as_bytes());
        }
        if *target == Target::Stdout {
            stdout::is_open()?;
        }
        report::check(self.report, job.inputs(), target)?;
        if !self.report.quiet {
            job.inputs().notes().for_each(|note| say(format_args!("{note}")));
        }
        let bar = Arc::new(Bar::new(self.report));
        let job = job.cancelled_by(self.cancel).watched_by(Arc::clone(&bar) as _);
        let stats = job.write(target, write, limits)?;
        bar.clear();
        report::finish(&stats, self.report)
    }
}

/// Returns the options for reading inputs.
fn read_options(input: &args::Input, filter: Option<&Filter>) -> Result<ReadOptions> {
    let mut read = ReadOptions::default()
        .csv(input.csv()?)
        .union_by_name(input.union_by_name)
        .stores(&input.stores()?);
    if let Some(filter) = filter {
        read = read.filter(filter.clone());
    }
    if let Some(charset) = input.charset {
        read = read.charset(charset);
    }
    if let Some(format) = input.input_format {
        read = read.format(format);
    }
    if let Some(schema) = &input.schema {
        read = read.schema(windrow_files::parse_schema(schema)?);
    }
    if let Some(types) = &input.hive_types {
        read = read.hive_types(windrow_files::parse_schema(types)?);
    }
    Ok(read)
}

fn apply(args: &args::Apply, cancel: &Cancel) -> Result<()> {
    let (input, report) = (&args.input, &args.report);
    if args.output.output != Path::new(args::NO_OUTPUT) || args.output.output_format.is_some() {
        let message = "apply changes its directory, and has no --output and no --output-format";
        return Err(Failure::Usage(message.to_owned()));
    }
    let (limits, spec, write) =
        (Limits::from(&args.limits), ApplySpec::from(args), WriteOptions::from(&args.output));
    let table = read_options(input, None)?.within(&limits)?.cancelled_by(cancel);
    let read = spec.changes.reading(table.clone());
    let inputs = Inputs::open(&expand_with(&input.files, &read)?, &read)?;
    report::check(report, &inputs, &Target::Path(args.directory.clone()))?;
    let table = ReadOptions::default().cancelled_by(cancel).within(&limits)?;
    let apply = Apply::to_directory(&args.directory, inputs, &spec, &table, &limits, cancel)?;
    if report.explain {
        return print(apply.explain(&write)?.to_string().as_bytes());
    }
    let bar = Arc::new(Bar::new(report));
    let apply = apply.watched_by(Arc::clone(&bar) as _);
    let applied = if args.dry_run { apply.dry_run(&write)? } else { apply.run(&write)? };
    bar.clear();
    report::applied(&applied, args.dry_run, report)
}

fn check(args: &args::Check, cancel: &Cancel) -> Result<()> {
    let read = read_options(&args.input, args.rows.filter.as_ref())?.cancelled_by(cancel);
    let inputs = Inputs::open(&expand_with(&args.input.files, &read)?, &read)?;
    let checked = windrow_files::check(&inputs, &args.into(), cancel)?;
    let message = match checked {
        Checked::OutOfOrder { file, row, sorted_by: None } => {
            format!("{file}: row {row} sorts before the row in front of it")
        }
        Checked::OutOfOrder { file, row, sorted_by: Some((by, floats)) } => {
            let floats = match floats {
                FloatOrder::Sql => " --float-order sql",
                _ => "",
            };
            format!(
                "{file}: row {row} sorts before the row in front of it; the file is sorted --by \
                 {by}{floats}"
            )
        }
        Checked::Repeated { file, row } => {
            format!("{file}: row {row} has the same key as the row before it")
        }
        Checked::InOrder { files, rows, .. } => {
            if !args.quiet {
                let rows = rows.map(|rows| format!(", {rows} rows")).unwrap_or_default();
                say(format_args!("in order: {files} files{rows}"));
            }
            return Ok(());
        }
        _ => "not in order".to_owned(),
    };
    Err(Failure::Check(if args.quiet { String::new() } else { message }))
}

fn inspect(args: &args::Inspect, cancel: &Cancel) -> Result<()> {
    let read = read_options(&args.input, None)?.cancelled_by(cancel);
    for (ordinal, source) in expand_with(&args.input.files, &read)?.iter().enumerate() {
        let facts = FileFacts::of(source, &read)?;
        let text = if args.json {
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

/// Writes to standard output.
fn print(text: &[u8]) -> Result<()> {
    Ok(io::stdout().lock().write_all(text).map_err(unwritten)?)
}

/// Returns the error of a failed write to standard output.
fn unwritten(error: io::Error) -> Error {
    Error::output(Path::new(OsStr::new("standard output")), &error)
}
