//! Output rows: a single-pass reader, its record batches, and their schema.
//!
//! ```text
//! job, table --> Shared <-- Reader: next, stats, close    (attached: detaches to lock)
//!                        \<-- stream: get_next            (any thread, without the interpreter)
//! ```

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::{Array, ArrayRef, StructArray};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, Field, FieldRef, SchemaRef};
use pyo3::exceptions::{PyAttributeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use pyo3_arrow::ffi::{
    ArrayIterator, to_array_pycapsules, to_schema_pycapsule, to_stream_pycapsule,
};
use windrow::Scanned;
use windrow_files::{Batches, Error, Stats};

use crate::errors::{exception, worded};
use crate::memory::Memory;
use crate::verbs::json;

/// The rows of a job, in order, as record batches. Any Arrow library takes it, once.
#[pyclass(frozen, module = "windrow")]
pub(crate) struct Reader {
    shared: Arc<Shared>,
    schema: SchemaRef,
    /// True once exported as a stream.
    handed: AtomicBool,
    /// True once a record batch was taken by iteration.
    begun: AtomicBool,
}

struct Shared {
    state: Mutex<State>,
    /// What was looked at, and is still to be read.
    peeked: Mutex<VecDeque<Next>>,
    memory: Memory,
}

/// A record batch, or why there is none.
type Next = Result<arrow_array::RecordBatch, Failed>;

/// The source of the rows.
pub(crate) enum Rows {
    Job(Box<Batches>),
    Table(Box<Scanned>),
}

impl Rows {
    fn next(&mut self) -> Option<Result<arrow_array::RecordBatch, Error>> {
        match self {
            Self::Job(batches) => {
                batches.next().map(|next| next.map_err(|error| windrow::Error::Arrow(error).into()))
            }
            Self::Table(scanned) => scanned.next().map(|next| next.map_err(Error::from)),
        }
    }

    /// Returns the figures of a job.
    fn stats(&self) -> Option<Stats> {
        match self {
            Self::Job(batches) => Some(batches.stats()),
            Self::Table(_) => None,
        }
    }
}

enum State {
    Open(Rows),
    /// At the end or after an error, with the final figures. `Closed`: closed earlier, with the
    /// figures so far.
    Ended(Option<Stats>),
    Closed(Option<Stats>),
}

/// The reason for a missing record batch.
enum Failed {
    Job(Error),
    Here(&'static str),
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn peeked(&self) -> MutexGuard<'_, VecDeque<Next>> {
        self.peeked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<Next> {
        let peeked = self.peeked().pop_front();
        peeked.or_else(|| self.made())
    }

    /// The first record batch, and how many there are, up to two; all of them are still to be read.
    fn peek(&self) -> (usize, Option<arrow_array::RecordBatch>) {
        let mut peeked = self.peeked();
        while peeked.len() < 2
            && let Some(next) = self.made()
        {
            peeked.push_back(next);
        }
        let first = peeked.front().and_then(|next| next.as_ref().ok().cloned());
        (peeked.len(), first)
    }

    /// The next record batch of the job.
    fn made(&self) -> Option<Next> {
        let mut state = self.state();
        let rows = match &mut *state {
            State::Open(rows) => rows,
            State::Ended(_) => return None,
            State::Closed(_) => return Some(Err(Failed::Here("the Reader was closed"))),
        };
        // A panic must not unwind through foreign frames.
        let next = match catch_unwind(AssertUnwindSafe(|| rows.next())) {
            Ok(None) => None,
            Ok(Some(Ok(batch))) => return Some(Ok(batch)),
            Ok(Some(Err(error))) => Some(Err(Failed::Job(error))),
            Err(_panic) => Some(Err(Failed::Here("internal error: the Reader panicked"))),
        };
        *state = State::Ended(rows.stats());
        next
    }

    fn close(&self) {
        self.peeked().clear();
        let mut state = self.state();
        if let State::Open(rows) = &*state {
            *state = State::Closed(rows.stats());
        }
    }

    fn stats(&self) -> Option<Stats> {
        match &*self.state() {
            State::Open(rows) => rows.stats(),
            State::Ended(stats) | State::Closed(stats) => stats.clone(),
        }
    }
}

impl Reader {
    pub(crate) fn new(rows: Rows, schema: SchemaRef, memory: Memory) -> Self {
        let state = Mutex::new(State::Open(rows));
        let shared = Arc::new(Shared { state, peeked: Mutex::default(), memory });
        Self { shared, schema, handed: AtomicBool::new(false), begun: AtomicBool::new(false) }
    }
}

#[pymethods]
impl Reader {
    /// The schema of the rows.
    #[getter]
    fn schema(&self) -> Schema {
        Schema(Arc::clone(&self.schema))
    }

    /// The figures of the job so far. Rows of a table have none.
    #[getter]
    fn stats(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match py.detach(|| self.shared.stats()) {
            Some(stats) => crate::verbs::stats(py, &json(&stats)?),
            None => Err(PyAttributeError::new_err("rows of a Table come without stats")),
        }
    }

    /// True once all rows were read.
    #[getter]
    fn ended(&self, py: Python<'_>) -> bool {
        py.detach(|| matches!(*self.shared.state(), State::Ended(_)))
    }

    /// Ends the job; its memory and temporary files are given back.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.shared.close());
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __exit__(&self, py: Python<'_>, _error: Py<PyAny>, _value: Py<PyAny>, _trace: Py<PyAny>) {
        self.close(py);
    }

    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        if self.handed.load(Ordering::Relaxed) {
            return Err(once());
        }
        self.begun.store(true, Ordering::Relaxed);
        let next = py.detach(|| self.shared.next());
        next.transpose().map(|next| next.map(RecordBatch)).map_err(|failed| match failed {
            Failed::Job(error) => exception(py, &error, Some(&self.shared.memory)),
            Failed::Here(message) => PyValueError::new_err(message),
        })
    }

    /// The first record batch, and whether others follow; all of them are still to be read. `None` where others have the
    /// rows, and where there is no first record batch: its error is that of who reads.
    fn peek(&self, py: Python<'_>) -> Option<(RecordBatch, bool)> {
        if self.begun.load(Ordering::Relaxed) || self.handed.load(Ordering::Relaxed) {
            return None;
        }
        let (count, first) = py.detach(|| self.shared.peek());
        first.map(|first| (RecordBatch(first), count > 1))
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        if self.begun.load(Ordering::Relaxed) || self.handed.swap(true, Ordering::Relaxed) {
            return Err(once());
        }
        let shared = Arc::clone(&self.shared);
        // Record batches of a stream, where errors are text.
        let batches = std::iter::from_fn(move || {
            let text = match shared.next()? {
                Ok(batch) => return Some(Ok(Arc::new(StructArray::from(batch)) as ArrayRef)),
                Err(Failed::Job(error)) => worded(&error, Some(&shared.memory)),
                Err(Failed::Here(message)) => message.to_owned(),
            };
            // A C string ends at its first NUL.
            Some(Err(ArrowError::ExternalError(text.replace('\0', "\\0").into())))
        });
        let reader = Box::new(ArrayIterator::new(batches, as_struct(&self.schema)));
        Ok(to_stream_pycapsule(py, reader, requested_schema)?)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.schema.as_ref())?)
    }
}

fn once() -> PyErr {
    PyValueError::new_err("a Reader can be read only once; run the call again for another one")
}

fn as_struct(schema: &SchemaRef) -> FieldRef {
    let field = Field::new_struct("", schema.fields().clone(), false);
    Arc::new(field.with_metadata(schema.metadata().clone()))
}

/// Some rows of a `Reader`, for Arrow libraries.
#[pyclass(frozen, module = "windrow")]
pub(crate) struct RecordBatch(pub(crate) arrow_array::RecordBatch);

#[pymethods]
impl RecordBatch {
    /// How many rows it has.
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    /// How many columns it has.
    #[getter]
    fn num_columns(&self) -> usize {
        self.0.num_columns()
    }

    /// Its schema.
    #[getter]
    fn schema(&self) -> Schema {
        Schema(self.0.schema())
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let (field, rows) = (as_struct(&self.0.schema()), StructArray::from(self.0.clone()));
        Ok(to_array_pycapsules(py, field, &rows, requested_schema)?)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.0.schema().as_ref())?)
    }

    /// The first `rows` rows as text: a list for each row, with `None` for null.
    fn texts(&self, rows: usize) -> PyResult<Vec<Vec<Option<String>>>> {
        let options = FormatOptions::new().with_display_error(true);
        let columns = self.0.columns().iter();
        let columns =
            columns.map(|column| Ok((column, ArrayFormatter::try_new(column, &options)?)));
        let columns: Result<Vec<_>, ArrowError> = columns.collect();
        let columns = columns.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let cell = |row: usize, (column, text): &(&ArrayRef, ArrayFormatter<'_>)| {
            column.is_valid(row).then(|| text.value(row).to_string())
        };
        let text = |row| columns.iter().map(|column| cell(row, column)).collect();
        Ok((0..rows.min(self.0.num_rows())).map(text).collect())
    }

    fn __repr__(this: &Bound<'_, Self>) -> PyResult<String> {
        written(this, "text")
    }

    fn _repr_html_(this: &Bound<'_, Self>) -> PyResult<String> {
        written(this, "html")
    }
}

/// A table of the rows, by the function `name` of the module that writes them.
fn written(batch: &Bound<'_, RecordBatch>, name: &str) -> PyResult<String> {
    batch.py().import("windrow._rows")?.getattr(name)?.call1((batch,))?.extract()
}

/// Names and types of columns, for Arrow libraries.
#[pyclass(frozen, module = "windrow")]
pub(crate) struct Schema(pub(crate) SchemaRef);

#[pymethods]
impl Schema {
    /// The names of the columns.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.0.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The types of the columns, as text.
    #[getter]
    fn types(&self) -> Vec<String> {
        self.0.fields().iter().map(|field| field.data_type().to_string()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.fields().len()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.0.as_ref())?)
    }

    fn __repr__(&self) -> String {
        let fields = self.0.fields().iter();
        let fields: Vec<_> = fields.map(|f| format!("{}: {}", f.name(), f.data_type())).collect();
        format!("<Schema: {}>", fields.join(", "))
    }
}
