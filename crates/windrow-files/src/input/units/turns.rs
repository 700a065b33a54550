//! Reading of one unit by any number of threads.
//!
//! ```text
//!  thread A  [take 0][decode 0 ....][finish 0]  rows 0..
//!  thread B          [take 1][decode 1 ...]  -  [finish 1]  rows ..
//!                     one at a time   |          in the order of pieces
//!                                  side by side
//! ```
//! Text is decoded concurrently. Other formats are decoded when a piece is taken, and threads share
//! the units of a file instead.
//!
//! Invariant: rows are numbered as if one thread had read them all. Of several errors, the first in
//! the unit is reported.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use arrow_array::RecordBatch;

use crate::error::{Error, Result};
use crate::input::opened::{Batches, Piece, Pieces};
use crate::input::source::origin::Faults;
use crate::lock::lock;
use crate::watch::Watch;

use super::guard::{Admitted, Guarded, Promise, no_panic};
use super::unit::{File, Unit};

/// A unit whose pieces are distributed over threads.
pub(crate) struct OpenUnit {
    promise: Promise,
    files: Arc<[File]>,
    /// The ordinal of the file.
    file: usize,
    faults: Faults,
    /// Number of rows of the unit, if known.
    rows: Option<u64>,
    first_row: u64,
    source: Mutex<Untaken>,
    line: Mutex<Line>,
    finished: Condvar,
    /// Whether no more pieces may be taken.
    is_closed: AtomicBool,
}

/// Pieces not taken yet; `None` after the last.
struct Untaken {
    pieces: Option<Pieces>,
    /// Number of the next piece.
    next: u64,
}

/// State of the finished pieces.
#[derive(Default)]
struct Line {
    /// Number of the next piece to finish.
    next: u64,
    rows: u64,
    failed: bool,
}

/// The number of a taken piece, and the piece; `None` at the end of the unit.
type Taken = (u64, Result<Option<Piece>>);

/// A thread's reader of a unit.
pub(crate) struct UnitReader {
    unit: Arc<OpenUnit>,
    guarded: Guarded,
    /// Planned length of the longest row, at this thread's last check.
    planned: u64,
}

/// The next action of a thread.
pub(crate) enum Step {
    /// Take these rows. The number is the position in the file of the first row.
    Rows(RecordBatch, u64),
    /// Hand over all held rows: a row exceeds the plan, and the memory for rows may have shrunk.
    Yield,
    /// Leave the unit.
    End,
}

/// An error, and the position in the file of the first row it may belong to.
pub(crate) type Failed = (u64, Error);

impl OpenUnit {
    pub(super) fn new(unit: &Unit, watch: &Watch) -> Result<Arc<Self>> {
        let file = &unit.files[unit.file];
        let name = Arc::clone(&file.about.name);
        let faults = file.about.faults.clone();
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
            files: Arc::clone(&unit.files),
            file: unit.file,
            faults,
            rows: unit.rows,
            first_row: unit.first_row,
            source: Mutex::new(Untaken { pieces: Some(pieces), next: 0 }),
            line: Mutex::default(),
            finished: Condvar::new(),
            is_closed: AtomicBool::new(false),
        }))
    }

    /// Returns a reader for another thread.
    pub(crate) fn reader(self: &Arc<Self>) -> UnitReader {
        let planned = self.promise.watch.longest.planned();
        UnitReader { unit: Arc::clone(self), guarded: Guarded::new(), planned }
    }

    fn take(&self, source: &mut Untaken) -> Option<Taken> {
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

    /// Returns the rows of a piece, and the position in the file of the first; `None` after the end
    /// or after an error.
    fn finish(&self, (number, piece): Taken) -> Result<Option<(u64, Vec<RecordBatch>)>, Failed> {
        let name = &self.promise.name;
        let mut piece = piece;
        if let Ok(Some(Piece::Text(text))) = &mut piece {
            // A failed decoding fails again in `finish`, unless the text could not be decoded
            // alone.
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
        let batches = batches.and_then(|batches| self.whole(batches));
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

    /// Appends the values of the names of directories.
    fn whole(&self, batches: Option<Vec<RecordBatch>>) -> Result<Option<Vec<RecordBatch>>> {
        match (batches, &self.files[self.file].appendix) {
            (Some(batches), Some(appendix)) => {
                batches.iter().map(|batch| appendix.behind(batch)).collect::<Result<_>>().map(Some)
            }
            (batches, _) => Ok(batches),
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
    /// Returns the next step for this thread.
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
                Admitted::Rows(batch, row) => return Ok(Step::Rows(batch, row)),
                Admitted::Longer => continue,
                Admitted::Nothing => {}
            }
            let mut source = lock(&unit.source);
            // Yield before the long row is decoded, on whichever thread.
            if is_longer() {
                return Ok(Step::Yield);
            }
            let Some(taken) = unit.take(&mut source) else { return Ok(Step::End) };
            drop(source);
            let Some((row, batches)) = unit.finish(taken)? else { return Ok(Step::End) };
            guarded.put(row, batches);
        }
    }

    /// Returns the position in its file of this thread's next row, if there is one.
    pub(crate) fn in_hand(&self) -> Option<u64> {
        self.guarded.first()
    }
}

/// Returns all rows of a unit, for one thread.
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

impl Unit {
    /// Reads the unit: batches of at most `batch_rows` rows, exactly of [`Inputs::schema`](crate::Inputs::schema).
    ///
    /// The file is open while the iterator lives. After an error the iterator ends.
    pub(crate) fn read(&self, watch: &Watch) -> Result<Batches> {
        self.open(watch).map(|unit| batches(&unit))
    }

    /// Opens the unit for any number of threads. The batches are the same as from [`Unit::read`].
    ///
    /// The file is open while any thread reads.
    pub(crate) fn open(&self, watch: &Watch) -> Result<Arc<OpenUnit>> {
        OpenUnit::new(self, watch)
    }

    /// Prefetches the bytes of the unit.
    pub(crate) fn ask_for(&self) {
        self.files[self.file].content.ask_for(self.part.clone());
    }
}
