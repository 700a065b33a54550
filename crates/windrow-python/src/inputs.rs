//! What Python calls an input: a path, a directory, a pattern, an Arrow object, or a list of these.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchReader, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use pyo3_arrow::input::AnyRecordBatch;
use windrow_files::{Source, expand};

use crate::errors::{exception, mistyped, usage};

/// What is passed as `inputs`, in order.
pub(crate) struct Given {
    pub(crate) sources: Vec<Source>,
    /// Whether it can be more than one, by what was passed.
    pub(crate) is_many: bool,
}

/// Takes what is passed as `inputs`. Streams are taken, and nothing of them is read.
pub(crate) fn sources(inputs: &Bound<'_, PyAny>) -> PyResult<Given> {
    let py = inputs.py();
    if !inputs.is_instance_of::<PyList>() && !inputs.is_instance_of::<PyTuple>() {
        return one(inputs, None);
    }
    let mut sources = Vec::new();
    for (ordinal, input) in inputs.try_iter()?.enumerate() {
        sources.extend(one(&input?, Some(ordinal))?.sources);
    }
    match sources.is_empty() {
        true => Err(usage(py, "no inputs")),
        false => Ok(Given { sources, is_many: true }),
    }
}

fn one(input: &Bound<'_, PyAny>, ordinal: Option<usize>) -> PyResult<Given> {
    if input.hasattr("__arrow_c_stream__")? || input.hasattr("__arrow_c_array__")? {
        return Ok(Given { sources: vec![arrow(input, ordinal)?], is_many: false });
    }
    const TAKES: &str = "a path, a pattern, an Arrow object, or a list of these";
    let path: PathBuf = input.extract().map_err(|_| mistyped("inputs", TAKES, input))?;
    let plain = vec![Source::File(path.clone())];
    let sources = match path.to_str() {
        // Standard input is the command line's.
        Some("-") => plain.clone(),
        _ => expand([path]).map_err(|error| exception(input.py(), &error, None))?,
    };
    Ok(Given { is_many: sources != plain, sources })
}

/// An object that exports record batches.
fn arrow(input: &Bound<'_, PyAny>, ordinal: Option<usize>) -> PyResult<Source> {
    let class = input.get_type();
    let kind = class.name()?.to_string();
    let name = match ordinal {
        Some(ordinal) => format!("inputs[{ordinal}] ({kind})"),
        None => kind,
    };
    let batches = input.extract::<AnyRecordBatch>()?.into_reader()?;
    // A relation of DuckDB's has a length, too, but makes its rows as they are asked for.
    let module: String = class.getattr("__module__")?.extract().unwrap_or_default();
    let is_held =
        input.hasattr("__len__")? && !module.trim_start_matches('_').starts_with("duckdb");
    Ok(match is_held {
        true => Source::reader(&name, Held::new(batches)),
        false => Source::reader(&name, batches),
    })
}

/// Record batches that the caller has in memory already, however large.
///
/// The library measures a reader by its first record batch, and plans for as much again: a table of one chunk would
/// have to fit twice. Nothing is made when these are read, so the first is a copy of a few rows.
struct Held {
    batches: Box<dyn RecordBatchReader + Send>,
    /// None before the first was read.
    rest: Option<Option<RecordBatch>>,
}

/// Rows of the first record batch.
const FIRST_ROWS: usize = 1024;

impl Held {
    fn new(batches: Box<dyn RecordBatchReader + Send>) -> Self {
        Self { batches, rest: None }
    }

    fn first(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let Some(batch) = self.batches.next().transpose()? else { return Ok(None) };
        let rows = batch.num_rows();
        if rows <= FIRST_ROWS {
            self.rest = Some(None);
            return Ok(Some(batch));
        }
        self.rest = Some(Some(batch.slice(FIRST_ROWS, rows - FIRST_ROWS)));
        let first = UInt32Array::from_iter_values(0..FIRST_ROWS as u32);
        let first = take_record_batch(&batch, &first)?;
        let columns = first.columns().iter().map(without_the_rest).collect();
        RecordBatch::try_new(first.schema(), columns).map(Some)
    }
}

/// Views without the bytes that none of them points to.
fn without_the_rest(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Utf8View => Arc::new(column.as_string_view().gc()),
        DataType::BinaryView => Arc::new(column.as_binary_view().gc()),
        _ => Arc::clone(column),
    }
}

impl Iterator for Held {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.rest {
            None => self.first().transpose(),
            Some(rest) => rest.take().map(Ok).or_else(|| self.batches.next()),
        }
    }
}

impl RecordBatchReader for Held {
    fn schema(&self) -> SchemaRef {
        self.batches.schema()
    }
}
