//! Guarantees of every unit of any format: no panic escapes, and record batches have the promised
//! size and schema.
//!
//! The rows of a record batch may be far larger than its buffers: a dictionary has a long value
//! once for many rows. Later stages are planned by the size of rows, so batches are cut by the size
//! of rows.
//!
//! The readers underneath index and unwrap without checks in places: a damaged file can cause a
//! panic. Such a panic is reported as an error of the data. The reader is dropped unused
//! afterwards, so its half-changed state is never seen again.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch, make_array};
use arrow_schema::{DataType, SchemaRef};

use crate::error::{Error, Result};
use crate::input::schema::unify::{Order, conform};
use crate::watch::Watch;

use super::lengths::longest_row;

thread_local! {
    /// Whether this module catches panics of this thread.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Silences the panic hook of the process for panics that become an error of an input. Sets a hook
/// in front of the current one; a second call has no effect. No job calls this function.
pub fn silence_caught_panics() {
    static FIRST: Once = Once::new();
    FIRST.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                others(panic);
            }
        }));
    });
}

/// Runs `work` on the input `name`, and turns a panic into an error.
pub(crate) fn no_panic<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
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

/// The promise of a unit about its rows.
pub(super) struct Promise {
    pub(super) name: Arc<str>,
    pub(super) schema: SchemaRef,
    pub(super) order: Order,
    pub(super) batch_rows: usize,
    pub(super) watch: Watch,
}

/// A queue of record batches from a reader to one consuming thread.
pub(super) struct Guarded {
    /// Batches as read.
    waiting: VecDeque<RecordBatch>,
    /// The rest of a batch, and the number of rows to take at a time.
    rest: Option<(RecordBatch, usize)>,
    /// Position in the file of the first waiting row.
    row: u64,
}

/// The next item of the queue.
pub(super) enum Admitted {
    /// Rows as promised, and the position in the file of the first row.
    Rows(RecordBatch, u64),
    /// The next row is longer than any planned row. The job goes on with less memory for all other
    /// rows.
    Longer,
    Nothing,
}

impl Guarded {
    pub(super) fn new() -> Self {
        Self { waiting: VecDeque::new(), rest: None, row: 0 }
    }

    /// Returns the position in the file of the first waiting row.
    pub(super) fn first(&self) -> Option<u64> {
        let waits = self.rest.is_some() || !self.waiting.is_empty();
        waits.then_some(self.row)
    }

    /// Queues `batches`, whose first row is at `row`. The queue must be empty.
    pub(super) fn put(&mut self, row: u64, batches: Vec<RecordBatch>) {
        self.row = row;
        self.waiting = batches.into();
    }

    /// Returns the next rows of the queue.
    ///
    /// # Errors
    /// For rows of another schema, or rows too long for the job.
    pub(super) fn next(&mut self, promise: &Promise) -> Result<Admitted> {
        loop {
            if let Some((mut batch, most)) = self.rest.take() {
                let (rows, row) = (batch.num_rows(), self.row);
                if rows > most {
                    self.rest = Some((batch.slice(most, rows - most), most));
                    batch = batch.slice(0, most);
                }
                self.row += batch.num_rows() as u64;
                return conform(batch, &promise.order, &promise.schema)
                    .map(|batch| Admitted::Rows(batch, row))
                    .map_err(|cause| Error::data(format!("{}: {cause}", promise.name)));
            }
            let Some(batch) = self.waiting.pop_front() else { return Ok(Admitted::Nothing) };
            if batch.num_rows() == 0 {
                // An empty batch, or a reader's announcement of a long row.
                continue;
            }
            let is_longer = self.admit(&batch, promise)?;
            let most = rows_at_a_time(&batch).min(promise.batch_rows);
            self.rest = Some((batch, most));
            if is_longer {
                return Ok(Admitted::Longer);
            }
        }
    }

    /// Finds memory for the longest row of `batch`, which is next. Returns true if this took memory
    /// from other rows.
    fn admit(&self, batch: &RecordBatch, promise: &Promise) -> Result<bool> {
        let planned = promise.watch.longest.planned();
        let Some((row, bytes)) = longest_row(batch, planned) else { return Ok(false) };
        promise.watch.longest.admit(bytes).map_err(|need| {
            let row = self.row + row as u64;
            need.error(&promise.name, &format!("row {row}")).at_row(row)
        })
    }
}

/// Maximum bytes of a batch's rows, with shared values counted for each row.
const BATCH_BYTES: usize = 2 << 20;

/// Maximum bytes of a list's item in a row, beside its value.
const ITEM_BYTES: usize = 5;

/// Returns the average number of rows of `batch` in [`BATCH_BYTES`].
fn rows_at_a_time(batch: &RecordBatch) -> usize {
    let bytes: usize = batch.columns().iter().map(|column| row_bytes(column)).sum();
    let mean = bytes / batch.num_rows().max(1);
    (BATCH_BYTES / mean.max(1)).max(1)
}

/// Returns the bytes of the rows of `array`, with shared values counted for each row.
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
