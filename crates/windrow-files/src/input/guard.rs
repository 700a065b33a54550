//! What every unit keeps, whatever its format: no panic gets out, batches are of the promised size and
//! schema, and no row is lost.
//!
//! A batch that is read may hold far more than its buffers: a dictionary has a long value once. It is cut by
//! what its rows take as rows, as everything behind it is planned.
//!
//! The readers underneath index and unwrap on trust in places, so that a damaged file can panic them.
//! That is a fault of the data, and told as one. The reader is dropped unused afterwards, so nothing
//! half-changed is seen again.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, make_array};
use arrow::datatypes::{DataType, SchemaRef};

use crate::error::{Error, Result};
use crate::watch::Watch;

use super::Batches;
use super::lengths::longest_row;
use super::unify::{Order, conform};

thread_local! {
    /// Whether a panic of this thread is caught here.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread would become an error of an input: for a panic hook of the process, which
/// then has nothing to print. This crate sets no hook.
pub fn panics_are_caught() -> bool {
    GUARDED.get()
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
        Err(Error::data(format!("{name}: the file is damaged: its reader failed with: {what}")))
    })
}

/// What a unit promises of its batches.
pub(super) struct Promise {
    pub(super) schema: SchemaRef,
    pub(super) order: Order,
    pub(super) batch_rows: usize,
    /// The rows of the unit, where known.
    pub(super) rows: Option<u64>,
    /// The place in its file of the first of them.
    pub(super) first_row: u64,
}

/// Batches that keep a [`Promise`].
pub(super) struct Guarded {
    name: Arc<str>,
    /// None after the end or an error.
    batches: Option<Batches>,
    /// What is left of a batch as it was read, and the rows to take of it at a time.
    rest: Option<(RecordBatch, usize)>,
    promise: Promise,
    watch: Watch,
    seen: u64,
}

impl Guarded {
    pub(super) fn new(name: Arc<str>, batches: Batches, promise: Promise, watch: Watch) -> Self {
        Self { name, batches: Some(batches), rest: None, promise, watch, seen: 0 }
    }

    /// Makes room for the longest row of `batch`; true if that took less memory for others.
    fn admit(&self, batch: &RecordBatch) -> Result<bool> {
        let planned = self.watch.longest.planned();
        let Some((row, bytes)) = longest_row(batch, planned) else { return Ok(false) };
        self.watch.longest.admit(bytes).map_err(|need| {
            let row = self.promise.first_row + self.seen + row as u64;
            need.error(&self.name, &format!("row {row}")).at_row(row)
        })
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some((mut batch, most)) = self.rest.take() {
                let rows = batch.num_rows();
                if rows > most {
                    self.rest = Some((batch.slice(most, rows - most), most));
                    batch = batch.slice(0, most);
                }
                return conform(batch, &self.promise.order, &self.promise.schema)
                    .map(Some)
                    .map_err(|cause| Error::data(format!("{}: {cause}", self.name)));
            }
            let Some(batches) = &mut self.batches else {
                return Ok(None);
            };
            let Some(batch) = no_panic(&self.name, || batches.next().transpose())? else {
                self.batches = None;
                return match self.promise.rows {
                    Some(rows) if rows != self.seen => Err(Error::data(format!(
                        "{}: the file is damaged: {} rows were read where {rows} are recorded",
                        self.name, self.seen
                    ))),
                    _ => Ok(None),
                };
            };
            if batch.num_rows() == 0 {
                // None at all, or what a reader has to say before a long row.
                if self.watch.longest.planned() == u64::MAX {
                    continue;
                }
                return Ok(Some(RecordBatch::new_empty(self.promise.schema.clone())));
            }
            let is_longer = self.admit(&batch)?;
            self.seen += batch.num_rows() as u64;
            let most = rows_at_a_time(&batch).min(self.promise.batch_rows);
            self.rest = Some((batch, most));
            if is_longer {
                return Ok(Some(RecordBatch::new_empty(self.promise.schema.clone())));
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

/// Bytes that the rows of a batch take at the most, each by itself.
const BATCH_BYTES: usize = 2 << 20;

/// What a row holds for an item of a list beside its value, at the most.
const ITEM_BYTES: usize = 5;

/// The rows of `batch` that take [`BATCH_BYTES`], on average.
fn rows_at_a_time(batch: &RecordBatch) -> usize {
    let bytes: usize = batch.columns().iter().map(|column| row_bytes(column)).sum();
    let mean = bytes / batch.num_rows().max(1);
    (BATCH_BYTES / mean.max(1)).max(1)
}

/// What the rows of `array` take if none shares its value with another.
fn row_bytes(array: &dyn Array) -> usize {
    let repeated = |values: &dyn Array| {
        let mean = row_bytes(values) / values.len().max(1);
        array.len().saturating_mul(mean)
    };
    let items = |items: &dyn Array| row_bytes(items) + items.len() * ITEM_BYTES;
    match array.data_type() {
        DataType::Dictionary(..) => repeated(array.as_any_dictionary().values()),
        DataType::RunEndEncoded(..) => match array.to_data().child_data() {
            [_, values] => repeated(&make_array(values.clone())),
            _ => 0,
        },
        DataType::Struct(_) => {
            array.as_struct().columns().iter().map(|member| row_bytes(member)).sum()
        }
        DataType::List(_) => items(array.as_list::<i32>().values()),
        DataType::LargeList(_) => items(array.as_list::<i64>().values()),
        DataType::FixedSizeList(..) => items(array.as_fixed_size_list().values()),
        DataType::Map(..) => items(array.as_map().entries()),
        _ => array.to_data().get_slice_memory_size().unwrap_or(0),
    }
}
