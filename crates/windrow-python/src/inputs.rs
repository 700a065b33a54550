//! Inputs of a Python call: a path, a directory, a pattern, an Arrow object, or a list of these.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader, UInt32Array};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use arrow_select::take::take_record_batch;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use pyo3_arrow::input::AnyRecordBatch;
use windrow_files::{ReadOptions, Source, expand_with};

use crate::errors::{exception, usage};
use crate::options::path_of;

/// The sources of the argument `inputs`, in order.
pub(crate) struct Given {
    pub(crate) sources: Vec<Source>,
    /// True if the argument may stand for more than one source.
    pub(crate) is_many: bool,
}

/// Converts the argument `inputs`. Takes over streams without reading any rows.
pub(crate) fn sources(inputs: &Bound<'_, PyAny>, read: &ReadOptions) -> PyResult<Given> {
    let py = inputs.py();
    if !inputs.is_instance_of::<PyList>() && !inputs.is_instance_of::<PyTuple>() {
        return one(inputs, None, read);
    }
    let mut sources = Vec::new();
    for (ordinal, input) in inputs.try_iter()?.enumerate() {
        sources.extend(one(&input?, Some(ordinal), read)?.sources);
    }
    match sources.is_empty() {
        true => Err(usage(py, "no inputs")),
        false => Ok(Given { sources, is_many: true }),
    }
}

fn one(input: &Bound<'_, PyAny>, ordinal: Option<usize>, read: &ReadOptions) -> PyResult<Given> {
    if is_arrow(input)? || input.hasattr("__next__")? {
        return Ok(Given { sources: vec![arrow(input, ordinal)?], is_many: false });
    }
    const TAKES: &str = "a path, a pattern, an Arrow object, or a list of these";
    let path = path_of("inputs", TAKES, input)?;
    let plain = vec![Source::File(path.clone())];
    let sources = match path.to_str() {
        // Only the command line reads standard input.
        Some("-") => plain.clone(),
        _ => {
            // Expanding a pattern may list a store.
            let found = input.py().detach(|| expand_with([path], read));
            found.map_err(|error| exception(input.py(), &error, None))?
        }
    };
    Ok(Given { is_many: sources != plain, sources })
}

/// Converts an object that exports record batches.
fn arrow(input: &Bound<'_, PyAny>, ordinal: Option<usize>) -> PyResult<Source> {
    let kind = input.get_type().name()?.to_string();
    let name = match ordinal {
        Some(ordinal) => format!("inputs[{ordinal}] ({kind})"),
        None => kind,
    };
    let batches = if is_arrow(input)? { pieces(input) } else { iterated(input) };
    Ok(Source::reader(&name, batches?))
}

/// Returns the record batches of an iterator of Arrow objects.
fn iterated(input: &Bound<'_, PyAny>) -> PyResult<Pieces> {
    let first = input.try_iter()?.next().transpose()?;
    let first = first.ok_or_else(|| usage(input.py(), "no inputs: the iterator is empty"))?;
    let current = first.extract::<AnyRecordBatch>()?.into_reader()?;
    let (schema, items) = (current.schema(), input.clone().unbind());
    Ok(Pieces::new(Box::new(Iterated { schema, items, current }), false))
}

/// Record batches of an iterator of Arrow objects. Reading attaches to the interpreter.
struct Iterated {
    schema: SchemaRef,
    items: Py<PyAny>,
    current: Box<dyn RecordBatchReader + Send>,
}

impl Iterated {
    /// Takes the next object. Returns false at the end.
    fn advance(&mut self) -> Result<bool, ArrowError> {
        let next = Python::attach(|py| {
            let next = self.items.bind(py).try_iter()?.next().transpose()?;
            next.map(|next| next.extract::<AnyRecordBatch>()?.into_reader()).transpose()
        });
        let next = next.map_err(|error: PyErr| ArrowError::ExternalError(error.into()))?;
        let Some(next) = next else { return Ok(false) };
        if next.schema().fields() != self.schema.fields() {
            let (others, first) = (next.schema(), &self.schema);
            let message = format!("columns of an iterator change: {first}, and then {others}");
            return Err(ArrowError::SchemaError(message));
        }
        self.current = next;
        Ok(true)
    }
}

impl Iterator for Iterated {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.current.next() {
                None => {}
                batch => return batch,
            }
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl RecordBatchReader for Iterated {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Returns true if an object exports record batches.
pub(crate) fn is_arrow(input: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(input.hasattr("__arrow_c_stream__")? || input.hasattr("__arrow_c_array__")?)
}

/// Returns the record batches that an object exports.
pub(crate) fn pieces(input: &Bound<'_, PyAny>) -> PyResult<Pieces> {
    let batches = input.extract::<AnyRecordBatch>()?.into_reader()?;
    // DuckDB's relations have a length, too, but compute rows lazily.
    let module: String = input.get_type().getattr("__module__")?.extract().unwrap_or_default();
    let is_held =
        input.hasattr("__len__")? && !module.trim_start_matches('_').starts_with("duckdb");
    Ok(Pieces::new(batches, is_held))
}

/// Rows of a piece, so many that the hand-off to a thread is negligible beside sorting.
const PIECE_ROWS: usize = 1 << 16;
/// Rows of the first piece of an in-memory input.
const FIRST_ROWS: usize = 1024;

/// Record batches in pieces, since a thread takes one at a time and a table may be a single record
/// batch.
///
/// The library estimates a reader's memory from the first record batch. Reading an in-memory input
/// allocates nothing, so its first piece is a copy of a few rows. The first piece of a producer is
/// the whole first record batch.
pub(crate) struct Pieces {
    batches: Box<dyn RecordBatchReader + Send>,
    is_held: bool,
    begun: bool,
    /// The unread part of the last record batch.
    rest: Option<RecordBatch>,
}

impl Pieces {
    fn new(batches: Box<dyn RecordBatchReader + Send>, is_held: bool) -> Self {
        Self { batches, is_held, begun: false, rest: None }
    }

    fn first(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        self.begun = true;
        let Some(batch) = self.batches.next().transpose()? else { return Ok(None) };
        let rows = batch.num_rows();
        if !self.is_held || rows <= FIRST_ROWS {
            return Ok(Some(batch));
        }
        self.rest = Some(batch.slice(FIRST_ROWS, rows - FIRST_ROWS));
        let first = UInt32Array::from_iter_values(0..FIRST_ROWS as u32);
        let first = take_record_batch(&batch, &first)?;
        let columns = first.columns().iter().map(without_the_rest).collect();
        RecordBatch::try_new(first.schema(), columns).map(Some)
    }

    /// Returns the next rows of `rest`.
    fn piece(&mut self) -> Option<RecordBatch> {
        let rest = self.rest.take()?;
        let rows = rest.num_rows();
        if rows <= PIECE_ROWS {
            return Some(rest);
        }
        self.rest = Some(rest.slice(PIECE_ROWS, rows - PIECE_ROWS));
        Some(rest.slice(0, PIECE_ROWS))
    }
}

/// Compacts views to the referenced bytes.
fn without_the_rest(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Utf8View => Arc::new(column.as_string_view().gc()),
        DataType::BinaryView => Arc::new(column.as_binary_view().gc()),
        _ => Arc::clone(column),
    }
}

impl Iterator for Pieces {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.begun {
            return self.first().transpose();
        }
        if self.rest.is_none() {
            match self.batches.next()? {
                Ok(batch) => self.rest = Some(batch),
                Err(error) => return Some(Err(error)),
            }
        }
        self.piece().map(Ok)
    }
}

impl RecordBatchReader for Pieces {
    fn schema(&self) -> SchemaRef {
        self.batches.schema()
    }
}
