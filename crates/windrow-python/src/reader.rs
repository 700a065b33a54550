//! Output rows: a single-pass reader, its record batches, and their schema.
//!
//! ```text
//! job, table --> Shared <-- Reader: next, stats, close    (attached: detaches to lock)
//!                        \<-- stream: get_next            (any thread, without the interpreter)
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::{ArrayRef, RecordBatchReader, StructArray};
use arrow_schema::ArrowError;
use arrow_schema::{Field, FieldRef, SchemaRef};
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
    memory: Memory,
}

/// The source of the rows.
enum Rows {
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

    fn next(&self) -> Option<Result<arrow_array::RecordBatch, Failed>> {
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
    pub(crate) fn new(batches: Batches, memory: Memory) -> Self {
        let schema = batches.schema();
        Self::of(Rows::Job(Box::new(batches)), schema, memory)
    }

    /// Creates a reader of a table's rows.
    pub(crate) fn of_table(rows: Scanned, schema: SchemaRef, memory: Memory) -> Self {
        Self::of(Rows::Table(Box::new(rows)), schema, memory)
    }

    fn of(rows: Rows, schema: SchemaRef, memory: Memory) -> Self {
        let state = Mutex::new(State::Open(rows));
        let shared = Arc::new(Shared { state, memory });
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
        let raised = |failed| match failed {
            Failed::Job(error) => exception(py, &error, Some(&self.shared.memory)),
            Failed::Here(message) => PyValueError::new_err(message),
        };
        next.map(|next| next.map(RecordBatch).map_err(raised)).transpose()
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
        let batches = std::iter::from_fn(move || shared.next().map(|next| exported(next, &shared)));
        let reader = Box::new(ArrayIterator::new(batches, as_struct(&self.schema)));
        Ok(to_stream_pycapsule(py, reader, requested_schema)?)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.schema.as_ref())?)
    }

    fn __repr__(&self) -> String {
        format!("<Reader: {}>", described(&self.schema))
    }
}

/// Converts a record batch for a stream, where errors are text.
fn exported(
    next: Result<arrow_array::RecordBatch, Failed>,
    shared: &Shared,
) -> Result<ArrayRef, ArrowError> {
    let text = match next {
        Ok(batch) => return Ok(Arc::new(StructArray::from(batch))),
        Err(Failed::Job(error)) => worded(&error, Some(&shared.memory)),
        Err(Failed::Here(message)) => message.to_owned(),
    };
    // A C string ends at its first NUL.
    Err(ArrowError::ExternalError(text.replace('\0', "\\0").into()))
}

fn once() -> PyErr {
    PyValueError::new_err("a Reader can be read only once; run the call again for another one")
}

fn as_struct(schema: &SchemaRef) -> FieldRef {
    let field = Field::new_struct("", schema.fields().clone(), false);
    Arc::new(field.with_metadata(schema.metadata().clone()))
}

fn described(schema: &SchemaRef) -> String {
    let fields = schema.fields().iter();
    let fields: Vec<_> = fields.map(|f| format!("{}: {}", f.name(), f.data_type())).collect();
    fields.join(", ")
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

    fn __repr__(&self) -> String {
        format!("<RecordBatch: {} rows of {}>", self.0.num_rows(), described(&self.0.schema()))
    }
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
        format!("<Schema: {}>", described(&self.0))
    }
}
