//! The engine's keyed table as a Python object, alive as long as the object.
//!
//! ```text
//! upsert, delete: a Task, batch by batch --lock--> windrow::Table <--lock-- get, scan
//! ```
//! The lock is held for one record batch at a time, and never while a producer is read: a Python
//! producer may query the same table.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::{Schema as ArrowSchema, SchemaRef};
use arrow_select::concat::concat_batches;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use windrow::{Budget, Pool, SortColumn};
use windrow_files::{DedupeSpec, Error, Limit, Result, Setting, Spec, Verb};

use crate::errors::{exception, usage};
use crate::keys::{self, Rows, fitted, known};
use crate::memory::Memory;
use crate::options::{ok, settings, table_schema};
use crate::reader::{Reader, RecordBatch as Batch, Rows as Source, Schema};
use crate::task::Task;

/// Rows of a scan's record batch.
const SCAN_ROWS: usize = 8192;
/// Minimum bytes of a table besides its rows: merge buffers and rows being converted.
const BESIDE: u64 = 24 << 20;

/// Rows with a key.
#[pyclass(frozen, module = "windrow._windrow")]
pub(crate) struct Table {
    shared: Arc<Shared>,
    schema: SchemaRef,
    /// The key columns, in the key's order.
    key: SchemaRef,
    memory: Memory,
}

/// The table; `None` once closed.
struct Shared(Mutex<Option<(windrow::Table, Pool)>>);

impl Shared {
    fn with<T>(
        &self,
        ask: impl FnOnce(&mut windrow::Table, &Pool) -> windrow::Result<T>,
    ) -> Result<Option<T>> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = table.as_mut().map(|(table, pool)| ask(table, pool));
        Ok(asked.transpose()?)
    }
}

impl Table {
    /// Runs a short query on the table.
    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&mut windrow::Table, &Pool) -> windrow::Result<T> + Send,
    ) -> PyResult<T> {
        let asked = py.detach(|| self.shared.with(ask));
        open(asked.map_err(|error| exception(py, &error, Some(&self.memory)))?)
    }

    /// Applies `change` for each record batch; returns the time of the last change.
    fn change(
        &self,
        py: Python<'_>,
        rows: Rows,
        schema: &SchemaRef,
        change: fn(&mut windrow::Table, &RecordBatch) -> windrow::Result<u64>,
    ) -> PyResult<u64> {
        let task = Task::new(None, Some(self.memory.clone()));
        let (shared, schema, watch) =
            (Arc::clone(&self.shared), Arc::clone(schema), Arc::clone(&task.watch));
        // Keys may come with columns beside them; a row has no column that the table lacks.
        let is_whole = schema == self.schema;
        let work = move || {
            let mut time = shared.with(|table, _| Ok(table.now()))?;
            for batch in rows {
                let batch = batch.map_err(windrow::Error::from)?;
                if is_whole {
                    known(&batch, &schema)?;
                }
                let batch = fitted(&batch, &schema)?;
                if watch.cancel.is_cancelled() {
                    return Err(Error::interrupted());
                }
                if batch.num_rows() > 0 {
                    time = shared.with(|table, _| change(table, &batch))?;
                }
            }
            Ok(time)
        };
        open(task.run(py, work)?)
    }

    /// Makes the object of a table in the memory of `pool`.
    fn of(
        py: Python<'_>,
        table: windrow::Result<windrow::Table>,
        pool: Pool,
        memory: Memory,
    ) -> PyResult<Self> {
        let table = table.map_err(|error| exception(py, &error.into(), Some(&memory)))?;
        let schema = Arc::clone(table.schema());
        let key: Vec<_> = table.spine().layout().key().map(|at| schema.field(at).clone()).collect();
        let shared = Arc::new(Shared(Mutex::new(Some((table, pool)))));
        Ok(Self { shared, schema, key: Arc::new(ArrowSchema::new(key)), memory })
    }

    /// Converts an argument with keys to one record batch of the key columns.
    fn keys(&self, name: &str, given: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
        let (rows, key) = (keys::keys(name, given, &self.key)?, Arc::clone(&self.key));
        let read = move || {
            let batches = rows.map(|rows| fitted(&rows.map_err(windrow::Error::from)?, &key));
            let batches = batches.collect::<Result<Vec<_>>>()?;
            concat_batches(&key, &batches).map_err(|error| windrow::Error::from(error).into())
        };
        Task::new(None, Some(self.memory.clone())).run(given.py(), read)
    }
}

/// What a table is made of besides its schema.
struct Prepared {
    by: Option<Vec<SortColumn>>,
    pool: Pool,
    memory: Memory,
}

impl Prepared {
    fn of(py: Python<'_>, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        // Of the arguments of a call, a table has these.
        let settings = settings("Table", Verb::Dedupe, options)?;
        let request = ok(py, settings.build())?;
        let limits = request.limits;
        let asked = settings.has(Setting::MemoryLimit).then_some(limits.memory);
        let by = match request.spec {
            Spec::Dedupe(DedupeSpec { key, .. }) => key,
            _ => None,
        };
        let memory = py.detach(|| Memory::new(asked));
        let budget = match memory.limit {
            Limit::Bytes(limit) => {
                let grown = memory.grown(limit);
                if grown < 2 * BESIDE {
                    let floor = windrow_files::Size(2 * BESIDE);
                    return Err(usage(py, &format!("memory= takes {floor} or more for a table")));
                }
                Budget::bytes(usize::try_from(grown - BESIDE).unwrap_or(usize::MAX))
            }
            _ => Budget::unlimited(),
        };
        let pool = Pool::new(budget, limits.pool_options(0));
        let pool = pool.map_err(|error| exception(py, &error.into(), Some(&memory)))?;
        Ok(Self { by, pool, memory })
    }
}

fn open<T>(asked: Option<T>) -> PyResult<T> {
    asked.ok_or_else(|| PyValueError::new_err("the Table was closed"))
}

#[pymethods]
impl Table {
    #[new]
    fn new(schema: &Bound<'_, PyAny>, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let py = schema.py();
        let schema = table_schema(schema)?;
        let Prepared { by, pool, memory } = Prepared::of(py, options)?;
        let Some(by) = by else {
            return Err(usage(py, "key= is missing: a table needs a key"));
        };
        Self::of(py, windrow::Table::new(&schema, by, &pool), pool, memory)
    }

    /// Opens the table of a checkpoint.
    #[staticmethod]
    fn open(py: Python<'_>, directory: PathBuf, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let Prepared { pool, memory, .. } = Prepared::of(py, options)?;
        let table = py.detach(|| windrow::Table::open(directory, &pool));
        Self::of(py, table, pool, memory)
    }

    fn checkpoint(&self, py: Python<'_>, directory: PathBuf) -> PyResult<()> {
        self.ask(py, |table, _| table.save(directory))
    }

    /// The key columns as (name, descending, nulls first).
    #[getter]
    fn order(&self, py: Python<'_>) -> PyResult<Vec<(String, bool, bool)>> {
        self.ask(py, |table, _| {
            let order = table.spine().layout().order().iter().cloned();
            Ok(order.map(|by| (by.name, by.descending, by.nulls_first)).collect())
        })
    }

    #[getter]
    fn schema(&self) -> Schema {
        Schema(Arc::clone(&self.schema))
    }

    #[getter]
    fn key(&self) -> Vec<String> {
        self.key.fields().iter().map(|field| field.name().clone()).collect()
    }

    #[getter]
    fn now(&self, py: Python<'_>) -> PyResult<u64> {
        self.ask(py, |table, _| Ok(table.now()))
    }

    /// Bytes in memory and in temporary files.
    #[getter]
    fn held(&self, py: Python<'_>) -> PyResult<(usize, u64)> {
        self.ask(py, |_, pool| Ok((pool.budget().used(), pool.stats().temp_bytes)))
    }

    fn upsert(&self, rows: &Bound<'_, PyAny>) -> PyResult<u64> {
        let given = keys::rows("rows", rows)?;
        self.change(rows.py(), given, &self.schema, windrow::Table::upsert)
    }

    fn delete(&self, keys: &Bound<'_, PyAny>) -> PyResult<u64> {
        let given = keys::keys("keys", keys, &self.key)?;
        self.change(keys.py(), given, &self.key, windrow::Table::delete)
    }

    #[pyo3(signature = (keys, at))]
    fn get(&self, keys: &Bound<'_, PyAny>, at: Option<u64>) -> PyResult<Batch> {
        let wanted = self.keys("keys", keys)?;
        let found =
            self.ask(keys.py(), |table, _| table.get_at(&wanted, at.unwrap_or(table.now())));
        found.map(Batch)
    }

    #[pyo3(signature = (start, stop, at))]
    fn scan(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        at: Option<u64>,
    ) -> PyResult<Reader> {
        let start = start.map(|key| self.keys("start", key)).transpose()?;
        let stop = stop.map(|key| self.keys("stop", key)).transpose()?;
        let rows = self.ask(py, |table, _| {
            let scan = start.iter().fold(table.scan(), |scan, start| scan.from(start));
            let scan = stop.iter().fold(scan, |scan, stop| scan.to(stop));
            at.into_iter().fold(scan, |scan, at| scan.at(at)).batches(SCAN_ROWS)
        })?;
        let rows = Source::Table(Box::new(rows));
        Ok(Reader::new(rows, Arc::clone(&self.schema), self.memory.clone()))
    }

    fn forget_before(&self, py: Python<'_>, time: u64) -> PyResult<()> {
        self.ask(py, |table, _| table.forget_before(time))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.shared.0.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }
}
