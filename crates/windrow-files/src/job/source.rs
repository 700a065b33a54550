//! The units of the inputs, handed out to threads.
//!
//! ```text
//! units     [done][open: A][open: B][ ][ ]...
//! thread A  decodes its unit batch by batch; thread B its own
//! none left a thread joins a unit that is open: decoding is serial there, the rest is not
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use arrow::record_batch::RecordBatch;

use crate::error::Result;
use crate::input::{Inputs, Unit};
use crate::watch::Watch;

/// Rows of one file are numbered with this many bits, files with those above.
pub(super) const ROW_BITS: u32 = 40;

/// All units, of which each thread takes record batches until there are none.
pub(super) struct Units<'a> {
    inputs: &'a Inputs,
    watch: &'a Watch,
    next: Mutex<usize>,
    open: Mutex<Vec<Arc<OpenUnit>>>,
}

struct OpenUnit {
    state: Mutex<Option<Reading>>,
}

struct Reading {
    batches: Box<dyn Iterator<Item = Result<RecordBatch>> + Send>,
    /// Place in the whole input of the next row.
    sequence: u64,
}

/// One thread's view of the units.
pub(super) struct Reader<'a> {
    units: &'a Units<'a>,
    mine: Option<Arc<OpenUnit>>,
    /// The longest row that was planned for when this thread last looked.
    planned: u64,
}

/// What a thread does next.
pub(super) enum Step {
    /// Takes these rows, the first of which has this place.
    Rows(RecordBatch, u64),
    /// Hands over what it holds: a row is longer than was planned, and rows may have less memory.
    Yield,
}

impl<'a> Units<'a> {
    pub(super) fn new(inputs: &'a Inputs, watch: &'a Watch) -> Self {
        Self { inputs, watch, next: Mutex::default(), open: Mutex::default() }
    }

    pub(super) fn reader(&'a self) -> Reader<'a> {
        Reader { units: self, mine: None, planned: self.watch.longest.planned() }
    }

    fn claim(&self) -> Result<Option<Arc<OpenUnit>>> {
        let Some(unit) = self.next() else { return Ok(self.lock().last().cloned()) };
        let reading = Reading { batches: unit.read(self.watch)?, sequence: sequence(unit) };
        let open = Arc::new(OpenUnit { state: Mutex::new(Some(reading)) });
        self.lock().push(Arc::clone(&open));
        Ok(Some(open))
    }

    /// The unit that is next. It and the one behind it are asked for before either is waited for, by one thread at a
    /// time: each is asked for once.
    fn next(&self) -> Option<&Unit> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let unit = self.inputs.units().get(*next)?;
        *next += 1;
        unit.ask_for();
        if let Some(behind) = self.inputs.units().get(*next) {
            behind.ask_for();
        }
        Some(unit)
    }

    fn close(&self, unit: &Arc<OpenUnit>) {
        self.lock().retain(|open| !Arc::ptr_eq(open, unit));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<OpenUnit>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Place in the whole input of the first row of `unit`.
fn sequence(unit: &Unit) -> u64 {
    ((unit.file as u64) << ROW_BITS) + unit.first_row
}

impl Reader<'_> {
    /// The next record batch; `None` when all units are read.
    pub(super) fn next(&mut self) -> Result<Option<Step>> {
        loop {
            let unit = match &self.mine {
                Some(unit) => Arc::clone(unit),
                None => match self.units.claim()? {
                    Some(unit) => Arc::clone(self.mine.insert(unit)),
                    None => return Ok(None),
                },
            };
            let mut state = unit.state.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(reading) = &mut *state {
                // Before the row is decoded, by whoever comes to it.
                let planned = self.units.watch.longest.planned();
                if std::mem::replace(&mut self.planned, planned) != planned {
                    return Ok(Some(Step::Yield));
                }
                if let Some(batch) = reading.batches.next().transpose()? {
                    if batch.num_rows() == 0 {
                        continue;
                    }
                    let sequence = reading.sequence;
                    reading.sequence += batch.num_rows() as u64;
                    return Ok(Some(Step::Rows(batch, sequence)));
                }
                *state = None;
            }
            drop(state);
            self.units.close(&unit);
            self.mine = None;
        }
    }
}
