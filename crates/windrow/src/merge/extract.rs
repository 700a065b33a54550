//! Splits a run by time.
//!
//! ```text
//! run --> ship: times not at or beyond the frontier      keep: all other times
//!         a chunk with all times on one side moves as a whole, unread;
//!         otherwise its rows move in stretches of neighbours
//! ```

use std::ops::Range;
use std::sync::Arc;

use super::run::{Piece, Run};
use crate::chunk::{Builder, Chunk, Finish, Wraps, time_of};
use windrow_pool::Pool;
use windrow_rows::{Antichain, Error, Layout, Result, Time};

/// Splits the rows of one run at a frontier.
pub(crate) struct Extract<'a, T> {
    layout: &'a Layout,
    tail: usize,
    lower: &'a Antichain<T>,
    upper: &'a Antichain<T>,
    ship: Side,
    keep: Side,
    /// The lower bounds of the kept times.
    frontier: Antichain<T>,
}

struct Side {
    builder: Builder,
    run: Run,
}

impl Side {
    fn new(layout: &Layout, pool: &Pool) -> Self {
        // No equal rows meet here, so no sum overflows.
        let builder = Builder::new(layout, pool, Finish::Log, &Wraps::default());
        Self { builder, run: Run::default() }
    }

    fn collect(&mut self) -> Result<()> {
        while let Some(chunk) = self.builder.take() {
            self.run.push_within(self.builder.pool(), chunk)?;
        }
        Ok(())
    }

    /// Appends a page.
    fn pass(&mut self, piece: Piece) -> Result<()> {
        self.builder.flush();
        self.collect()?;
        self.run.push_piece(piece);
        Ok(())
    }

    fn finish(mut self) -> Result<Run> {
        self.builder.flush();
        self.collect()?;
        Ok(self.run)
    }
}

impl<'a, T: Time> Extract<'a, T> {
    /// Returns an extraction of rows from `lower` on, split at `upper`. Times are `T`, unless all
    /// rows lie before `upper`.
    pub(crate) fn new(
        layout: &'a Layout,
        pool: &'a Pool,
        (lower, upper): (&'a Antichain<T>, &'a Antichain<T>),
    ) -> Self {
        let (ship, keep) = (Side::new(layout, pool), Side::new(layout, pool));
        let tail = layout.tail().len();
        Self { layout, tail, lower, upper, ship, keep, frontier: Antichain::new() }
    }

    fn time(&self, row: &[u8]) -> T {
        T::decode(time_of(row, T::WIDTH, self.tail))
    }

    /// Takes the next chunk.
    pub(crate) fn push_chunk(&mut self, chunk: Arc<Chunk>) -> Result<()> {
        self.push(Piece::Resident(chunk.into()))
    }

    /// Takes a run. Pieces on one side as a whole are not read.
    pub(crate) fn push_run(&mut self, mut run: Run) -> Result<()> {
        while let Some(piece) = run.pop() {
            self.push(piece)?;
        }
        Ok(())
    }

    fn push(&mut self, piece: Piece) -> Result<()> {
        let all_before = self.upper.is_empty() && *self.lower == Antichain::least();
        if all_before {
            return self.ship_whole(piece);
        }
        if T::TOTAL
            && let Some(codes) = piece.times(self.layout, T::WIDTH)
        {
            let [least, greatest] = codes.map(|code| code.time::<T>());
            if self.upper.less_equal(least) {
                self.frontier.insert(least);
                return match piece {
                    Piece::Resident(chunk) => self.keep_run(&chunk.whole()?, 0..chunk.len()),
                    spilled => self.keep.pass(spilled),
                };
            }
            if !self.upper.less_equal(greatest) {
                self.check_lower(least)?;
                return self.ship_whole(piece);
            }
        }
        self.push_rows(&piece.take()?)
    }

    fn ship_whole(&mut self, piece: Piece) -> Result<()> {
        match piece {
            Piece::Resident(chunk) => {
                self.ship.builder.push_run(&chunk.whole()?, 0..chunk.len())?;
                self.ship.collect()
            }
            spilled => self.ship.pass(spilled),
        }
    }

    fn keep_run(&mut self, chunk: &Arc<Chunk>, range: Range<usize>) -> Result<()> {
        self.keep.builder.push_run(chunk, range)?;
        self.keep.collect()
    }

    /// Splits a chunk into ranges of rows on the same side.
    fn push_rows(&mut self, chunk: &Arc<Chunk>) -> Result<()> {
        let rows = chunk.rows();
        let mut start = 0;
        while start < rows.len() {
            let first = self.time(rows.row(start));
            let kept = self.upper.less_equal(first);
            let mut end = start;
            while end < rows.len() {
                let time = self.time(rows.row(end));
                if self.upper.less_equal(time) != kept {
                    break;
                }
                if kept {
                    self.frontier.insert(time);
                } else {
                    self.check_lower(time)?;
                }
                end += 1;
            }
            if kept {
                self.keep_run(chunk, start..end)?;
            } else {
                self.ship.builder.push_run(chunk, start..end)?;
                self.ship.collect()?;
            }
            start = end;
        }
        Ok(())
    }

    fn check_lower(&self, time: T) -> Result<()> {
        if self.lower.less_equal(time) {
            return Ok(());
        }
        Err(late(self.layout, time, self.lower))
    }

    /// Returns the shipped run, the kept run, and the lower bounds of the kept times.
    pub(crate) fn finish(self) -> Result<(Run, Run, Antichain<T>)> {
        let (ship, keep) = (self.ship.finish()?, self.keep.finish()?);
        Ok((ship, keep, self.frontier))
    }
}

fn late<T: Time>(layout: &Layout, time: T, lower: &Antichain<T>) -> Error {
    let column = layout.time().map_or("(time)", |column| layout.schema().field(column).name());
    Error::Value {
        column: column.to_owned(),
        message: format!(
            "a change at {time:?} came after all before {:?} was sealed",
            lower.elements()
        ),
    }
}
