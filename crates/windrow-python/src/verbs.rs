//! The calls: arguments are converted while attached; everything else runs on the thread of a
//! [`Task`].

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatchReader;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use windrow_files::{
    Apply, Checked, Choice, Error, FileFacts, FloatOrder, Format, Inputs, Kind, Limits, ListedFile,
    PartitionColumn, ReadOptions, Request, Result, Setting, Source, Spec, Stores, Target, Verb,
    WriteMode, WriteOptions, parse_schema,
};

use crate::errors::{exception, name, place, usage};
use crate::inputs;
use crate::memory::Memory;
use crate::options::{ok, settings};
use crate::reader::{Reader, Rows};
use crate::task::{Task, Watch};

/// The parameters of a job, except for its progress callback.
struct Call {
    sources: Vec<Source>,
    /// The new side of a diff.
    new: Option<Vec<Source>>,
    request: Request,
    read: ReadOptions,
    memory: Memory,
}

impl Call {
    fn new(verb: &str, inputs: &Bound<'_, PyAny>, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let py = inputs.py();
        let kind: Verb = verb.parse().map_err(|why: String| usage(py, &why))?;
        let settings = settings(verb, kind, options)?;
        let mut request = ok(py, settings.build())?;
        let target = request.output.clone().map(Target::Path);
        let read = request.spec.reading(request.read.clone(), &request.write, target.as_ref());
        // Sources come before the measurement of memory: allocations of a producer count as the
        // host's.
        let (sources, new) = match kind {
            Verb::Diff => {
                let (old, new): (Bound<'_, PyAny>, Bound<'_, PyAny>) = inputs.extract()?;
                let new = inputs::sources(&new, &read)?.sources;
                (inputs::sources(&old, &read)?.sources, Some(new))
            }
            Verb::Apply => {
                let (_, changes): (Bound<'_, PyAny>, Bound<'_, PyAny>) = inputs.extract()?;
                (inputs::sources(&changes, &read)?.sources, None)
            }
            _ => (inputs::sources(inputs, &read)?.sources, None),
        };
        let asked = settings.has(Setting::MemoryLimit).then_some(request.limits.memory);
        let memory = py.detach(|| Memory::new(asked));
        request.limits.memory = memory.limit;
        let read = ok(py, read.within(&request.limits))?;
        Ok(Self { sources, new, request, read, memory })
    }

    fn job(&self, watch: &Arc<Watch>) -> Result<windrow_files::Job> {
        let read = self.read.clone().cancelled_by(&watch.cancel);
        let inputs = match &self.new {
            Some(new) => Inputs::open_pair(&self.sources, new, &read)?,
            None => Inputs::open(&self.sources, &read)?,
        };
        let job = self.request.spec.job(inputs)?;
        Ok(job.cancelled_by(&watch.cancel).watched_by(Arc::clone(watch) as _))
    }

    /// Returns the job's limits; its inputs must be open.
    fn limits(&self) -> Limits {
        self.request.limits.clone().memory(self.memory.opened())
    }
}

/// Returns the notes about the inputs of a job.
fn notes(job: &windrow_files::Job) -> Vec<String> {
    job.inputs().notes().map(str::to_owned).collect()
}

/// Warns the caller of the Python function.
fn warn(py: Python<'_>, notes: &[String]) -> PyResult<()> {
    // It finds the caller of the package.
    let warned = || py.import("windrow._arguments")?.getattr("warned");
    notes.iter().try_for_each(|note| warned()?.call1((note,)).map(drop))
}

/// Does a job: to files, and returns its figures; or returns a reader.
#[pyfunction]
pub(crate) fn run(
    py: Python<'_>,
    verb: &str,
    inputs: &Bound<'_, PyAny>,
    progress: Option<Py<PyAny>>,
    options: &Bound<'_, PyDict>,
) -> PyResult<Py<PyAny>> {
    let call = Call::new(verb, inputs, options)?;
    let memory = call.memory.clone();
    let task = Task::new(progress, Some(memory.clone()));
    let watch = Arc::clone(&task.watch);
    match call.request.output.clone() {
        Some(output) => {
            let (figures, notes) = task.run(py, move || {
                let job = call.job(&watch)?;
                let notes = notes(&job);
                let written =
                    job.write(&Target::Path(output), &call.request.write, &call.limits())?;
                Ok((written, notes))
            })?;
            warn(py, &notes)?;
            stats(py, &json(&figures)?)
        }
        None => {
            let (batches, notes) = task.run(py, move || {
                let job = call.job(&watch)?;
                let notes = notes(&job);
                Ok((job.batches(&call.limits())?, notes))
            })?;
            warn(py, &notes)?;
            let (schema, rows) = (batches.schema(), Rows::Job(Box::new(batches)));
            Ok(Py::new(py, Reader::new(rows, schema, memory))?.into_any())
        }
    }
}

/// Columns with the same value in all rows.
type Values = Vec<(String, Option<String>)>;

/// The files of a table, as Python lists them: the version of new files; the files, the values of
/// columns that they do not have, and their hidden rows; the directory of new files, and the local one in
/// which they are written first, if any; the columns that divide the table, and their transforms; the
/// types of columns that files do not have; how rows are replaced.
#[derive(FromPyObject)]
struct Listed(
    u64,
    Vec<(PathBuf, Values, Vec<u8>)>,
    PathBuf,
    Option<PathBuf>,
    Vec<(String, String)>,
    Option<String>,
    String,
);

/// Applies changes to the first of `inputs`, and returns the figures as JSON. The first one is a
/// directory; or a directory, and the files below it. Bitmaps of hidden rows are beside the figures.
#[pyfunction]
pub(crate) fn apply(
    py: Python<'_>,
    inputs: &Bound<'_, PyAny>,
    progress: Option<Py<PyAny>>,
    options: &Bound<'_, PyDict>,
) -> PyResult<(String, Vec<Cow<'static, [u8]>>)> {
    let (target, _): (Bound<'_, PyAny>, Bound<'_, PyAny>) = inputs.extract()?;
    let (directory, listed): (PathBuf, Option<Listed>) = match target.extract() {
        Ok((directory, listed)) => (directory, Some(listed)),
        Err(_) => (target.extract()?, None),
    };
    let call = Call::new("apply", inputs, options)?;
    let Spec::Apply(mut spec) = call.request.spec.clone() else {
        return Err(PyRuntimeError::new_err("internal error: no apply"));
    };
    let task = Task::new(progress, Some(call.memory.clone()));
    let watch = Arc::clone(&task.watch);
    let (applied, notes) = task.run(py, move || {
        let (limits, cancel) = (call.limits(), &watch.cancel);
        let changes = Inputs::open(&call.sources, &call.read.clone().cancelled_by(cancel))?;
        let notes: Vec<String> = changes.notes().map(str::to_owned).collect();
        let apply = match listed {
            None => Apply::to_directory(&directory, changes, &spec, &limits, cancel)?,
            Some(Listed(version, files, below, written_in, by, types, mode)) => {
                spec.write_mode = match mode.as_str() {
                    "vectors" => WriteMode::Vectors,
                    "auto" => WriteMode::Auto,
                    _ => WriteMode::Copy,
                };
                let columns = by
                    .into_iter()
                    .map(|(name, transform)| Ok(PartitionColumn::new(name, transform.parse()?)));
                spec.partition_by = columns.collect::<windrow_files::Result<_>>()?;
                spec.partition_types = types.as_deref().map(parse_schema).transpose()?;
                (spec.data_directory, spec.written_in) = (below, written_in);
                let file = |(path, partition, hidden)| ListedFile { path, partition, hidden };
                let files: Vec<ListedFile> = files.into_iter().map(file).collect();
                Apply::to_files((&directory, version), &files, changes, &spec, &limits, cancel)?
            }
        };
        let applied = apply.watched_by(Arc::clone(&watch) as _).run(&call.request.write)?;
        Ok((applied, notes))
    })?;
    warn(py, &notes)?;
    let bitmaps = applied.vectors.iter().map(|file| file.bitmap.clone().into()).collect();
    Ok((json(&applied)?, bitmaps))
}

/// What a job would do, as JSON.
#[pyfunction]
pub(crate) fn explain(
    py: Python<'_>,
    verb: &str,
    inputs: &Bound<'_, PyAny>,
    options: &Bound<'_, PyDict>,
) -> PyResult<String> {
    let mut call = Call::new(verb, inputs, options)?;
    let memory = call.memory.clone();
    let task = Task::new(None, Some(memory.clone()));
    let watch = Arc::clone(&task.watch);
    let reads = call.request.output.is_none();
    if reads {
        // An output record batch takes as much memory as a message of an Arrow stream.
        call.request.write =
            WriteOptions::default().format(Format::ArrowStream).row_group_bytes(2 << 20);
        call.request.limits.threads = std::num::NonZeroUsize::new(1);
    }
    let explained = task.run(py, move || {
        let target = call.request.output.clone().map_or(Target::Stdout, Target::Path);
        call.job(&watch)?.explain(&target, &call.request.write, &call.limits())
    })?;
    let (floor, limit) = (memory.grown(explained.floor()), explained.limit());
    let limit = limit.map(|limit| memory.grown(limit));
    let shown = |bytes: u64| windrow_files::Size(bytes).to_string();
    let lines = explained.lines().iter().map(|(name, value)| match *name {
        "memory limit" => {
            let limit = limit.map_or("none".to_owned(), shown);
            ("memory", format!("{limit} (floor {})", windrow_files::Size(floor).rounded_up()))
        }
        "output" if reads => ("output", "record batches".to_owned()),
        name => (name, value.clone()),
    });
    let lines: Vec<_> = lines.collect();
    json(&serde_json::json!({ "lines": lines, "floor": floor, "limit": limit }))
}

/// Whether inputs are sorted, as JSON.
#[pyfunction]
pub(crate) fn check(
    py: Python<'_>,
    inputs: &Bound<'_, PyAny>,
    options: &Bound<'_, PyDict>,
) -> PyResult<String> {
    let request = ok(py, settings("check", Verb::Check, options)?.build())?;
    let (read, Spec::Check(spec)) = (request.read, request.spec) else {
        return Err(PyRuntimeError::new_err("internal error: no check"));
    };
    let sources = inputs::sources(inputs, &read)?.sources;
    let task = Task::new(None, None);
    let cancel = task.watch.cancel.clone();
    let checked = task.run(py, move || {
        let inputs = Inputs::open(&sources, &read.cancelled_by(&cancel))?;
        windrow_files::check(&inputs, &spec, &cancel)
    })?;
    let (mut message, mut sorted_by) = (checked.to_string(), None);
    let ((files, rows), (file, row)) = match checked {
        Checked::InOrder { files, rows } => ((Some(files), rows), (None, None)),
        Checked::Repeated { file, row } => ((None, None), (Some(file), Some(row))),
        Checked::OutOfOrder { file, row, sorted_by: by } => {
            sorted_by = by.map(|(by, floats)| {
                let sql = if floats == FloatOrder::Sql { ", with floats as in SQL" } else { "" };
                message += &format!("; the file is sorted by={:?}{sql}", by.to_string());
                by.to_string()
            });
            ((None, None), (Some(file), Some(row)))
        }
        other => return Err(PyRuntimeError::new_err(format!("internal error: {other:?}"))),
    };
    json(&serde_json::json!({
        "ok": file.is_none(), "file": file, "row": row, "sorted_by": sorted_by,
        "files": files, "rows": rows, "message": message,
    }))
}

/// The text and the facts of each input, as JSON, and whether it can be more than one.
#[pyfunction]
pub(crate) fn inspect(
    py: Python<'_>,
    inputs: &Bound<'_, PyAny>,
    options: &Bound<'_, PyDict>,
) -> PyResult<(bool, Vec<(String, String)>)> {
    let read = ok(py, settings("inspect", Verb::Inspect, options)?.build())?.read;
    let inputs::Given { sources, is_many } = inputs::sources(inputs, &read)?;
    let task = Task::new(None, None);
    let read = read.cancelled_by(&task.watch.cancel);
    let facts = task.run(py, move || {
        let facts = |source| FileFacts::of(source, &read);
        sources.iter().map(facts).collect::<Result<Vec<_>, Error>>()
    })?;
    let facts = facts.iter().map(|facts| Ok((facts.to_string(), json(facts)?)));
    Ok((is_many, facts.collect::<PyResult<_>>()?))
}

/// All calls with their arguments, as JSON: the library's table of settings, in the words of this package.
#[pyfunction]
pub(crate) fn described() -> PyResult<String> {
    let word = |setting| format!("``{}``", name(setting));
    let choice = |choice: &Choice| (choice.name, windrow_files::worded(choice.about, &word));
    let argument = |setting: Setting, verb| {
        let kind = format!("{:?}", setting.kind());
        let choices: Vec<_> = match setting.kind() {
            Kind::Choice(choices) => choices.iter().map(choice).collect(),
            _ => Vec::new(),
        };
        serde_json::json!({
            "argument": place(setting).0, "name": place(setting).1, "library": setting.name(), "group": setting.group().name(), "choices": choices,
            "kind": kind.split('(').next(), "default": setting.default_of(verb),
            "required": setting.is_required(verb), "about": setting.about(verb, &word),
        })
    };
    let call = |verb: Verb| {
        let hidden = [Setting::Consolidate, Setting::Range];
        let own = verb.settings().filter(|setting| !hidden.contains(setting));
        (verb.name(), own.map(|setting| argument(setting, verb)).collect::<Vec<_>>())
    };
    json(&Verb::ALL.map(call))
}

/// The command line tool: does what `arguments` say, and ends the process.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>) {
    py.detach(|| windrow_cli::main(arguments))
}

/// Serializes a value as JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// Converts JSON figures to a Python `Stats` object.
pub(crate) fn stats(py: Python<'_>, figures: &str) -> PyResult<Py<PyAny>> {
    let figures = py.import("json")?.call_method1("loads", (figures,))?;
    let class = py.import("windrow._results")?.getattr("Stats")?;
    Ok(class.call((), Some(figures.cast::<PyDict>()?))?.unbind())
}

/// Puts an object into a store, unless there is one at `address`. Returns true if it was put.
#[pyfunction]
pub(crate) fn put_new(
    py: Python<'_>,
    address: PathBuf,
    content: Vec<u8>,
    options: Vec<(String, String)>,
) -> PyResult<bool> {
    let put = || Stores::with_options(options)?.put_new(&address, content);
    py.detach(put).map_err(|error| exception(py, &error, None))
}
