//! Distribution of the inputs' units over threads.
//!
//! ```text
//! units     [done][open: A][open: B][ ][ ]...
//! thread A  reads its unit piece by piece; thread B its own
//! none left a thread joins a unit that is open, or is being opened: of text it decodes there, of other formats only
//!           the rest is not serial
//! ```
//!
//! After an error no thread takes further pieces. Taken pieces before the error in the same file
//! are completed. Of several errors in one file, the first in the file is therefore reported,
//! whichever thread meets it, and whenever.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use arrow_array::RecordBatch;

use crate::error::{Error, Result};
use crate::input::{self, Inputs, OpenUnit, Unit, UnitReader};
use crate::lock::{lock, unlocked};
use crate::watch::Watch;

/// Number of bits of a row's number within a file. Higher bits number the files.
pub(super) const ROW_BITS: u32 = 40;

/// All units of the inputs. Each thread takes record batches until none are left.
pub(super) struct Units<'a> {
    inputs: &'a Inputs,
    watch: &'a Watch,
    next: Mutex<usize>,
    open: Mutex<Open>,
    /// Notified when a unit was opened, or failed to open.
    was_opened: Condvar,
    /// The first error, and its position in the whole input.
    error: Mutex<Option<(u64, Error)>>,
    failed: AtomicU64,
}

/// Open units, and the number of units being opened.
#[derive(Default)]
struct Open {
    units: Vec<Arc<Opened>>,
    opening: usize,
}

/// An open unit, and the ordinal of its file.
struct Opened {
    file: usize,
    unit: Arc<OpenUnit>,
}

/// A thread's reader of the units.
pub(super) struct Reader<'a> {
    units: &'a Units<'a>,
    mine: Option<(Arc<Opened>, UnitReader)>,
    /// Position in the whole input of the last record batch or error.
    place: u64,
}

/// The next action of a thread.
pub(super) enum Step {
    /// Take these rows. The number is the position of the first row in the whole input.
    Rows(RecordBatch, u64),
    /// Hand over all held rows: a row exceeds the plan, and the memory for rows may have shrunk.
    Yield,
}

impl<'a> Units<'a> {
    pub(super) fn new(inputs: &'a Inputs, watch: &'a Watch) -> Self {
        Self {
            inputs,
            watch,
            next: Mutex::default(),
            open: Mutex::default(),
            was_opened: Condvar::new(),
            error: Mutex::default(),
            failed: AtomicU64::new(u64::MAX),
        }
    }

    pub(super) fn reader(&'a self) -> Reader<'a> {
        Reader { units: self, mine: None, place: 0 }
    }

    /// Records `error`, at the last position of `reader`.
    pub(super) fn fail(&self, reader: &Reader<'_>, error: Error) {
        let mut first = lock(&self.error);
        if first.as_ref().is_none_or(|(place, _)| reader.place < *place) {
            *first = Some((reader.place, error));
        }
        self.failed.fetch_min(reader.place, Ordering::Relaxed);
    }

    /// Returns the first error of all readers.
    pub(super) fn outcome(self) -> Result<()> {
        let first = unlocked(self.error);
        first.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Opens the next unit. If none is left, returns an open unit, or waits for a unit being
    /// opened.
    fn claim(&self) -> Result<Option<Arc<Opened>>, (u64, Error)> {
        let Some((unit, opening)) = self.next() else {
            let open = lock(&self.open);
            let none = |open: &mut Open| open.units.is_empty() && open.opening > 0;
            let open = self.was_opened.wait_while(open, none);
            return Ok(open.unwrap_or_else(PoisonError::into_inner).units.last().cloned());
        };
        let opened = unit.open(self.watch);
        let unit = Arc::new(Opened {
            file: unit.file,
            unit: opened.map_err(|error| (place(unit.file, unit.first_row), error))?,
        });
        lock(&self.open).units.push(Arc::clone(&unit));
        drop(opening);
        Ok(Some(unit))
    }

    /// Takes the next unit. Prefetches it and its successor before any thread waits for either. A
    /// lock makes sure that each unit is prefetched once.
    fn next(&self) -> Option<(&Unit, OpeningGuard<'_>)> {
        let mut next = lock(&self.next);
        let unit = self.inputs.units.get(*next)?;
        *next += 1;
        lock(&self.open).opening += 1;
        let opening = OpeningGuard { open: &self.open, done: &self.was_opened };
        [unit].into_iter().chain(self.inputs.units.get(*next)).for_each(Unit::ask_for);
        Some((unit, opening))
    }
}

/// A guard: its unit counts as being opened until the guard is dropped.
struct OpeningGuard<'a> {
    open: &'a Mutex<Open>,
    done: &'a Condvar,
}

impl Drop for OpeningGuard<'_> {
    fn drop(&mut self) {
        lock(self.open).opening -= 1;
        self.done.notify_all();
    }
}

/// Returns the position of a file's row in the whole input.
fn place(file: usize, row: u64) -> u64 {
    ((file as u64) << ROW_BITS) + row
}

impl Reader<'_> {
    /// Returns the next step; `None` when all units are read, or after a failure.
    pub(super) fn next(&mut self) -> Result<Option<Step>> {
        let next = self.advance();
        next.map_err(|(place, error)| {
            self.place = place;
            error
        })
    }

    fn advance(&mut self) -> Result<Option<Step>, (u64, Error)> {
        loop {
            if self.has_failed() {
                return Ok(None);
            }
            let (opened, reader) = match &mut self.mine {
                Some(mine) => mine,
                None => match self.units.claim()? {
                    Some(opened) => {
                        let reader = opened.unit.reader();
                        self.mine.insert((opened, reader))
                    }
                    None => return Ok(None),
                },
            };
            let at = |row| place(opened.file, row);
            match reader.next().map_err(|(row, error)| (at(row), error))? {
                input::Step::Rows(batch, row) => {
                    self.place = at(row);
                    return Ok(Some(Step::Rows(batch, self.place)));
                }
                input::Step::Yield => return Ok(Some(Step::Yield)),
                input::Step::End => {
                    lock(&self.units.open).units.retain(|open| !Arc::ptr_eq(open, opened));
                    self.mine = None;
                }
            }
        }
    }

    /// Returns true if an error lies before the next row of this reader.
    fn has_failed(&self) -> bool {
        let failed = self.units.failed.load(Ordering::Relaxed);
        if failed == u64::MAX {
            return false;
        }
        let in_hand = self
            .mine
            .as_ref()
            .and_then(|(opened, reader)| Some(place(opened.file, reader.in_hand()?)));
        let is_before = |place: u64| place < failed && place >> ROW_BITS == failed >> ROW_BITS;
        !in_hand.is_some_and(is_before)
    }
}
