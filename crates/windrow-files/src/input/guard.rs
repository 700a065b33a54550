//! What every unit keeps, whatever its format: no panic gets out, and batches are of the promised size and schema.
//!
//! A batch that is read may hold far more than its buffers: a dictionary has a long value once. It is cut by
//! what its rows take as rows, as everything behind it is planned.
//!
//! The readers underneath index and unwrap on trust in places, so that a damaged file can panic them.
//! That is a fault of the data, and told as one. The reader is dropped unused afterwards, so nothing
//! half-changed is seen again.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch, make_array};
use arrow_schema::{DataType, SchemaRef};

use crate::error::{Error, Result};
use crate::watch::Watch;

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

/// What a unit promises of its rows, whoever reads them.
pub(super) struct Promise {
    pub(super) name: Arc<str>,
    pub(super) schema: SchemaRef,
    pub(super) order: Order,
    pub(super) batch_rows: usize,
    pub(super) watch: Watch,
}

/// Rows as they were read, on their way to one thread that takes them.
pub(super) struct Guarded {
    /// Batches as they were read.
    waiting: VecDeque<RecordBatch>,
    /// What is left of one, and the rows to take of it at a time.
    rest: Option<(RecordBatch, usize)>,
    /// The place in its file of the first row that waits.
    row: u64,
}

/// What there is next.
pub(super) enum Kept {
    /// Rows that keep the promise, and the place in its file of the first.
    Rows(RecordBatch, u64),
    /// One of them is longer than all before it, and there is less memory for others.
    Longer,
    Nothing,
}

impl Guarded {
    pub(super) fn new() -> Self {
        Self { waiting: VecDeque::new(), rest: None, row: 0 }
    }

    /// The place in its file of the first row that waits, if one does.
    pub(super) fn first(&self) -> Option<u64> {
        let waits = self.rest.is_some() || !self.waiting.is_empty();
        waits.then_some(self.row)
    }

    /// Has `batches` wait, the first row of which is at `row`; none may wait already.
    pub(super) fn put(&mut self, row: u64, batches: Vec<RecordBatch>) {
        self.row = row;
        self.waiting = batches.into();
    }

    /// The next rows of those that wait.
    ///
    /// # Errors
    /// For rows that are not of the schema, or longer than the job can have.
    pub(super) fn next(&mut self, promise: &Promise) -> Result<Kept> {
        loop {
            if let Some((mut batch, most)) = self.rest.take() {
                let (rows, row) = (batch.num_rows(), self.row);
                if rows > most {
                    self.rest = Some((batch.slice(most, rows - most), most));
                    batch = batch.slice(0, most);
                }
                self.row += batch.num_rows() as u64;
                return conform(batch, &promise.order, &promise.schema)
                    .map(|batch| Kept::Rows(batch, row))
                    .map_err(|cause| Error::data(format!("{}: {cause}", promise.name)));
            }
            let Some(batch) = self.waiting.pop_front() else { return Ok(Kept::Nothing) };
            if batch.num_rows() == 0 {
                // None at all, or what a reader has to say before a long row.
                continue;
            }
            let is_longer = self.admit(&batch, promise)?;
            let most = rows_at_a_time(&batch).min(promise.batch_rows);
            self.rest = Some((batch, most));
            if is_longer {
                return Ok(Kept::Longer);
            }
        }
    }

    /// Makes room for the longest row of `batch`, which is next; true if that took less memory for others.
    fn admit(&self, batch: &RecordBatch, promise: &Promise) -> Result<bool> {
        let planned = promise.watch.longest.planned();
        let Some((row, bytes)) = longest_row(batch, planned) else { return Ok(false) };
        promise.watch.longest.admit(bytes).map_err(|need| {
            let row = self.row + row as u64;
            need.error(&promise.name, &format!("row {row}")).at_row(row)
        })
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
