//! Splits a run by time.
//!
//! ```text
//! run --> ship: times not at or beyond the frontier      keep: all other times, cut at some times
//!         a chunk with all times on one side moves as a whole, unread;
//!         otherwise its rows are gathered for each side
//! ```

use std::iter::once;
use std::ops::Range;
use std::sync::Arc;

use super::run::{Piece, Run};
use crate::chunk::{Builder, Chunk, Finish, Place, Wraps, time_of};
use windrow_pool::Pool;
use windrow_rows::{Antichain, Error, Layout, Result, Time};

/// Splits the rows of one run at a frontier.
pub(crate) struct Extract<'a, T> {
    layout: &'a Layout,
    tail: usize,
    lower: &'a Antichain<T>,
    upper: &'a Antichain<T>,
    /// Ascending times of a total order at which the kept rows are cut.
    cuts: &'a [T],
    ship: Side,
    /// Kept rows between two cuts, and the lower bounds of their times.
    keep: Vec<(Side, Antichain<T>)>,
    /// Workspace: the rows of a chunk for each side, the shipped ones first.
    places: Vec<Vec<Place>>,
}

/// Kept rows, and the lower bounds of their times.
pub(crate) type KeptRun<T> = (Run, Antichain<T>);

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

    /// Appends rows of a chunk.
    fn push(&mut self, chunk: &Arc<Chunk>, rows: Range<usize>) -> Result<()> {
        self.builder.push_run(chunk, rows)?;
        self.run.collect(&mut self.builder)
    }

    /// Appends a whole piece. A page is not read.
    fn pass(&mut self, piece: Piece) -> Result<()> {
        if let Piece::Resident(chunk) = &piece {
            return self.push(&chunk.whole()?, 0..chunk.len());
        }
        self.builder.flush();
        self.run.collect(&mut self.builder)?;
        self.run.pieces.push_back(piece);
        Ok(())
    }

    fn finish(mut self) -> Result<Run> {
        self.builder.flush();
        self.run.collect(&mut self.builder)?;
        Ok(self.run)
    }
}

impl<'a, T: Time> Extract<'a, T> {
    /// Returns an extraction of rows from `lower` on, split at `upper`, and from there on at `cuts`.
    /// Times are `T`, unless all rows lie before `upper`; cuts need a total order.
    pub(crate) fn new(
        layout: &'a Layout,
        pool: &'a Pool,
        (lower, upper): (&'a Antichain<T>, &'a Antichain<T>),
        cuts: &'a [T],
    ) -> Self {
        let ship = Side::new(layout, pool);
        let keep = (0..=cuts.len()).map(|_| (Side::new(layout, pool), Antichain::new())).collect();
        let tail = layout.tail().len();
        Self { layout, tail, lower, upper, cuts, ship, keep, places: Vec::new() }
    }

    /// Returns the number of the kept part with this time; `None` before `upper`.
    fn part(&self, time: T) -> Option<usize> {
        let kept = self.upper.less_equal(time);
        kept.then(|| self.cuts.partition_point(|cut| cut.less_equal(time)))
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
        while let Some(piece) = run.pieces.pop_front() {
            self.push(piece)?;
        }
        Ok(())
    }

    fn push(&mut self, piece: Piece) -> Result<()> {
        let all_before = self.upper.is_empty() && *self.lower == Antichain::least();
        if all_before {
            return self.ship.pass(piece);
        }
        if T::TOTAL
            && let Some(codes) = piece.times(self.layout, T::WIDTH)
        {
            let [least, greatest] = codes.map(|code| code.time::<T>());
            match (self.part(least), self.part(greatest)) {
                (Some(part), Some(last)) if part == last => {
                    let (side, frontier) = &mut self.keep[part];
                    frontier.insert(least);
                    return side.pass(piece);
                }
                (_, None) => {
                    self.check_lower(least)?;
                    return self.ship.pass(piece);
                }
                _ => {}
            }
        }
        self.push_rows(&piece.take()?)
    }

    /// Distributes the rows of a chunk.
    fn push_rows(&mut self, chunk: &Arc<Chunk>) -> Result<()> {
        let rows = chunk.rows();
        self.places.resize_with(self.keep.len() + 1, Vec::new);
        for index in 0..rows.len() {
            let time = self.time(rows.row(index));
            let part = match self.part(time) {
                Some(part) => {
                    self.keep[part].1.insert(time);
                    part + 1
                }
                None => {
                    self.check_lower(time)?;
                    0
                }
            };
            self.places[part].push(Place::of(index));
        }
        let sides = self.keep.iter_mut().map(|(side, _)| side);
        for (side, places) in once(&mut self.ship).chain(sides).zip(&mut self.places) {
            if places.len() == rows.len() {
                side.push(chunk, 0..rows.len())?;
            } else if !places.is_empty() {
                side.builder.append_picked(rows, places)?;
                side.run.collect(&mut side.builder)?;
            }
            places.clear();
        }
        Ok(())
    }

    fn check_lower(&self, time: T) -> Result<()> {
        if self.lower.less_equal(time) {
            return Ok(());
        }
        let (schema, lower) = (self.layout.schema(), self.lower.elements());
        let column = self.layout.time().map_or("(time)", |column| schema.field(column).name());
        let message = format!("a change at {time:?} came after all before {lower:?} was sealed");
        Err(Error::Value { column: column.to_owned(), message })
    }

    /// Returns the shipped run, and the kept runs with the lower bounds of their times.
    pub(crate) fn finish(self) -> Result<(Run, Vec<KeptRun<T>>)> {
        let keep = self.keep.into_iter().map(|(side, frontier)| Ok((side.finish()?, frontier)));
        Ok((self.ship.finish()?, keep.collect::<Result<_>>()?))
    }
}
