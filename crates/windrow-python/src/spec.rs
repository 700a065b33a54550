//! Specifications of calls, from a verb and its arguments.
//!
//! ```text
//! verb, Arguments --of--> Spec --job--> windrow_files::Job
//! ```
//! Mutually exclusive arguments are rejected here; the library checks arguments that depend on the
//! inputs.

use std::num::NonZeroU32;
use std::path::Path;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use windrow_files::{
    CompactSpec, DedupeSpec, DiffSpec, HeadSpec, Inputs, Job, Kept, MergeSpec, Mode, PartitionSpec,
    Partitions, ReadOptions, Result, Shown, SortSpec, Target, Unchanged, WriteOptions,
};

use crate::errors::usage;
use crate::options::{Arguments, shown};

/// The specification of a call.
pub(crate) enum Spec {
    Sort(SortSpec),
    Compact(CompactSpec),
    Dedupe(DedupeSpec),
    Head(HeadSpec),
    Diff(DiffSpec),
    Merge(MergeSpec),
    Partition(PartitionSpec),
}

/// Default number of rows of `head`.
const HEAD: u64 = 10;

impl Spec {
    /// Builds the specification of `verb` from its arguments.
    pub(crate) fn of(verb: &str, arguments: &Arguments<'_>) -> PyResult<Self> {
        match verb {
            "sort" => {
                let mut spec = SortSpec::by(arguments.by()?);
                spec.select = arguments.select()?;
                spec.limit = arguments.rows("limit")?;
                spec.float_order = arguments.float_order()?;
                Ok(Self::Sort(spec))
            }
            "dedupe" => dedupe(arguments).map(Self::Dedupe),
            "head" => {
                let mut spec = HeadSpec::rows(arguments.rows("rows")?.unwrap_or(HEAD));
                spec.select = arguments.select()?;
                Ok(Self::Head(spec))
            }
            "compact" => compact(arguments).map(Self::Compact),
            "diff" => diff(arguments).map(Self::Diff),
            "merge" => merge(arguments).map(Self::Merge),
            "partition" => partition(arguments).map(Self::Partition),
            other => Err(usage(arguments.py(), &format!("there is no call {other:?}"))),
        }
    }

    /// Adapts the read options to the specification and to the output. For CSV output, uncompared
    /// columns stay text as in the input. Only selected columns matter.
    pub(crate) fn carrying(
        &self,
        read: ReadOptions,
        write: &WriteOptions,
        output: Option<&Path>,
    ) -> ReadOptions {
        let (compared, select) = match self {
            Self::Sort(spec) => (spec.compared(), &spec.select),
            Self::Compact(spec) => (spec.compared(), &spec.select),
            Self::Dedupe(spec) => (spec.compared(), &spec.select),
            Self::Head(spec) => (spec.compared(), &spec.select),
            Self::Diff(_) => (None, &None),
            Self::Merge(spec) => (spec.compared(), &spec.select),
            Self::Partition(spec) => (spec.compared(), &spec.select),
        };
        let read = if let Self::Compact(spec) = self { spec.reading(read) } else { read };
        let read = read.selecting(compared.clone(), select.as_deref());
        let format = match (self, output) {
            (_, None) => None,
            (Self::Partition(_), Some(_)) => write.format,
            (_, Some(output)) => write.format_of(&Target::Path(output.to_owned())),
        };
        read.carried_as_text(compared, format)
    }

    /// Binds the specification to the schema of `inputs`.
    pub(crate) fn job(&self, inputs: Inputs) -> Result<Job> {
        match self {
            Self::Sort(spec) => Job::sort(inputs, spec),
            Self::Compact(spec) => Job::compact(inputs, spec),
            Self::Dedupe(spec) => Job::dedupe(inputs, spec),
            Self::Head(spec) => Job::head(inputs, spec),
            Self::Diff(spec) => Job::diff(inputs, spec),
            Self::Merge(spec) => Job::merge(inputs, spec),
            Self::Partition(spec) => Job::partition(inputs, spec),
        }
    }
}

fn compact(arguments: &Arguments<'_>) -> PyResult<CompactSpec> {
    let mut spec = CompactSpec::by_key(arguments.columns("key")?);
    spec = spec.latest_by(arguments.order_by()?);
    spec.op_column = arguments.text("op")?;
    spec.op_preset = arguments.parsed("preset")?;
    spec.op_map =
        arguments.words("op_map")?.map(|map| arguments.parse("op_map", &map)).transpose()?;
    spec.tables = arguments.texts("table")?;
    let unchanged =
        [("last", Unchanged::Last), ("error", Unchanged::Error), ("keep", Unchanged::Keep)];
    spec.unchanged = arguments.one_of("unchanged", unchanged)?.unwrap_or_default();
    spec.time = arguments.text("time")?;
    spec.diff = arguments.text("diff")?;
    spec.as_of = arguments.any("as_of")?.map(|value| shown(&value)).transpose()?;
    let modes = [("snapshot", Mode::Snapshot), ("log", Mode::Log)];
    spec.mode = arguments.one_of("mode", modes)?.unwrap_or_default();
    spec.keep_bookkeeping = arguments.is_set("keep_bookkeeping")?;
    spec.select = arguments.select()?;
    let py = arguments.py();
    match &spec.diff {
        None if spec.key.is_empty() => Err(usage(py, "key= is missing, or diff=")),
        Some(_) if !spec.order_by.is_empty() => Err(usage(py, "diff= goes without order_by=")),
        Some(_) if spec.op_column.is_some() || spec.op_preset.is_some() => {
            Err(usage(py, "diff= goes without op= and preset="))
        }
        _ => Ok(spec),
    }
}

fn dedupe(arguments: &Arguments<'_>) -> PyResult<DedupeSpec> {
    let key = arguments.columns("key")?;
    let mut spec = DedupeSpec::default();
    spec.key = (!key.is_empty()).then_some(key);
    let kept = [
        ("first", Kept::First),
        ("last", Kept::Last),
        ("none", Kept::None),
        ("last-known", Kept::LastKnown),
    ];
    spec.kept = arguments.one_of("keep", kept)?.unwrap_or_default();
    spec.select = arguments.select()?;
    Ok(spec)
}

fn diff(arguments: &Arguments<'_>) -> PyResult<DiffSpec> {
    let shown = [("changes", Shown::Changes), ("summary", Shown::Summary)];
    let mut spec = DiffSpec::by_key(arguments.key()?);
    spec.shown = arguments.one_of("format", shown)?.unwrap_or_default();
    if let Some(column) = arguments.text("op")? {
        spec.op_column = column;
    }
    spec.select = arguments.select()?;
    Ok(spec)
}

fn merge(arguments: &Arguments<'_>) -> PyResult<MergeSpec> {
    let mut spec = MergeSpec::by(arguments.by()?).unique(arguments.is_set("unique")?);
    spec.float_order = arguments.float_order()?;
    spec.diff = arguments.text("diff")?;
    spec.time = arguments.text("time")?;
    spec.select = arguments.select()?;
    let py = arguments.py();
    match (&spec.diff, &spec.time) {
        (Some(_), _) if spec.unique => Err(usage(py, "unique= goes without diff=")),
        (None, Some(_)) => Err(usage(py, "time= needs diff=")),
        _ => Ok(spec),
    }
}

fn partition(arguments: &Arguments<'_>) -> PyResult<PartitionSpec> {
    let py = arguments.py();
    let into = arguments.any("into")?.map(|into| {
        into.extract::<NonZeroU32>().map_err(|_| usage(py, "into= takes a number from 1 on"))
    });
    let range_at =
        arguments.list("range_at")?.iter().map(splitter).collect::<PyResult<Vec<_>>>()?;
    let partitions =
        match (into.transpose()?, arguments.is_set("range")?, arguments.is_set("hive")?) {
            (None, false, true) if range_at.is_empty() => Partitions::Hive,
            (Some(into), true, false) if range_at.is_empty() => Partitions::Ranges(into),
            (Some(into), false, false) if range_at.is_empty() => Partitions::Hash(into),
            (None, _, false) if !range_at.is_empty() => Partitions::RangesAt(range_at),
            _ => {
                let message =
                    "partition() takes one of into=, into= and range=True, range_at=, hive=True";
                return Err(usage(py, message));
            }
        };
    let mut spec = PartitionSpec::by(arguments.by()?, partitions);
    spec.sort = arguments.columns("sort")?;
    spec.select = arguments.select()?;
    Ok(spec)
}

/// Formats the start of a range: a value, or a tuple with a value for each column.
fn splitter(at: &Bound<'_, PyAny>) -> PyResult<String> {
    let quoted = |text: String| match text.contains([',', '"']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    };
    match at.cast::<PyTuple>() {
        Ok(values) => {
            let values: PyResult<Vec<String>> =
                values.iter().map(|value| shown(&value).map(quoted)).collect();
            Ok(values?.join(","))
        }
        Err(_) => shown(at),
    }
}
