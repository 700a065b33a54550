//! Conversion of the library's errors to Python exceptions, in Python's terms.

use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError};
use pyo3::prelude::*;
use windrow_files::{Error, ErrorKind, Group, Setting, Size};

use crate::memory::Memory;

/// Returns the argument of a setting: the keyword of a group of settings, if it is in one, and the
/// name.
pub(crate) fn place(setting: Setting) -> (Option<&'static str>, &'static str) {
    let name = setting.name();
    let within = |group, prefix| (Some(group), name.strip_prefix(prefix).unwrap_or(name));
    match (setting, setting.group()) {
        (Setting::MemoryLimit, _) => (None, "memory"),
        (Setting::OpColumn, _) => (None, "op"),
        (Setting::OpPreset, _) => (None, "preset"),
        (Setting::StoreOption, _) => (None, "storage_options"),
        (Setting::Range | Setting::RangeAt, _) => (None, "ranges"),
        (Setting::IfExists, _) => (Some("write"), "mode"),
        (Setting::Output | Setting::Select | Setting::Where | Setting::Threads, _) => (None, name),
        (Setting::Wait, _) => (Some("write"), name),
        (Setting::AsOf | Setting::Mode | Setting::KeepBookkeeping, _) => (Some("changes"), name),
        (_, Group::ChangeLog | Group::Diffs) => (Some("changes"), name),
        (_, Group::Csv) => within("csv", "csv_"),
        (_, Group::Parquet) => (Some("parquet"), name),
        (_, Group::Input) => within("read", "input_"),
        (_, Group::Output) => within("write", "output_"),
        (_, Group::Limits) => within("spill", "spill_"),
        _ => (None, name),
    }
}

/// Returns the argument of a setting as it is typed.
pub(crate) fn name(setting: Setting) -> String {
    match place(setting) {
        (Some(group), name) => format!("{group}[{name:?}]"),
        (None, name) => name.to_owned(),
    }
}

/// Returns the name of an argument for messages.
pub(crate) fn argument(setting: Setting) -> String {
    format!("{}=", name(setting))
}

/// Creates an exception of a class in `windrow._errors`.
fn raised<'py>(py: Python<'py>, class: &str, message: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("windrow._errors")?.getattr(class)?.call1((message,))
}

/// Creates an error for invalid arguments.
pub(crate) fn usage(py: Python<'_>, message: &str) -> PyErr {
    raised(py, "UsageError", message).map_or_else(|failed| failed, PyErr::from_value)
}

/// Creates an error for an argument of the wrong type.
pub(crate) fn mistyped(name: &str, takes: &str, given: &Bound<'_, PyAny>) -> PyErr {
    match given.get_type().name() {
        Ok(kind) => PyTypeError::new_err(format!("{name}= takes {takes}, not {kind}")),
        Err(error) => error,
    }
}

/// Converts a job's error to the exception of its kind; `memory` is the job's memory setting.
pub(crate) fn exception(py: Python<'_>, error: &Error, memory: Option<&Memory>) -> PyErr {
    exception_of(py, error, memory).unwrap_or_else(|failed| failed)
}

fn exception_of(py: Python<'_>, error: &Error, memory: Option<&Memory>) -> PyResult<PyErr> {
    use std::io::ErrorKind::{NotConnected, PermissionDenied};
    let (mut message, cause) = (worded(error, memory), error.place().cause);
    let descending = |name: &str| match name.strip_prefix('-') {
        Some(name) => Some(name.to_owned()),
        None => {
            name.to_lowercase().strip_suffix(" desc").map(|start| name[..start.len()].to_owned())
        }
    };
    if let Some(name) = error.place().column.as_deref().and_then(descending) {
        message += &format!("; descending is \"{name}:desc\"");
    }
    let class = match error.kind() {
        ErrorKind::Data | ErrorKind::Space if cause == Some(PermissionDenied) => "AccessError",
        ErrorKind::Data | ErrorKind::Space if cause == Some(NotConnected) => "StoreError",
        ErrorKind::Interrupted => return Ok(PyKeyboardInterrupt::new_err(message)),
        ErrorKind::Usage => "UsageError",
        ErrorKind::NotFound => "InputNotFoundError",
        ErrorKind::Unsorted => "UnsortedError",
        ErrorKind::MemoryFloor => "MemoryFloorError",
        ErrorKind::Space | ErrorKind::BrokenPipe => "SpaceError",
        ErrorKind::Corrupt => "CorruptError",
        _ => "DataError",
    };
    let exception = raised(py, class, &message)?;
    let place = error.place();
    exception.setattr("file", place.file.as_deref())?;
    exception.setattr("row", place.row)?;
    exception.setattr("line", place.line)?;
    exception.setattr("column", place.column.as_deref())?;
    if error.kind() == ErrorKind::MemoryFloor {
        let grown =
            |limit: Option<u64>| limit.map(|limit| memory.map_or(limit, |m| m.grown(limit)));
        exception.setattr("floor", grown(place.floor))?;
        exception.setattr("limit", grown(place.limit))?;
    }
    Ok(PyErr::from_value(exception))
}

/// Words the message in the terms of this package.
pub(crate) fn worded(error: &Error, memory: Option<&Memory>) -> String {
    let place = error.place();
    let (Some(floor), Some(limit), Some(memory)) = (place.floor, place.limit, memory) else {
        return error.worded(&argument);
    };
    // The library counts the whole process, this package only the growth of a call.
    let floor = Size(memory.grown(floor)).rounded_up();
    let limit = Size(memory.grown(limit));
    let whole = error.to_string();
    match whole.split_once(ROW_NEEDS) {
        Some((row, _)) => {
            format!("{row}, and with it the job needs {floor}; raise memory=, which is {limit}")
        }
        None => format!(
            "memory={limit} is below the floor of this job, {floor}; raise memory=, or lower parquet[\"row_group_size\"]"
        ),
    }
}

/// The separator after a row in the library's message about a row that exceeds the plan.
const ROW_NEEDS: &str = ", and with it the job needs";
