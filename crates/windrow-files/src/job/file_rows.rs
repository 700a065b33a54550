//! Rows of one sorted file, read on demand of a merge, or ahead of it.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use arrow_array::RecordBatch;

use super::running::{Job, Running};
use super::tally::Tally;
use crate::error::{Error, Result};
use crate::input::Inputs;
use crate::verbs::{FirstRow, Preparation};
use crate::watch::Watch;

/// Record batches of one file, for a merge.
pub(super) type Batches = Box<dyn Iterator<Item = windrow::Result<RecordBatch>> + Send>;

/// Number of record batches that wait for the merge, beside the one being read.
const AHEAD: usize = 1;

/// The record batches of one file, unit by unit.
pub(super) struct FileRows {
    inputs: Arc<Inputs>,
    /// Units yet to be read, in reverse order.
    units: Vec<usize>,
    batches: Option<Box<dyn Iterator<Item = Result<RecordBatch>> + Send>>,
    /// Position in the file of the next row.
    row: u64,
    file: usize,
    preparation: Preparation,
    name: Arc<str>,
    tally: Arc<Tally>,
    watch: Watch,
}

impl FileRows {
    /// Opens a file.
    pub(super) fn of(
        job: &Job,
        file: usize,
        running: &Running,
    ) -> impl Iterator<Item = windrow::Result<RecordBatch>> + Send + use<> {
        let inputs = Arc::clone(&job.inputs);
        let units = inputs.units.iter().enumerate().filter(|(_, unit)| unit.file == file);
        let mut units: Vec<usize> = units.map(|(index, _)| index).collect();
        units.reverse();
        let name = Arc::clone(&inputs.files()[file].name);
        let (tally, watch) = (Arc::clone(&running.tally), running.watch.clone());
        let preparation = job.arrangement.preparation();
        let mut rows =
            Self { units, inputs, batches: None, row: 0, file, preparation, name, tally, watch };
        std::iter::from_fn(move || rows.read().map_err(windrow::Error::from).transpose())
    }

    fn read(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            self.watch.pause()?;
            if let Some(batches) = &mut self.batches {
                if let Some(batch) = batches.next().transpose()? {
                    if batch.num_rows() == 0 {
                        continue;
                    }
                    self.tally.read(&batch);
                    let first = FirstRow { file: self.file, row: self.row };
                    self.row += batch.num_rows() as u64;
                    let kept = prepared(&self.inputs, &self.preparation, batch, first);
                    match kept.map_err(|error| error.in_input(&self.name))? {
                        kept if kept.num_rows() == 0 => continue,
                        kept => return Ok(Some(kept)),
                    }
                }
                self.batches = None;
            }
            let Some(unit) = self.units.pop() else { return Ok(None) };
            let unit = &self.inputs.units[unit];
            self.row = unit.first_row;
            unit.ask_for();
            if let Some(&next) = self.units.last() {
                self.inputs.units[next].ask_for();
            }
            self.batches = Some(unit.read(&self.watch)?);
        }
    }
}

/// Reads `batches` of a file on a thread of their own. The thread ends with the file, or when the
/// returned iterator is dropped.
pub(super) fn read_ahead<B: Send + 'static>(
    mut batches: impl Iterator<Item = windrow::Result<B>> + Send + 'static,
) -> Box<dyn Iterator<Item = windrow::Result<B>> + Send> {
    let (sender, receiver) = sync_channel(AHEAD);
    std::thread::spawn(move || {
        loop {
            let batch = batches.next();
            let last = !matches!(batch, Some(Ok(_)));
            if sender.send(batch).is_err() || last {
                break;
            }
        }
    });
    // The thread itself reports the end of the file. A closed channel means a dead thread and lost
    // rows.
    let lost = || Some(Err(Error::data("a reading thread failed unexpectedly").into()));
    Box::new(std::iter::from_fn(move || receiver.recv().unwrap_or_else(|_| lost())))
}

/// Returns the selected rows of `batch`, with all columns of the order. `first` is the place of the
/// batch's first row.
pub(super) fn prepared(
    inputs: &Inputs,
    preparation: &Preparation,
    batch: RecordBatch,
    first: FirstRow,
) -> Result<RecordBatch> {
    let (batch, mask) = inputs.selected(batch)?;
    if batch.num_rows() == 0 {
        return Ok(batch);
    }
    let row = first.row;
    let arranged = preparation.apply(&batch, first);
    arranged.map_err(|error| if mask.is_some() { error.of_kept_rows(row) } else { error })
}
