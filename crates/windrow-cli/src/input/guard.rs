//! What every unit keeps, whatever its format: no panic gets out, batches are of the promised size and
//! schema, and no row is lost.
//!
//! The readers underneath index and unwrap on trust in places, so that a damaged file can panic them.
//! That is a fault of the data, and told as one. The reader is dropped unused afterwards, so nothing
//! half-changed is seen again.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::error::{CliError, Result};

use super::Batches;
use super::unify::{Order, conform};

thread_local! {
    /// Whether a panic of this thread is caught here.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Keeps panics that become errors from being printed as well.
pub(crate) fn silence_guarded_panics() {
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !GUARDED.get() {
            others(panic);
        }
    }));
}

/// Runs `work` on the input called `name`; a panic becomes an error.
pub(super) fn no_panic<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let outer = GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    done.unwrap_or_else(|payload| {
        let what = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        Err(CliError::Data(format!("{name}: the file is damaged: its reader failed with: {what}")))
    })
}

/// What a unit promises of its batches.
pub(super) struct Promise {
    pub(super) schema: SchemaRef,
    pub(super) order: Order,
    pub(super) batch_rows: usize,
    /// The rows of the unit, where known.
    pub(super) rows: Option<u64>,
}

/// Batches that keep a [`Promise`].
pub(super) struct Guarded {
    name: Arc<str>,
    /// None after the end or an error.
    batches: Option<Batches>,
    /// What is left of a batch that was larger than promised.
    rest: Option<RecordBatch>,
    promise: Promise,
    seen: u64,
}

impl Guarded {
    pub(super) fn new(name: Arc<str>, batches: Batches, promise: Promise) -> Self {
        Self { name, batches: Some(batches), rest: None, promise, seen: 0 }
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.rest.take() {
                let rows = batch.num_rows().min(self.promise.batch_rows);
                if rows < batch.num_rows() {
                    self.rest = Some(batch.slice(rows, batch.num_rows() - rows));
                    return Ok(Some(batch.slice(0, rows)));
                }
                return Ok(Some(batch));
            }
            let Some(batches) = &mut self.batches else {
                return Ok(None);
            };
            let Some(batch) = no_panic(&self.name, || batches.next().transpose())? else {
                self.batches = None;
                return match self.promise.rows {
                    Some(rows) if rows != self.seen => Err(CliError::Data(format!(
                        "{}: the file is damaged: {} rows were read where {rows} are recorded",
                        self.name, self.seen
                    ))),
                    _ => Ok(None),
                };
            };
            self.seen += batch.num_rows() as u64;
            if batch.num_rows() > 0 {
                let batch = conform(batch, &self.promise.order, &self.promise.schema)
                    .map_err(|cause| CliError::Data(format!("{}: {cause}", self.name)))?;
                self.rest = Some(batch);
            }
        }
    }
}

impl Iterator for Guarded {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance();
        if next.is_err() {
            self.batches = None;
            self.rest = None;
        }
        next.transpose()
    }
}
