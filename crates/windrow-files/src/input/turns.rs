//! A unit that is read by any number of threads.
//!
//! ```text
//!  thread A  [take 0][decode 0 ....][finish 0]  rows 0..
//!  thread B          [take 1][decode 1 ...]  -  [finish 1]  rows ..
//!                     one at a time   |          in the order of pieces
//!                                  side by side
//! ```
//! Of text the decoding is side by side. Of other formats pieces are decoded as they are taken, and threads share the
//! units of a file.
//!
//! Invariant: rows are numbered as if one thread read them all, and of several errors the first in the unit is told.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;

use super::content::{Piece, Pieces};
use super::guard::{Guarded, Kept, Promise, no_panic};
use super::origin::Faults;
use super::{Batches, Unit};
use crate::error::{Error, Result};
use crate::watch::Watch;

/// A unit that threads take pieces of.
pub(crate) struct OpenUnit {
    promise: Promise,
    faults: Faults,
    /// The rows of the unit, where known.
    rows: Option<u64>,
    first_row: u64,
    source: Mutex<Source>,
    line: Mutex<Line>,
    finished: Condvar,
    /// Whether nobody is to take more.
    is_closed: AtomicBool,
}

/// Pieces that nobody has taken; none behind the last.
struct Source {
    pieces: Option<Pieces>,
    /// The number of the next piece.
    next: u64,
}

/// Pieces that were finished.
#[derive(Default)]
struct Line {
    /// The number of the piece that is finished next.
    next: u64,
    rows: u64,
    failed: bool,
}

/// A piece in hand, and its number; none stands for the end of the unit.
type Taken = (u64, Result<Option<Piece>>);

/// One thread's view of a unit.
pub(crate) struct UnitReader {
    unit: Arc<OpenUnit>,
    guarded: Guarded,
    /// The longest row that was planned for when this thread last looked.
    planned: u64,
}

/// What a thread does next.
pub(crate) enum Step {
    /// Takes these rows, the first of which has this place in its file.
    Rows(RecordBatch, u64),
    /// Hands over what it holds: a row is longer than was planned, and rows may have less memory.
    Yield,
    /// Leaves the unit.
    End,
}

/// An error, and the place in the file of the first row that it can be of.
pub(crate) type Failed = (u64, Error);

impl OpenUnit {
    pub(super) fn new(unit: &Unit, watch: &Watch) -> Result<Arc<Self>> {
        let file = &unit.files[unit.file];
        let name = Arc::clone(file.content.name());
        let faults = file.content.faults();
        let (part, batch_rows) = (unit.part.clone(), unit.batch_rows);
        let read = || match &unit.kept {
            Some(rows) => file.content.read_some(part.clone(), rows, batch_rows, watch),
            None => file.content.read(part.clone(), batch_rows, watch),
        };
        let pieces = no_panic(&name, read).map_err(|error| faults.behind(error))?;
        Ok(Arc::new(Self {
            promise: Promise {
                name,
                schema: Arc::clone(&unit.schema),
                order: file.order.clone(),
                batch_rows: unit.batch_rows,
                watch: watch.clone(),
            },
            faults,
            rows: unit.rows,
            first_row: unit.first_row,
            source: Mutex::new(Source { pieces: Some(pieces), next: 0 }),
            line: Mutex::default(),
            finished: Condvar::new(),
            is_closed: AtomicBool::new(false),
        }))
    }

    /// The view of a thread more.
    pub(crate) fn reader(self: &Arc<Self>) -> UnitReader {
        let planned = self.promise.watch.longest.planned();
        UnitReader { unit: Arc::clone(self), guarded: Guarded::new(), planned }
    }

    fn take(&self, source: &mut Source) -> Option<Taken> {
        if self.is_closed.load(Ordering::Relaxed) {
            return None;
        }
        let pieces = source.pieces.as_mut()?;
        let piece = no_panic(&self.promise.name, || pieces.next().transpose());
        if !matches!(piece, Ok(Some(_))) {
            source.pieces = None;
        }
        let number = source.next;
        source.next += 1;
        Some((number, piece))
    }

    /// The rows of a piece, and the place in the file of the first; none behind the end or an error.
    fn finish(&self, (number, piece): Taken) -> Result<Option<(u64, Vec<RecordBatch>)>, Failed> {
        let name = &self.promise.name;
        let mut piece = piece;
        if let Ok(Some(Piece::Text(text))) = &mut piece {
            // If it fails so, it does again when it is finished, unless it was not to be decoded alone.
            let _panicked = no_panic(name, || {
                text.decode();
                Ok(())
            });
        }
        let mut line = lock(&self.line);
        while line.next != number {
            line = self.finished.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
        line.next += 1;
        self.finished.notify_all();
        if line.failed {
            return Ok(None);
        }
        let row = self.first_row + line.rows;
        let left = match &piece {
            Ok(Some(Piece::Left(rows))) => *rows,
            _ => 0,
        };
        let batches = piece.and_then(|piece| match piece {
            None => self.check_rows(line.rows).map(|()| None),
            Some(Piece::Rows(batch)) => Ok(Some(vec![batch])),
            Some(Piece::Left(_)) => Ok(Some(Vec::new())),
            Some(Piece::Text(text)) => no_panic(name, || text.finish()).map(Some),
        });
        match batches {
            Ok(Some(batches)) => {
                let rows = batches.iter().map(|batch| batch.num_rows() as u64);
                line.rows += left + rows.sum::<u64>();
                Ok(Some((row, batches)))
            }
            Ok(None) => Ok(None),
            Err(error) => {
                line.failed = true;
                self.is_closed.store(true, Ordering::Relaxed);
                Err((row, self.faults.behind(error)))
            }
        }
    }

    fn check_rows(&self, seen: u64) -> Result<()> {
        match self.rows {
            Some(rows) if rows != seen => Err(Error::data(format!(
                "{}: the file is damaged: {seen} rows were read where {rows} are recorded",
                self.promise.name
            ))),
            _ => Ok(()),
        }
    }
}

impl UnitReader {
    /// The next rows for this thread.
    pub(crate) fn next(&mut self) -> Result<Step, Failed> {
        let Self { unit, guarded, planned } = self;
        let longest = &unit.promise.watch.longest;
        let mut is_longer = || {
            let now = longest.planned();
            std::mem::replace(planned, now) != now
        };
        loop {
            if is_longer() {
                return Ok(Step::Yield);
            }
            let row = guarded.first();
            let kept = guarded.next(&unit.promise).map_err(|error| {
                unit.is_closed.store(true, Ordering::Relaxed);
                (row.unwrap_or(unit.first_row), unit.faults.behind(error))
            })?;
            match kept {
                Kept::Rows(batch, row) => return Ok(Step::Rows(batch, row)),
                Kept::Longer => continue,
                Kept::Nothing => {}
            }
            let mut source = lock(&unit.source);
            // Before the row is decoded, by whoever comes to it.
            if is_longer() {
                return Ok(Step::Yield);
            }
            let Some(taken) = unit.take(&mut source) else { return Ok(Step::End) };
            drop(source);
            let Some((row, batches)) = unit.finish(taken)? else { return Ok(Step::End) };
            guarded.put(row, batches);
        }
    }

    /// The place in its file of the next row that this thread has in hand, if it has one.
    pub(crate) fn in_hand(&self) -> Option<u64> {
        self.guarded.first()
    }
}

/// All rows of a unit, for one thread.
pub(super) fn batches(unit: &Arc<OpenUnit>) -> Batches {
    let mut reader = Some(unit.reader());
    Box::new(std::iter::from_fn(move || {
        loop {
            match reader.as_mut()?.next() {
                Ok(Step::Rows(batch, _)) => return Some(Ok(batch)),
                Ok(Step::Yield) => {}
                Ok(Step::End) => reader = None,
                Err((_, error)) => {
                    reader = None;
                    return Some(Err(error));
                }
            }
        }
    }))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
